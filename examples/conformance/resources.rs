//! The resources that the conformance suite reads, and tools that change what the server offers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use longhaul::{
    Ctx, Error, Failure, JsonSchema, NoArgs, OnCrash, Prompt, Resource, ResourceTemplate, Server, ServerHandle,
    TaskSupport, Tool,
};
use serde::Deserialize;
use serde_json::json;

use super::content::PNG;

pub(crate) fn offer(server: Server) -> Server {
    let handle = server.handle();
    server
        .resources([
            Resource::text("test://static-text", "This is the content of the static text resource.")
                .name("Static text")
                .description("A text that does not change."),
            Resource::blob("test://static-binary", PNG).mime_type("image/png").description("A picture of one pixel."),
            Resource::new("test://watched-resource", |_: Ctx| async { Ok("Nothing has happened yet.") })
                .mime_type("text/plain")
                .description("A resource to subscribe to."),
        ])
        .resource_template(
            ResourceTemplate::new("test://template/{id}/data", data)
                .mime_type("application/json")
                .description("Data of any ID.")
                .complete_from("id", ["123", "456"])
                .durable(OnCrash::Resume),
        )
        .tools([
            change("test_trigger_tool_change", &handle, |handle, adds| async move {
                let tool = Tool::new("test_changing_tool", |_: Ctx, _: NoArgs| async { Ok("I come and go.") })
                    .description("A tool that comes and goes.");
                if adds {
                    handle.put_tool(tool).await
                } else {
                    handle.remove_tool("test_changing_tool").await.map(drop)
                }
            }),
            change("test_trigger_prompt_change", &handle, |handle, adds| async move {
                let name = "test_changing_prompt";
                let prompt = Prompt::new(name, |_: Ctx, _: NoArgs| async { Ok("I come and go.") })
                    .description("A prompt that comes and goes.");
                if adds { handle.put_prompt(prompt).await } else { handle.remove_prompt(name).await.map(drop) }
            }),
            change("test_trigger_resource_update", &handle, |handle, _| async move {
                handle.resource_updated("test://watched-resource");
                Ok(())
            }),
        ])
}

/// A tool that changes what the server offers. Its function is told whether to add something or to remove it again.
fn change<F, Fut>(name: &str, handle: &ServerHandle, function: F) -> Tool
where
    F: Fn(ServerHandle, bool) -> Fut + Copy + Send + Sync + 'static,
    Fut: Future<Output = Result<(), Error>> + Send + 'static,
{
    let (handle, is_added) = (handle.clone(), Arc::new(AtomicBool::new(false)));
    let tool = Tool::new(name, move |_: Ctx, _: NoArgs| {
        let adds = !is_added.fetch_xor(true, Ordering::Relaxed);
        let changing = function(handle.clone(), adds);
        async move {
            changing.await?;
            Ok("It is changed.")
        }
    });
    tool.description("Changes what the server offers.").task_support(TaskSupport::Forbidden)
}

#[derive(Deserialize, JsonSchema)]
struct DataId {
    id: String,
}

async fn data(_: Ctx, DataId { id }: DataId) -> Result<String, Failure> {
    Ok(json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }).to_string())
}
