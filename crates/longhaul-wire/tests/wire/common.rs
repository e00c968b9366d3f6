//! Tasks in every phase, and the official schemas.

#[path = "../../../longhaul-testkit/src/official.rs"]
mod official;

use longhaul_task::transition::{self, AskQuestion, Cancel, Claim, Create, NewChild, Settle, Spawn};
use longhaul_task::{
    Event, JournalPosition, Json, NodeId, Outcome, Owner, Policy, QuestionKind, Retention, Surroundings, Task,
    TaskError, TaskId, TaskKey, Timestamp, ToolRef,
};
use longhaul_wire::ServerInfo;
use longhaul_wire::content::{Content, ToolResult};
use longhaul_wire::jsonrpc::{self, Message, Request};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

/// 2025-11-25T10:30:00Z
pub(crate) const CREATED: Timestamp = Timestamp::from_ms(1_764_066_600_000);

pub(crate) fn json(text: &str) -> Json {
    Json::from_text(text)
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

pub(crate) fn server() -> ServerInfo {
    ServerInfo::new("longhaul", "0.1.0")
}

pub(crate) fn request(bytes: &str) -> Request<'_> {
    match jsonrpc::parse(bytes.as_bytes()) {
        Ok(Message::Request(request)) => request,
        other => panic!("no request: {other:?}"),
    }
}

/// A request of the 2026 version with these parameters beside `_meta`, and these capabilities.
pub(crate) fn modern(method: &str, params: &str, capabilities: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}}}}}"#
    )
}

pub(crate) const WITH_TASKS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

pub(crate) const FORM: &str = r#"{"mode":"form","message":"Please enter your name.","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}"#;

pub(crate) fn queued() -> Task {
    let key = TaskKey {
        owner: Owner::parse("ada").unwrap(),
        id: TaskId::parse("786512e2-9e0d-44bd-8f29-789f320fe840").unwrap(),
    };
    transition::create(&creation(key), CREATED)
}

fn creation(key: TaskKey) -> Create {
    Create {
        key,
        tool: ToolRef::new("hello_world", "1"),
        origin: "ext2026".into(),
        policy: Policy::default(),
        retention: Retention::FromCreation(3_600_000),
        claimed_by: None,
        first_fence: 0,
    }
}

fn after(task: &Task, event: &Event) -> Task {
    transition::apply(task, event, &Surroundings::default(), CREATED.plus_ms(1_200_000)).unwrap().task
}

pub(crate) fn running() -> Task {
    after(&queued(), &Event::Claim(Claim { node: NodeId::mint([1; 16]) }))
}

pub(crate) fn waiting(kind: QuestionKind, params: &str) -> Task {
    let task = running();
    let position = JournalPosition { fork: "".into(), seq: 0 };
    let ask = AskQuestion {
        fence: task.fence,
        label: "name".into(),
        kind,
        params: json(params),
        position,
        digest: 0,
        time_limit: None,
    };
    after(&task, &Event::Ask(ask))
}

pub(crate) fn completed(body: &str, is_error: bool) -> Task {
    settled(Outcome::Result { body: json(body), is_error })
}

pub(crate) fn failed() -> Task {
    settled(Outcome::Error(TaskError {
        code: Some(-32603),
        message: "API rate limit exceeded".into(),
        data: Some(json(r#"{"retry":true}"#)),
    }))
}

pub(crate) fn settled(outcome: Outcome) -> Task {
    let task = running();
    after(&task, &Event::Settle(Settle { fence: task.fence, outcome, entries: Vec::new() }))
}

pub(crate) fn cancelled() -> Task {
    after(&queued(), &Event::Cancel(Cancel::default()))
}

pub(crate) fn family() -> (Task, Task) {
    let parent = running();
    let key = TaskKey { owner: parent.key.owner.clone(), id: TaskId::parse("child").unwrap() };
    let child = Create { retention: Retention::Unlimited, ..creation(key) };
    let spawn = Event::Spawn(Box::new(Spawn {
        fence: parent.fence,
        children: vec![NewChild { create: child, input: json("{}") }],
        entries: Vec::new(),
    }));
    let mut change = transition::apply(&parent, &spawn, &Surroundings::default(), CREATED).unwrap();
    (change.task, change.children.remove(0).0)
}

/// A result with every kind of content.
pub(crate) fn rich_result() -> Json {
    ToolResult::new()
        .with(Content::text("line\n\"two\""))
        .with(Content::image(b"png", "image/png"))
        .with(Content::audio(b"wav", "audio/wav"))
        .with(Content::resource_link("file:///a.rs", "a.rs", Some("text/x-rust")))
        .with(Content::resource_link("file:///b.rs", "b.rs", None))
        .with(Content::embedded_text("test://a", "text", Some("text/plain")))
        .with(Content::embedded_blob("test://b", &[0, 255], None))
        .with_structured(json(r#"{"a":[1]}"#))
        .failed()
        .into_json()
}

/// Checks a message, or a part of it, against a definition.
pub(crate) fn must_fit(file: &str, definition: &str, message: &str, part: &str) {
    official::must_fit(file, definition, value(message).pointer(part).unwrap());
}

/// Any JSON, with these names among those of its members and these texts among its leaves.
pub(crate) fn any_json(names: &[&'static str], texts: &[&'static str]) -> impl Strategy<Value = Value> + use<> {
    let text = prop::sample::select(texts.to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "(?s).{0,8}".prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let name = prop_oneof![prop::sample::select(names.to_vec()).prop_map(str::to_owned), "[a-z\"\\\\]{0,4}"];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

pub(crate) fn damaged(message: String) -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..4);
    (any::<prop::sample::Index>(), bytes, 0_usize..4).prop_map(move |(at, bytes, cut)| {
        let mut damaged = message.clone().into_bytes();
        let from = at.index(damaged.len());
        let to = (from + cut).min(damaged.len());
        damaged.splice(from..to, bytes);
        damaged
    })
}
