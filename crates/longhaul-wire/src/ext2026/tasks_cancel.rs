//! `tasks/cancel`: somebody wants a task to stop.

pub use super::acknowledge as answer;
pub use super::required_task_id as task_id;
