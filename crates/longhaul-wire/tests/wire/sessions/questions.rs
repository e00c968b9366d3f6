//! Questions to the client, and what comes back: at once, or by way of a task of its own.

use longhaul_task::{Json, QuestionKind};
use longhaul_wire::ask::{AskReply, ClientQuestion, reply, request};
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::remote_task::{self, REMOTE_ID_BYTES_MAX, RemoteStatus, RemoteTask};
use longhaul_wire::{Capabilities, Capability, Peer, RelatedTask, Revision};
use serde_json::{Value, json};

use super::{LATEST, RELATED_TASK, TASKS, id};
use crate::common::*;

const URL: &str = r#"{"mode":"url","message":"Go","url":"https://example.com/x"}"#;
const SAMPLING: &str = r#"{"messages":[{"role":"user","content":{"type":"text","text":"?"}}],"maxTokens":9,"includeContext":"thisServer"}"#;

fn peer(revision: Revision, capabilities: &[Capability]) -> Peer {
    Peer::new(revision, capabilities.iter().fold(Capabilities::default(), |all, one| all.and(*one)))
}

fn asking(kind: QuestionKind, params: &Json) -> ClientQuestion<'_> {
    ClientQuestion { key: "name-1", kind, params, related: None, as_task_ms: None }
}

fn sent(asking: &ClientQuestion<'_>, peer: Peer) -> Value {
    value(&request(&id(), asking, peer))
}

#[test]
fn a_question_of_a_task_names_its_task() {
    let task = waiting(QuestionKind::Elicitation, FORM);
    let question = task.phase.questions().unwrap().iter().next().unwrap();
    let message = sent(&ClientQuestion::of(TASKS, &task, question), peer(LATEST, &[]));
    let mut params = value(FORM);
    params["_meta"] = json!({ RELATED_TASK: { "taskId": task.key.id.as_str() } });
    assert_eq!(message, json!({ "jsonrpc": "2.0", "id": "a-1", "method": "elicitation/create", "params": params }));
}

#[test]
fn a_question_of_an_ordinary_call_names_none() {
    let params = json(FORM);
    let message = sent(&asking(QuestionKind::Elicitation, &params), peer(LATEST, &[]));
    assert_eq!(message["params"], value(FORM));
    let params = json("{}");
    let message = sent(&asking(QuestionKind::Roots, &params), peer(LATEST, &[]));
    assert_eq!((&message["method"], &message["params"]), (&json!("roots/list"), &json!({})));
}

#[test]
fn a_form_that_only_wants_a_yes_has_its_properties_all_the_same() {
    for (schema, shown) in [
        (r#"{"type":"object"}"#, r#"{"properties":{},"type":"object"}"#),
        ("{ }", r#"{"properties":{} }"#),
        (r#"{"type":"object","properties":{"a":{}}}"#, r#"{"type":"object","properties":{"a":{}}}"#),
    ] {
        let params = json(&format!(r#"{{"message":"Sure?","requestedSchema":{schema}}}"#));
        let message = sent(&asking(QuestionKind::Elicitation, &params), peer(LATEST, &[]));
        assert_eq!(message["params"], value(&format!(r#"{{"message":"Sure?","requestedSchema":{shown}}}"#)));
    }
}

#[test]
fn a_choice_of_tools_needs_a_client_that_knows_them() {
    let params = json(r#"{"messages":[],"maxTokens":1,"toolChoice":{"mode":"none"}}"#);
    assert!(!peer(LATEST, &[Capability::Sampling]).can_answer(QuestionKind::Sampling, &params));
    assert!(peer(LATEST, &[Capability::SamplingTools]).can_answer(QuestionKind::Sampling, &params));
}

#[test]
fn modes_are_named_where_they_are_known() {
    let params = json(FORM);
    let message = sent(&asking(QuestionKind::Elicitation, &params), peer(Revision::V2025_06_18, &[]));
    assert!(message["params"].get("mode").is_none());
    assert_eq!(message["params"]["message"], "Please enter your name.");
}

#[test]
fn an_elicitation_by_url_has_a_name_that_stays() {
    let params = json(URL);
    let task = running();
    let asking =
        ClientQuestion { related: Some(RelatedTask::to(TASKS, &task)), ..asking(QuestionKind::Elicitation, &params) };
    let first = sent(&asking, peer(LATEST, &[]));
    let again = value(&request(&9.into(), &asking, peer(LATEST, &[])));
    assert_eq!(first["params"]["elicitationId"], format!("{}/name-1", task.key.id));
    assert_eq!(first["params"], again["params"], "asked again, it is the same question");

    let own = json(r#"{"mode":"url","message":"Go","url":"https://example.com/x","elicitationId":"mine"}"#);
    let message = sent(&ClientQuestion { params: &own, ..asking }, peer(LATEST, &[]));
    assert_eq!(message["params"]["elicitationId"], "mine");
}

#[test]
fn context_is_asked_for_only_where_the_client_gives_it() {
    let params = json(SAMPLING);
    let asking = asking(QuestionKind::Sampling, &params);
    let context = |peer| sent(&asking, peer)["params"].get("includeContext").cloned();
    assert_eq!(context(peer(LATEST, &[Capability::Sampling])), None);
    assert_eq!(context(peer(LATEST, &[Capability::SamplingContext])), Some(json!("thisServer")));
    assert_eq!(context(peer(Revision::V2025_06_18, &[Capability::Sampling])), Some(json!("thisServer")));
}

#[test]
fn only_a_client_that_said_so_is_asked_to_make_a_task() {
    let (form, sampling, roots) = (json(FORM), json(SAMPLING), json("{}"));
    let table = [
        (QuestionKind::Elicitation, &form, Some(Capability::ElicitationTasks)),
        (QuestionKind::Sampling, &sampling, Some(Capability::SamplingTasks)),
        (QuestionKind::Roots, &roots, None),
    ];
    for (kind, params, needed) in table {
        let asking = ClientQuestion { as_task_ms: Some(60_000), ..asking(kind, params) };
        let all = [Capability::ElicitationTasks, Capability::SamplingTasks];
        let task = |peer| sent(&asking, peer)["params"].get("task").cloned();
        assert_eq!(task(peer(LATEST, &all)), needed.map(|_| json!({ "ttl": 60_000 })));
        assert_eq!(task(peer(LATEST, &[])), None);
        assert_eq!(task(peer(Revision::V2025_06_18, &all)), None);
    }
    let smuggled = json(r#"{"messages":[],"maxTokens":1,"task":{"ttl":1}}"#);
    let message = sent(&asking(QuestionKind::Sampling, &smuggled), peer(LATEST, &[Capability::SamplingTasks]));
    assert!(message["params"].get("task").is_none(), "the question itself cannot ask for it");
}

#[test]
fn an_answer_is_taken_without_the_key_that_brought_it() {
    let params = json(FORM);
    let asking = asking(QuestionKind::Elicitation, &params);
    let answered = |body: &str| match reply(&asking, Ok(&raw(body))) {
        AskReply::Answer(answer) => value(answer.as_str()),
        other => panic!("{other:?}"),
    };
    let content = json!({ "action": "accept", "content": { "name": "octocat" } });
    assert_eq!(answered(&content.to_string()), content);
    let mut related = content.clone();
    related["_meta"] = json!({ RELATED_TASK: { "taskId": "t" } });
    assert_eq!(answered(&related.to_string()), content);
    related["_meta"]["k"] = json!(1);
    let mut kept = content.clone();
    kept["_meta"] = json!({ "k": 1 });
    assert_eq!(answered(&related.to_string()), kept);
    for action in ["decline", "cancel"] {
        assert_eq!(answered(&json!({ "action": action }).to_string())["action"], action);
    }
}

#[test]
fn what_is_no_answer_says_what_it_is() {
    let params = json(FORM);
    let asking = asking(QuestionKind::Elicitation, &params);
    let AskReply::Unfit(wrong) = reply(&asking, Ok(&raw(r#"{"action":"accept","content":{}}"#))) else { panic!() };
    assert!(wrong.to_string().contains("name-1"));
    let refusal = RpcError::new(-1, "User rejected sampling request");
    assert_eq!(reply(&asking, Err(refusal.clone())), AskReply::Refused(refusal));

    let created = r#"{"task":{"taskId":"r","status":"working","createdAt":"","lastUpdatedAt":"","ttl":null}}"#;
    assert!(matches!(reply(&asking, Ok(&raw(created))), AskReply::Unfit(_)), "no task was requested");
}

#[test]
fn a_client_asked_for_a_task_may_make_one_or_answer_at_once() {
    let params = json(SAMPLING);
    let asking = ClientQuestion { as_task_ms: Some(1), ..asking(QuestionKind::Sampling, &params) };
    let created = r#"{"task":{"taskId":"request-789","status":"working","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":3600000,"pollInterval":500}}"#;
    let AskReply::Task(task) = reply(&asking, Ok(&raw(created))) else { panic!() };
    assert_eq!((&*task.id, task.status, task.poll_interval_ms), ("request-789", RemoteStatus::Working, Some(500)));
    let at_once = r#"{"role":"assistant","model":"m","content":{"type":"text","text":"Paris"}}"#;
    assert!(matches!(reply(&asking, Ok(&raw(at_once))), AskReply::Answer(_)));
    assert!(matches!(reply(&asking, Ok(&raw(r#"{"task":{}}"#))), AskReply::Unfit(_)));
}

#[test]
fn a_task_of_the_client_is_read_leniently_and_within_limits() {
    use RemoteStatus::{Cancelled, Completed, Failed, InputRequired, Working};
    let parse = |text: &str| RemoteTask::parse(&raw(text));
    let bare = parse(r#"{"taskId":"r","status":"failed","ttl":"soon","pollInterval":-1,"statusMessage":5}"#).unwrap();
    assert_eq!((bare.ttl_ms, bare.poll_interval_ms, bare.message), (None, None, None));
    assert!(bare.status.is_terminal());
    for (name, status, is_terminal) in [
        ("working", Working, false),
        ("input_required", InputRequired, false),
        ("completed", Completed, true),
        ("failed", Failed, true),
        ("cancelled", Cancelled, true),
    ] {
        let task = parse(&format!(r#"{{"taskId":"r","status":"{name}"}}"#)).unwrap();
        assert_eq!((task.status, task.status.is_terminal()), (status, is_terminal));
    }
    for wrong in ["[]", "{}", r#"{"taskId":"","status":"working"}"#, r#"{"taskId":"r","status":"submitted"}"#] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
    let long = format!(r#"{{"taskId":"{}","status":"working"}}"#, "x".repeat(REMOTE_ID_BYTES_MAX + 1));
    assert!(parse(&long).is_err());
}

#[test]
fn the_server_asks_about_the_clients_tasks() {
    let expected = |method: &str| json!({ "jsonrpc": "2.0", "id": "a-1", "method": method, "params": { "taskId": "their \"task\"" } });
    let name = "their \"task\"";
    assert_eq!(value(&remote_task::get(&id(), name)), expected("tasks/get"));
    assert_eq!(value(&remote_task::result(&id(), name)), expected("tasks/result"));
    assert_eq!(value(&remote_task::cancel(&id(), name)), expected("tasks/cancel"));
}
