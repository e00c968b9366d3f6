//! Adds members to a stored result without parsing it into a tree. The stored bytes are sent unchanged around them.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::text;

const RESULT_TYPE: &str = "\"resultType\":\"complete\"";

/// Appends a result body. Adds `"resultType":"complete"` if the body has no result type, and adds `meta_member`, if it
/// is not empty, to the body's `_meta`.
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
    let top = TopMembers::of(body, meta_member);
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

/// Appends a comma, unless `rest` is the end of the object.
fn push_comma_before(out: &mut String, rest: &str) {
    if !rest.trim_start().starts_with('}') {
        out.push(',');
    }
}

/// What has to be known about the top-level members of a body.
struct TopMembers {
    has_result_type: bool,
    meta: MetaPlace,
}

/// Where to insert the member of `_meta`.
#[derive(PartialEq, Eq)]
enum MetaPlace {
    /// Into a new `_meta`.
    New,
    /// Into the existing `_meta`, at this byte of the body.
    Inside(usize),
    /// There is no member to insert, or the body's `_meta` cannot take it.
    Nowhere,
}

impl TopMembers {
    fn of(body: &str, meta_member: &str) -> Self {
        #[derive(Deserialize)]
        struct ResultMembers<'a> {
            #[serde(rename = "resultType", borrow, default, deserialize_with = "text::present")]
            result_type: Option<&'a RawValue>,
            #[serde(rename = "_meta", borrow, default, deserialize_with = "text::present")]
            meta: Option<&'a RawValue>,
        }
        let place_if_absent = if meta_member.is_empty() { MetaPlace::Nowhere } else { MetaPlace::New };
        // Searching for the names is many times faster than parsing a large body, and most bodies contain neither.
        let may_have_meta = place_if_absent == MetaPlace::New && body.contains("\"_meta\"");
        if !may_have_meta && !body.contains("\"resultType\"") {
            return Self { has_result_type: false, meta: place_if_absent };
        }
        let Ok(members) = serde_json::from_str::<ResultMembers<'_>>(body) else {
            return Self { has_result_type: false, meta: MetaPlace::Nowhere };
        };
        let meta = match members.meta {
            _ if place_if_absent == MetaPlace::Nowhere => MetaPlace::Nowhere,
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
    fn a_result_type_is_added_once() {
        assert_eq!(complete("{}", ""), r#"{"resultType":"complete"}"#);
        assert_eq!(complete(r#" { "a":1} "#, ""), r#"{"resultType":"complete", "a":1}"#);
        assert_eq!(complete(r#"{"a":1,"resultType":"complete"}"#, ""), r#"{"a":1,"resultType":"complete"}"#);
        let nested = r#"{"structuredContent":{"resultType":"x"}}"#;
        assert_eq!(complete(nested, ""), r#"{"resultType":"complete","structuredContent":{"resultType":"x"}}"#);
    }

    #[test]
    fn a_meta_member_is_added_to_the_existing_members() {
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
        let names_a_server = r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":0}}"#;
        assert_eq!(complete(names_a_server, info), names_a_server);
        let nested = r#"{"content":[{"_meta":{}}]}"#;
        assert_eq!(
            complete(nested, info),
            format!(r#"{{"resultType":"complete","_meta":{{{info}}},"content":[{{"_meta":{{}}}}]}}"#)
        );
    }

    #[test]
    fn a_body_that_is_not_an_object_becomes_structured_content() {
        assert_eq!(complete("5", ""), r#"{"resultType":"complete","content":[],"structuredContent":5}"#);
    }
}
