//! Every key that a config file can have, except those of `[limits]`, which are in `limits.rs`. A test compares them with
//! `docs/config.md`.

use super::section::Form::{Bytes, Choice, Count, Duration, Flag, Special, Text, Texts};
use super::section::{Key, key};

pub(crate) const ROOT: &[Key] = &[
    key("server", Special("a table")),
    key("limits", Special("a table")),
    key("clients_without_tasks", Special("a table")),
    key("tool", Special("a table of tools")),
    key("prompt", Special("a table of prompts")),
    key("resource", Special("a table of resources")),
];

pub(crate) const SERVER: &[Key] = &[
    key("name", Text),
    key("version", Text),
    key("instructions", Text),
    key("listen", Text),
    key("stdio", Flag),
    key("store", Text),
    key("token_file", Text),
    key("allow_origin", Texts),
    key("audit", Text),
    key("log_format", Choice(&["text", "json"])),
    key("demo", Flag),
    key("poll_interval", Duration),
];

pub(crate) const TOOL: &[Key] = &[
    key("title", Text),
    key("description", Text),
    key("command", Special("a list of texts, or one text with `shell = true`")),
    key("shell", Flag),
    key("args", Special("a table of arguments")),
    key("input_schema", Special("a JSON Schema as a table, or the path of a JSON file")),
    key("env", Special("a table of texts")),
    key("stdin", Choice(&["none", "json"])),
    key("directory", Text),
    key("output", Choice(&["text", "json"])),
    key("output_schema", Special("a JSON Schema as a table, or the path of a JSON file")),
    key("output_max", Bytes),
    key("progress", Special("a pattern, or a table with `pattern` and `total`")),
    key("messages", Choice(&["stdout", "stderr"])),
    key("task", Choice(&["optional", "required", "forbidden"])),
    key("concurrency", Count),
    key("timeout", Duration),
    key("grace", Duration),
    key("on_crash", Choice(&["fail", "retry"])),
    key("attempts", Count),
    key("backoff", Duration),
    key("retry_failures", Flag),
    key("retention", Special("a time from the creation of a task, a table with `after_end`, or \"forever\"")),
    key("version", Text),
    key("hints", Special("a table")),
    key("answers_within", Duration),
    key("cancel_abandoned", Flag),
];

pub(crate) const PROMPT: &[Key] = &[key("title", Text), key("description", Text), key("text", Text), key("file", Text)];

pub(crate) const RESOURCE: &[Key] = &[
    key("uri", Text),
    key("title", Text),
    key("description", Text),
    key("mime_type", Text),
    key("text", Text),
    key("file", Text),
];

pub(crate) const ARGUMENT: &[Key] = &[
    key("type", Choice(&["string", "integer", "number", "boolean", "array", "object"])),
    key("description", Text),
    key("default", Special("a value of the argument's type")),
    key("choices", Special("a list of values of the argument's type")),
    key("required", Flag),
    key("minimum", Special("a number")),
    key("maximum", Special("a number")),
    key("pattern", Text),
    key("length_max", Count),
    key("items", Choice(&["string", "integer", "number", "boolean"])),
];

pub(crate) const PROGRESS: &[Key] = &[key("pattern", Text), key("total", Count)];

pub(crate) const RETENTION: &[Key] = &[key("after_end", Duration)];

pub(crate) const HINTS: &[Key] =
    &[key("read_only", Flag), key("destructive", Flag), key("idempotent", Flag), key("open_world", Flag)];

pub(crate) const CLIENTS_WITHOUT_TASKS: &[Key] = &[
    key("enabled", Flag),
    key("patience", Duration),
    key("heartbeat", Duration),
    key("tools", Special("a table of names")),
];

pub(crate) const TICKET_TOOLS: &[Key] =
    &[key("status", Text), key("result", Text), key("answer", Text), key("cancel", Text), key("list", Text)];
