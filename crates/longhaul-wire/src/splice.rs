//! Adds members to a stored result without reading it into a tree: the stored bytes are sent as they are.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::text;

const RESULT_TYPE: &str = "\"resultType\":\"complete\"";

/// Appends a result body, an object, with `"resultType":"complete"` unless it has a result type of its own, and with
/// `meta_member` in its `_meta` unless that is empty.
pub(crate) fn write_complete(out: &mut String, body: &str, meta_member: &str) {
    let body = body.trim();
    let Some(inside) = body.strip_prefix('{') else {
        // Only an object can be a result; anything else that was stored is sent as structured content.
        out.push('{');
        out.push_str(RESULT_TYPE);
        out.push_str(",\"content\":[]");
        text::push_raw_member(out, "structuredContent", body);
        out.push('}');
        return;
    };
    let top = Top::of(body, meta_member);
    out.push('{');
    if !top.has_result_type {
        out.push_str(RESULT_TYPE);
        push_comma_before(out, if top.meta == MetaPlace::New { "\"" } else { inside });
    }
    match top.meta {
        MetaPlace::New => {
            out.push_str("\"_meta\":{");
            out.push_str(meta_member);
            out.push('}');
            push_comma_before(out, inside);
            out.push_str(inside);
        }
        MetaPlace::Inside(at) => {
            let (before, after) = body.split_at(at);
            out.push_str(&before[1..]);
            out.push_str(meta_member);
            push_comma_before(out, after);
            out.push_str(after);
        }
        MetaPlace::Nowhere => out.push_str(inside),
    }
}

/// A comma, unless the object ends here.
fn push_comma_before(out: &mut String, rest: &str) {
    if !rest.trim_start().starts_with('}') {
        out.push(',');
    }
}

/// The members at the top of a body, as far as they matter here.
struct Top {
    has_result_type: bool,
    meta: MetaPlace,
}

/// Where to insert the member of `_meta`.
#[derive(PartialEq, Eq)]
enum MetaPlace {
    /// Into a new `_meta`.
    New,
    /// Into the existing `_meta`, at this byte.
    Inside(usize),
    /// There is no member to insert, or the body's `_meta` cannot take it.
    Nowhere,
}

impl Top {
    fn of(body: &str, meta_member: &str) -> Self {
        #[derive(Deserialize)]
        struct ResultMembers<'a> {
            #[serde(rename = "resultType", borrow, default, deserialize_with = "text::present")]
            result_type: Option<&'a RawValue>,
            #[serde(rename = "_meta", borrow, default, deserialize_with = "text::present")]
            meta: Option<&'a RawValue>,
        }
        let wanted = if meta_member.is_empty() { MetaPlace::Nowhere } else { MetaPlace::New };
        // A search for the words is many times faster than a walk through a large body, and mostly finds neither.
        let may_have_meta = wanted == MetaPlace::New && body.contains("\"_meta\"");
        if !may_have_meta && !body.contains("\"resultType\"") {
            return Self { has_result_type: false, meta: wanted };
        }
        let Ok(members) = serde_json::from_str::<ResultMembers<'_>>(body) else {
            return Self { has_result_type: false, meta: MetaPlace::Nowhere };
        };
        let meta = match members.meta {
            _ if wanted == MetaPlace::Nowhere => MetaPlace::Nowhere,
            None => MetaPlace::New,
            // The answer of an upstream server may name that server already.
            Some(meta) if !text::is_object(meta) || meta.get().contains(crate::server_info::SERVER_INFO) => {
                MetaPlace::Nowhere
            }
            Some(meta) => MetaPlace::Inside(meta.get().as_ptr() as usize - body.as_ptr() as usize + 1),
        };
        Self { has_result_type: members.result_type.is_some(), meta }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(body: &str, meta_member: &str) -> String {
        let mut out = String::new();
        write_complete(&mut out, body, meta_member);
        serde_json::from_str::<serde_json::Value>(&out).unwrap();
        out
    }

    #[test]
    fn a_result_type_is_put_in_once() {
        assert_eq!(complete("{}", ""), r#"{"resultType":"complete"}"#);
        assert_eq!(complete(r#" { "a":1} "#, ""), r#"{"resultType":"complete", "a":1}"#);
        assert_eq!(complete(r#"{"a":1,"resultType":"complete"}"#, ""), r#"{"a":1,"resultType":"complete"}"#);
        let nested = r#"{"structuredContent":{"resultType":"x"}}"#;
        assert_eq!(complete(nested, ""), r#"{"resultType":"complete","structuredContent":{"resultType":"x"}}"#);
    }

    #[test]
    fn a_meta_member_joins_what_is_there() {
        let info = r#""io.modelcontextprotocol/serverInfo":1"#;
        assert_eq!(complete("{ }", info), format!(r#"{{"resultType":"complete","_meta":{{{info}}} }}"#));
        assert_eq!(complete(r#"{"a":1}"#, info), format!(r#"{{"resultType":"complete","_meta":{{{info}}},"a":1}}"#));
        assert_eq!(
            complete(r#"{"_meta":{"k":2},"a":1}"#, info),
            format!(r#"{{"resultType":"complete","_meta":{{{info},"k":2}},"a":1}}"#)
        );
        assert_eq!(
            complete(r#"{"a":1, "_meta": { }}"#, info),
            format!(r#"{{"resultType":"complete","a":1, "_meta": {{{info} }}}}"#)
        );
        let said = r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":0}}"#;
        assert_eq!(complete(said, info), said);
        let nested = r#"{"content":[{"_meta":{}}]}"#;
        assert_eq!(
            complete(nested, info),
            format!(r#"{{"resultType":"complete","_meta":{{{info}}},"content":[{{"_meta":{{}}}}]}}"#)
        );
    }

    #[test]
    fn what_is_no_object_is_wrapped() {
        assert_eq!(complete("5", ""), r#"{"resultType":"complete","content":[],"structuredContent":5}"#);
    }
}
