//! What is no message is refused with the right code, the right status, and the ID where it could be read.

use longhaul_wire::jsonrpc::{self, DEPTH_MAX, ID_BYTES_MAX, Message, RequestId};
use longhaul_wire::{Capabilities, Context, Peer, Revision, is_stateless, route};

use crate::common::*;

/// The message, the ID that comes back, the code, the HTTP status.
const TABLE: &[(&str, Option<&str>, i64, u16)] = &[
    ("", None, -32700, 400),
    ("   ", None, -32700, 400),
    ("nonsense", None, -32700, 400),
    ("{", None, -32700, 400),
    ("  \r\n\t", None, -32700, 400),
    ("{'jsonrpc':'2.0'}", None, -32700, 400),
    ("\u{feff}{}", None, -32700, 400),
    ("{}{}", None, -32700, 400),
    (r#"{"jsonrpc":"2.0","id":1,"method":"x""#, None, -32700, 400),
    (r#"{"jsonrpc":"2.0","id":1,"method":"x"} trailing"#, None, -32700, 400),
    (r#"{"jsonrpc":"2.0","id":01,"method":"x"}"#, None, -32700, 400),
    ("[", None, -32700, 400),
    ("[]", None, -32600, 400),
    (r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#, None, -32600, 400),
    (r#"["2.0",1,"x"]"#, None, -32600, 400),
    ("null", None, -32600, 400),
    ("5", None, -32600, 400),
    ("true", None, -32600, 400),
    (r#""text""#, None, -32600, 400),
    ("{}", None, -32600, 400),
    (r#"{"id":1,"method":"x"}"#, Some("1"), -32600, 400),
    (r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, Some("1"), -32600, 400),
    (r#"{"jsonrpc":2.0,"id":1,"method":"x"}"#, Some("1"), -32600, 400),
    (r#"{"jsonrpc":null,"id":1,"method":"x"}"#, Some("1"), -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1}"#, Some("1"), -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, Some("1"), -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1,"method":{}}"#, Some("1"), -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1,"method":["x"]}"#, Some("1"), -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, Some("1"), -32600, 400),
    (r#"{"jsonrpc":"2.0","id":"a","method":5}"#, Some("\"a\""), -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1.0,"method":"x"}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1e3,"method":"x"}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","id":false,"method":"x"}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","id":true,"method":"x"}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","id":[1],"method":"x"}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","id":"\ud800","method":"x"}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}"#, Some("1"), -32602, 400),
    (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":"p"}"#, Some("1"), -32602, 400),
    (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#, Some("1"), -32602, 400),
    (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":true}"#, Some("1"), -32602, 400),
    (r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#, Some("1"), -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1,"method":"x","error":{}}"#, Some("1"), -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1,"result":5}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","result":{}}"#, None, -32600, 400),
    (r#"{"jsonrpc":"2.0","id":1,"error":{"message":"no code"}}"#, None, -32600, 400),
];

#[test]
fn what_is_no_message_is_refused_and_says_whose_it_was() {
    for (message, id, code, status) in TABLE {
        let rejected = jsonrpc::parse(message.as_bytes()).expect_err(message);
        assert_eq!(rejected.id.as_ref().map(RequestId::as_json), *id, "{message}");
        assert_eq!((rejected.error.code, rejected.error.http_status()), (*code, *status), "{message}");
        let answer = value(&jsonrpc::error(rejected.id.as_ref(), &rejected.error));
        assert_eq!(answer["error"]["code"], *code);
        assert_eq!(answer.get("id").is_some(), id.is_some(), "an unknown ID is left out, not null");
    }
}

#[test]
fn a_parse_error_says_where_the_message_is_not_json() {
    let refusal = |message: &str| jsonrpc::parse(message.as_bytes()).unwrap_err().error.message.into_owned();
    let ends = |place: &str| format!("Parse error: the message ends before its JSON does ({place})");
    let is_wrong = |place: &str| format!("Parse error: the message is not JSON ({place})");
    assert_eq!(refusal(r#"{"jsonrpc":"#), ends("line 1, column 11"));
    assert_eq!(refusal("{\n  \"id\": 01}"), is_wrong("line 2, column 10"));
    assert_eq!(refusal("[1,]"), is_wrong("line 1, column 4"));
    let batch = jsonrpc::parse_batch(b"[{},").unwrap_err().error.message;
    assert_eq!(batch, ends("line 1, column 4"));
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut bytes = br#"{"jsonrpc":"2.0","id":1,"method":"x","ignored":"?"}"#.to_vec();
    let index = bytes.iter().position(|byte| *byte == b'?').unwrap();
    bytes[index] = 0xff;
    assert_eq!(jsonrpc::parse(&bytes).unwrap_err().error.code, -32700);
}

#[test]
fn a_message_that_nests_too_deep_is_refused_and_does_not_overflow() {
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","id":9,"method":"x","params":{{"a":{open}{close}}}}}"#)
    };
    assert!(jsonrpc::parse(nested(DEPTH_MAX - 2).as_bytes()).is_ok());
    for levels in [DEPTH_MAX - 1, 1_000, 5_000_000] {
        let rejected = jsonrpc::parse(nested(levels).as_bytes()).unwrap_err();
        assert_eq!((rejected.id, rejected.error.code), (Some(9.into()), -32600));
    }
    assert_eq!(jsonrpc::parse("[".repeat(5_000_000).as_bytes()).unwrap_err().error.code, -32700);
    assert_eq!(jsonrpc::parse(r#"{"a":"#.repeat(1_000_000).as_bytes()).unwrap_err().error.code, -32700);
}

#[test]
fn many_brackets_side_by_side_are_not_deep() {
    let wide =
        format!(r#"{{"jsonrpc":"2.0","id":9,"method":"x","params":{{"a":[{}[]],"b":"[[[\"[["}}}}"#, "[],".repeat(500));
    assert!(jsonrpc::parse(wide.as_bytes()).is_ok());
}

#[test]
fn an_id_goes_back_as_it_came() {
    for id in
        ["0", "-0", "-7", "9007199254740993", "123456789012345678901234567890", r#""""#, r#""\u0041\n""#, r#""ä""#]
    {
        let message = format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"x"}}"#);
        assert_eq!(
            jsonrpc::result(&request(&message).id, "{}"),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
        );
    }
    let longest = format!("\"{}\"", "x".repeat(ID_BYTES_MAX));
    let message = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
    assert!(jsonrpc::parse(message(&longest).as_bytes()).is_ok());
    let ends_with_a_quote = format!(r#""{}\"""#, "x".repeat(ID_BYTES_MAX - 1));
    for too_long in [format!("\"{}\"", "x".repeat(ID_BYTES_MAX + 1)), ends_with_a_quote, "9".repeat(ID_BYTES_MAX + 1)] {
        assert_eq!(jsonrpc::parse(message(&too_long).as_bytes()).unwrap_err().error.code, -32600);
    }
}

#[test]
fn notifications_and_responses_are_told_apart() {
    let parsed = |text: &'static str| jsonrpc::parse(text.as_bytes()).unwrap();
    let Message::Notification(told) = parsed(r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1}}"#) else {
        panic!()
    };
    assert_eq!((&*told.method, told.params.raw().unwrap().get()), ("notifications/x", r#"{"a":1}"#));
    let Message::Response(answer) = parsed(r#"{"jsonrpc":"2.0","id":4,"result":{"a":1}}"#) else { panic!() };
    assert_eq!((answer.id, answer.outcome.unwrap().get()), (Some(4.into()), r#"{"a":1}"#));
    let Message::Response(answer) =
        parsed(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no","data":[1]}}"#)
    else {
        panic!()
    };
    let error = answer.outcome.unwrap_err();
    assert_eq!((answer.id, error.code, error.data.unwrap().as_str()), (None, -32601, "[1]"));
}

#[test]
fn the_error_for_a_repeated_member_names_it_and_no_position() {
    let repeated = r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#;
    let error = jsonrpc::parse(repeated.as_bytes()).unwrap_err().error;
    assert_eq!(error.message, "Invalid request: `id` occurs twice");
}

#[test]
fn parameters_that_cannot_be_read_are_named_in_both_eras() {
    const VERSION: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let peer = Peer { revision: Revision::V2025_11_25, capabilities: Capabilities::default() };
    let eras = [Context::Stateless { headers: None }, Context::Session { peer, last_marker: None, is_restored: false }];
    for (params, fault) in [
        (format!(r#"{{"name":"a","name":"b","_meta":{{{VERSION}}}}}"#), "`name` occurs twice"),
        (format!(r#"{{"_meta":{{}},"_meta":{{{VERSION}}}}}"#), "`_meta` occurs twice"),
        (r#"{"_meta":5}"#.to_owned(), "`_meta` must be an object of at most 1024 members"),
        (r#"{"_meta":[{}]}"#.to_owned(), "`_meta` must be an object of at most 1024 members"),
    ] {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        for era in &eras {
            let error = route(&request(&message), era).unwrap_err();
            assert_eq!((error.code, &*error.message), (-32602, &*format!("`params` cannot be read: {fault}")));
        }
        assert_eq!(is_stateless(message.as_bytes(), None), params.contains(VERSION), "{params}");
    }
}

#[test]
fn meta_has_at_most_1024_members() {
    let routed = |members: usize| {
        let many = (3..members).map(|member| format!(r#""{member}":0,"#)).collect::<Vec<_>>().concat();
        let message = modern("tools/list", "", "{}").replace(r#""_meta":{"#, &format!(r#""_meta":{{{many}"x":0,"#));
        route(&request(&message), &Context::Stateless { headers: None }).map(drop)
    };
    routed(1_024).unwrap();
    assert_eq!(routed(1_025).unwrap_err().code, -32602);
}
