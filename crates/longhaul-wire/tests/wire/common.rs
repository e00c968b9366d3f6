//! Tasks in every phase, and the official schemas.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, Once};

use jsonschema::Validator;
use longhaul_task::transition::{self, AskQuestion, Cancel, Claim, Create, Settle};
use longhaul_task::{
    Event, JournalPosition, Json, NodeId, Outcome, Owner, Policy, QuestionKind, Retention, Surroundings, Task,
    TaskError, TaskId, TaskKey, Timestamp, ToolRef,
};
use longhaul_wire::ServerInfo;
use longhaul_wire::jsonrpc::{self, Message, Request};
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
    let create = Create {
        key,
        tool: ToolRef::new("hello_world", "1"),
        origin: "ext2026".into(),
        policy: Policy::default(),
        retention: Retention::FromCreation(3_600_000),
        claimed_by: None,
        first_fence: 0,
    };
    transition::create(&create, CREATED)
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
    let ask = AskQuestion { fence: task.fence, label: "name".into(), kind, params: json(params), position, digest: 0 };
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

fn settled(outcome: Outcome) -> Task {
    let task = running();
    after(&task, &Event::Settle(Settle { fence: task.fence, outcome }))
}

pub(crate) fn cancelled() -> Task {
    after(&queued(), &Event::Cancel(Cancel::default()))
}

static SKIPPED: Once = Once::new();

/// The official schema of one definition; `None`, and a line that says so, where the schemas are not at hand.
///
/// They are looked for in `LONGHAUL_SPEC_DIR`, else in `../shared/spec` beside the workspace.
pub(crate) fn official(file: &str, definition: &str) -> Option<Arc<Validator>> {
    static BUILT: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let name = format!("{file}#{definition}");
    if let Some(built) = BUILT.lock().unwrap().get(&name) {
        return Some(Arc::clone(built));
    }
    let folder = std::env::var_os("LONGHAUL_SPEC_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec"), PathBuf::from);
    let path = folder.join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        SKIPPED.call_once(|| {
            // Past the test harness, which shows nothing of what a passing test prints.
            let path = path.display();
            let _ = writeln!(std::io::stderr(), "SKIPPED: no official schema at {path}; set LONGHAUL_SPEC_DIR");
        });
        return None;
    };
    let mut schema = value(&text);
    let root = schema.as_object_mut().unwrap();
    // The older revisions are in an older dialect, where a reference cannot stand beside anything else.
    let definitions = if root.contains_key("$defs") { "$defs" } else { "definitions" };
    assert!(root[definitions].get(definition).is_some(), "{file} has no {definition}");
    root.remove("$id");
    root.insert("allOf".to_owned(), serde_json::json!([{ "$ref": format!("#/{definitions}/{definition}") }]));
    let built = Arc::new(jsonschema::options().offline().should_validate_formats(false).build(&schema).unwrap());
    BUILT.lock().unwrap().insert(name, Arc::clone(&built));
    Some(built)
}

/// Checks a message, or a part of it, against a definition.
pub(crate) fn must_fit(file: &str, definition: &str, message: &str, part: &str) {
    let message = value(message);
    let part = message.pointer(part).unwrap();
    let Some(schema) = official(file, definition) else { return };
    let faults: Vec<String> = schema.iter_errors(part).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{definition}: {faults:?}\n{part:#}");
}
