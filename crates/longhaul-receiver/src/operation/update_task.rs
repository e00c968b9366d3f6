//! Answers to the open questions of a task.

use longhaul_engine::{EngineError, audit};
use longhaul_store::StoreError;
use longhaul_task::{Answer, Json, QuestionKey};
use longhaul_wire::UpdateTask;
use longhaul_wire::jsonrpc::RpcError;

use crate::exchange::Exchange;
use crate::refusal;

pub(super) async fn perform(exchange: &Exchange, update: &UpdateTask<'_>) -> Result<String, RpcError> {
    let receiver = &exchange.receiver;
    let key = exchange.key(update.task_id.clone());
    let found = receiver.rates.look_up(&exchange.owner, receiver.engine.read(&key)).await?;
    let task = found.map_err(|error| refusal::of_engine(&error))?.task;
    let mut answers = Vec::new();
    for (name, body) in update.input_responses.iter() {
        let question = QuestionKey::from_text(name);
        // Answers to unknown or answered questions are ignored unread.
        if let Some(open) = task.phase.questions().and_then(|open| open.find(&question)) {
            let answer = Answer::Given(Json::from_text(body.get()));
            receiver.engine.check_answer(&task, &open.key, &answer).map_err(|error| refusal::of_engine(&error))?;
            answers.push((question, answer));
        }
    }
    for (question, answer) in answers {
        match receiver.engine.answer(&key, question.clone(), answer).await {
            Ok(_) => audit::answered(exchange.source(), &key.id, &question),
            // Another answer was first, or the task has ended: the key is spent, and its answer ignored.
            Err(EngineError::Store(StoreError::Refused(_))) => {}
            Err(error) => return Err(refusal::of_engine(&error)),
        }
    }
    Ok(exchange.generation.updated(&exchange.reply_to()))
}
