//! Tools whose declarations matter more than what they do.

use longhaul::{Ctx, Failure, JsonSchema, TaskSupport, Tool};
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) fn greeting() -> Vec<Tool> {
    vec![Tool::new("greet", greet).description("Greets, at once.").task_support(TaskSupport::Forbidden)]
}

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("json_schema_2020_12_tool", keep_schema)
            .description("Its schema reaches clients as it is.")
            .input_schema(&schema_2020_12())
            .task_support(TaskSupport::Forbidden),
        Tool::new("test_custom_header", custom_header)
            .description("One of its arguments is mirrored in a header.")
            .input_schema(&json!({
                "type": "object",
                "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
            }))
            .task_support(TaskSupport::Forbidden),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

async fn greet(_: Ctx, Greet { name }: Greet) -> Result<String, Failure> {
    Ok(format!("Hello, {name}!"))
}

async fn keep_schema(_: Ctx, arguments: Value) -> Result<String, Failure> {
    Ok(arguments.to_string())
}

async fn custom_header(_: Ctx, arguments: Value) -> Result<String, Failure> {
    Ok(arguments["region"].as_str().unwrap_or("nowhere").to_owned())
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
