//! A client that refuses to answer has answered, too: the question is closed, and its handler hears why.

use longhaul_task::Json;
use serde_json::value::RawValue;

/// The one member of such an answer. No answer that fits a question of the protocol has it.
const MEMBER: &str = "longhaul/not-answered";

/// What is stored in the place of an answer when the client said that it will not give one.
pub fn not_answered(why: &str) -> Json {
    Json::from_text(serde_json::json!({ MEMBER: why }).to_string())
}

/// Why there is no answer, if this is none.
pub(crate) fn why(answer: &Json) -> Option<String> {
    if !answer.as_str().contains(MEMBER) {
        return None;
    }
    let members: std::collections::HashMap<String, &RawValue> = serde_json::from_str(answer.as_str()).ok()?;
    match (members.len(), members.get(MEMBER)) {
        (1, Some(why)) => serde_json::from_str(why.get()).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_stored_for_a_refusal_is_one() {
        assert_eq!(why(&not_answered("said \"no\"")).as_deref(), Some("said \"no\""));
        for answer in ["{}", "\"longhaul/not-answered\"", r#"{"longhaul/not-answered":"x","action":"accept"}"#] {
            assert_eq!(why(&Json::from_text(answer)), None, "{answer}");
        }
    }
}
