//! The arguments of a tool: from `args`, or from a JSON Schema.

use std::path::Path;

use longhaul::Failure;
use serde_json::{Map, Value, json};
use toml::de::DeValue;

use super::keys;
use super::section::{Entry, NamedSection, article};

/// The schema that the arguments of a call must match, and what a command needs to know about each argument.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arguments {
    pub(super) schema: Value,
    pub(super) list: Vec<Argument>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) default: Option<Value>,
    pub(super) is_required: bool,
    pub(super) is_list: bool,
}

impl Arguments {
    pub(super) fn find(&self, name: &str) -> Option<&Argument> {
        self.list.iter().find(|argument| argument.name == name)
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.list.iter().map(|argument| argument.name.as_str()).collect()
    }

    /// Completes the arguments of a call: adds the defaults of those that it does not have, and writes integers without
    /// a fraction.
    pub(super) fn complete_arguments(&self, mut given: Map<String, Value>) -> Result<Map<String, Value>, Failure> {
        for argument in &self.list {
            if let Some(default) = &argument.default {
                given.entry(argument.name.as_str()).or_insert_with(|| default.clone());
            }
        }
        for (name, value) in &mut given {
            write_integers(value, &self.schema["properties"][name]).map_err(|TooLarge| {
                let (least, greatest) = (i64::MIN, u64::MAX);
                Failure::tool(format!(
                    "The argument `{name}` has an integer that is too large. Send one from {least} to {greatest}, in digits \
                     alone."
                ))
            })?;
        }
        Ok(given)
    }
}

/// An integer that was too large to be read exactly.
struct TooLarge;

/// Writes the integers in a value without a fraction: `10.0` is an integer for JSON Schema; a command expects `10`.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn write_integers(value: &mut Value, schema: &Value) -> Result<(), TooLarge> {
    /// Up to here each integer has a floating-point number of its own.
    const LAST_EXACT_INTEGER: f64 = 9_007_199_254_740_991.0;
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(|item| write_integers(item, &schema["items"])),
        Value::Object(members) => {
            members.iter_mut().try_for_each(|(name, value)| write_integers(value, &schema["properties"][name]))
        }
        Value::Number(number) if number.is_f64() && schema["type"] == "integer" => {
            let exact = number.as_f64().filter(|number| number.abs() <= LAST_EXACT_INTEGER).ok_or(TooLarge)?;
            *number = (exact as i64).into();
            Ok(())
        }
        _ => Ok(()),
    }
}

impl Argument {
    /// Whether every call has a value for it.
    pub(super) fn is_always_there(&self) -> bool {
        self.is_required || self.default.is_some()
    }
}

/// Reads `args` or `input_schema` of a tool.
pub(super) fn read(tool: &NamedSection<'_>, folder: &Path) -> Arguments {
    if tool.has("args") && tool.has("input_schema") {
        tool.wrong("input_schema", "and `args` describe the same thing", "keep one of them");
    }
    if let Some(entry) = tool.entry("input_schema") {
        return match read_schema(tool, "input_schema", entry, folder) {
            Some(schema) => from_schema(tool, schema),
            None => Arguments { schema: json!({ "type": "object" }), list: Vec::new() },
        };
    }
    let mut properties = Map::new();
    let mut list = Vec::new();
    for (name, span, entry) in tool.members("args") {
        let path = tool.key_path("args");
        if !is_name(name) {
            let remedy = "begin with a letter or _, and go on with letters, digits, _ and -";
            tool.problems().add(&span, &format!("{path}.{name:?}"), "cannot be the name of an argument", remedy);
            continue;
        }
        let path = format!("{path}.{name}");
        let DeValue::Table(table) = entry.get_ref() else {
            let what = format!("is {}", article(entry.get_ref().type_str()));
            tool.problems().add(&entry.span(), &path, what, "write a table, such as { type = \"string\" }");
            continue;
        };
        let section = NamedSection::open(tool.problems(), table, &path, span, keys::ARGUMENT);
        if let Some((argument, schema)) = argument(&section, name) {
            properties.insert(name.to_owned(), schema);
            list.push(argument);
        }
    }
    let required: Vec<&str> =
        list.iter().filter(|argument| argument.is_required).map(|argument| argument.name.as_str()).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    Arguments { schema, list }
}

/// Whether an argument can have this name.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn argument(section: &NamedSection<'_>, name: &str) -> Option<(Argument, Value)> {
    if !section.has("type") {
        section.missing("type", format!("write one, such as `args.{name} = {{ type = \"string\" }}`"));
    }
    let kind = section.choice("type")?;
    let mut schema = json!({ "type": kind });
    let mut set = |key: &str, value: Value| schema[key] = value;
    if let Some(description) = section.non_blank_text("description") {
        set("description", description.into());
    }
    let only_for = |key: &str, kinds: &[&str]| {
        if section.has(key) && !kinds.contains(&kind) {
            let remedy = format!("remove it, or use one of the types {}", kinds.join(", "));
            section.wrong(key, format!("has no meaning for the type \"{kind}\""), remedy);
            return false;
        }
        section.has(key)
    };
    let bound = |key| {
        let value = only_for(key, &["integer", "number"]).then(|| section.json(key))??;
        if !value.is_number() {
            section.wrong_type(key, section.entry(key)?.get_ref());
            return None;
        }
        Some(value)
    };
    let (minimum, maximum) = (bound("minimum"), bound("maximum"));
    if let (Some(least), Some(most)) = (&minimum, &maximum)
        && most.as_f64() < least.as_f64()
    {
        let what = format!("is {most}, which is less than `minimum` ({least})");
        section.wrong("maximum", what, "correct one of them; no value fits both");
    }
    for (keyword, value) in [("minimum", minimum), ("maximum", maximum)] {
        if let Some(value) = value {
            set(keyword, value);
        }
    }
    if only_for("pattern", &["string"])
        && let Some(pattern) = section.text("pattern")
    {
        if let Err(error) = regex::Regex::new(pattern) {
            section.wrong("pattern", "is not a regular expression", pattern_remedy(&error));
        }
        set("pattern", pattern.into());
    }
    if only_for("length_max", &["string", "array"])
        && let Some(length) = section.count("length_max")
    {
        set(if kind == "array" { "maxItems" } else { "maxLength" }, length.into());
    }
    if only_for("items", &["array"])
        && let Some(items) = section.choice("items")
    {
        set("items", json!({ "type": items }));
    } else if kind == "array" && !section.has("items") {
        set("items", json!({ "type": "string" }));
    }
    if let Some(entry) = section.entry("choices") {
        if !entry.get_ref().is_array() {
            section.wrong_type("choices", entry.get_ref());
        } else if let Some(Value::Array(values)) = section.json("choices") {
            if values.is_empty() {
                section.wrong("choices", "is empty", "name at least one value");
            }
            if let Some(wrong) = values.iter().find(|value| !fits(value, kind)) {
                section.wrong("choices", format!("has {wrong}"), format!("each must be of the type \"{kind}\""));
            }
            set("enum", values.into());
        }
    }
    let mut default = None;
    if let Some(value) = section.json("default") {
        // A mistake in the schema has been reported already.
        let validator = jsonschema::validator_for(&schema).ok();
        let reason = validator.and_then(|validator| validator.validate(&value).err().map(|error| error.to_string()));
        default = Some(value);
        if let Some(reason) = reason {
            let remedy = format!("write a default of the type \"{kind}\" that a caller could send: {reason}");
            section.wrong("default", "does not fit its argument", remedy);
        }
    }
    if let Some(value) = &default {
        schema["default"] = value.clone();
    }
    let required = section.flag("required");
    if required == Some(true) && default.is_some() {
        section.wrong("required", "is true although there is a default", "remove one of them");
    }
    let is_required = required.unwrap_or(default.is_none());
    Some((Argument { name: name.to_owned(), default, is_required, is_list: kind == "array" }, schema))
}

fn fits(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}

pub(super) fn pattern_remedy(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
    format!("correct it ({last}); use single quotes, so that backslashes stay as they are")
}

/// Reads a JSON Schema, which is a table or the path of a JSON file.
pub(super) fn read_schema(section: &NamedSection<'_>, key: &str, entry: Entry<'_>, folder: &Path) -> Option<Value> {
    let schema = match entry.get_ref() {
        DeValue::Table(_) => section.json(key),
        DeValue::String(path) => {
            let read = std::fs::read_to_string(folder.join(path.as_ref())).map_err(|error| error.to_string());
            match read.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string())) {
                Ok(schema) => Some(schema),
                Err(error) => {
                    section.wrong(
                        key,
                        format!("cannot be read from {path:?}"),
                        format!("correct the path or the file: {error}"),
                    );
                    return None;
                }
            }
        }
        other => {
            section.wrong_type(key, other);
            return None;
        }
    }?;
    if let Err(error) = jsonschema::validator_for(&schema) {
        section.wrong(key, "is not a JSON Schema", format!("correct it: {error}"));
        return None;
    }
    Some(schema)
}

fn from_schema(tool: &NamedSection<'_>, schema: Value) -> Arguments {
    if schema["type"] != "object" {
        tool.wrong(
            "input_schema",
            "does not describe an object",
            "write type = \"object\" in it; arguments have names",
        );
    }
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let argument = |(name, property): (&String, &Value)| Argument {
        name: name.clone(),
        default: property.get("default").cloned(),
        is_required: required.contains(&name.as_str()),
        is_list: property["type"] == "array",
    };
    let list = schema["properties"].as_object().into_iter().flatten().map(argument).collect();
    Arguments { schema, list }
}
