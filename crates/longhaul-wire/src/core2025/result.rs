//! A tool's result as a revision takes it. The answer to an ordinary call and the result of a task both come from
//! here, so that they cannot differ.

use serde_json::value::RawValue;

use super::related::write_meta;
use super::{Related, Revision};
use crate::text;

/// What every stored result begins with that this program made.
const USUAL_START: &str = "{\"content\":[";

/// Appends a result body, with the related-task key when it is a task's.
pub(super) fn write(out: &mut String, body: &str, revision: Revision, related: Option<Related<'_>>) {
    let body = body.trim();
    if fits(body, revision) {
        // The bytes that were stored are the bytes that are sent.
        out.push_str(&body[..body.len() - 1]);
        write_meta(out, None, related);
        out.push('}');
        return;
    }
    if let Some(object) = text::raw(body).filter(|raw| text::is_object(raw)) {
        rewrite(out, object, revision, related);
        return;
    }
    // Only an object can be a result. Whoever stored something else gets it as text, not lost.
    out.push_str(USUAL_START);
    push_text_block(out, body);
    out.push(']');
    write_meta(out, None, related);
    out.push('}');
}

/// Whether a body can go out as it is: nothing in it that some revision takes differently, no `_meta` to join.
fn fits(body: &str, revision: Revision) -> bool {
    // A search for the words is many times faster than a walk through a large body. A name that hides behind an
    // escape is left to the walk.
    body.starts_with(USUAL_START)
        && body.ends_with('}')
        && !["\"_meta\"", "\"resultType\"", "\"structuredContent\"", "\\u00"].iter().any(|word| body.contains(word))
        && (revision.has_structured_content() || !body.contains("\"resource_link\""))
}

fn rewrite(out: &mut String, object: &RawValue, revision: Revision, related: Option<Related<'_>>) {
    let structured = text::member(object, "structuredContent");
    let shows_structured = revision.has_structured_content() && structured.is_some_and(text::is_object);
    let content = text::member(object, "content");
    let blocks: Vec<&RawValue> = content.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    out.push_str(USUAL_START);
    match structured {
        // What cannot be shown as structure is still shown.
        Some(value) if blocks.is_empty() && !shows_structured => push_text_block(out, value.get()),
        _ => push_blocks(out, &blocks, revision),
    }
    out.push(']');
    text::each_member(object, |name, value| match &*name {
        "content" | "_meta" | "resultType" => {}
        "structuredContent" if !shows_structured => {}
        _ => text::push_foreign_member(out, &name, value.get()),
    });
    write_meta(out, text::member(object, "_meta"), related);
    out.push('}');
}

fn push_blocks(out: &mut String, blocks: &[&RawValue], revision: Revision) {
    for (place, block) in blocks.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        let of = |name| text::member(block, name).and_then(text::string);
        match (of("type").as_deref(), of("uri")) {
            // A kind of block that came later, and that clients of its time refuse the whole result for.
            (Some("resource_link"), Some(uri)) if !revision.has_structured_content() => push_text_block(out, &uri),
            _ => out.push_str(block.get()),
        }
    }
}

fn push_text_block(out: &mut String, text: &str) {
    out.push_str("{\"type\":\"text\"");
    text::push_str_member(out, "text", text);
    out.push('}');
}
