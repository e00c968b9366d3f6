//! Reading and writing JSON text without trees.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::marker::PhantomData;

use jiff::fmt::temporal::DateTimePrinter;
use longhaul_task::{TaskError, Timestamp};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The largest whole number that every JSON reader keeps exact.
pub(crate) const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// Always writes three decimals of a second, so that times sort as text.
const TIME_PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// Appends a string as JSON.
pub(crate) fn push_str(out: &mut String, text: &str) {
    let is_plain = |byte| byte >= 0x20 && byte != b'"' && byte != b'\\';
    // `fold` has no early exit, so that the compiler can check many bytes at once.
    if text.bytes().fold(true, |all, byte| all & is_plain(byte)) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        // Serializing a string into a string cannot fail; an empty text keeps the message well-formed all the same.
        out.push_str(&serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned()));
    }
}

/// Appends `,"name":"text"`.
pub(crate) fn push_str_member(out: &mut String, name: &str, text: &str) {
    push_name(out, name);
    push_str(out, text);
}

/// Appends `,"name":` and the JSON text as it is.
pub(crate) fn push_raw_member(out: &mut String, name: &str, json: &str) {
    push_name(out, name);
    out.push_str(json);
}

/// Appends `,"name":number`.
pub(crate) fn push_number_member(out: &mut String, name: &str, number: u64) {
    push_name(out, name);
    push_number(out, number);
}

/// Appends a whole number, kept within what every reader takes.
pub(crate) fn push_number(out: &mut String, number: u64) {
    // Writing into a string cannot fail.
    let _ = write!(out, "{}", number.min(SAFE_INTEGER_MAX));
}

/// Appends `,"name":"2026-07-28T10:30:00.250Z"`.
pub(crate) fn push_time_member(out: &mut String, name: &str, at: Timestamp) {
    push_name(out, name);
    let moment = i64::try_from(at.as_ms()).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    out.push('"');
    // Writing into a string cannot fail.
    let _ = TIME_PRINTER.print_timestamp(&moment.unwrap_or(jiff::Timestamp::MAX), &mut *out);
    out.push('"');
}

/// Appends an array whose elements `write` appends.
pub(crate) fn push_array<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

fn push_name(out: &mut String, name: &str) {
    out.push_str(",\"");
    out.push_str(name);
    out.push_str("\":");
}

/// The same JSON on one line. Handlers and upstreams may hand us pretty-printed values; stdio and SSE frame by line.
/// A line break in JSON text is only ever insignificant whitespace, so this changes no value.
pub(crate) fn one_line(json: &str) -> Cow<'_, str> {
    if json.bytes().any(|byte| byte == b'\n' || byte == b'\r') {
        Cow::Owned(json.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(json)
    }
}

/// How deep brackets go in a text that is known to be JSON, as far as `limit` and one more.
pub(crate) fn depth(json: &str, limit: usize) -> usize {
    let bytes = json.as_bytes();
    // Most messages have at most `limit` brackets in all, so they need no closer look. The sum of a chunk is a `u8`, which a
    // chunk is too short to overflow, so that the compiler can count many bytes at once.
    let is_bracket = |byte: &u8| u8::from(matches!(byte, b'{' | b'['));
    let brackets: usize = bytes.chunks(255).map(|chunk| usize::from(chunk.iter().map(is_bracket).sum::<u8>())).sum();
    if brackets <= limit {
        return 0;
    }
    let (mut deepest, mut level, mut in_string, mut escaped) = (0_usize, 0_usize, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                level += 1;
                deepest = deepest.max(level);
                if deepest > limit {
                    break;
                }
            }
            b'}' | b']' => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A JSON string, borrowed from the message unless it has escapes.
pub(crate) struct JsonString<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonString<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct StringVisitor;

        impl<'de> Visitor<'de> for StringVisitor {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }

        from.deserialize_str(StringVisitor).map(JsonString)
    }
}

/// The stable code of an error that Longhaul itself reports, such as `CRASH_RECOVERY`.
pub(crate) fn code_of(fault: &TaskError) -> Option<Cow<'_, str>> {
    member(raw(fault.data.as_ref()?.as_str())?, "code").and_then(string)
}

/// The string in a raw value, if it is one.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    // A raw value is valid JSON: a string without a backslash is the text between its quotation marks.
    let quoted = raw.get().strip_prefix('"')?;
    if let Some(text) = quoted.strip_suffix('"').filter(|text| !text.as_bytes().contains(&b'\\')) {
        return Some(Cow::Borrowed(text));
    }
    serde_json::from_str::<JsonString<'_>>(raw.get()).ok().map(|text| text.0)
}

/// A flag that is off when it is absent; `None` if the value is neither `true` nor `false`.
pub(crate) fn flag(raw: Option<&RawValue>) -> Option<bool> {
    raw.map_or(Some(false), |raw| raw.get().parse().ok())
}

/// Whether a raw value is an object. Raw values come without leading whitespace.
pub(crate) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// `{}`.
pub(crate) fn empty_object() -> &'static RawValue {
    serde_json::from_str("{}").unwrap_or(RawValue::NULL)
}

/// For a field that distinguishes an absent member from `null`: by default, serde reads both as `None`.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A struct that is read from an object. The derived reader of the struct alone would accept an array, too.
pub(crate) struct FromObject<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FromObject<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = T;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        from.deserialize_map(ObjectVisitor(PhantomData)).map(FromObject)
    }
}

/// The members of an object, in their order.
#[derive(Debug, Clone)]
pub struct ObjectMembers<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl ObjectMembers<'_> {
    /// How many members are read before the object is refused.
    pub(crate) const MEMBERS_MAX: usize = 1_024;
}

impl<'a> ObjectMembers<'a> {
    /// The value of every member with this name, in their order.
    pub(crate) fn values(&self, name: &str) -> impl DoubleEndedIterator<Item = &'a RawValue> {
        self.0.iter().filter(move |member| member.0 == name).map(|(_, value)| *value)
    }

    /// The value of the last member with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.values(name).next_back()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ObjectMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = ObjectMembers<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<JsonString<'de>, &RawValue>()? {
                    if members.len() == ObjectMembers::MEMBERS_MAX {
                        return Err(A::Error::custom(format_args!("more than {} members", ObjectMembers::MEMBERS_MAX)));
                    }
                    members.push((name.0, value));
                }
                Ok(ObjectMembers(members))
            }
        }

        from.deserialize_map(MembersVisitor)
    }
}

/// Appends `,"name":` and the JSON text as it is, for a name that may need escapes.
pub(crate) fn push_foreign_member(out: &mut String, name: &str, json: &str) {
    out.push(',');
    push_str(out, name);
    out.push(':');
    out.push_str(json);
}

/// Calls `visit` with every member of an object, in their order; with none of what is no object.
pub(crate) fn each_member<'a>(object: &'a RawValue, visit: impl FnMut(Cow<'a, str>, &'a RawValue)) {
    struct Each<F>(F);

    impl<'de, F: FnMut(Cow<'de, str>, &'de RawValue)> Visitor<'de> for Each<F> {
        type Value = ();

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((name, value)) = map.next_entry::<JsonString<'de>, &RawValue>()? {
                (self.0)(name.0, value);
            }
            Ok(())
        }
    }

    let mut from = serde_json::Deserializer::from_str(object.get());
    // A raw value was read before, so there is nothing left to go wrong but that it is no object.
    let _ = from.deserialize_map(Each(visit));
}

/// A number of milliseconds. Fractions are rounded up; what is negative or no number is none.
pub(crate) fn milliseconds(raw: &RawValue) -> Option<u64> {
    if let Ok(whole) = serde_json::from_str(raw.get()) {
        return Some(whole);
    }
    let number: f64 = serde_json::from_str(raw.get()).ok()?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast to an integer saturates")]
    (number >= 0.0).then(|| number.ceil() as u64)
}

/// The number as an integer, if it is whole and every JSON reader keeps it exact.
pub(crate) fn safe_integer(number: f64) -> Option<i64> {
    #[allow(clippy::cast_precision_loss, reason = "it is exact")]
    let is_exact = number.fract() == 0.0 && number.abs() <= SAFE_INTEGER_MAX as f64;
    #[allow(clippy::cast_possible_truncation, reason = "it is whole and within the range")]
    is_exact.then_some(number as i64)
}

/// The JSON text of a payload as a raw value, if it is JSON.
pub(crate) fn raw(json: &str) -> Option<&RawValue> {
    serde_json::from_str(json).ok()
}

/// The value of one member of an object, without reading the others.
pub(crate) fn member<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    struct Find<'n>(&'n str);

    impl<'de> Visitor<'de> for Find<'_> {
        type Value = Option<&'de RawValue>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some(name) = map.next_key::<JsonString<'de>>()? {
                if name.0 == self.0 {
                    found = Some(map.next_value()?);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(found)
        }
    }

    let mut from = serde_json::Deserializer::from_str(object.get());
    from.deserialize_map(Find(name)).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_in_utc_and_never_out_of_range() {
        let quote = |ms| {
            let mut out = String::new();
            push_time_member(&mut out, "at", Timestamp::from_ms(ms));
            out
        };
        assert_eq!(quote(1_764_066_600_000), r#","at":"2025-11-25T10:30:00.000Z""#);
        assert_eq!(quote(1_764_066_600_250), r#","at":"2025-11-25T10:30:00.250Z""#);
        assert!(quote(u64::MAX).starts_with(r#","at":"9999-12-"#));
    }

    #[test]
    fn depth_counts_brackets_and_not_those_in_strings() {
        assert_eq!(depth(r#"[[["\"]]]]]["]]]"#, 3), 3);
        assert_eq!(depth(&"[".repeat(50), 10), 11);
        assert_eq!(depth(r"[[]]", 10), 0);
        assert_eq!(depth(&"[".repeat(600), 599), 600);
    }

    #[test]
    fn a_string_is_read_with_and_without_escapes() {
        let read = |json| string(serde_json::from_str::<&RawValue>(json).unwrap()).map(Cow::into_owned);
        assert_eq!(read(r#""""#).as_deref(), Some(""));
        assert_eq!(read(r#""a é""#).as_deref(), Some("a é"));
        assert_eq!(read(r#""a\"""#).as_deref(), Some("a\""));
        assert_eq!(read(r#""\u0062""#).as_deref(), Some("b"));
        for other in ["1", "null", "[\"a\"]", "{\"a\":\"b\"}"] {
            assert_eq!(read(other), None);
        }
    }

    #[test]
    fn a_string_is_written_with_the_escapes_that_it_needs() {
        let written = |text| {
            let mut out = String::new();
            push_str(&mut out, text);
            out
        };
        assert_eq!(written("a é"), r#""a é""#);
        for text in ["\"", "\\", "\n", "long enough for many bytes at once\u{1}", "\u{7f}"] {
            assert_eq!(serde_json::from_str::<String>(&written(text)).unwrap(), text);
        }
    }

    #[test]
    fn a_member_is_found_by_its_decoded_name() {
        let object: &RawValue = serde_json::from_str(r#"{"a":{"b":1},"\u0062":2}"#).unwrap();
        assert_eq!(member(object, "b").unwrap().get(), "2");
        assert!(member(object, "c").is_none());
    }
}
