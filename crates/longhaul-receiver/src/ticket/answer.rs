//! Answers to the questions of a task.

use longhaul_engine::{EngineError, audit};
use longhaul_store::StoreError;
use longhaul_task::{Answer, Json, QuestionKey, Task};
use longhaul_wire::ticket;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{NoResult, TicketResult, names, read, task_id};
use crate::exchange::Exchange;
use crate::refusal;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerArguments {
    task_id: String,
    answers: std::collections::BTreeMap<String, Box<RawValue>>,
}

pub(super) async fn perform(exchange: &Exchange, arguments: &RawValue) -> TicketResult {
    let AnswerArguments { task_id: id, answers } = read(arguments)?;
    let key = exchange.find_key(task_id(&id)?).await;
    let task = exchange.look_up(&key).await?.snapshot.task;
    let failed = |error: EngineError| NoResult::from(refusal::of_engine(&error));
    let mut fitting = Vec::new();
    for (name, body) in answers {
        let question = QuestionKey::from_text(&name);
        if task.phase.questions().and_then(|open| open.find(&question)).is_none() {
            let open: Vec<&str> = task.phase.questions().into_iter().flatten().map(|open| open.key.as_str()).collect();
            let open = if open.is_empty() { "none".to_owned() } else { open.join(", ") };
            return Err(NoResult(format!("The task has no open question `{name}`. Open questions: {open}.")));
        }
        fitting.push((question, Answer::Given(Json::from_text(body.get()))));
    }
    store(exchange, &task, fitting).await.map_err(failed)?;
    let task = exchange.look_up(&key).await?;
    Ok(ticket::ticket(&task.view(), &names(exchange)))
}

/// Stores answers to open questions of a task, all of them or, if one does not fit, none.
pub(super) async fn store(
    exchange: &Exchange,
    task: &Task,
    answers: Vec<(QuestionKey, Answer)>,
) -> Result<(), EngineError> {
    let engine = &exchange.receiver.engine;
    for (question, answer) in &answers {
        engine.check_answer(task, question, answer)?;
    }
    for (question, answer) in answers {
        match engine.answer(&task.key, question.clone(), answer).await {
            Ok(_) => audit::answered(exchange.source(), &task.key.id, &question),
            // Another answer was first, or the task has ended: what follows shows it.
            Err(EngineError::Store(StoreError::Refused(_))) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
