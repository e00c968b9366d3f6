//! Reads a JSON text into a tree, and refuses objects in which a key occurs twice.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::jsonrpc::{DUPLICATE_FIELD, describe_read_error};

/// Reads a JSON text. It is an error if a key occurs twice in an object.
///
/// Readers treat such an object differently: `Value` keeps the last of two equal keys, a derived reader refuses them, and
/// others keep the first. So the tool could read another value than the one that was checked against the schema.
pub(crate) fn parse(json: &str) -> Result<Value, String> {
    serde_json::from_str::<Tree>(json).map(|tree| tree.0).map_err(|error| describe_read_error(&error))
}

struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Self)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Tree(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(de::Error::custom(format_args!("{DUPLICATE_FIELD}`{key}`")));
            }
            let Tree(value) = members.next_value()?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_repeated_keys_gives_the_tree_of_serde_json() {
        let json = r#" {"a":[null,true,-1,18446744073709551615,1.5,10.0,"\u00e9",{}],"b":{"a":{"a":[]}},"":"x"} "#;
        assert_eq!(parse(json).unwrap(), serde_json::from_str::<Value>(json).unwrap());
        for wrong in ["", "{", "[1,]", "1e999", "{\"a\":}", "nul"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse(&"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn a_repeated_key_is_refused_and_the_error_shortens_a_long_key() {
        for json in [r#"{"a":1,"a":1}"#, r#"{"x":[{"a":1,"b":2,"a":3}]}"#, r#"{"a":1,"\u0061":2}"#] {
            assert_eq!(parse(json).unwrap_err(), "`a` occurs twice");
        }
        let key = "k".repeat(900_000);
        let error = parse(&format!(r#"{{"{key}":1,"{key}":2}}"#)).unwrap_err();
        assert!(error.len() < 300 && error.ends_with("… occurs twice"), "{} bytes", error.len());
    }

    #[test]
    fn a_value_that_no_reader_can_hold_is_described_in_plain_words() {
        assert_eq!(parse(r#"{"a":1e999}"#).unwrap_err(), "a number is too large");
        let lone_halves = [r#"{"a":"\ud800"}"#, r#"{"a":"\ud800\ud800"}"#, r#"{"\udc00":1}"#];
        for json in lone_halves {
            assert_eq!(parse(json).unwrap_err(), "a string has a Unicode escape that stands for no character");
        }
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        assert_eq!(parse(&deep).unwrap_err(), "it is nested too deeply");
    }
}
