//! A canonical text of a JSON value, by which values can be compared.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use crate::text;

/// Returns a text that is the same for equal values, however they are written: with members in another order, other
/// whitespace, other escapes, or `1.0` for `1`. The text itself is not JSON. `None` if the input is not JSON.
///
/// ```
/// use longhaul_wire::canonical::canonical;
///
/// assert_eq!(canonical(r#"{ "b": 1.0, "a": "\u0078" }"#), canonical(r#"{"a":"x","b":1}"#));
/// assert_ne!(canonical("[1, 2]"), canonical("[2, 1]"));
/// ```
pub fn canonical(json: &str) -> Option<String> {
    let mut out = String::with_capacity(json.len());
    write(&mut out, &serde_json::from_str(json).ok()?);
    Some(out)
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Object(members) => {
            // Sorted here, because with the feature `preserve_order` of `serde_json` the map keeps the order of insertion.
            let members: BTreeMap<&String, &Value> = members.iter().collect();
            out.push('{');
            for (name, value) in members {
                text::push_str(out, name);
                out.push(':');
                write(out, value);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(elements) => {
            out.push('[');
            for element in elements {
                write(out, element);
                out.push(',');
            }
            out.push(']');
        }
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(string) => text::push_str(out, string),
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
    }
}

/// A whole number that every JSON reader represents exactly is written as an integer: `42.0` as `42`.
fn number_text(number: &Number) -> String {
    match number.as_f64().and_then(text::safe_integer) {
        Some(whole) => whole.to_string(),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_text_however_they_are_written() {
        for (one, other) in [
            (r#"{"a":{"c":[],"b":null}}"#, "{ \"a\" :\n{\"b\":null,\"c\":[ ]}}"),
            (r#""\u00e9\/""#, r#""é/""#),
            ("[0, -0, 0.0, 1e2]", "[0,0,0,100]"),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        ] {
            assert_eq!(canonical(one), canonical(other), "{one} {other}");
        }
    }

    #[test]
    fn different_values_have_different_texts() {
        let values = [
            "{}",
            "[]",
            "null",
            "0",
            "\"0\"",
            "\"\"",
            "[[],[]]",
            "[[[]]]",
            "[1,2]",
            "[12]",
            "[\"1,2\"]",
            r#"["\",\""]"#,
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"a":{},"b":1}"#,
            "0.1",
            "9007199254740993",
            "9007199254740992",
            "18446744073709551615",
            "-1",
            "1",
        ];
        let texts: std::collections::BTreeSet<_> = values.iter().map(|json| canonical(json).unwrap()).collect();
        assert_eq!(texts.len(), values.len(), "{texts:#?}");
    }
}
