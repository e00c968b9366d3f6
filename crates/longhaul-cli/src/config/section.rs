//! Reading a table of a config file: each key is known, of the right type, and has a place in the file.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::Problems;
use super::unit::{self, UnitError};

/// What the value of a key looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Flag,
    /// A whole number from 1 on.
    Count,
    Duration,
    Bytes,
    /// A list of texts.
    Texts,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Described in the documentation, and checked where it is read.
    Special(&'static str),
}

impl Form {
    /// For the documentation and for error messages.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Count => "a whole number from 1 on".to_owned(),
            Self::Duration => "a time, such as \"30s\" or \"2h\"".to_owned(),
            Self::Bytes => "a size of at least 1 byte, such as 65536 or \"4MiB\"".to_owned(),
            Self::Texts => "a list of texts".to_owned(),
            Self::Choice(words) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or "),
            Self::Special(words) => words.to_owned(),
        }
    }
}

/// A key that a section may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
}

pub(crate) const fn key(name: &'static str, form: Form) -> Key {
    Key { name, form }
}

/// A value with its place.
pub(super) type Entry<'a> = &'a Spanned<DeValue<'a>>;

/// A table of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section<'a> {
    pub(super) problems: &'a Problems<'a>,
    table: &'a DeTable<'a>,
    keys: &'static [Key],
}

/// A section with its path in the file.
#[derive(Debug, Clone)]
pub(super) struct NamedSection<'a> {
    section: Section<'a>,
    pub(super) path: String,
    /// Where the section begins.
    pub(super) span: Range<usize>,
}

impl<'a> NamedSection<'a> {
    /// Opens a table whose keys are these; others are reported.
    pub(super) fn open(
        problems: &'a Problems<'a>,
        table: &'a DeTable<'a>,
        path: &str,
        span: Range<usize>,
        keys: &'static [Key],
    ) -> Self {
        let opened = Self { section: Section { problems, table, keys }, path: path.to_owned(), span };
        for name in table.keys() {
            if !keys.iter().any(|key| key.name == name.get_ref().as_ref()) {
                let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
                unknown(problems, &name.span(), &opened.key_path(name.get_ref()), name.get_ref(), &names);
            }
        }
        opened
    }

    /// Opens the table at a key, if it is there.
    pub(super) fn section(&self, name: &str, keys: &'static [Key]) -> Option<Self> {
        let entry = self.entry(name)?;
        let path = self.key_path(name);
        match entry.get_ref() {
            DeValue::Table(table) => Some(Self::open(self.problems(), table, &path, self.key_span(name), keys)),
            other => {
                self.wrong_type(name, other);
                None
            }
        }
    }

    /// The members of the table at a key, in the order of the file.
    pub(super) fn members(&self, name: &str) -> Vec<(&'a str, Range<usize>, Entry<'a>)> {
        let Some(entry) = self.entry(name) else { return Vec::new() };
        let DeValue::Table(table) = entry.get_ref() else {
            self.wrong_type(name, entry.get_ref());
            return Vec::new();
        };
        let mut members: Vec<_> =
            table.iter().map(|(name, value)| (name.get_ref().as_ref(), name.span(), value)).collect();
        members.sort_by_key(|(_, span, _)| span.start);
        members
    }

    pub(super) fn problems(&self) -> &'a Problems<'a> {
        self.section.problems
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.section.table.contains_key(name)
    }

    pub(super) fn entry(&self, name: &str) -> Option<Entry<'a>> {
        debug_assert!(self.section.keys.iter().any(|key| key.name == name), "{name} is missing in the table of keys");
        self.section.table.get(name)
    }

    pub(super) fn key_path(&self, name: &str) -> String {
        let mut path = self.path.clone();
        let dot = if path.is_empty() { "" } else { "." };
        let is_bare =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
        let _ = if is_bare { write!(path, "{dot}{name}") } else { write!(path, "{dot}{name:?}") };
        path
    }

    fn key_span(&self, name: &str) -> Range<usize> {
        let found = self.section.table.keys().find(|key| key.get_ref() == name);
        found.map_or_else(|| self.span.clone(), Spanned::span)
    }

    /// Reports a mistake in the value of a key.
    pub(super) fn wrong(&self, name: &str, what: impl Into<String>, remedy: impl Into<String>) {
        let span = self.section.table.get(name).map_or_else(|| self.span.clone(), Spanned::span);
        self.problems().add(&span, &self.key_path(name), what, remedy);
    }

    /// Reports a key that must be there and is not.
    pub(super) fn missing(&self, name: &str, remedy: impl Into<String>) {
        self.problems().add(&self.span, &self.key_path(name), "is missing", remedy);
    }

    fn form(&self, name: &str) -> Form {
        self.section.keys.iter().find(|key| key.name == name).map_or(Form::Text, |key| key.form)
    }

    pub(super) fn wrong_type(&self, name: &str, value: &DeValue<'_>) {
        let expected = self.form(name).describe();
        self.wrong(name, format!("is {}", article(value.type_str())), format!("it must be {expected}"));
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        let entry = self.entry(name)?;
        match entry.get_ref() {
            DeValue::String(text) => Some(text.as_ref()),
            other => {
                self.wrong_type(name, other);
                None
            }
        }
    }

    /// A text with at least one character that can be seen.
    pub(super) fn non_blank_text(&self, name: &str) -> Option<String> {
        let text = self.text(name)?;
        if text.trim().is_empty() {
            self.wrong(name, "is empty", "write a text, or leave the key out");
            return None;
        }
        Some(text.to_owned())
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        let entry = self.entry(name)?;
        match entry.get_ref() {
            DeValue::Boolean(flag) => Some(*flag),
            other => {
                self.wrong_type(name, other);
                None
            }
        }
    }

    pub(super) fn count(&self, name: &str) -> Option<u64> {
        let entry = self.entry(name)?;
        match entry.get_ref() {
            DeValue::Integer(number) => match unit::count(number).map_err(UnitError::describe) {
                Ok(count) => Some(count),
                Err(Some((what, remedy))) => {
                    self.wrong(name, format!("is {number}, {what}"), remedy);
                    None
                }
                Err(None) => {
                    self.wrong(name, format!("is {number}"), "it must be a whole number from 1 on");
                    None
                }
            },
            other => {
                self.wrong_type(name, other);
                None
            }
        }
    }

    /// The JSON value that the value of a key stands for.
    pub(super) fn json(&self, name: &str) -> Option<Value> {
        let read = to_json(self.entry(name)?.get_ref());
        read.map_err(|NoJson { what, remedy }| self.wrong(name, what, remedy)).ok()
    }

    pub(super) fn duration(&self, name: &str) -> Option<Duration> {
        let text = self.text(name)?;
        let form = "write a number from 1 on and one of the units ms, s, m, h and d, such as \"30s\" or \"1h30m\"";
        self.with_unit(name, text, unit::duration(text), ("which is not a time", form))
    }

    pub(super) fn bytes(&self, name: &str) -> Option<u64> {
        let entry = self.entry(name)?;
        let DeValue::String(text) = entry.get_ref() else {
            return if entry.get_ref().is_integer() {
                self.count(name)
            } else {
                self.wrong_type(name, entry.get_ref());
                None
            };
        };
        let form = "write at least 1 byte: a number, or one with the unit KiB, MiB or GiB, such as \"4MiB\"";
        self.with_unit(name, text, unit::bytes(text), ("which is not a size", form))
    }

    /// A value that was read from a text; a problem if it was not. `form` is what is wrong with a text of another form,
    /// and what to do.
    fn with_unit<T>(
        &self,
        name: &str,
        text: &str,
        read: Result<T, UnitError>,
        form: (&'static str, &str),
    ) -> Option<T> {
        let error = match read {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let (what, remedy) = error.describe().unwrap_or((form.0, form.1.to_owned()));
        self.wrong(name, format!("is {text:?}, {what}"), remedy);
        None
    }

    pub(super) fn choice(&self, name: &str) -> Option<&'static str> {
        let text = self.text(name)?;
        let Form::Choice(words) = self.form(name) else { return None };
        let found = words.iter().find(|word| **word == text);
        if found.is_none() {
            let mut remedy = format!("it must be {}", self.form(name).describe());
            if let Some(close) = closest(text, words) {
                let _ = write!(remedy, "; did you mean \"{close}\"?");
            }
            self.wrong(name, format!("is {text:?}"), remedy);
        }
        found.copied()
    }

    pub(super) fn texts(&self, name: &str) -> Option<Vec<(&'a str, Range<usize>)>> {
        let entry = self.entry(name)?;
        let DeValue::Array(items) = entry.get_ref() else {
            self.wrong_type(name, entry.get_ref());
            return None;
        };
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            if let DeValue::String(text) = item.get_ref() {
                texts.push((text.as_ref(), item.span()));
            } else {
                let what = format!("has {} in its list", article(item.get_ref().type_str()));
                self.problems().add(&item.span(), &self.key_path(name), what, "put quotation marks around it");
            }
        }
        Some(texts)
    }
}

/// Reports a key that does not exist.
pub(super) fn unknown(problems: &Problems<'_>, at: &Range<usize>, path: &str, name: &str, known: &[&str]) {
    let remedy = match closest(name, known) {
        Some(close) => format!("did you mean `{close}`?"),
        None if known.is_empty() => "remove it".to_owned(),
        None => format!("remove it, or use one of {}", known.join(", ")),
    };
    problems.add(at, path, "is not a key of this section", remedy);
}

/// Words of other programs for the same things.
const SYNONYMS: &[(&str, &str)] = &[
    ("arguments", "args"),
    ("cmd", "command"),
    ("cwd", "directory"),
    ("working_directory", "directory"),
    ("environment", "env"),
    ("enum", "choices"),
    ("max", "maximum"),
    ("min", "minimum"),
    ("float", "number"),
    ("ttl", "retention"),
];

/// The known word that a misspelt one is most like.
pub(super) fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_lowercase();
    let meant = SYNONYMS.iter().find(|(synonym, _)| *synonym == word).map(|(_, meant)| *meant);
    if let Some(meant) = known.iter().find(|known| Some(**known) == meant) {
        return Some(meant);
    }
    let likeness = |known: &str| strsim::jaro_winkler(&word, &known.to_lowercase());
    let best = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.8).then_some(best)
}

pub(super) fn article(kind: &str) -> String {
    match kind {
        "integer" | "array" => format!("an {kind}"),
        "table" | "string" | "float" | "boolean" | "datetime" => format!("a {kind}"),
        other => other.to_owned(),
    }
}

/// A number of TOML that JSON cannot have.
#[derive(Debug)]
struct NoJson {
    what: String,
    remedy: String,
}

/// The JSON value that a TOML value stands for.
fn to_json(value: &DeValue<'_>) -> Result<Value, NoJson> {
    Ok(match value {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(number) => Value::Number(unit::integer(number).map(Number::from).map_err(|_| NoJson {
            what: format!("has {number}, which is too large"),
            remedy: format!("use integers from {} to {}", i64::MIN, i64::MAX),
        })?),
        DeValue::Float(number) => {
            let parsed = number.as_str().replace('_', "").parse().ok().and_then(Number::from_f64);
            Value::Number(parsed.ok_or_else(|| NoJson {
                what: format!("has {number}, which JSON does not have"),
                remedy: "use an ordinary number".to_owned(),
            })?)
        }
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|item| to_json(item.get_ref())).collect::<Result<Vec<_>, _>>()?)
        }
        DeValue::Table(table) => {
            let member = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
                let name: &std::borrow::Cow<'_, str> = name.get_ref();
                Ok((name.clone().into_owned(), to_json(value.get_ref())?))
            };
            Value::Object(table.iter().map(member).collect::<Result<Map<_, _>, _>>()?)
        }
    })
}
