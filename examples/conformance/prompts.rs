//! The prompts that the conformance suite gets.

use longhaul::{
    Content, Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, OnCrash, Prompt, PromptMessage, PromptResult, Server,
};
use serde::Deserialize;

use super::content::PNG;

pub(crate) fn offer(server: Server) -> Server {
    server.prompts([
        Prompt::new("test_simple_prompt", simple).description("A prompt without arguments."),
        Prompt::new("test_prompt_with_arguments", with_arguments)
            .description("A prompt with two arguments.")
            .complete_from("arg1", ["paris", "park", "party", "testValue1"]),
        Prompt::new("test_prompt_with_embedded_resource", with_resource).description("A prompt with a resource in it."),
        Prompt::new("test_prompt_with_image", with_image).description("A prompt with a picture in it."),
        Prompt::new("test_input_required_result_prompt", asking)
            .description("A prompt that asks for its context.")
            .durable(OnCrash::Resume),
    ])
}

async fn simple(_: Ctx, _: NoArgs) -> Result<&'static str, Failure> {
    Ok("This is a simple prompt for testing.")
}

#[derive(Deserialize, JsonSchema)]
struct TwoArguments {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

async fn with_arguments(_: Ctx, TwoArguments { arg1, arg2 }: TwoArguments) -> Result<String, Failure> {
    Ok(format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ResourceArgument {
    /// URI of the resource to embed
    resource_uri: String,
}

async fn with_resource(
    _: Ctx,
    ResourceArgument { resource_uri }: ResourceArgument,
) -> Result<[PromptMessage; 2], Failure> {
    let text = "Embedded resource content for testing.";
    let resource = Content::embedded_text(&resource_uri, text, Some("text/plain"));
    Ok([PromptMessage::user(resource), PromptMessage::user("Please process the embedded resource above.")])
}

async fn with_image(_: Ctx, _: NoArgs) -> Result<PromptResult, Failure> {
    Ok(PromptResult::new()
        .with(PromptMessage::user(Content::image(PNG, "image/png")))
        .with(PromptMessage::user("Please analyze the image above.")))
}

#[derive(Deserialize, JsonSchema)]
struct Context {
    context: String,
}

async fn asking(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    let question = Form::<Context>::new("What context should the prompt use?");
    match ctx.ask("user_context", question).await? {
        FormAnswer::Accepted(Context { context }) => Ok(format!("Use this context: {context}")),
        FormAnswer::Declined | FormAnswer::Dismissed => Err(Failure::tool("It takes a context.")),
    }
}
