//! A handler that has changed since it recorded its journal: what is refused, and what is only noted.

use std::sync::Arc;

use longhaul_engine::{Ask, Ctx, CtxError, Handler};
use longhaul_task::{Json, QuestionKind};

use crate::common::{Approve, Door, Machine, answer, code, handler, handler_with, resumes, text_of};
use crate::replay::after_crash;

fn step_then_ask(step: &'static str, label: &'static str) -> Arc<dyn Handler> {
    handler(move |mut ctx: Ctx, _input| async move {
        if !step.is_empty() {
            ctx.step(step, || async { Ok::<_, CtxError>(1) }).await?;
        }
        if !label.is_empty() {
            ctx.ask(label, Approve).await?;
        }
        answer("done")
    })
}

#[test]
fn a_handler_that_changed_is_refused_and_the_error_names_the_entry() {
    for (second, words) in [
        (step_then_ask("tow", "approve"), [r#"step "one""#, r#"step "tow""#]),
        (step_then_ask("one", "approval"), [r#"question "approve""#, r#"question "approval""#]),
        (step_then_ask("", "approve"), [r#"step "one""#, r#"question "approve""#]),
        (step_then_ask("one", ""), [r#"question "approve""#, "no operation"]),
    ] {
        let (end, message) = after_crash(step_then_ask("one", "approve"), second);
        assert_eq!(code(&end), "HANDLER_CHANGED");
        for word in words {
            assert!(message.contains(word), "{message} does not name {word}");
        }
    }
}

/// A question whose text is different in each process.
struct ChangedQuestion(&'static str);

impl Ask for ChangedQuestion {
    type Answer = String;

    fn kind(&self) -> QuestionKind {
        QuestionKind::Elicitation
    }

    fn params(&self) -> Json {
        Json::from_text(format!("{{\"message\":\"{}\"}}", self.0))
    }

    fn read(&self, answer: &Json) -> Result<String, CtxError> {
        Ok(answer.as_str().to_owned())
    }
}

#[test]
fn a_question_with_another_text_is_noted_in_the_history_and_not_refused() {
    let mut machine = Machine::new();
    let asks = |text: &'static str| {
        handler(move |mut ctx: Ctx, _input| async move {
            ctx.ask("approve", ChangedQuestion(text)).await?;
            answer("done")
        })
    };
    let (key, question) =
        machine.run_engine(vec![resumes("ask", asks("2 files"))], async |lab| lab.create_until_asked("ask").await);
    machine.run_engine(vec![resumes("ask", asks("3 files"))], async |lab| {
        lab.answer(&key, &question, "1").await;
        assert_eq!(lab.end(&key).await, text_of("done"));
        let entries = lab.engine.history(&key).await.unwrap().entries;
        assert_eq!(entries[0].note.as_deref(), Some("attempt 2 asked this with another text"));
    });
}

#[test]
fn a_changed_handler_fails_even_if_it_catches_the_error() {
    let mut machine = Machine::new();
    let door = Door::shut();
    let works = |name: &'static str| {
        handler_with(door.clone(), move |door, mut ctx: Ctx, _input| async move {
            let done = ctx.step(name, || async { Ok::<_, CtxError>(1) }).await;
            let _ = ctx.step("next", || async { Ok::<_, CtxError>(1) }).await;
            if done.is_ok() {
                door.pass().await;
            }
            answer("done")
        })
    };
    let key = machine.run_engine(vec![resumes("work", works("old"))], async |lab| {
        let key = lab.create("work").await;
        lab.has_entries(&key, 2).await;
        key
    });
    machine.run_engine(vec![resumes("work", works("new"))], async |lab| {
        assert_eq!(code(&lab.end(&key).await), "HANDLER_CHANGED");
    });
}
