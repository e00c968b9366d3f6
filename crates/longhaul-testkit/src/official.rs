//! The official schemas, read from the specification, and those that were written down from documents without one. The
//! tests of `longhaul-wire` use this file, too.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use jsonschema::Validator;
use serde_json::{Value, json};

type Known = HashMap<(String, String), Option<Arc<Validator>>>;

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// They are looked for in `LONGHAUL_SPEC_DIR`, else in `../shared/spec` beside the workspace.
fn official(file: &str, definition: &str) -> Option<Arc<Validator>> {
    let mut known = KNOWN.lock().unwrap();
    let known = known.get_or_insert_default();
    let has_missed = known.keys().any(|(other, _)| other == file);
    let key = (file.to_owned(), definition.to_owned());
    known.entry(key).or_insert_with(|| compile(file, definition, has_missed)).clone()
}

/// The schema of a generation whose document has none.
fn written_down(file: &str) -> Option<&'static str> {
    match file {
        "sep1686" => Some(include_str!("../schemas/sep1686.schema.json")),
        "lesson" => Some(include_str!("../schemas/lesson.schema.json")),
        _ => None,
    }
}

fn read(file: &str, is_second: bool) -> Option<String> {
    if let Some(text) = written_down(file) {
        return Some(text.to_owned());
    }
    let folder = std::env::var_os("LONGHAUL_SPEC_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec"), PathBuf::from);
    let path = folder.join(format!("{file}.schema.json"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        if !is_second {
            // Past the test harness, which shows nothing of what a passing test prints.
            let path = path.display();
            let _ = writeln!(std::io::stderr(), "SKIPPED: no official schema at {path}; set LONGHAUL_SPEC_DIR");
        }
        return None;
    };
    Some(text)
}

fn compile(file: &str, definition: &str, is_second: bool) -> Option<Arc<Validator>> {
    let text = read(file, is_second)?;
    let mut schema: Value = serde_json::from_str(&text).expect("JSON");
    let root = schema.as_object_mut().expect("a schema");
    // The older revisions are in an older dialect, where a reference cannot stand beside anything else.
    let definitions = if root.contains_key("$defs") { "$defs" } else { "definitions" };
    assert!(root[definitions].get(definition).is_some(), "{file} has no {definition}");
    root.remove("$id");
    root.insert("allOf".to_owned(), json!([{ "$ref": format!("#/{definitions}/{definition}") }]));
    Some(Arc::new(jsonschema::options().offline().should_validate_formats(false).build(&schema).expect("a schema")))
}

pub(crate) fn must_fit(file: &str, definition: &str, value: &Value) {
    let Some(schema) = official(file, definition) else { return };
    let faults: Vec<String> = schema.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{definition} of {file}: {faults:?}\n{value:#}");
}
