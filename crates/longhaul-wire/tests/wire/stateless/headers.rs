//! HTTP headers must say what the body says.

use longhaul_wire::headers::{check_mirrored, encode_value};
use longhaul_wire::jsonrpc::RpcError;
use longhaul_wire::tool::ToolDeclaration;
use longhaul_wire::{Context, route};

use crate::common::*;

type Fields<'a> = &'a [(&'a str, &'a str)];

fn checked(message: &str, headers: Fields<'_>) -> Result<(), RpcError> {
    route(&request(message), &Context::Stateless { headers: Some(&headers) }).map(drop)
}

fn code(result: Result<(), RpcError>) -> (i64, u16) {
    result.map_or_else(|error| (error.code, error.http_status()), |()| (0, 200))
}

const FINE: (i64, u16) = (0, 200);
const MISMATCH: (i64, u16) = (-32020, 400);
const V: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

#[test]
fn a_call_needs_all_three_and_they_must_agree() {
    let call = modern("tools/call", r#""name":"greet""#, "{}");
    let method = ("Mcp-Method", "tools/call");
    let table: &[(Fields<'_>, (i64, u16))] = &[
        (&[V, method, ("Mcp-Name", "greet")], FINE),
        (&[V, ("mcp-method", "tools/call"), ("MCP-NAME", "  greet  ")], FINE),
        (&[V, method, ("Mcp-Name", "=?base64?Z3JlZXQ=?=")], FINE),
        (&[method, ("Mcp-Name", "greet")], MISMATCH),
        (&[("MCP-Protocol-Version", "2025-11-25"), method, ("Mcp-Name", "greet")], MISMATCH),
        (&[V, ("Mcp-Name", "greet")], MISMATCH),
        (&[V, ("Mcp-Method", "tasks/get"), ("Mcp-Name", "greet")], MISMATCH),
        (&[V, ("Mcp-Method", "TOOLS/CALL"), ("Mcp-Name", "greet")], MISMATCH),
        (&[V, method], MISMATCH),
        (&[V, method, ("Mcp-Name", "other")], MISMATCH),
        (&[V, method, ("Mcp-Name", "greet"), ("Mcp-Name", "greet")], MISMATCH),
        (&[V, method, ("Mcp-Name", "=?base64?Z3JlZXQ?=")], MISMATCH),
        (&[V, method, ("Mcp-Name", "gr\u{e9}et")], MISMATCH),
        (&[V, V, method, ("Mcp-Name", "greet")], MISMATCH),
        (&[("MCP-Protocol-Version", "\u{e9}"), method, ("Mcp-Name", "greet")], MISMATCH),
        (&[V, method, method, ("Mcp-Name", "greet")], MISMATCH),
        (&[V, ("Mcp-Method", "=?base64?dG9vbHMvY2FsbA==?="), ("Mcp-Name", "greet")], MISMATCH),
    ];
    for (headers, expected) in table {
        assert_eq!(code(checked(&call, headers)), *expected, "{headers:?}");
    }
    for method in ["", "tools/call/", "tools"] {
        assert_eq!(code(checked(&call, &[V, ("Mcp-Method", method), ("Mcp-Name", "greet")])), MISMATCH, "{method}");
    }
    let names = [
        "",
        "Greet",
        "greet2",
        "=?base64?ZWNobw==?=",
        "=?base64?Z3JlZXQ=",
        "=?BASE64?Z3JlZXQ=?=",
        "=?base64??=",
        "=?base64?!!?=",
        "=?base64?/w==?=",
        "=?base64?Z3JlZXQ=?= ,x",
        "=?utf-8?q?greet?=",
    ];
    for name in names {
        assert_eq!(code(checked(&call, &[V, method, ("Mcp-Name", name)])), MISMATCH, "{name}");
    }
}

#[test]
fn the_name_of_a_task_request_is_its_task() {
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let message = modern(method, r#""taskId":"t-1","inputResponses":{}"#, WITH_TASKS);
        let named = |name| code(checked(&message, &[V, ("Mcp-Method", method), ("Mcp-Name", name)]));
        assert_eq!(named("t-1"), FINE);
        assert_eq!(named("=?base64?dC0x?="), FINE);
        assert_eq!(named("t-2"), MISMATCH);
        assert_eq!(code(checked(&message, &[V, ("Mcp-Method", method)])), MISMATCH);
    }
}

#[test]
fn what_is_judged_first_is_part_of_the_protocol() {
    let without_meta = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}"#;
    assert_eq!(code(checked(without_meta, &[V])), (-32602, 400), "the header without the metadata");

    let other_version = modern("tools/list", "", "{}").replace("2026-07-28", "v999.0.0");
    let method = ("Mcp-Method", "tools/list");
    assert_eq!(code(checked(&other_version, &[V, method])), MISMATCH, "header against body before the version");
    for (version, expected) in [("v999.0.0", -32022), ("2025-11-25", -32022), ("", -32022), ("2026-07-28 ", -32020)] {
        let message = modern("tools/list", "", "{}").replace("2026-07-28", version);
        assert_eq!(code(checked(&message, &[("MCP-Protocol-Version", version), method])), (expected, 400), "{version}");
    }

    let unknown = modern("tasks/result", r#""taskId":"t""#, WITH_TASKS);
    let method = ("Mcp-Method", "tasks/result");
    assert_eq!(code(checked(&unknown, &[V, method])), (-32601, 404), "the method before the name");

    let nameless = modern("tools/call", "", "{}");
    assert_eq!(code(checked(&nameless, &[V, ("Mcp-Method", "tools/call")])), (-32602, 200), "left to the operation");

    let undeclared = modern("tasks/get", r#""taskId":7"#, "{}");
    let method = ("Mcp-Method", "tasks/get");
    assert_eq!(code(checked(&undeclared, &[V, method])), (-32021, 400), "the capability before the ID");
}

fn mirrored() -> ToolDeclaration {
    ToolDeclaration::draft("mirrored")
        .input_schema(json(
            r#"{"type":"object","properties":{
                "region":{"type":"string","x-mcp-header":"Region"},
                "count":{"type":"integer","x-mcp-header":"Count"},
                "deep":{"type":"object","properties":{"dry":{"type":"boolean","x-mcp-header":"Dry-Run"}}}}}"#,
        ))
        .declare()
        .unwrap()
}

#[test]
fn mirrored_arguments_must_agree_with_their_headers() {
    const REGION: &str = "Mcp-Param-Region";
    const COUNT: &str = "Mcp-Param-Count";
    let tool = mirrored();
    let table: &[(&str, Fields<'_>, bool)] = &[
        ("{}", &[], true),
        (r#"{"region":null}"#, &[], true),
        (r#"{"region":"us-west1"}"#, &[(REGION, "us-west1")], true),
        (r#"{"region":"us-west1"}"#, &[("mcp-PARAM-region", "us-west1")], true),
        (r#"{"region":"us-west1"}"#, &[], false),
        (r#"{"region":"us-west1"}"#, &[(REGION, "US-WEST1")], false),
        ("{}", &[(REGION, "us-west1")], false),
        ("{}", &[(REGION, "us-west1"), (REGION, "us-west2")], false),
        (r#"{"region":"Hello"}"#, &[(REGION, "=?base64?SGVsbG8=?=")], true),
        (r#"{"region":"SGVsbG8="}"#, &[(REGION, "SGVsbG8=")], true),
        (r#"{"region":"=?base64?SGVsbG8="}"#, &[(REGION, "=?base64?SGVsbG8=")], true),
        (r#"{"region":"Hello"}"#, &[(REGION, "=?base64?SGVsbG8?=")], false),
        (r#"{"region":"Hello"}"#, &[(REGION, "=?base64?SGVs!!!bG8=?=")], false),
        (r#"{"region":"Hello"}"#, &[(REGION, "=?base64?/w==?=")], false),
        (r#"{"region":"Hello, 世界"}"#, &[(REGION, "=?base64?SGVsbG8sIOS4lueVjA==?=")], true),
        (r#"{"region":"line1\nline2"}"#, &[(REGION, "=?base64?bGluZTEKbGluZTI=?=")], true),
        (r#"{"region":"дальний"}"#, &[(REGION, "дальний")], false),
        (r#"{"region":"west"}"#, &[(REGION, "west"), (REGION, "west")], false),
        (r#"{"region":""}"#, &[(REGION, "")], true),
        (r#"{"count":42}"#, &[(COUNT, "42")], true),
        (r#"{"count":42}"#, &[(COUNT, "42.0")], true),
        (r#"{"count":42.0}"#, &[(COUNT, "42")], true),
        (r#"{"count":-7}"#, &[(COUNT, "7")], false),
        (r#"{"count":-7}"#, &[], false),
        (r#"{"count":9007199254740993}"#, &[(COUNT, "9007199254740993")], false),
        (r#"{"deep":{"dry":true}}"#, &[("Mcp-Param-Dry-Run", "true")], true),
        (r#"{"deep":{"dry":true}}"#, &[("Mcp-Param-Dry-Run", "false")], false),
        (r#"{"deep":{}}"#, &[], true),
        // Left to the input schema, whose refusal says more.
        (r#"{"region":5,"count":"x","deep":[]}"#, &[], true),
        (r#"{"region":"a"}"#, &[(REGION, "a"), ("Mcp-Param-Unknown", "b")], true),
    ];
    for (arguments, headers, fine) in table {
        let checked = check_mirrored(headers, &tool, &raw(arguments));
        let code = checked.as_ref().map_or_else(|error| error.code, |()| 0);
        assert_eq!(code, if *fine { 0 } else { -32020 }, "{arguments} {headers:?} {checked:?}");
    }
}

#[test]
fn values_are_encoded_as_the_specification_shows() {
    assert_eq!(encode_value("us-west1"), "us-west1");
    assert_eq!(encode_value("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
    assert_eq!(encode_value(" padded "), "=?base64?IHBhZGRlZCA=?=");
    assert_eq!(encode_value("line1\nline2"), "=?base64?bGluZTEKbGluZTI=?=");
    assert_eq!(encode_value("=?base64?literal?="), "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
}
