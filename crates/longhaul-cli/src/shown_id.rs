//! Task IDs in the output for people. The ID of a task of a caller without an identity is stored with its session, in a form
//! that a terminal does not show; here it is `SESSION/ID`, which the commands take, too.

use std::borrow::Cow;

use longhaul_task::{NameError, TaskId};

use crate::output::unescape_name;

/// Between the session and the ID.
const SEPARATOR: char = '/';

pub(crate) fn show(id: &TaskId) -> Cow<'_, str> {
    match id.scope() {
        None => Cow::Borrowed(id.as_str()),
        Some(session) => Cow::Owned(format!("{session}{SEPARATOR}{}", id.shown())),
    }
}

/// The IDs that a text can stand for: that text itself, or an ID in a session, each also without the escapes of the output.
pub(crate) fn parse(text: &str) -> Result<Vec<TaskId>, NameError> {
    let mut ids = Vec::new();
    for text in [text, &unescape_name(text)] {
        ids.push(TaskId::parse(text)?);
        if let Some((session, id)) = text.split_once(SEPARATOR)
            && let Ok(in_session) = TaskId::parse(id).and_then(|id| TaskId::in_session(session, &id))
        {
            ids.push(in_session);
        }
    }
    ids.dedup();
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_a_session_is_printable_and_can_be_pasted() {
        let plain = TaskId::parse("mine").unwrap();
        assert_eq!(show(&plain), "mine");
        assert_eq!(parse("mine").unwrap(), [plain]);
        let stored = TaskId::in_session("0a1b", &TaskId::parse("a/b").unwrap()).unwrap();
        assert_eq!(show(&stored), "0a1b/a/b");
        assert!(parse("0a1b/a/b").unwrap().contains(&stored));
        assert!(parse(stored.as_str()).unwrap().contains(&stored), "as `--json` prints it");
    }
}
