//! Ordinary calls of the stateful era that ask their client, or talk to it, while it waits.

use std::borrow::Cow;
use std::time::Duration;

use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, Sampling, Severity, TaskSupport, Tool};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_logging_tool", logging).description("Logs three lines, for clients that asked for them."),
        Tool::new("test_reconnection", logging).description("Says something long before its answer."),
        Tool::new("test_sampling", sampling).description("Asks the client's model."),
        Tool::new("test_elicitation", elicitation).description("Asks the user who they are."),
        Tool::new("test_elicitation_sep1034_defaults", defaults).description("Asks with a default for each field."),
        Tool::new("test_elicitation_sep1330_enums", enums).description("Asks for choices of every kind."),
    ]
    .into_iter()
    .map(|tool| tool.task_support(TaskSupport::Forbidden))
    // What it logs as a task is heard, too.
    .chain([Tool::new("test_tool_with_logging", logging).description("Logs three lines.")])
    .collect()
}

async fn logging(ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    ctx.log(Severity::Info, "Tool execution started");
    tokio::time::sleep(Duration::from_millis(50)).await;
    ctx.log(Severity::Info, "Tool processing data");
    tokio::time::sleep(Duration::from_millis(50)).await;
    ctx.log(Severity::Info, "Tool execution completed");
    Ok("Three lines were logged.".into())
}

#[derive(Deserialize, JsonSchema)]
struct Prompt {
    prompt: String,
}

async fn sampling(mut ctx: Ctx, Prompt { prompt }: Prompt) -> Result<String, Failure> {
    let said = ctx.ask("model", Sampling::new(prompt).tokens_max(100)).await?;
    Ok(format!("LLM response: {}", said.text()))
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct User {
    /// User's response
    username: String,
    /// User's email address
    email: String,
}

async fn elicitation(mut ctx: Ctx, Message { message }: Message) -> Result<String, Failure> {
    said("User response", &ctx.ask("user", Form::<User>::new(message)).await?)
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Defaults {
    name: String,
    age: i64,
    score: f64,
    #[schemars(extend("enum" = ["active", "inactive", "pending"]))]
    status: String,
    verified: bool,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { name: "John Doe".into(), age: 30, score: 95.5, status: "active".into(), verified: true }
    }
}

async fn defaults(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    said("Elicitation completed", &ctx.ask("defaults", Form::<Defaults>::new("Please check these.")).await?)
}

/// A form whose schema is written by hand: every way in which the protocol can offer a choice, the oldest included.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Choices(Value);

impl JsonSchema for Choices {
    fn schema_name() -> Cow<'static, str> {
        "Choices".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let plain = ["option1", "option2", "option3"];
        json_schema!({
            "type": "object",
            "properties": {
                "untitledSingle": { "type": "string", "enum": plain },
                "titledSingle": {
                    "type": "string",
                    "oneOf": [
                        { "const": "value1", "title": "First Option" },
                        { "const": "value2", "title": "Second Option" },
                        { "const": "value3", "title": "Third Option" },
                    ],
                },
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
                "titledMulti": {
                    "type": "array",
                    "items": {
                        "anyOf": [
                            { "const": "value1", "title": "First Choice" },
                            { "const": "value2", "title": "Second Choice" },
                            { "const": "value3", "title": "Third Choice" },
                        ],
                    },
                },
            },
        })
    }
}

async fn enums(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    said("Elicitation completed", &ctx.ask("choices", Form::<Choices>::new("Please choose.")).await?)
}

fn said<T: Serialize>(what: &str, filled: &FormAnswer<T>) -> Result<String, Failure> {
    Ok(match filled {
        FormAnswer::Accepted(fields) => {
            let fields = serde_json::to_string(fields).map_err(|error| Failure::tool(error.to_string()))?;
            format!("{what}: action=accept, content={fields}")
        }
        FormAnswer::Declined => format!("{what}: action=decline"),
        FormAnswer::Dismissed => format!("{what}: action=cancel"),
    })
}
