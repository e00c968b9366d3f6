//! The official schemas: what a server sends in a test must fit that of its revision.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once};

use jsonschema::Validator;
use serde_json::{Value, json};

static SKIPPED: Once = Once::new();

type Known = HashMap<(String, String), Option<Arc<Validator>>>;

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// They are looked for in `LONGHAUL_SPEC_DIR`, else in `../shared/spec` beside the workspace.
fn official(revision: &str, definition: &str) -> Option<Arc<Validator>> {
    let mut known = KNOWN.lock().unwrap();
    let known = known.get_or_insert_default();
    let key = (revision.to_owned(), definition.to_owned());
    known.entry(key).or_insert_with(|| compile(revision, definition)).clone()
}

fn compile(revision: &str, definition: &str) -> Option<Arc<Validator>> {
    let folder = std::env::var_os("LONGHAUL_SPEC_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec"), PathBuf::from);
    let path = folder.join(format!("mcp-{revision}.schema.json"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        SKIPPED.call_once(|| {
            // Past the test harness, which shows nothing of what a passing test prints.
            let path = path.display();
            let _ = writeln!(std::io::stderr(), "SKIPPED: no official schema at {path}; set LONGHAUL_SPEC_DIR");
        });
        return None;
    };
    let mut schema: Value = serde_json::from_str(&text).expect("JSON");
    let root = schema.as_object_mut().expect("a schema");
    // The older revisions are in an older dialect, where a reference cannot stand beside anything else.
    let definitions = if root.contains_key("$defs") { "$defs" } else { "definitions" };
    assert!(root[definitions].get(definition).is_some(), "{revision} has no {definition}");
    root.remove("$id");
    root.insert("allOf".to_owned(), json!([{ "$ref": format!("#/{definitions}/{definition}") }]));
    Some(Arc::new(jsonschema::options().offline().should_validate_formats(false).build(&schema).expect("a schema")))
}

fn must_fit(revision: &str, definition: &str, value: &Value) {
    let Some(schema) = official(revision, definition) else { return };
    let faults: Vec<String> = schema.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{definition} of {revision}: {faults:?}\n{value:#}");
}

/// Checks any message of a server; `asked` says by its ID what a response is the answer to.
pub(crate) fn check(revision: &str, message: &Value, asked: impl Fn(&Value) -> Option<String>) {
    let is_latest = revision == "2025-11-25";
    if message.get("method").is_some() {
        let kind = if message.get("id").is_some() { "Request" } else { "Notification" };
        must_fit(revision, &format!("JSONRPC{kind}"), message);
        // What the server asks about a client's task is not in every list of its requests.
        must_fit(revision, &format!("Server{kind}"), message);
    } else if message.get("error").is_some() {
        if is_latest {
            must_fit(revision, "JSONRPCErrorResponse", message);
        } else if message.get("id").is_some() {
            must_fit(revision, "JSONRPCError", message);
        }
    } else {
        must_fit(revision, if is_latest { "JSONRPCResultResponse" } else { "JSONRPCResponse" }, message);
        let result = &message["result"];
        let definition = match asked(&message["id"]).as_deref() {
            Some("initialize") => "InitializeResult",
            Some("tools/list") => "ListToolsResult",
            Some("tools/call") if result.get("task").is_some() => "CreateTaskResult",
            Some("tools/call" | "tasks/result") => "CallToolResult",
            Some("tasks/get") => "GetTaskResult",
            Some("tasks/list") => "ListTasksResult",
            Some("tasks/cancel") => "CancelTaskResult",
            Some("ping" | "logging/setLevel") => "EmptyResult",
            other => panic!("the answer to nothing that was asked ({other:?}): {message}"),
        };
        must_fit(revision, definition, result);
    }
}
