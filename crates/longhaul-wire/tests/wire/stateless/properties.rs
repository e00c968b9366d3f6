//! What holds for every input.

use longhaul_wire::headers::encode_value;
use longhaul_wire::jsonrpc::{self, Message, RequestId, RpcError};
use longhaul_wire::{Context, HeaderValue, Headers, ServerInfo, call_result, route};
use proptest::prelude::*;
use serde_json::Value;

use super::to;
use crate::common::*;

struct CallHeaders<'a>(&'a str);

impl Headers for CallHeaders<'_> {
    fn value(&self, name: &str) -> HeaderValue<'_> {
        match name {
            "mcp-protocol-version" => HeaderValue::Once(b"2026-07-28"),
            "mcp-method" => HeaderValue::Once(b"tools/call"),
            "mcp-name" => HeaderValue::Once(self.0.as_bytes()),
            _ => HeaderValue::Absent,
        }
    }
}

/// Reads a message as far as this crate reads any.
fn read(bytes: &[u8]) {
    let Ok(Message::Request(request)) = jsonrpc::parse(bytes) else { return };
    let _ = route(&request, &Context::Stateless { headers: Some(&CallHeaders("x")) });
}

fn call() -> String {
    let params = r#""name":"x","arguments":{"a":[1,"\u00e4",{}]},"inputResponses":{"k":{}}"#;
    modern("tools/call", params, WITH_TASKS)
}

fn called(message: &str, name: &str) -> Result<(), RpcError> {
    route(&request(message), &Context::Stateless { headers: Some(&CallHeaders(name)) }).map(drop)
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        read(&bytes);
    }

    #[test]
    fn no_damage_to_a_message_makes_the_reader_panic(bytes in damaged(call())) {
        read(&bytes);
    }

    #[test]
    fn a_text_id_goes_back_as_it_came(text in "(?s).{0,64}") {
        let id = RequestId::from_text(&text);
        let message = jsonrpc::request(&id, "x", "{}");
        let Ok(Message::Request(request)) = jsonrpc::parse(message.as_bytes()) else { panic!("{message}") };
        prop_assert_eq!(&request.id, &id);
        prop_assert_eq!(&value(&jsonrpc::result(&request.id, "{}"))["id"], &Value::from(text));
    }

    #[test]
    fn a_number_id_goes_back_as_it_came(number in any::<i128>()) {
        let message = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"x"}}"#);
        let Ok(Message::Request(request)) = jsonrpc::parse(message.as_bytes()) else { panic!("{message}") };
        prop_assert_eq!(request.id.as_json(), number.to_string());
    }

    #[test]
    fn what_a_client_puts_into_a_header_is_what_the_server_reads(name in prop_oneof!["(?s).{0,32}", "=\\?base64\\?.{0,8}\\?=", "[ \t]{0,3}[a-z]{0,3}[ \t]{0,3}"], other in "(?s).{1,8}") {
        let message = modern("tools/call", &format!(r#""name":{}"#, Value::from(name.as_str())), "{}");
        let sent = encode_value(&name);
        prop_assert!(sent.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)));
        prop_assert!(called(&message, &sent).is_ok());
        let another = format!("{name}{other}");
        prop_assert!(called(&message, &encode_value(&another)).is_err());
    }

    #[test]
    fn a_result_keeps_everything_it_had(body in any_json(&["_meta", "resultType"], &[""]), hidden in any::<bool>()) {
        let server = if hidden { ServerInfo::hidden() } else { server() };
        let message = call_result::complete(&to(&1.into(), &server), &json(&body.to_string()));
        let result = value(&message)["result"].clone();
        prop_assert!(result.get("resultType").is_some());
        match body {
            Value::Object(members) => for (name, member) in members {
                match (name.as_str(), member) {
                    ("_meta", Value::Object(meta)) => for (name, member) in meta {
                        prop_assert_eq!(&result["_meta"][&name], &member);
                    },
                    (name, member) => prop_assert_eq!(&result[name], &member),
                }
            },
            other => prop_assert_eq!(&result["structuredContent"], &other),
        }
    }

    #[test]
    fn any_text_can_be_said(text in "(?s).{0,64}") {
        let body = longhaul_wire::content::ToolResult::text(&text).into_json();
        prop_assert_eq!(&value(body.as_str())["content"][0]["text"], &Value::from(text));
    }
}
