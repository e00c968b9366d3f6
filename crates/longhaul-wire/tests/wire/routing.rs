//! Every request is of one era and speaks a generation of that era.

use longhaul_wire::jsonrpc::{self, Message};
use longhaul_wire::{Capabilities, Context, Generation, Headers, Operation, Peer, Revision, is_stateless, route};
use proptest::prelude::*;
use serde_json::Value;

use crate::common::*;

const STATELESS: [Generation; 1] = [Generation::Ext2026];
const OF_SESSIONS: [Generation; 3] = [Generation::Sep1686, Generation::Core2025, Generation::Lesson];

fn any_method() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(Operation::METHODS.to_vec()).prop_map(str::to_owned),
        1 => "[a-z/]{0,12}",
    ]
}

/// Parameters with the markers of both eras, each of them present or absent, valid or invalid.
fn any_params() -> impl Strategy<Value = String> {
    let member = |name: &'static str, values: Vec<&'static str>| {
        prop::option::weighted(0.8, prop::sample::select(values))
            .prop_map(move |value| value.map(|value| format!("\"{name}\":{value}")))
    };
    let version = vec!["\"2026-07-28\"", "\"2026-07-28\"", "\"2026-07-28\"", "\"2025-11-25\"", "5"];
    let meta = (
        member("io.modelcontextprotocol/protocolVersion", version.clone()),
        member("io.modelcontextprotocol/clientCapabilities", vec!["{}", WITH_TASKS, WITH_TASKS, WITH_TASKS, "[]"]),
        member("progressToken", vec!["1", "\"t\"", "\"u\"", "[]"]),
        member("io.modelcontextprotocol/related-task", vec![r#"{"taskId":"t"}"#]),
    )
        .prop_map(|(a, b, c, d)| Some(format!("\"_meta\":{}", object([a, b, c, d]))));
    (
        meta,
        member("name", vec!["\"x\"", "\"x\"", "5", "null"]),
        member("task", vec!["{}", r#"{"ttl":60000}"#, "true", "null"]),
        member("taskId", vec!["\"t\"", "\"t\"", "7"]),
        member("inputResponses", vec!["{}", "[]"]),
        member("notifications", vec!["{}", r#"{"taskIds":["t"]}"#]),
        member("protocolVersion", version),
    )
        .prop_map(|(a, b, c, d, e, f, g)| object([a, b, c, d, e, f, g]))
}

fn object<const N: usize>(members: [Option<String>; N]) -> String {
    format!("{{{}}}", members.into_iter().flatten().collect::<Vec<_>>().join(","))
}

proptest! {
    #[test]
    fn a_request_speaks_a_generation_of_its_era_or_is_refused(
        method in any_method(),
        params in any_params(),
        revision in prop::sample::select(Revision::SESSIONS.to_vec()),
        bits in any::<u16>(),
    ) {
        let message = format!(r#"{{"jsonrpc":"2.0","id":7,"method":{},"params":{params}}}"#, Value::from(method.as_str()));
        let request = request(&message);
        if let Ok(routed) = route(&request, &Context::Stateless { headers: None }) {
            prop_assert!(is_stateless(message.as_bytes(), None));
            prop_assert!(STATELESS.contains(&routed.generation) && routed.peer.revision.is_stateless());
            prop_assert_eq!((&routed.id, routed.method), (&request.id, method.as_str()));
        }
        let peer = Peer::new(revision, Capabilities::from_bits(bits));
        if let Ok(routed) = route(&request, &Context::Session { peer, last_marker: None, is_restored: false }) {
            prop_assert!(OF_SESSIONS.contains(&routed.generation));
            prop_assert_eq!(routed.peer, peer);
            prop_assert_eq!((&routed.id, routed.method), (&request.id, method.as_str()));
        }
    }

    #[test]
    fn no_bytes_make_the_routing_panic(bytes in prop::collection::vec(any::<u8>(), 0..256), bits in any::<u16>()) {
        let headers: &[(&str, &str)] = &[("mcp-protocol-version", "2026-07-28")];
        is_stateless(&bytes, None);
        prop_assert!(is_stateless(&bytes, Some(&headers)));
        if let Ok(Message::Request(request)) = jsonrpc::parse(&bytes) {
            let _ = route(&request, &Context::Stateless { headers: Some(&headers) });
            let peer = Peer::new(Revision::LATEST_SESSION, Capabilities::from_bits(bits));
            let _ = route(&request, &Context::Session { peer, last_marker: None, is_restored: false });
        }
    }
}

#[test]
fn every_method_except_initialize_is_routed_in_some_era() {
    let params = r#""name":"x","uri":"a:b","ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""},"taskId":"t","inputResponses":{},"notifications":{},"level":"info""#;
    for method in Operation::METHODS {
        let message = modern(method, params, WITH_TASKS);
        let request = request(&message);
        let peer = Peer::new(Revision::LATEST_SESSION, Capabilities::default());
        let contexts =
            [Context::Stateless { headers: None }, Context::Session { peer, last_marker: None, is_restored: false }];
        let routed: Vec<_> = contexts.iter().filter_map(|context| route(&request, context).ok()).collect();
        assert_eq!(routed.is_empty(), *method == "initialize", "{method}");
        assert!(routed.iter().all(|routed| routed.method == *method));
    }
}

#[test]
fn a_message_is_stateless_by_its_header_or_by_its_meta() {
    let stateless = modern("tools/list", "", "{}");
    let of_session = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":1}}}"#;
    let unknown = stateless.replace("2026-07-28", "2099-01-01");
    let elsewhere = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"arguments":{stateless}}}}}"#);
    let notification = stateless.replace(r#""id":1,"#, "");
    for (message, by_itself) in [
        (&*stateless, true),
        (of_session, false),
        (&unknown, true),
        (&elsewhere, false),
        (&notification, false),
        ("", false),
    ] {
        for (version, by_header) in [("2026-07-28", true), ("2025-11-25", false), ("2099-01-01", false)] {
            let headers: &[(&str, &str)] = &[("MCP-Protocol-Version", version)];
            let headers: &dyn Headers = &headers;
            assert_eq!(is_stateless(message.as_bytes(), Some(headers)), by_header || by_itself, "{version} {message}");
        }
        assert_eq!(is_stateless(message.as_bytes(), None), by_itself, "{message}");
    }
}

/// The first row of the table in `route.rs`: markers of older generations in a stateless request are ignored.
#[test]
fn a_stateless_request_speaks_the_extension_whatever_older_markers_it_has() {
    let older = r#""io.modelcontextprotocol/related-task":{"taskId":"t"},"modelcontextprotocol.io/related-task":{"taskId":"t"},"modelcontextprotocol.io/task":{"taskId":"t"},"task":{"required":true},"#;
    let params = r#""name":"x","uri":"a:b","taskId":"t","task":{"ttl":1}"#;
    for method in ["tools/call", "prompts/get", "resources/read", "tasks/get", "tasks/cancel"] {
        let message = modern(method, params, WITH_TASKS).replace(r#""_meta":{"#, &format!(r#""_meta":{{{older}"#));
        let routed = route(&request(&message), &Context::Stateless { headers: None }).unwrap();
        assert_eq!((routed.generation, routed.marker, routed.follows_task), (Generation::Ext2026, None, false));
        assert_eq!(routed.only_made_by, None);
        let task = match routed.operation {
            Operation::CallTool(call) => call.task,
            Operation::GetPrompt(get) => get.task,
            Operation::ReadResource(read) => read.task,
            _ => None,
        };
        assert_eq!(task, None, "{method}");
    }
    for method in ["tasks/result", "tasks/list", "tasks/delete", "tasks/status"] {
        let message = modern(method, params, WITH_TASKS);
        let refused = route(&request(&message), &Context::Stateless { headers: None }).unwrap_err();
        assert_eq!((refused.code, refused.http_status()), (-32_601, 404), "{method}");
    }
    // The header without the `_meta`.
    let headers: &[(&str, &str)] = &[("mcp-protocol-version", "2026-07-28")];
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t"}}"#;
    let refused = route(&request(bare), &Context::Stateless { headers: Some(&headers) }).unwrap_err();
    assert_eq!(refused.http_status(), 400);
}

#[test]
fn a_stateless_client_that_declares_only_2025_tasks_reaches_no_others() {
    const OLDER: &str = r#"{"tasks":{"cancel":{}}}"#;
    let params = r#""taskId":"t","inputResponses":{}"#;
    for method in ["tasks/get", "tasks/cancel"] {
        let message = modern(method, params, OLDER);
        let routed = route(&request(&message), &Context::Stateless { headers: None }).unwrap();
        assert_eq!((routed.generation, routed.only_made_by), (Generation::Ext2026, Some(Generation::Core2025)));
    }
    for (method, declared) in [("tasks/update", OLDER), ("tasks/get", "{}"), ("tasks/cancel", "{}")] {
        let message = modern(method, params, declared);
        let refused = route(&request(&message), &Context::Stateless { headers: None }).unwrap_err();
        assert_eq!(refused.code, -32_021, "{method} {declared}");
    }
}

#[test]
fn a_generation_is_known_by_its_label() {
    for generation in Generation::ALL {
        assert_eq!(Generation::of_label(generation.label()), Some(generation));
    }
    assert_eq!(
        Generation::ALL.map(|generation| generation.label()),
        ["sep1686", "core2025", "ext2026", "lesson"],
        "stored in tasks"
    );
    assert_eq!(Generation::of_label("other"), None);
}

/// The rows of the table in `route.rs` for sessions: the method, its parameters beside the task ID, the revision, the
/// generation that the session named last, and the expected generation of the request. There `None` stands for the
/// generation that made the task.
#[test]
fn a_request_of_a_session_speaks_the_generation_of_the_table() {
    use Generation::{Core2025, Lesson, Sep1686};
    const NEW: Revision = Revision::V2025_11_25;
    const OLD: Revision = Revision::V2025_06_18;
    const REFERENCE: &str = r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}"#;
    let task = r#""task":{}"#;
    let sep = r#""_meta":{"modelcontextprotocol.io/task":{"taskId":"t"}}"#;
    let lesson = r#""_meta":{"task":{"required":true}}"#;
    let both = r#""_meta":{"task":{"required":true},"modelcontextprotocol.io/task":{"taskId":"t"}}"#;
    let related = r#""_meta":{"modelcontextprotocol.io/related-task":{"taskId":"t"}}"#;
    let prefixed = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}"#;
    let nothing = r#""_meta":{}"#;
    let all = format!("{task},{both}");
    for (method, params, revision, last, expected) in [
        ("tools/call", task, NEW, None, Some(Core2025)),
        ("tools/call", &*all, NEW, None, Some(Core2025)),
        ("tools/call", &*all, OLD, None, Some(Sep1686)),
        ("tools/call", both, NEW, None, Some(Sep1686)),
        ("tools/call", sep, NEW, Some(Lesson), Some(Sep1686)),
        ("tools/call", lesson, NEW, Some(Sep1686), Some(Lesson)),
        ("tools/call", lesson, OLD, None, Some(Lesson)),
        ("tools/call", nothing, OLD, Some(Lesson), Some(Core2025)),
        ("tools/call", task, OLD, None, Some(Core2025)),
        ("prompts/get", &*all, NEW, None, Some(Sep1686)),
        ("prompts/get", lesson, NEW, None, Some(Lesson)),
        ("prompts/get", task, NEW, Some(Sep1686), Some(Core2025)),
        ("resources/read", sep, OLD, None, Some(Sep1686)),
        ("resources/read", lesson, OLD, None, Some(Lesson)),
        ("completion/complete", sep, NEW, None, Some(Core2025)),
        ("tasks/get", related, NEW, Some(Lesson), Some(Sep1686)),
        ("tasks/get", related, OLD, None, Some(Sep1686)),
        ("tasks/get", prefixed, NEW, Some(Sep1686), Some(Core2025)),
        ("tasks/get", nothing, NEW, Some(Sep1686), Some(Core2025)),
        ("tasks/get", nothing, OLD, Some(Sep1686), None),
        ("tasks/result", related, NEW, None, Some(Sep1686)),
        ("tasks/result", nothing, NEW, Some(Lesson), Some(Core2025)),
        ("tasks/result", prefixed, OLD, None, None),
        ("tasks/delete", nothing, NEW, Some(Core2025), Some(Sep1686)),
        ("tasks/status", nothing, NEW, Some(Core2025), Some(Lesson)),
        ("tasks/list", nothing, NEW, None, Some(Core2025)),
        ("tasks/list", nothing, OLD, None, Some(Sep1686)),
        ("tasks/list", nothing, NEW, Some(Sep1686), Some(Sep1686)),
        ("tasks/list", nothing, OLD, Some(Lesson), Some(Lesson)),
        ("tasks/cancel", nothing, NEW, None, Some(Core2025)),
        ("tasks/cancel", nothing, NEW, Some(Core2025), Some(Core2025)),
        ("tasks/cancel", nothing, NEW, Some(Lesson), Some(Lesson)),
        ("tasks/cancel", related, NEW, Some(Lesson), Some(Sep1686)),
        ("tasks/cancel", nothing, NEW, Some(Sep1686), None),
        ("tasks/cancel", nothing, OLD, None, None),
    ] {
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"name":"x","uri":"a:b","taskId":"t",{REFERENCE},{params}}}}}"#
        );
        let peer = Peer::new(revision, Capabilities::default());
        let routed =
            route(&request(&message), &Context::Session { peer, last_marker: last, is_restored: false }).unwrap();
        let speaks = (!routed.follows_task).then_some(routed.generation);
        assert_eq!(speaks, expected, "{method} {params} at {revision:?} after {last:?}");
    }
    // A restored session does not know which generation it named before. Until it names one again, `tasks/cancel` is
    // answered in the generation that made the task.
    for (method, last, expected) in [
        ("tasks/cancel", None, None),
        ("tasks/cancel", Some(Core2025), Some(Core2025)),
        ("tasks/get", None, Some(Core2025)),
        ("tasks/list", None, Some(Core2025)),
    ] {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"taskId":"t"}}}}"#);
        let peer = Peer::new(NEW, Capabilities::default());
        let routed = route(&request(&message), &Context::Session { peer, last_marker: last, is_restored: true });
        let routed = routed.unwrap();
        let speaks = (!routed.follows_task).then_some(routed.generation);
        assert_eq!(speaks, expected, "{method} in a restored session after {last:?}");
    }
    let update = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{"taskId":"t","inputResponses":{}}}"#;
    let peer = Peer::new(NEW, Capabilities::default());
    assert_eq!(
        route(&request(update), &Context::Session { peer, last_marker: None, is_restored: false }).unwrap_err().code,
        -32_601
    );
}
