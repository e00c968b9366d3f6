//! `tasks/update`: answers to a task's open questions.

use longhaul_task::{Question, TaskId};
use serde_json::value::RawValue;

use super::{InputResponses, Params, input, required_task_id};
use crate::jsonrpc::RpcError;

/// An update.
#[derive(Debug)]
pub struct Update<'a> {
    /// Of which task.
    pub task_id: TaskId,
    /// What is answered; any part of what is open.
    pub input_responses: InputResponses<'a>,
}

impl<'a> Update<'a> {
    /// Reads the update.
    pub fn parse(params: &Params<'a>) -> Result<Self, RpcError> {
        let responses =
            params.input_responses.ok_or_else(|| RpcError::invalid_params("`inputResponses` is missing"))?;
        Ok(Self { task_id: required_task_id(params)?, input_responses: InputResponses::parse(responses)? })
    }
}

/// Whether an answer fits its question. Only for questions that are open: any other answer is ignored unread.
pub fn check(question: &Question, answer: &RawValue) -> Result<(), RpcError> {
    input::check(question, answer)
}

pub use super::acknowledge as answer;
