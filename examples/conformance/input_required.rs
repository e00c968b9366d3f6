//! Ordinary calls that ask their client before they go on.

use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, Roots, Sampling, TaskSupport, Tool};
use serde::Deserialize;

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("test_input_required_result_elicitation", elicitation),
        Tool::new("test_input_required_result_sampling", sampling),
        Tool::new("test_input_required_result_list_roots", list_roots),
        Tool::new("test_input_required_result_request_state", request_state),
        Tool::new("test_input_required_result_multiple_inputs", multiple_inputs),
        Tool::new("test_input_required_result_multi_round", multi_round),
        Tool::new("test_input_required_result_tampered_state", request_state),
        Tool::new("test_input_required_result_capabilities", capabilities),
        Tool::new("test_streaming_elicitation", elicitation),
        Tool::new("test_missing_capability", sampling),
    ]
    .into_iter()
    .map(|tool| tool.description("Asks its client.").task_support(TaskSupport::Forbidden))
    .collect()
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmation {
    ok: bool,
}

fn accepted<T>(filled: FormAnswer<T>) -> Result<T, Failure> {
    match filled {
        FormAnswer::Accepted(fields) => Ok(fields),
        FormAnswer::Declined | FormAnswer::Dismissed => Err(Failure::tool("It takes an answer.")),
    }
}

async fn elicitation(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    let Name { name } = accepted(ctx.ask("user_name", Form::new("What is your name?")).await?)?;
    Ok(format!("Hello, {name}!"))
}

async fn sampling(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    let question = Sampling::new("What is the capital of France?").tokens_max(100);
    Ok(ctx.ask("capital_question", question).await?.text())
}

async fn list_roots(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    let roots = ctx.ask("client_roots", Roots).await?;
    Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join("\n"))
}

async fn request_state(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    let Confirmation { ok } = accepted(ctx.ask("confirm", Form::new("Please confirm")).await?)?;
    Ok(format!("state-ok, and the answer is {ok}"))
}

async fn multiple_inputs(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    let user = ctx.fork("user", |mut ctx| async move {
        let question = Form::<Name>::new("What is your name?");
        ctx.ask("user_name", question).await
    });
    let model = ctx.fork("model", |mut ctx| async move {
        let question = Sampling::new("Generate a greeting").tokens_max(50);
        ctx.ask("greeting", question).await
    });
    let client = ctx.fork("client", |mut ctx| async move { ctx.ask("client_roots", Roots).await });
    let (name, greeting, roots) = tokio::join!(user, model, client);
    let Name { name } = accepted(name?)?;
    Ok(format!("{}, {name}! You work in {} folders.", greeting?.text(), roots?.len()))
}

async fn multi_round(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    let Name { name } = accepted(ctx.ask("step1", Form::new("What is your name?")).await?)?;
    let Color { color } = accepted(ctx.ask("step2", Form::new("What is your favourite colour?")).await?)?;
    Ok(format!("{name} likes {color}."))
}

/// Asks whatever this client can answer.
async fn capabilities(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    let form = Form::<Name>::new("What is your name?");
    if ctx.can_ask(&form) {
        let Name { name } = accepted(ctx.ask("user_name", form).await?)?;
        return Ok(format!("Hello, {name}!"));
    }
    Ok(ctx.ask("greeting", Sampling::new("Generate a greeting")).await?.text())
}
