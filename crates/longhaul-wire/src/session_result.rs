//! A tool's result in the form of a session's revision. The answer to an ordinary call and the result of a task are both
//! written here, so that they cannot differ.

use serde_json::value::RawValue;

use crate::related::{RelatedTask, write_meta};
use crate::{Revision, text};

/// The start of every stored result that this program made.
const USUAL_START: &str = "{\"content\":[";

/// Appends a result body; `related` is its task, if it is the result of one.
pub(crate) fn write(out: &mut String, body: &str, revision: Revision, related: Option<RelatedTask<'_>>) {
    let body = body.trim();
    if fits(body, revision) {
        // The stored bytes are sent as they are.
        out.push_str(&body[..body.len() - 1]);
        write_meta(out, None, related);
        out.push('}');
        return;
    }
    if let Some(object) = text::raw(body).filter(|raw| text::is_object(raw)) {
        rewrite(out, object, revision, related);
        return;
    }
    // Only an object can be a result; anything else that was stored is sent as text.
    out.push_str(USUAL_START);
    push_text_block(out, body);
    out.push(']');
    write_meta(out, None, related);
    out.push('}');
}

/// Whether a body can be sent as it is: it has no member whose form depends on the revision, and no `_meta` to extend.
fn fits(body: &str, revision: Revision) -> bool {
    // A search for the words is many times faster than a walk through a large body. A name that may be written with an
    // escape is left to the walk.
    body.starts_with(USUAL_START)
        && body.ends_with('}')
        && !["\"_meta\"", "\"resultType\"", "\"structuredContent\"", "\\u00"].iter().any(|word| body.contains(word))
        && (revision.has_structured_content() || !body.contains("\"resource_link\""))
}

fn rewrite(out: &mut String, object: &RawValue, revision: Revision, related: Option<RelatedTask<'_>>) {
    let structured = text::member(object, "structuredContent");
    let shows_structured = revision.has_structured_content() && structured.is_some_and(text::is_object);
    let content = text::member(object, "content");
    let blocks: Vec<&RawValue> = content.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    out.push_str(USUAL_START);
    match structured {
        // A value that the revision cannot have as structured content is sent as text instead.
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
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let of = |name| text::member(block, name).and_then(text::string);
        match (of("type").as_deref(), of("uri")) {
            // Clients of a revision without this kind of block refuse the whole result for it.
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
