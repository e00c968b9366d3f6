//! Deserializes values from clients into the types of a tool.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// Deserializes a value. `10.0` is an integer for JSON Schema, but not for serde: if the value does not fit the type, such
/// numbers are replaced by integers and the value is tried again.
pub(crate) fn read<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(json).or_else(|_| {
        let mut value = serde_json::from_str(json)?;
        replace_whole_floats(&mut value);
        serde_json::from_value(value)
    })
}

/// Checks that arguments fit this type. The error says why they do not.
pub(crate) fn check<T: DeserializeOwned>(arguments: &RawValue) -> Result<(), String> {
    read::<T>(arguments.get()).map(drop).map_err(|error| error.to_string())
}

/// Replaces each number such as `10.0` or `1e3`, which is whole but not written as an integer, by the integer.
fn replace_whole_floats(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(integer) = number.as_f64().and_then(exact_integer) {
                *number = integer.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(replace_whole_floats),
        Value::Object(members) => members.values_mut().for_each(replace_whole_floats),
        _ => {}
    }
}

/// The integer with this value. `None` if the number has a fraction, or is so large that an `f64` skips integers.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn exact_integer(number: f64) -> Option<i64> {
    const LAST_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && number.abs() <= LAST_EXACT_INTEGER).then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Order {
        id: i64,
        #[serde(default)]
        lines: Vec<Line>,
        #[serde(default)]
        price: f64,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Line {
        count: u8,
        note: Option<u64>,
    }

    #[test]
    fn a_whole_number_is_an_integer_however_it_is_written() {
        let whole =
            r#"{"id":-0.0,"lines":[{"count":10.0,"note":1e3},{"count":1,"note":18446744073709551615}],"price":2.0}"#;
        let lines = vec![Line { count: 10, note: Some(1_000) }, Line { count: 1, note: Some(u64::MAX) }];
        assert_eq!(read::<Order>(whole).unwrap(), Order { id: 0, lines, price: 2.0 });
        assert_eq!(read::<Order>(r#"{"id":9007199254740992.0}"#).unwrap().id, 1 << 53);
        assert_eq!(read::<f64>("10.0").unwrap().to_bits(), 10.0_f64.to_bits());
        assert_eq!(
            read::<Value>("10.0").unwrap().to_string(),
            "10.0",
            "a type that accepts the number gets it unchanged"
        );
    }

    #[test]
    fn a_number_that_does_not_fit_its_type_is_refused() {
        for wrong in [r#"{"id":1.5}"#, r#"{"id":1e30}"#, r#"{"id":1,"lines":[{"count":256.0}]}"#, r#"{"id":"1"}"#, "{"]
        {
            assert!(read::<Order>(wrong).is_err(), "{wrong}");
        }
    }
}
