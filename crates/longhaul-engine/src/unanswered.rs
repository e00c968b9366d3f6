//! A refusal to answer closes a question like an answer does. Its handler gets the reason.

use longhaul_task::Json;
use serde_json::value::RawValue;

/// The only member of a stored refusal. No valid answer to a question of the protocol has it.
const MEMBER: &str = "longhaul/not-answered";

/// What is stored instead of an answer when the client refuses to give one.
pub fn not_answered(why: &str) -> Json {
    Json::from_text(serde_json::json!({ MEMBER: why }).to_string())
}

/// The reason for the refusal, if this is a refusal and not an answer.
pub(crate) fn refusal_reason(answer: &Json) -> Option<String> {
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
        assert_eq!(refusal_reason(&not_answered("said \"no\"")).as_deref(), Some("said \"no\""));
        for answer in ["{}", "\"longhaul/not-answered\"", r#"{"longhaul/not-answered":"x","action":"accept"}"#] {
            assert_eq!(refusal_reason(&Json::from_text(answer)), None, "{answer}");
        }
    }
}
