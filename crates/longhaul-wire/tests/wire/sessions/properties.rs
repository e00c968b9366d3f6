//! What holds for every input.

use longhaul_task::QuestionKind;
use longhaul_wire::ask::{AskReply, ClientQuestion, reply, request};
use longhaul_wire::initialize::Initialize;
use longhaul_wire::jsonrpc::{self, Message};
use longhaul_wire::remote_task::{RemoteStatus, RemoteTask};
use longhaul_wire::{
    CancelledRequest, Capabilities, Capability, ClientNotification, Peer, RelatedTask, Revision, TaskView, call_result,
};
use proptest::prelude::*;
use serde_json::Value;

use super::{EVERY, RELATED_TASK, TASKS, read, sort, to, told};
use crate::common::*;

fn any_revision() -> impl Strategy<Value = Revision> {
    prop::sample::select(EVERY.to_vec())
}

/// Names that mean something in a message.
const NAMES: [&str; 11] = [
    "_meta",
    "resultType",
    "content",
    "structuredContent",
    "type",
    "uri",
    "text",
    "task",
    "mode",
    "includeContext",
    RELATED_TASK,
];

fn any_json() -> impl Strategy<Value = Value> {
    crate::common::any_json(&NAMES, &["resource_link"])
}

/// Reads bytes in every way that this era reads any.
fn read_all(bytes: &[u8]) {
    for revision in EVERY {
        let _ = read(bytes, revision);
        for message in jsonrpc::parse_batch(bytes).into_iter().flatten().flatten() {
            let _ = sort(message, revision);
        }
    }
    match jsonrpc::parse(bytes) {
        Ok(Message::Request(request)) => drop(Initialize::parse(request.params.raw())),
        Ok(Message::Response(response)) => {
            for kind in [QuestionKind::Elicitation, QuestionKind::Sampling, QuestionKind::Roots] {
                let params = json(FORM);
                let asking = ClientQuestion { key: "k", kind, params: &params, related: None, as_task_ms: Some(1) };
                let _ = reply(&asking, response.outcome.clone());
            }
        }
        _ => {}
    }
}

const SEEDS: [&str; 5] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":[1]},"task":{"ttl":60000},"_meta":{"progressToken":"x"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"sampling":{"createMessage":{}}}}},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t","status":"working","ttl":null,"pollInterval":5}}"#,
    r#"{"jsonrpc":"2.0","id":"q","result":{"task":{"taskId":"t","status":"working"},"action":"accept","content":{"name":"n"}}}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}]"#,
];

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        read_all(&bytes);
    }

    #[test]
    fn no_damage_to_a_message_makes_the_reader_panic(
        bytes in prop::sample::select(SEEDS.to_vec()).prop_flat_map(|seed| damaged(seed.to_owned())),
    ) {
        read_all(&bytes);
    }

    #[test]
    fn any_parameters_are_read_or_refused(
        method in prop::sample::select(vec!["tools/call", "tools/list", "tasks/get", "logging/setLevel", "initialize"]),
        params in any_json(),
    ) {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        read_all(message.as_bytes());
    }

    #[test]
    fn a_result_is_an_object_with_content_and_keeps_what_it_may(body in any_json(), revision in any_revision()) {
        let message = call_result::complete(&to(&1.into(), revision), &json(&body.to_string()));
        let result = value(&message)["result"].clone();
        prop_assert!(result["content"].is_array());
        prop_assert!(result.get("resultType").is_none());
        prop_assert!(result.get("structuredContent").is_none_or(Value::is_object));
        let Value::Object(members) = body else { return Ok(()) };
        for (name, member) in members {
            match name.as_str() {
                "content" | "structuredContent" | "resultType" | "_meta" => {}
                name => prop_assert_eq!(&result[name], &member),
            }
        }
    }

    #[test]
    fn a_task_returns_what_the_call_would_have_and_its_own_name(body in any_json(), revision in any_revision()) {
        let called = value(&call_result::complete(&to(&1.into(), revision), &json(&body.to_string())))["result"].clone();
        let task = completed(&body.to_string(), false);
        let view = TaskView::of(&task);
        let mut result = value(&TASKS.result(&to(&1.into(), revision), &view).unwrap())["result"].clone();
        prop_assert_eq!(&result["_meta"][RELATED_TASK]["taskId"], task.key.id.as_str());
        result["_meta"].as_object_mut().unwrap().remove(RELATED_TASK);
        let mut expected = called;
        if let Some(meta) = expected.get_mut("_meta").and_then(Value::as_object_mut) {
            meta.remove(RELATED_TASK);
        }
        for message in [&mut result, &mut expected] {
            message.as_object_mut().unwrap().retain(|name, member| name != "_meta" || *member != Value::Object(serde_json::Map::new()));
        }
        prop_assert_eq!(result, expected);
    }

    #[test]
    fn a_question_is_always_a_message_and_names_its_task(
        params in any_json(),
        kind in prop::sample::select(vec![QuestionKind::Elicitation, QuestionKind::Sampling, QuestionKind::Roots]),
        revision in any_revision(),
        bits in any::<u16>(),
        as_task_ms in any::<Option<u64>>(),
    ) {
        let params = json(&params.to_string());
        let task = running();
        let related = Some(RelatedTask::to(TASKS, &task));
        let peer = Peer::new(revision, Capabilities::from_bits(bits));
        let message = request(&7.into(), &ClientQuestion { key: "k", kind, params: &params, related, as_task_ms }, peer);
        let Ok(Message::Request(sent)) = jsonrpc::parse(message.as_bytes()) else { panic!("{message}") };
        let sent = value(sent.params.raw().unwrap().get());
        prop_assert_eq!(&sent["_meta"][RELATED_TASK]["taskId"], task.key.id.as_str());
        let may = as_task_ms.is_some() && peer.can_run_as_task(kind);
        prop_assert_eq!(sent.get("task").is_some(), may);
    }

    #[test]
    fn an_answer_loses_nothing_but_the_key(body in any_json()) {
        let params = json("{}");
        let asking = ClientQuestion { key: "k", kind: QuestionKind::Roots, params: &params, related: None, as_task_ms: None };
        let mut answer = serde_json::json!({ "roots": [] });
        answer["extra"] = body.clone();
        answer["_meta"] = serde_json::json!({ RELATED_TASK: { "taskId": "t" }, "k": body });
        let AskReply::Answer(neutral) = reply(&asking, Ok(&raw(&answer.to_string()))) else { panic!() };
        answer["_meta"].as_object_mut().unwrap().remove(RELATED_TASK);
        prop_assert_eq!(value(neutral.as_str()), answer);
    }

    #[test]
    fn a_status_told_is_a_status_read(message in proptest::option::of("(?s).{0,32}"), poll in 1_u64..1 << 50) {
        let mut task = running();
        task.message = message.map(Into::into);
        let text = TASKS.changed(None, &TaskView { poll_interval_ms: poll, ..TaskView::of(&task) }).unwrap();
        let ClientNotification::TaskStatus(read) = told(&text) else { panic!("{text}") };
        let expected = RemoteTask {
            id: task.key.id.as_str().into(),
            status: RemoteStatus::Working,
            message: task.message.as_deref().map(Into::into),
            ttl_ms: task.ttl_ms(),
            poll_interval_ms: Some(poll),
        };
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn a_request_given_up_is_the_request_meant(text in "(?s).{0,32}", reason in proptest::option::of("(?s).{0,32}")) {
        let sent = CancelledRequest { request_id: jsonrpc::RequestId::from_text(&text), reason };
        let message = sent.notification();
        let ClientNotification::Cancelled(read) = told(&message) else { panic!() };
        prop_assert_eq!(read, sent);
    }

    #[test]
    fn capabilities_survive_their_token(bits in any::<u16>(), revision in any_revision()) {
        let peer = Peer::new(revision, Capabilities::from_bits(bits));
        let token = serde_json::to_string(&peer).unwrap();
        prop_assert_eq!(serde_json::from_str::<Peer>(&token).unwrap(), peer);
        prop_assert_eq!(Peer::new(revision, peer.capabilities), peer, "what was filtered stays filtered");
        for capability in Capability::ALL {
            prop_assert!(!peer.capabilities.without(capability).has(capability));
            prop_assert!(peer.capabilities.and(capability).has(capability));
        }
    }
}
