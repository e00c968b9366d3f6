//! Texts with arguments in braces: `--epochs={epochs}`. An argument becomes text as it is; it is never split, and no shell
//! sees it.

use std::ops::Range;

use serde_json::{Map, Value};

/// A text with places for arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Argument(String),
}

/// What is wrong with a template, and where in its text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TemplateError {
    pub(super) at: Range<usize>,
    pub(super) what: String,
}

impl Template {
    /// Reads a text. `{{` and `}}` stand for braces.
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let offset = text.len() - rest.len() + at;
            let brace = &rest[at..=at];
            let after = &rest[at + 1..];
            if after.starts_with(brace) {
                literal.push_str(brace);
                rest = &after[1..];
            } else if brace == "}" {
                let what = "has a } without a {; write }} for the character".to_owned();
                return Err(TemplateError { at: offset..offset + 1, what });
            } else {
                let Some(end) = after.find('}') else {
                    let what = "has a { without a }; write {{ for the character".to_owned();
                    return Err(TemplateError { at: offset..offset + 1, what });
                };
                if !literal.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut literal)));
                }
                parts.push(Part::Argument(after[..end].to_owned()));
                rest = &after[end + 1..];
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal));
        }
        Ok(Self { parts })
    }

    /// The names of the arguments in it.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Argument(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The argument that it consists of, if it has nothing else.
    pub(super) fn only_argument(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Argument(name)] => Some(name),
            _ => None,
        }
    }

    /// The text with the arguments in their places. `None` if one of them was not given.
    pub(super) fn fill(&self, arguments: &Map<String, Value>) -> Option<String> {
        let mut filled = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Argument(name) => filled.push_str(&as_text(arguments.get(name)?)?),
            }
        }
        Some(filled)
    }

    /// The words of an argument list: one, or one for each item if it consists of an argument that is a list.
    pub(super) fn words(&self, arguments: &Map<String, Value>) -> Option<Vec<String>> {
        if let Some(name) = self.only_argument()
            && let Value::Array(items) = arguments.get(name)?
        {
            return items.iter().map(as_text).collect();
        }
        Some(vec![self.fill(arguments)?])
    }
}

/// A text as it is, anything else as JSON. `null` is an argument that was not given.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(template: &str, arguments: &Value) -> Option<Vec<String>> {
        Template::parse(template).unwrap().words(arguments.as_object().unwrap())
    }

    #[test]
    fn an_argument_is_one_word_whatever_it_contains() {
        let nasty = "a b; rm -rf / $(id) `id` \"'\n{other} *";
        let arguments = json!({ "text": nasty, "n": 1.5, "flag": true, "object": { "a": [1] }, "list": ["x y", 2] });
        assert_eq!(filled("{text}", &arguments).unwrap(), [nasty]);
        assert_eq!(filled("--x={text}{n}", &arguments).unwrap(), [format!("--x={nasty}1.5")]);
        assert_eq!(filled("{flag}", &arguments).unwrap(), ["true"]);
        assert_eq!(filled("{object}", &arguments).unwrap(), [r#"{"a":[1]}"#]);
        assert_eq!(filled("{list}", &arguments).unwrap(), ["x y", "2"]);
        assert_eq!(filled("{{{n}}}", &arguments).unwrap(), ["{1.5}"]);
        assert_eq!(filled("{missing}", &arguments), None);
        assert_eq!(filled("plain", &arguments).unwrap(), ["plain"]);
    }

    #[test]
    fn a_brace_without_its_partner_is_refused_with_its_place() {
        assert_eq!(Template::parse("ab{c").unwrap_err().at, 2..3);
        assert_eq!(Template::parse("a}").unwrap_err().at, 1..2);
    }
}
