//! `[tool.NAME]`: a command as a tool.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul::{Annotations, OnCrash, Retention, TaskSupport};
use longhaul_wire::tool::{TOOL_NAME_BYTES_MAX, is_tool_name};
use regex::Regex;
use serde_json::Value;
use toml::de::DeValue;

use super::argument::{self, Arguments, pattern_remedy};
use super::keys;
use super::section::{Entry, NamedSection, article, closest};
use super::template::Template;

/// The remedy for a name that [`is_tool_name`] refuses.
pub(super) fn name_remedy() -> String {
    format!("use 1 to {TOOL_NAME_BYTES_MAX} letters, digits, _, - and .")
}

/// Keys that say something about tasks alone.
const KEYS_OF_TASKS: [&str; 7] =
    ["attempts", "backoff", "retry_failures", "on_crash", "retention", "answers_within", "cancel_abandoned"];

/// A tool of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolConfig {
    pub(crate) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) command: CommandLine,
    pub(super) arguments: Arguments,
    pub(super) env: Vec<(String, Template)>,
    pub(super) has_json_input: bool,
    pub(super) directory: PathBuf,
    pub(super) output: Output,
    pub(super) output_max: Option<u64>,
    pub(super) progress: Option<ProgressPattern>,
    pub(super) messages: Option<MessageStream>,
    pub(super) task: TaskSupport,
    pub(super) concurrency: Option<u64>,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Option<Duration>,
    pub(super) on_crash: OnCrash,
    pub(super) attempts: Option<u64>,
    pub(super) backoff: Option<Duration>,
    pub(super) retry_failures: bool,
    pub(super) retention: Option<Retention>,
    pub(super) version: Option<String>,
    pub(super) hints: Annotations,
    pub(super) answers_within: Option<Duration>,
    pub(super) cancels_abandoned: bool,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandLine {
    /// A program and its arguments. A part with several words is left out if one of its arguments was not given.
    Program(Vec<Vec<Template>>),
    /// A text for `sh -c`. It has no places for arguments: they would be read as program text.
    Shell(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Output {
    Text,
    Json { schema: Option<Value> },
}

#[derive(Debug, Clone)]
pub(super) struct ProgressPattern {
    pub(super) pattern: Regex,
    pub(super) total: Option<u64>,
}

impl PartialEq for ProgressPattern {
    fn eq(&self, other: &Self) -> bool {
        (self.pattern.as_str(), self.total) == (other.pattern.as_str(), other.total)
    }
}

/// Where a command writes the lines that are for the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageStream {
    Stdout,
    Stderr,
}

/// Reads a tool. What is wrong is reported; the value counts only if nothing is.
pub(super) fn read(section: &NamedSection<'_>, name: &str, folder: &Path) -> Option<ToolConfig> {
    if !is_tool_name(name) {
        section.problems().add(&section.span, &section.path, "cannot be the name of a tool", name_remedy());
    }
    let arguments = argument::read(section, folder);
    let is_shell = section.flag("shell").unwrap_or(false);
    let command = command(section, is_shell, &arguments);
    let on_crash = section.choice("on_crash").map_or(OnCrash::Fail, |word| match word {
        "retry" => OnCrash::Retry,
        _ => OnCrash::Fail,
    });
    let retry_failures = section.flag("retry_failures").unwrap_or(false);
    let attempts = section.count("attempts");
    if attempts.is_some_and(|attempts| u32::try_from(attempts).is_err()) {
        section.wrong("attempts", "is too large", "use at most 4294967295");
    }
    let task = section.choice("task").map_or(TaskSupport::Optional, |word| match word {
        "required" => TaskSupport::Required,
        "forbidden" => TaskSupport::Forbidden,
        _ => TaskSupport::Optional,
    });
    let is_forbidden = task == TaskSupport::Forbidden;
    for key in KEYS_OF_TASKS.iter().filter(|key| is_forbidden && section.has(key)) {
        let remedy = "remove it, or let calls become tasks with `task = \"optional\"`";
        section.wrong(key, "has no effect, because `task` is \"forbidden\"", remedy);
    }
    for key in ["attempts", "backoff"] {
        if section.has(key) && !is_forbidden && on_crash == OnCrash::Fail && !retry_failures {
            let remedy = "add `on_crash = \"retry\"` or `retry_failures = true`, or remove it";
            section.wrong(key, "has no effect, because this tool is not started again", remedy);
        }
    }
    let directory = folder.join(section.non_blank_text("directory").unwrap_or_default());
    let (output, messages) = (output(section, folder), section.choice("messages"));
    Some(ToolConfig {
        name: name.to_owned(),
        title: section.non_blank_text("title"),
        description: section.non_blank_text("description"),
        env: environment(section, &arguments),
        has_json_input: section.choice("stdin") == Some("json"),
        output,
        output_max: section.bytes("output_max"),
        progress: progress(section),
        messages: messages.map(|word| if word == "stderr" { MessageStream::Stderr } else { MessageStream::Stdout }),
        task,
        concurrency: section.count("concurrency"),
        timeout: section.duration("timeout"),
        grace: section.duration("grace"),
        on_crash,
        attempts,
        backoff: section.duration("backoff"),
        retry_failures,
        retention: retention(section),
        version: section.non_blank_text("version"),
        hints: hints(section),
        answers_within: section.duration("answers_within"),
        cancels_abandoned: section.flag("cancel_abandoned").unwrap_or(false),
        command: command?,
        directory,
        arguments,
    })
}

fn command(section: &NamedSection<'_>, is_shell: bool, arguments: &Arguments) -> Option<CommandLine> {
    let Some(entry) = section.entry("command") else {
        section.missing("command", "add one, such as command = [\"python3\", \"train.py\"]");
        return None;
    };
    match (entry.get_ref(), is_shell) {
        (DeValue::String(text), true) => {
            if text.trim().is_empty() {
                section.wrong("command", "is empty", "write the command for the shell");
            }
            shell_command(section, text, arguments)
        }
        (DeValue::String(text), false) => {
            let words: Vec<String> = text.split_whitespace().map(|word| format!("{word:?}")).collect();
            let remedy = format!("write a list of words: command = [{}]; or add shell = true", words.join(", "));
            section.wrong("command", "is one text, and no shell splits it", remedy);
            None
        }
        (DeValue::Array(_), true) => {
            let remedy = "write one text for `sh -c`, or remove `shell`";
            section.wrong("command", "is a list, and a shell takes one text", remedy);
            None
        }
        (DeValue::Array(items), false) => {
            let mut parts = Vec::new();
            for item in items {
                match item.get_ref() {
                    DeValue::Array(group) => {
                        let words = group.iter().filter_map(|word| template(section, word, arguments));
                        parts.push(words.collect());
                    }
                    _ => parts.extend(template(section, item, arguments).map(|word| {
                        check_optional(section, &word, &item.span(), arguments);
                        vec![word]
                    })),
                }
            }
            let program = items.iter().next().map(toml::Spanned::get_ref);
            match program {
                Some(DeValue::String(program)) if program.trim().is_empty() => {
                    section.wrong("command", "begins with an empty text", "begin with the program to run");
                }
                Some(DeValue::String(program))
                    if Template::parse(program).is_ok_and(|t| t.arguments().next().is_some()) =>
                {
                    let remedy = "begin with the name of a program; a caller must not choose what is run";
                    section.wrong("command", "begins with an argument of the caller", remedy);
                }
                Some(DeValue::Array(_)) => {
                    section.wrong("command", "begins with a list", "begin with the program to run");
                }
                None => section.wrong("command", "is empty", "begin with the program to run"),
                Some(_) => {}
            }
            Some(CommandLine::Program(parts))
        }
        (other, _) => {
            section.wrong_type("command", other);
            None
        }
    }
}

fn shell_command(section: &NamedSection<'_>, text: &str, arguments: &Arguments) -> Option<CommandLine> {
    let used = arguments.names().into_iter().find(|name| text.contains(&format!("{{{name}}}")));
    if let Some(name) = used {
        let variable = name.to_uppercase().replace('-', "_");
        let remedy = format!("add `env.{variable} = \"{{{name}}}\"` and write \"${variable}\" in the command");
        section.wrong("command", format!("has {{{name}}} in a text for a shell, which would run it"), remedy);
        return None;
    }
    Some(CommandLine::Shell(text.to_owned()))
}

/// A word of a command with places for arguments.
fn template(section: &NamedSection<'_>, item: Entry<'_>, arguments: &Arguments) -> Option<Template> {
    let problems = section.problems();
    let path = section.key_path("command");
    let DeValue::String(text) = item.get_ref() else {
        let what = format!("has {} in its list", article(item.get_ref().type_str()));
        problems.add(&item.span(), &path, what, "put quotation marks around it");
        return None;
    };
    if text.contains('\0') {
        problems.add(&item.span(), &path, "has a character that no argument can have", "remove \\u0000");
    }
    let template = parse(section, "command", text, &item.span(), arguments)?;
    let is_list = |name: &&str| arguments.find(name).is_some_and(|argument| argument.is_list);
    let list = template.arguments().find(is_list).filter(|_| template.only_argument().is_none());
    if let Some(name) = list {
        let what = format!("has the list {{{name}}} inside of a word");
        problems.add(&item.span(), &path, what, format!("write \"{{{name}}}\" alone: each item becomes one word"));
    }
    Some(template)
}

fn parse(
    section: &NamedSection<'_>,
    key: &str,
    text: &str,
    at: &Range<usize>,
    arguments: &Arguments,
) -> Option<Template> {
    let (problems, path) = (section.problems(), section.key_path(key));
    let template = match Template::parse(text) {
        Ok(template) => template,
        Err(error) => {
            let (what, remedy) = error.what.split_once("; ").unwrap_or((&error.what, "correct it"));
            problems.add(at, &path, what, remedy);
            return None;
        }
    };
    for name in template.arguments() {
        if arguments.find(name).is_none() {
            let names = arguments.names();
            let remedy = match closest(name, &names) {
                Some(close) => format!("did you mean {{{close}}}?"),
                None if argument::is_name(name) => {
                    format!("add `args.{name} = {{ type = \"string\" }}`, or write {{{{{name}}}}} for the text itself")
                }
                None => format!("write {{{{{name}}}}} for the text itself"),
            };
            problems.add(at, &path, format!("uses {{{name}}}, which is not an argument of this tool"), remedy);
        }
    }
    Some(template)
}

/// Outside of a part of its own, an argument must always be there: without it, a flag before it would take the next word.
fn check_optional(section: &NamedSection<'_>, template: &Template, at: &Range<usize>, arguments: &Arguments) {
    for name in template.arguments() {
        if arguments.find(name).is_some_and(|argument| !argument.is_always_there()) {
            let remedy = format!(
                "give it a default, or put it with its flag into a list of its own, such as [\"--{name}\", \"{{{name}}}\"], which \
                 is left out then"
            );
            let what = format!("uses {{{name}}}, which a call may leave out");
            section.problems().add(at, &section.key_path("command"), what, remedy);
        }
    }
}

fn environment(section: &NamedSection<'_>, arguments: &Arguments) -> Vec<(String, Template)> {
    let mut variables = Vec::new();
    for (name, span, entry) in section.members("env") {
        let path = format!("{}.{name}", section.key_path("env"));
        if name.is_empty() || name.contains(['=', '\0']) {
            section.problems().add(&span, &path, "cannot be the name of a variable", "use letters, digits and _");
            continue;
        }
        if name.starts_with("LONGHAUL_") {
            section.problems().add(&span, &path, "is a variable of Longhaul itself", "use another name");
        }
        match entry.get_ref() {
            DeValue::String(text) => {
                variables.extend(
                    parse(section, "env", text, &entry.span(), arguments).map(|template| (name.to_owned(), template)),
                );
            }
            other => {
                let what = format!("is {}", article(other.type_str()));
                section.problems().add(&entry.span(), &path, what, "put quotation marks around it");
            }
        }
    }
    variables
}

fn output(section: &NamedSection<'_>, folder: &Path) -> Output {
    let chosen = section.choice("output");
    match section.entry("output_schema") {
        Some(entry) => {
            if chosen == Some("text") {
                section.wrong("output_schema", "describes JSON, and `output` is \"text\"", "write output = \"json\"");
            }
            let schema = argument::read_schema(section, "output_schema", entry, folder);
            if schema.as_ref().is_some_and(|schema| schema["type"] != "object") {
                section.wrong(
                    "output_schema",
                    "does not describe an object",
                    "write type = \"object\" in it; hosts need one",
                );
            }
            Output::Json { schema }
        }
        None if chosen == Some("json") => Output::Json { schema: None },
        None => Output::Text,
    }
}

fn progress(section: &NamedSection<'_>) -> Option<ProgressPattern> {
    let entry = section.entry("progress")?;
    let (of, key, total) = match entry.get_ref() {
        DeValue::String(_) => (section.clone(), "progress", None),
        DeValue::Table(_) => {
            let table = section.section("progress", keys::PROGRESS)?;
            if !table.has("pattern") {
                table.missing("pattern", "add one, such as pattern = '(\\d+)%'");
            }
            let total = table.count("total");
            (table, "pattern", total)
        }
        other => {
            section.wrong_type("progress", other);
            return None;
        }
    };
    let text = of.text(key)?;
    let pattern = match Regex::new(text) {
        Ok(pattern) => pattern,
        Err(error) => {
            of.wrong(key, "is not a regular expression", pattern_remedy(&error));
            return None;
        }
    };
    let names: Vec<&str> = pattern.capture_names().flatten().collect();
    let groups = pattern.captures_len() - 1;
    if let Some(name) = names.iter().find(|name| !["done", "total", "message"].contains(name)) {
        of.wrong(
            key,
            format!("has a group named {name:?}"),
            "name groups `done`, `total` and `message`, or none of them",
        );
    } else if names.is_empty() && !(1..=2).contains(&groups) {
        let remedy =
            "write one group for what is done, or two for what is done and the total, such as 'step (\\d+)/(\\d+)'";
        of.wrong(key, format!("has {groups} groups"), remedy);
    } else if !names.is_empty() && !names.contains(&"done") {
        of.wrong(key, "has no group named `done`", "write one, such as (?<done>\\d+)");
    }
    Some(ProgressPattern { pattern, total })
}

fn retention(section: &NamedSection<'_>) -> Option<Retention> {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    match section.entry("retention")?.get_ref() {
        DeValue::String(word) if word.as_ref() == "forever" => Some(Retention::Unlimited),
        DeValue::String(_) => section.duration("retention").map(|time| Retention::FromCreation(ms(time))),
        DeValue::Table(_) => {
            let table = section.section("retention", keys::RETENTION)?;
            if !table.has("after_end") {
                table.missing("after_end", "write a time, such as { after_end = \"1h\" }");
            }
            table.duration("after_end").map(|time| Retention::FromEnd(ms(time)))
        }
        other => {
            section.wrong_type("retention", other);
            None
        }
    }
}

fn hints(section: &NamedSection<'_>) -> Annotations {
    let Some(hints) = section.section("hints", keys::HINTS) else { return Annotations::default() };
    Annotations {
        title: None,
        read_only: hints.flag("read_only"),
        destructive: hints.flag("destructive"),
        idempotent: hints.flag("idempotent"),
        open_world: hints.flag("open_world"),
    }
}
