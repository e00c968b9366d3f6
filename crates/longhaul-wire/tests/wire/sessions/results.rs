//! A tool's result, in the form that each revision takes.

use longhaul_wire::{Revision, TaskView, call_result};
use serde_json::{Value, json};

use super::{EVERY, LATEST, RELATED_TASK, TASKS, id, to};
use crate::common::*;

fn called(body: &str, revision: Revision) -> Value {
    value(&call_result::complete(&to(&id(), revision), &json(body)))["result"].clone()
}

#[test]
fn a_usual_result_goes_out_as_the_bytes_that_were_stored() {
    let body = r#"{"content":[{"type":"text","text":"1 \"two\""}], "isError":false}"#;
    for revision in EVERY {
        let message = call_result::complete(&to(&1.into(), revision), &json(body));
        assert_eq!(message, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{body}}}"#));
    }
}

#[test]
fn structure_is_shown_where_it_is_known_and_is_an_object() {
    let table = [
        // Body, and what each revision makes of it, the newest first.
        (
            r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":1.50}}"#,
            [json!({ "n": 1.5 }), json!({ "n": 1.5 }), Value::Null],
            "a",
        ),
        (
            r#"{"content":[{"type":"text","text":"a"}],"structuredContent":[1]}"#,
            [Value::Null, Value::Null, Value::Null],
            "a",
        ),
        (r#"{"content":[],"structuredContent":[1]}"#, [Value::Null, Value::Null, Value::Null], "[1]"),
        (r#"{"structuredContent":7}"#, [Value::Null, Value::Null, Value::Null], "7"),
    ];
    for (body, expected, text) in table {
        for (revision, expected) in EVERY.into_iter().zip(expected) {
            let result = called(body, revision);
            assert_eq!(result.get("structuredContent").unwrap_or(&Value::Null), &expected, "{body} at {revision:?}");
            assert_eq!(result["content"][0]["text"], text, "what cannot be shown as structure is not lost");
        }
    }
    assert_eq!(
        called(r#"{"content":[],"structuredContent":{"n":1}}"#, Revision::V2025_03_26)["content"][0]["text"],
        r#"{"n":1}"#
    );
    assert_eq!(
        called(r#"{"structuredContent":{"n":1}}"#, LATEST),
        json!({ "content": [], "structuredContent": { "n": 1 } })
    );
}

#[test]
fn a_link_is_a_text_where_links_are_not_known() {
    let body = r#"{"content":[{"type":"resource_link","uri":"file:///a","name":"a"},{"type":"text","text":"b"}]}"#;
    assert_eq!(called(body, LATEST), value(body));
    assert_eq!(called(body, Revision::V2025_06_18), value(body));
    let expected = json!({ "content": [{ "type": "text", "text": "file:///a" }, { "type": "text", "text": "b" }] });
    assert_eq!(called(body, Revision::V2025_03_26), expected);
}

#[test]
fn words_of_another_generation_are_left_out_and_everything_else_is_kept() {
    let body = r#"{"resultType":"complete","content":[],"_meta":{"k":[1]},"x \"y\"":{"z":null}}"#;
    for revision in EVERY {
        assert_eq!(called(body, revision), json!({ "content": [], "_meta": { "k": [1] }, "x \"y\"": { "z": null } }));
    }
}

#[test]
fn a_body_that_is_no_object_is_text() {
    assert_eq!(called("5", LATEST), json!({ "content": [{ "type": "text", "text": "5" }] }));
    assert_eq!(called("", LATEST), json!({ "content": [{ "type": "text", "text": "" }] }));
}

#[test]
fn the_related_task_is_ours_and_not_an_upstreams() {
    for body in [
        r#"{"content":[],"_meta":{"k":1,"io.modelcontextprotocol/related-task":{"taskId":"theirs"}}}"#,
        r#"{"content":[],"\u005fmeta":{"k":1}}"#,
        r#"{"_meta":{"k":1},"content":[]}"#,
    ] {
        let task = completed(body, false);
        let message = TASKS.result(&to(&id(), LATEST), &TaskView::of(&task)).unwrap();
        assert_eq!(message.matches("_meta").count(), 1);
        let expected = json!({ "k": 1, RELATED_TASK: { "taskId": task.key.id.as_str() } });
        assert_eq!(value(&message)["result"]["_meta"], expected);
    }
}
