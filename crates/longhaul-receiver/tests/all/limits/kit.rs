//! Tools that a test controls, and checks of refusals.

use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, Tool};
use longhaul_testkit::tools::Door;
use serde_json::{Value, json};

/// A tool that ends when the test lets it.
pub(crate) fn waiting(name: &str, door: &Door) -> Tool {
    door.tool(name, |door, _: Ctx, _: NoArgs| async move {
        door.pass().await;
        Ok("let through")
    })
}

#[derive(serde::Deserialize, JsonSchema)]
pub(crate) struct SizeArguments {
    #[serde(default)]
    pub(crate) bytes: usize,
}

#[derive(serde::Deserialize, JsonSchema)]
pub(crate) struct Answered {
    ok: bool,
}

/// A tool that asks before it ends.
pub(crate) fn asking(name: &str) -> Tool {
    Tool::new(name, |mut ctx: Ctx, _: NoArgs| async move {
        match ctx.ask("go", Form::<Answered>::new("Go on?")).await? {
            FormAnswer::Accepted(Answered { ok: true }) => Ok("went on"),
            _ => Err(Failure::tool("it may not")),
        }
    })
}

pub(crate) fn is_refused(error: &Value, code: i64, word: &str) {
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(code), &json!(word)), "{error}");
    assert!(!error["message"].as_str().unwrap().is_empty());
    // A temporary refusal has `retryAfterMs`; a failed task has not.
    let passes =
        ["QUEUE_FULL", "TOO_MANY_CALLS", "TOO_MANY_OPEN", "TOO_MUCH_UNREAD", "TOO_MANY_IN_FLIGHT"].contains(&word);
    assert_eq!(error["data"]["retryAfterMs"].as_u64().is_some_and(|ms| ms > 0), passes, "{error}");
}
