//! What comes with every request: metadata, capabilities, methods, filters.

use longhaul_task::{QuestionKind, TaskId};
use longhaul_wire::jsonrpc::{self, RequestId};
use longhaul_wire::subscription::{self, RESOURCES_MAX, SubscriptionFilter, TASK_IDS_MAX};
use longhaul_wire::{CancelledRequest, Capability, LogLevel, Operation, Revision, ServerInfo};

use super::{accepted, refused, routed, to};
use crate::common::*;

#[test]
fn a_request_without_its_metadata_is_malformed() {
    let with_meta =
        |meta: &str| format!(r#"{{"jsonrpc":"2.0","id":101,"method":"server/discover","params":{{{meta}}}}}"#);
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    for meta in [
        String::new(),
        r#""_meta":null"#.into(),
        r#""_meta":[]"#.into(),
        r#""_meta":5"#.into(),
        r#""_meta":"x""#.into(),
        r#""_meta":{},"_meta":{}"#.into(),
        r#""_meta":{}"#.into(),
        format!(r#""_meta":{{{version}}}"#),
        format!(r#""_meta":{{{capabilities}}}"#),
        format!(r#""_meta":{{{version},"io.modelcontextprotocol/clientCapabilities":[]}}"#),
        format!(r#""_meta":{{{version},"io.modelcontextprotocol/clientCapabilities":"all"}}"#),
        format!(r#""_meta":{{{version},"io.modelcontextprotocol/clientCapabilities":null}}"#),
        format!(r#""_meta":{{{capabilities},"io.modelcontextprotocol/protocolVersion":20260728}}"#),
        format!(r#""_meta":{{{capabilities},"io.modelcontextprotocol/protocolVersion":null}}"#),
        format!(r#""_meta":{{{capabilities},"io.modelcontextprotocol/protocolVersion":["2026-07-28"]}}"#),
        format!(r#""_meta":{{{version},{capabilities},"progressToken":1.5}}"#),
        format!(r#""_meta":{{{version},{capabilities},"progressToken":{{}}}}"#),
        format!(r#""_meta":{{{version},{capabilities},"progressToken":true}}"#),
        format!(r#""_meta":{{{version},{capabilities},"io.modelcontextprotocol/logLevel":5}}"#),
        format!(r#""_meta":{{{version},{capabilities},"io.modelcontextprotocol/logLevel":"loud"}}"#),
    ] {
        let error = refused(&with_meta(&meta));
        assert_eq!((error.code, error.http_status()), (-32602, 400), "{meta}");
    }
    let error = refused(r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#);
    assert_eq!((error.code, error.http_status()), (-32602, 400));
}

#[test]
fn metadata_is_read() {
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"c","_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28",
        "io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},
        "io.modelcontextprotocol/clientCapabilities":{},
        "io.modelcontextprotocol/logLevel":"warning",
        "progressToken":"abc","other.example/key":[1]}}}"#;
    let request = accepted(message);
    assert_eq!(request.progress_token, Some(RequestId::from_text("abc")));
    assert_eq!(request.log_level, Some(LogLevel::Warning));
    assert!(LogLevel::Debug < LogLevel::Warning && LogLevel::Warning < LogLevel::Emergency);
    assert_eq!(request.peer.revision, Revision::V2026_07_28);
    assert!(matches!(request.operation, Operation::ListTools { cursor: Some(cursor) } if cursor == "c"));
}

/// As in sessions, where published clients send it.
#[test]
fn a_cursor_that_is_null_is_no_cursor() {
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":null,"_meta":{
        "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    assert!(matches!(accepted(message).operation, Operation::ListTools { cursor: None }));
}

#[test]
fn capabilities_are_what_this_request_declares() {
    use Capability::{ElicitationForm, ElicitationUrl, LegacyTasks, Roots, Sampling, SamplingTools, Tasks};
    let all = [Tasks, LegacyTasks, ElicitationForm, ElicitationUrl, Sampling, SamplingTools, Roots];
    let table: &[(&str, &[Capability])] = &[
        ("{}", &[]),
        (r#"{"elicitation":{}}"#, &[ElicitationForm]),
        (r#"{"elicitation":{"form":{}}}"#, &[ElicitationForm]),
        (r#"{"elicitation":{"url":{}}}"#, &[ElicitationUrl]),
        (r#"{"elicitation":{"form":{},"url":{}}}"#, &[ElicitationForm, ElicitationUrl]),
        (r#"{"sampling":{},"roots":{"listChanged":true}}"#, &[Sampling, Roots]),
        (r#"{"sampling":{"tools":{}}}"#, &[Sampling, SamplingTools]),
        (WITH_TASKS, &[Tasks]),
        (r#"{"extensions":{"io.modelcontextprotocol/tasks":true},"elicitation":true,"x":1}"#, &[]),
        (r#"{"tasks":{"cancel":{}}}"#, &[LegacyTasks]),
        (r#"{"extensions":[]}"#, &[]),
    ];
    for (declared, expected) in table {
        let message = modern("tools/list", "", declared);
        let has = accepted(&message).peer.capabilities;
        for capability in all {
            assert_eq!(has.has(capability), expected.contains(&capability), "{declared} {capability:?}");
            assert_eq!(has.require(capability).is_ok(), has.has(capability));
        }
    }
}

#[test]
fn a_missing_capability_is_named() {
    let error = Capability::Tasks.missing();
    assert_eq!((error.code, error.http_status()), (-32021, 400));
    assert_eq!(
        value(&jsonrpc::error(Some(&12.into()), &error))["error"]["data"],
        value(r#"{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#)
    );
}

#[test]
fn a_question_needs_the_capability_of_its_kind() {
    let needed = |kind, params| Capability::to_answer(kind, &json(params));
    assert_eq!(needed(QuestionKind::Elicitation, FORM), Capability::ElicitationForm);
    assert_eq!(needed(QuestionKind::Elicitation, r#"{"mode":"url"}"#), Capability::ElicitationUrl);
    assert_eq!(needed(QuestionKind::Sampling, r#"{"messages":[]}"#), Capability::Sampling);
    assert_eq!(needed(QuestionKind::Sampling, r#"{"tools":[]}"#), Capability::SamplingTools);
    assert_eq!(needed(QuestionKind::Roots, "{}"), Capability::Roots);
}

#[test]
fn another_version_is_told_which_ones_are_spoken() {
    let message = modern("tools/list", "", "{}").replace("2026-07-28", "v999.0.0");
    let error = refused(&message);
    assert_eq!((error.code, error.http_status()), (-32022, 400));
    assert_eq!(error.data.unwrap().as_str(), r#"{"supported":["2026-07-28"],"requested":"v999.0.0"}"#);

    let handshake = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
    let error = refused(handshake);
    assert_eq!(error.code, -32022);
    assert!(error.message.contains("2026-07-28"), "old clients show the message and nothing else");
    let later = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01"}}"#;
    let error = refused(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{later}}}"#));
    assert_eq!(error.code, -32022, "a later version may have other rules for `_meta`");
}

#[test]
fn methods_of_other_times_do_not_exist() {
    let methods = "initialize ping tasks/list tasks/result tasks/delete prompts/lists unknown/method tools/unknown Tools/List \
                   tools/list/ resources/subscribe resources/unsubscribe logging/setLevel notifications/cancelled rpc.discover";
    for method in methods.split(' ') {
        let error = refused(&modern(method, r#""taskId":"t""#, "{}"));
        assert_eq!((error.code, error.http_status()), (-32601, 404), "{method}");
    }
}

#[test]
fn a_subscription_names_what_it_wants() {
    let filter = |notifications: &str, capabilities| {
        let message = modern("subscriptions/listen", &format!(r#""notifications":{notifications}"#), capabilities);
        routed(&message).map(|request| match request.operation {
            Operation::Subscribe(filter) => filter,
            other => panic!("no subscription: {other:?}"),
        })
    };
    let wanted = filter(r#"{"taskIds":["a","b","\n"],"toolsListChanged":true,"otherListChanged":true}"#, WITH_TASKS);
    let ids = ["a", "b"].map(|id| TaskId::parse(id).unwrap()).to_vec();
    assert_eq!(
        wanted.unwrap(),
        SubscriptionFilter { task_ids: Some(ids), tools_list_changed: true, ..SubscriptionFilter::default() }
    );
    let others = r#"{"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:b"]}"#;
    let (prompts_list_changed, resources) = (true, Some(vec!["a:b".to_owned()]));
    let expected = SubscriptionFilter {
        prompts_list_changed,
        resources_list_changed: true,
        resources,
        ..SubscriptionFilter::default()
    };
    assert_eq!(filter(others, "{}").unwrap(), expected);
    assert_eq!(filter(r#"{"otherListChanged":true}"#, "{}").unwrap(), SubscriptionFilter::default());
    assert_eq!(filter(r#"{"taskIds":["a"]}"#, "{}").unwrap_err(), Capability::Tasks.missing());
    for wrong in [
        "null",
        "[]",
        r#"{"taskIds":"a"}"#,
        r#"{"taskIds":[1]}"#,
        r#"{"toolsListChanged":"yes"}"#,
        r#"{"resourceSubscriptions":[1]}"#,
    ] {
        let error = filter(wrong, WITH_TASKS).unwrap_err();
        assert_eq!(error.code, -32602, "{wrong}");
        let is_plain = !["invalid type", "at line"].iter().any(|words| error.message.contains(words));
        assert!(is_plain, "{wrong}: {error}");
    }
    let ids = |count| format!(r#"{{"taskIds":[{}]}}"#, vec!["\"t\""; count].join(","));
    assert!(filter(&ids(TASK_IDS_MAX), WITH_TASKS).is_ok());
    assert_eq!(filter(&ids(TASK_IDS_MAX + 1), WITH_TASKS).unwrap_err().code, -32602);
    let uris = |count| format!(r#"{{"resourceSubscriptions":[{}]}}"#, vec!["\"a:b\""; count].join(","));
    assert!(filter(&uris(RESOURCES_MAX), "{}").is_ok());
    assert_eq!(filter(&uris(RESOURCES_MAX + 1), "{}").unwrap_err().code, -32602);
}

#[test]
fn every_message_of_a_subscription_carries_its_name() {
    let honoured =
        SubscriptionFilter { task_ids: Some(vec![TaskId::parse("a").unwrap()]), ..SubscriptionFilter::default() };
    assert_eq!(
        subscription::acknowledged(&1.into(), &honoured),
        r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"taskIds":["a"]}}}"#
    );
    assert_eq!(
        subscription::closed(&to(&1.into(), &ServerInfo::hidden())),
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#
    );
}

#[test]
fn a_client_may_give_up_a_request() {
    let told = |params: &str| CancelledRequest::parse(Some(&raw(params)));
    assert_eq!(told(r#"{"requestId":"a","reason":"bored"}"#).unwrap().request_id, RequestId::from_text("a"));
    assert_eq!(told(r#"{"requestId":null}"#), None);
    assert_eq!(told("{}"), None);
    assert_eq!(CancelledRequest::parse(None), None);
}
