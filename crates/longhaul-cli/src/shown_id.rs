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
/// With them the text can be too long for an ID. Fails if it stands for none.
pub(crate) fn parse(text: &str) -> Result<Vec<TaskId>, NameError> {
    let unescaped = unescape_name(text);
    let texts = [Some(text), (unescaped != text).then_some(&*unescaped)];
    let mut ids = Vec::new();
    for text in texts.into_iter().flatten() {
        ids.extend(TaskId::parse(text));
        if let Some((session, id)) = text.split_once(SEPARATOR) {
            ids.extend(TaskId::parse(id).and_then(|id| TaskId::in_session(session, &id)));
        }
    }
    if ids.is_empty() { TaskId::parse(text).map(|id| vec![id]) } else { Ok(ids) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::escape;

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

    #[test]
    fn an_id_whose_escaped_text_is_too_long_for_an_id_can_be_pasted() {
        let id = TaskId::parse(&"\u{202e}".repeat(40)).unwrap();
        let printed = escape(&show(&id)).into_owned();
        assert!(TaskId::parse(&printed).is_err(), "{} bytes", printed.len());
        assert_eq!(parse(&printed).unwrap(), std::slice::from_ref(&id));

        let stored = TaskId::in_session("0a1b", &id).unwrap();
        assert!(parse(&escape(&show(&stored))).unwrap().contains(&stored));
    }

    #[test]
    fn no_id_is_looked_up_twice() {
        let in_session = TaskId::in_session("a", &TaskId::parse("b").unwrap()).unwrap();
        assert_eq!(parse("a/b").unwrap(), [TaskId::parse("a/b").unwrap(), in_session]);
        assert!(parse("").is_err());
    }
}
