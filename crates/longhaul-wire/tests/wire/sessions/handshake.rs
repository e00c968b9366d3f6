//! `initialize`: what is spoken, what the client can do, what it is offered.

use longhaul_task::QuestionKind;
use longhaul_wire::initialize::{Initialize, Offer, answer};
use longhaul_wire::{Capabilities, Capability, HeaderValue, Peer, Revision, ServerFeatures};
use serde_json::json;

use super::{EVERY, id, to};
use crate::common::*;

const EVERYTHING: &str = r#"{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},"tasks":{"cancel":{},"list":{},"requests":{"elicitation":{"create":{}},"sampling":{"createMessage":{}}}},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

fn params(version: &str, capabilities: &str) -> String {
    format!(
        r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{{"name":"ExampleClient","title":"Example","version":"1.0.0"}}}}"#
    )
}

fn peer(version: &str, capabilities: &str) -> Peer {
    Initialize::parse(Some(&raw(&params(version, capabilities)))).unwrap().peer
}

#[test]
fn what_is_asked_for_is_spoken_if_it_is_known_and_else_the_newest() {
    let table = [
        ("2025-11-25", Revision::V2025_11_25),
        ("2025-06-18", Revision::V2025_06_18),
        ("2025-03-26", Revision::V2025_03_26),
        ("2024-11-05", Revision::V2025_11_25),
        ("2026-07-28", Revision::V2025_11_25),
        ("2099-01-01", Revision::V2025_11_25),
        ("", Revision::V2025_11_25),
    ];
    for (requested, spoken) in table {
        let parameters = raw(&params(requested, "{}"));
        let opened = Initialize::parse(Some(&parameters)).unwrap();
        assert_eq!((opened.peer.revision, &*opened.requested), (spoken, requested));
        assert_eq!((&*opened.client_name, &*opened.client_version), ("ExampleClient", "1.0.0"));
    }
    let names = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"];
    for (revision, name) in Revision::STATELESS.into_iter().chain(EVERY).zip(names) {
        assert_eq!((revision.as_str(), Revision::parse(name)), (name, Some(revision)));
        assert_eq!(serde_json::to_string(&revision).unwrap(), format!("\"{name}\""));
    }
}

#[test]
fn a_session_knows_its_revision_better_than_a_header() {
    use Revision::{V2025_03_26, V2025_06_18, V2025_11_25};
    let sent = |text: &'static str| HeaderValue::Once(text.as_bytes());
    let table = [
        (HeaderValue::Absent, None, Some(V2025_03_26)),
        (HeaderValue::Absent, Some(V2025_11_25), Some(V2025_11_25)),
        (sent("2025-06-18"), None, Some(V2025_06_18)),
        (sent(" 2025-06-18 "), Some(V2025_06_18), Some(V2025_06_18)),
        (sent("2025-11-25"), Some(V2025_06_18), Some(V2025_06_18)),
        (sent("1.0.0"), Some(V2025_11_25), None),
        (sent("2024-11-05"), None, None),
        (sent("2026-07-28"), Some(V2025_11_25), None),
        (sent("\u{e4}"), None, None),
        (HeaderValue::Repeated, Some(V2025_11_25), None),
    ];
    for (header, session, expected) in table {
        match (Revision::of_request(header, session), expected) {
            (Ok(revision), Some(expected)) => assert_eq!(revision, expected, "{header:?}"),
            (Err(error), None) => assert_eq!((error.code, error.http_status()), (-32600, 400), "{header:?}"),
            (other, _) => panic!("{header:?} in {session:?} gave {other:?}"),
        }
    }
}

#[test]
fn a_handshake_without_what_it_needs_is_refused() {
    let table = [
        "{}",
        r#"{"protocolVersion":5,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#,
        r#"{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"}}"#,
        r#"{"protocolVersion":"2025-11-25","capabilities":[],"clientInfo":{"name":"c","version":"1"}}"#,
        r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#,
        r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c"}}"#,
    ];
    for params in table {
        let error = Initialize::parse(Some(&raw(params))).unwrap_err();
        assert_eq!((error.code, error.http_status()), (-32602, 200), "{params}");
    }
    assert_eq!(Initialize::parse(None).unwrap_err().code, -32602);
}

#[test]
fn a_client_can_do_what_it_declares_as_far_as_the_revision_has_it() {
    use Capability::*;
    let everywhere = vec![Sampling, Roots];
    let since_june = [everywhere.clone(), vec![ElicitationForm]].concat();
    let since_november = [
        since_june.clone(),
        vec![
            ElicitationUrl,
            SamplingTools,
            SamplingContext,
            LegacyTasks,
            SamplingTasks,
            ElicitationTasks,
            CancelTasks,
            ListTasks,
        ],
    ]
    .concat();
    for (version, expected) in [("2025-03-26", everywhere), ("2025-06-18", since_june), ("2025-11-25", since_november)]
    {
        let peer = peer(version, EVERYTHING);
        for capability in Capability::ALL {
            assert_eq!(
                peer.capabilities.has(capability),
                expected.contains(&capability),
                "{capability:?} at {version}"
            );
        }
        let token = serde_json::to_string(&peer).unwrap();
        assert_eq!(serde_json::from_str::<Peer>(&token).unwrap(), peer, "{token}");
        assert_eq!(Capabilities::from_bits(peer.capabilities.bits()), peer.capabilities);
    }
}

#[test]
fn an_elicitation_without_a_mode_means_forms() {
    let can = |version: &str, capabilities: &str, params: &str| {
        peer(version, capabilities).can_answer(QuestionKind::Elicitation, &json(params))
    };
    let url = r#"{"mode":"url"}"#;
    assert!(can("2025-11-25", r#"{"elicitation":{}}"#, FORM) && !can("2025-11-25", r#"{"elicitation":{}}"#, url));
    let only_url = r#"{"elicitation":{"url":{}}}"#;
    assert!(!can("2025-11-25", only_url, FORM) && can("2025-11-25", only_url, url));
    assert!(can("2025-06-18", only_url, FORM), "there are no modes there, so there are forms");
    assert!(!can("2025-06-18", only_url, url));
    assert!(!can("2025-03-26", only_url, FORM));
    assert!(!can("2025-11-25", "{}", FORM));
}

#[test]
fn a_question_becomes_a_task_only_where_the_client_said_so() {
    let everything = peer("2025-11-25", EVERYTHING);
    assert!(
        everything.can_run_as_task(QuestionKind::Elicitation) && everything.can_run_as_task(QuestionKind::Sampling)
    );
    assert!(!everything.can_run_as_task(QuestionKind::Roots));
    assert!(!peer("2025-06-18", EVERYTHING).can_run_as_task(QuestionKind::Sampling));
    let one = r#"{"sampling":{},"tasks":{"requests":{"sampling":{"createMessage":{}}}}}"#;
    assert!(!peer("2025-11-25", one).can_run_as_task(QuestionKind::Elicitation));
    assert!(peer("2025-11-25", one).can_run_as_task(QuestionKind::Sampling));
}

#[test]
fn a_client_is_offered_exactly_what_holds_for_it() {
    let offer = Offer {
        name: "longhaul",
        title: Some("Longhaul"),
        version: "0.1.0",
        instructions: Some("Say \"please\"."),
        features: ServerFeatures { tells_changes: true, ..ServerFeatures::default() },
        lists_tasks: false,
    };
    for revision in EVERY {
        let result = value(&answer(&to(&id(), revision), &offer))["result"].clone();
        assert_eq!(result["protocolVersion"], revision.as_str());
        assert_eq!(result["instructions"], "Say \"please\".");
        assert_eq!(result["serverInfo"].get("title").is_some(), revision > Revision::V2025_03_26);
        let tools = json!({ "listChanged": true });
        let expected = if revision.has_tasks() {
            json!({ "logging": {}, "tools": tools, "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } } })
        } else {
            json!({ "logging": {}, "tools": tools })
        };
        assert_eq!(result["capabilities"], expected);
    }
}
