//! A report service: a tool that writes reports as durable tasks, resources to read them, and prompts to talk about them.
//!
//! `cargo run --release -p longhaul --example report_service`

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use longhaul::{
    Content, Ctx, Failure, JsonSchema, NoArgs, OnCrash, Prompt, PromptMessage, Resource, ResourceTemplate, Server,
    ServerHandle, StoreUrl, Structured, Tool,
};
use serde::{Deserialize, Serialize};

/// The reports, by topic. A real service would keep them in a database.
#[derive(Clone, Default)]
struct Reports(Arc<Mutex<BTreeMap<String, String>>>);

impl Reports {
    fn with<T>(&self, read: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn of(&self, topic: &str) -> Option<String> {
        self.with(|reports| reports.get(topic).cloned())
    }

    fn topics(&self) -> Vec<String> {
        self.with(|reports| reports.keys().cloned().collect())
    }
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// What the report is about: letters and digits
    topic: String,
    /// How many sections it has
    #[serde(default = "sections")]
    sections: u32,
}

fn sections() -> u32 {
    3
}

#[derive(Serialize, JsonSchema)]
struct Written {
    /// Where the report can be read
    uri: String,
}

fn write_report(reports: Reports, server: ServerHandle) -> Tool {
    Tool::new("write_report", move |mut ctx: Ctx, Order { topic, sections }| {
        let (reports, server) = (reports.clone(), server.clone());
        async move {
            if topic.is_empty() || !topic.chars().all(char::is_alphanumeric) {
                return Err(Failure::permanent("A topic has letters and digits only."));
            }
            let mut text = format!("# {topic}\n");
            for section in 1..=sections {
                ctx.progress(section, sections, &format!("section {section} of {sections}")).await?;
                ctx.sleep("research", Duration::from_millis(500)).await?;
                text += &ctx
                    .step("write", || async { Ok::<_, Failure>(format!("\n{section}. All about {topic}.")) })
                    .await?;
            }
            reports.with(|all| all.insert(topic.clone(), text));
            let uri = format!("report://topics/{topic}");
            server.resource_updated("report://index");
            server.resource_updated(&uri);
            Ok(Structured(Written { uri: uri.clone() }).with_text(format!("The report can be read at {uri}")))
        }
    })
    .title("Write a report")
    .description("Writes a report on a topic. It takes a while, and survives a crash of the server.")
    .on_crash(OnCrash::Resume)
}

fn index(reports: Reports) -> Resource {
    Resource::new("report://index", move |_: Ctx| {
        let lines = reports.topics().into_iter().map(|topic| format!("- report://topics/{topic}\n"));
        let text = format!("# Reports\n\n{}", lines.collect::<String>());
        async { Ok(text) }
    })
    .title("All reports")
    .description("The reports that have been written.")
    .mime_type("text/markdown")
}

#[derive(Deserialize, JsonSchema)]
struct Topic {
    /// A topic that has a report
    topic: String,
}

fn by_topic(reports: Reports) -> ResourceTemplate {
    let known = reports.clone();
    ResourceTemplate::new("report://topics/{topic}", move |_: Ctx, Topic { topic }| {
        let report = reports.of(&topic);
        async { Ok(report) }
    })
    .name("report")
    .title("A report")
    .mime_type("text/markdown")
    .complete("topic", move |request| {
        let mut topics = known.topics();
        topics.retain(|topic| topic.starts_with(&request.value));
        async { Ok(topics) }
    })
}

fn summarize(reports: Reports) -> Prompt {
    let known = reports.clone();
    Prompt::new("summarize", move |_: Ctx, Topic { topic }| {
        let report = reports.of(&topic);
        async move {
            let report = report.ok_or_else(|| Failure::protocol(-32602, "There is no report on this topic."))?;
            let uri = format!("report://topics/{topic}");
            Ok([
                PromptMessage::user(Content::embedded_text(&uri, &report, Some("text/markdown"))),
                PromptMessage::user(format!("Summarize this report on {topic} in one sentence.")),
            ])
        }
    })
    .title("Summarize a report")
    .description("Asks for the summary of a report.")
    .complete("topic", move |request| {
        let mut topics = known.topics();
        topics.retain(|topic| topic.starts_with(&request.value));
        async { Ok(topics) }
    })
}

fn propose() -> Prompt {
    Prompt::new("propose_topics", |_: Ctx, _: NoArgs| async {
        Ok("Propose three topics for new reports. Look at report://index for those that exist.")
    })
    .title("Propose topics")
}

fn service() -> Server {
    let reports = Reports::default();
    reports.with(|all| all.insert("otters".into(), "# otters\n\nOtters hold hands while they sleep.".into()));
    let server = Server::new("reports").instructions("Writes reports. Read report://index for those that exist.");
    let handle = server.handle();
    server
        .tool(write_report(reports.clone(), handle))
        .prompts([summarize(reports.clone()), propose()])
        .resources([
            index(reports.clone()),
            Resource::text("report://help", "Call write_report with a topic, then read report://topics/TOPIC."),
        ])
        .resource_template(by_topic(reports))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8377".into());
    let store = "memory:".parse::<StoreUrl>()?.open().await?;
    let server = service().start(store).await?.listen(address.parse()?).await?;
    println!("http://{}/mcp", server.address());
    Ok(server.serve_until(tokio::signal::ctrl_c()).await?)
}

#[cfg(test)]
mod tests {
    use longhaul::Caller;
    use serde_json::{Value, json};

    use super::*;

    /// Sends one request of 2026-07-28, and returns its result.
    async fn ask(server: &longhaul::RunningServer, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let caller = Caller::known(longhaul::Owner::parse("ada").expect("a name"));
        let mut client = server.receiver().connect_in_memory(caller);
        client.send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()).await;
        let message: Value = serde_json::from_str(&client.next().await.expect("a response")).expect("JSON");
        message["result"].clone()
    }

    #[tokio::test]
    async fn a_report_is_written_listed_read_completed_and_summarized() {
        let server = service().start("memory:".parse::<StoreUrl>().unwrap().open().await.unwrap()).await.unwrap();
        let call = json!({ "name": "write_report", "arguments": { "topic": "beavers", "sections": 1 } });
        let written = ask(&server, "tools/call", call).await;
        assert_eq!(written["structuredContent"]["uri"], "report://topics/beavers", "{written}");
        let index = ask(&server, "resources/read", json!({ "uri": "report://index" })).await;
        assert_eq!(index["contents"][0]["text"], "# Reports\n\n- report://topics/beavers\n- report://topics/otters\n");
        let report = ask(&server, "resources/read", json!({ "uri": "report://topics/beavers" })).await;
        assert_eq!(report["contents"][0]["text"], "# beavers\n\n1. All about beavers.");
        let reference = json!({ "type": "ref/prompt", "name": "summarize" });
        let typed = json!({ "ref": reference, "argument": { "name": "topic", "value": "b" } });
        let completed = ask(&server, "completion/complete", typed).await;
        assert_eq!(completed["completion"]["values"], json!(["beavers"]));
        let prompt = json!({ "name": "summarize", "arguments": { "topic": "beavers" } });
        let prompt = ask(&server, "prompts/get", prompt).await;
        let asked = &prompt["messages"][1]["content"]["text"];
        assert_eq!(asked, "Summarize this report on beavers in one sentence.");
    }
}
