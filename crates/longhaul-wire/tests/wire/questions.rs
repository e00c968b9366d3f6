//! Answers fit their questions, or are refused with a reason.

use longhaul_task::QuestionKind::{self, Elicitation, Roots, Sampling};
use longhaul_wire::question;

use crate::common::*;

const CONTACT: &str = r#"{"message":"?","requestedSchema":{"type":"object","properties":{
    "email":{"type":"string","format":"email"},"age":{"type":"integer","minimum":18},
    "color":{"type":"string","oneOf":[{"const":"r","title":"Red"}]},
    "tags":{"type":"array","items":{"type":"string","enum":["a","b"]}}}}}"#;
const URL: &str = r#"{"mode":"url","message":"Go","url":"https://example.com"}"#;

#[test]
fn an_answer_fits_or_it_does_not() {
    let table: &[(QuestionKind, &str, &str, bool)] = &[
        (Elicitation, FORM, r#"{"action":"accept","content":{"name":"Luca"}}"#, true),
        (Elicitation, FORM, r#"{"action":"accept","content":{"name":"Luca","more":true}}"#, true),
        (Elicitation, FORM, r#"{"action":"decline"}"#, true),
        (Elicitation, FORM, r#"{"action":"cancel","content":{"name":5}}"#, true),
        (Elicitation, FORM, r#"{"action":"accept"}"#, false),
        (Elicitation, FORM, r#"{"action":"accept","content":{"name":5}}"#, false),
        (Elicitation, FORM, r#"{"action":"accept","content":[]}"#, false),
        (Elicitation, FORM, r#"{"action":"agree","content":{"name":"x"}}"#, false),
        (Elicitation, FORM, r#"{"content":{"name":"x"}}"#, false),
        (Elicitation, FORM, r#"{"action":"decline","action":"accept","content":{"name":"x"}}"#, false),
        (Elicitation, FORM, r#"{"action":1}"#, false),
        (Elicitation, FORM, "12345", false),
        (Elicitation, FORM, "null", false),
        (Elicitation, FORM, r#"["accept",{"name":"x"}]"#, false),
        (Elicitation, CONTACT, r#"{"action":"accept"}"#, true),
        (
            Elicitation,
            CONTACT,
            r#"{"action":"accept","content":{"email":"a@example.com","age":18,"color":"r","tags":["b"]}}"#,
            true,
        ),
        (Elicitation, CONTACT, r#"{"action":"accept","content":{"email":"nobody"}}"#, false),
        (Elicitation, CONTACT, r#"{"action":"accept","content":{"age":17}}"#, false),
        (Elicitation, CONTACT, r#"{"action":"accept","content":{"color":"x"}}"#, false),
        (Elicitation, CONTACT, r#"{"action":"accept","content":{"tags":["c"]}}"#, false),
        (Elicitation, URL, r#"{"action":"accept"}"#, true),
        (Elicitation, URL, r#"{"action":"maybe"}"#, false),
        (Sampling, "{}", r#"{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"m"}"#, true),
        (Sampling, "{}", r#"{"role":"assistant","content":[],"model":"m","stopReason":"endTurn"}"#, true),
        (Sampling, "{}", r#"{"role":"assistant","content":"Paris","model":"m"}"#, false),
        (Sampling, "{}", r#"{"role":"system","content":{},"model":"m"}"#, false),
        (Sampling, "{}", r#"{"role":"assistant","content":{}}"#, false),
        (Sampling, "{}", "[]", false),
        (Roots, "{}", r#"{"roots":[{"uri":"file:///a","name":"A"}]}"#, true),
        (Roots, "{}", r#"{"roots":[]}"#, true),
        (Roots, "{}", r#"{"roots":[{"name":"A"}]}"#, false),
        (Roots, "{}", r#"{"roots":{}}"#, false),
        (Roots, "{}", "{}", false),
    ];
    for (kind, params, answer, fits) in table {
        let checked = question::check_parts(Some("key"), *kind, &json(params), &raw(answer));
        assert_eq!(checked.is_ok(), *fits, "{kind:?} {answer}: {checked:?}");
        if let Err(wrong) = checked {
            assert!(wrong.to_string().starts_with("The answer to `key` does not fit: "));
            let is_plain =
                !["missing field", "invalid type", "at line"].iter().any(|words| wrong.why().contains(words));
            assert!(is_plain, "{wrong}");
        }
    }
}

#[test]
fn a_question_without_a_valid_answer_is_refused_when_it_is_asked() {
    let sampling = r#"{"messages":[],"maxTokens":9}"#;
    let fields = r#"{"message":"?","requestedSchema":{"type":"object","properties":{
        "s":{"type":"string","oneOf":[{"const":"x","title":"X"}]},"n":{"type":"number"},"i":{"type":"integer"},
        "b":{"type":"boolean"},"m":{"type":"array","items":{"type":"string","enum":["x","y"]}},
        "t":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}}}}}"#;
    for (kind, params) in [
        (Elicitation, FORM),
        (Elicitation, CONTACT),
        (Elicitation, fields),
        (Elicitation, URL),
        (Sampling, sampling),
        (Roots, "{}"),
    ] {
        question::check_question(kind, &json(params)).unwrap();
    }
    for (kind, params) in [
        (Elicitation, "nonsense"),
        (Elicitation, "[]"),
        (Elicitation, "{}"),
        (Elicitation, r#"{"message":"?"}"#),
        (Elicitation, r#"{"message":"?","requestedSchema":{}}"#),
        (Elicitation, r#"{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"x"}}}}"#),
        (Elicitation, r#"{"message":"?","requestedSchema":{"type":"object","properties":{"a":{}}}}"#),
        (Elicitation, r#"{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}"#),
        (Elicitation, r#"{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"type":"array"}}}}"#),
        (Elicitation, r#"{"message":"?","requestedSchema":{"type":"object","properties":{"a":{"enum":["x"]}}}}"#),
        (Elicitation, r#"{"message":"?","mode":"url"}"#),
        (Elicitation, r#"{"message":"?","mode":"fax"}"#),
        (Elicitation, r#"{"message":"?","mode":5}"#),
        (Sampling, "{}"),
        (Sampling, r#"{"messages":[]}"#),
        (Roots, "5"),
    ] {
        assert!(question::check_question(kind, &json(params)).is_err(), "{kind:?} {params}");
    }
}
