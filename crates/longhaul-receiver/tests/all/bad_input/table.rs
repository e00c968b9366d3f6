//! The table: requests, and the status, code and ID of each response.

use longhaul_testkit::raw::RawRequest;
use longhaul_testkit::{RequestCase, VERSION, stateless_message, tasks_and_forms};
use serde_json::{Value, json};

/// The `_meta` of a client that supports tasks and forms.
fn meta() -> Value {
    message(&json!(1), "tools/list", json!({}))["params"]["_meta"].take()
}

/// A valid message.
pub(crate) fn message(id: &Value, method: &str, params: Value) -> Value {
    stateless_message(id, method, params, &tasks_and_forms())
}

fn discover() -> Value {
    message(&json!(1), "server/discover", json!({}))
}

fn call(params: Value) -> Value {
    message(&json!(1), "tools/call", params)
}

pub(crate) fn rows() -> Vec<RequestCase> {
    [
        no_messages(),
        ids(),
        methods(),
        params(),
        metas(),
        headers(),
        names(),
        mirrored(),
        calls(),
        tasks(),
        others(),
        notifications(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Bodies that are not a message, or a message that clients may not send.
fn no_messages() -> Vec<RequestCase> {
    let cut = discover().to_string();
    let deep = |levels: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}{}}}"#,
            r#"{"a":"#.repeat(levels) + "[1]",
            "}".repeat(levels)
        )
    };
    let mut bad_utf8 = discover().to_string().into_bytes();
    bad_utf8[20] = 0xff;
    let rows: Vec<(Vec<u8>, i64, Option<&str>)> = vec![
        (b"".to_vec(), -32700, None),
        (b"  \r\n\t".to_vec(), -32700, None),
        (b"nonsense".to_vec(), -32700, None),
        (b"{".to_vec(), -32700, None),
        (b"{'jsonrpc':'2.0'}".to_vec(), -32700, None),
        (cut.as_bytes()[..cut.len() - 1].to_vec(), -32700, None),
        (cut.as_bytes()[..cut.len() / 2].to_vec(), -32700, None),
        (format!("{cut}{cut}").into_bytes(), -32700, None),
        (format!("\u{feff}{cut}").into_bytes(), -32700, None),
        (bad_utf8, -32700, None),
        (vec![0; 100], -32700, None),
        (vec![0xff, 0xfe, b'{', 0, b'}', 0], -32700, None),
        (br#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#.to_vec(), -32600, Some("1")),
        (br#"{"jsonrpc":"2.0","id":01,"method":"x"}"#.to_vec(), -32700, None),
        (b"null".to_vec(), -32600, None),
        (b"5".to_vec(), -32600, None),
        (br#""text""#.to_vec(), -32600, None),
        (b"true".to_vec(), -32600, None),
        (b"{}".to_vec(), -32600, None),
        (b"[]".to_vec(), -32600, None),
        (b"[".to_vec(), -32700, None),
        (format!("[{cut}]").into_bytes(), -32600, None),
        (format!("[{cut},{cut}]").into_bytes(), -32600, None),
        (br#"["2.0",1,"server/discover"]"#.to_vec(), -32600, None),
        (br#"{"id":1,"method":"x"}"#.to_vec(), -32600, Some("1")),
        (br#"{"jsonrpc":"1.0","id":1,"method":"x"}"#.to_vec(), -32600, Some("1")),
        (br#"{"jsonrpc":2.0,"id":1,"method":"x"}"#.to_vec(), -32600, Some("1")),
        (br#"{"jsonrpc":null,"id":1,"method":"x"}"#.to_vec(), -32600, Some("1")),
        (br#"{"jsonrpc":"2.0","id":1}"#.to_vec(), -32600, Some("1")),
        (br#"{"jsonrpc":"2.0","id":1,"method":null}"#.to_vec(), -32600, Some("1")),
        (br#"{"jsonrpc":"2.0","id":1,"method":5}"#.to_vec(), -32600, Some("1")),
        (br#"{"jsonrpc":"2.0","id":1,"method":{}}"#.to_vec(), -32600, Some("1")),
        (br#"{"jsonrpc":"2.0","id":1,"method":["x"]}"#.to_vec(), -32600, Some("1")),
        (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#.to_vec(), -32600, None),
        (br#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#.to_vec(), -32600, Some("1")),
        (br#"{"jsonrpc":"2.0","id":1,"method":"x","error":{}}"#.to_vec(), -32600, Some("1")),
        // Clients of the stateless era do not send responses.
        (br#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_vec(), -32600, None),
        (br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#.to_vec(), -32600, None),
        (br#"{"jsonrpc":"2.0","error":{"code":1,"message":"no"}}"#.to_vec(), -32600, None),
        (br#"{"jsonrpc":"2.0","id":1,"result":5}"#.to_vec(), -32600, None),
        (deep(99).into_bytes(), -32600, Some("1")),
        (deep(100_000).into_bytes(), -32600, Some("1")),
        ("[".repeat(1_000_000).into_bytes(), -32700, None),
        (r#"{"a":"#.repeat(200_000).into_bytes(), -32700, None),
    ];
    let mut at_the_edge = discover();
    // The message, its parameters and 98 more levels.
    at_the_edge["params"]["deep"] = (0..98).fold(json!(1), |inner, _| json!([inner]));
    let at_the_edge = RequestCase::fine("the deepest nesting", RawRequest::rpc(&at_the_edge));
    let refused = rows.into_iter().map(|(body, code, id)| {
        let what = format!("body {}", String::from_utf8_lossy(&body[..body.len().min(80)]));
        RequestCase::new(what, RawRequest { body, ..RawRequest::rpc(&discover()) }, 400, code, id)
    });
    refused.chain([at_the_edge]).collect()
}

/// IDs of every kind.
fn ids() -> Vec<RequestCase> {
    let longest = format!("\"{}\"", "x".repeat(510));
    let too_long = format!("\"{}\"", "x".repeat(511));
    let huge = "9".repeat(100);
    let with = |id: &str| {
        let body = discover().to_string().replace(r#""id":1"#, &format!(r#""id":{id}"#));
        RawRequest { body: body.into_bytes(), ..RawRequest::rpc(&discover()) }
    };
    let good = [
        r#""a""#,
        r#""""#,
        r#"" ""#,
        r#""\u0041""#,
        r#""\n""#,
        r#""ключ""#,
        "0",
        "1",
        "-1",
        "-0",
        "9007199254740993",
        "18446744073709551616",
        &huge,
        &longest,
    ];
    let bad = [
        "null",
        "1.5",
        "1.0",
        "1e3",
        "true",
        "false",
        "{}",
        r#"{"a":1}"#,
        "[]",
        "[1]",
        r#""\ud800""#,
        &too_long,
        &format!("1{huge}{huge}{huge}{huge}{huge}{huge}"),
    ];
    let good = good
        .into_iter()
        .map(|id| RequestCase { id: Some(id.to_owned()), ..RequestCase::fine(format!("id {id}"), with(id)) });
    let bad = bad.into_iter().map(|id| RequestCase::new(format!("id {id}"), with(id), 400, -32600, None));
    good.chain(bad).collect()
}

/// Unknown methods.
fn methods() -> Vec<RequestCase> {
    let long = "m".repeat(100_000);
    let unknown = [
        "tools/unknown",
        "Tools/List",
        "tools/list/",
        "tasks/list",
        "tasks/result",
        "tasks/delete",
        "ping",
        "initialize",
        "prompts/list",
        "resources/read",
        "logging/setLevel",
        "notifications/cancelled",
        "rpc.discover",
    ];
    let mut rows: Vec<RequestCase> = unknown
        .iter()
        .map(|method| {
            let request = RawRequest::rpc(&message(&json!(1), method, json!({})));
            RequestCase::new(format!("method {method}"), request, 404, -32601, Some("1"))
        })
        .collect();
    let mut request = RawRequest::rpc(&message(&json!(1), &long, json!({})));
    request = request.without("Mcp-Method");
    rows.push(RequestCase::new("a method too long for a header", request, 400, -32020, Some("1")));
    let empty = RawRequest::rpc(&message(&json!(1), "", json!({})));
    rows.push(RequestCase::new("the empty method", empty, 404, -32601, Some("1")));
    rows
}

/// `params` of every wrong kind.
fn params() -> Vec<RequestCase> {
    let with = |params: &str| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#);
        let headers = RawRequest::rpc(&message(&json!(1), "tools/list", json!({})));
        RawRequest { body: body.into_bytes(), ..headers }
    };
    let mut rows: Vec<RequestCase> = ["[]", "null", "5", "\"x\"", "true", "{}", r#"{"_meta":{},"_meta":{}}"#]
        .into_iter()
        .map(|params| RequestCase::new(format!("params {params}"), with(params), 400, -32602, Some("1")))
        .collect();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let request = RawRequest { body: body.into(), ..with("{}") };
    rows.push(RequestCase::new("no params, though the header says 2026-07-28", request, 400, -32602, Some("1")));
    rows
}

/// `_meta` of every wrong kind.
fn metas() -> Vec<RequestCase> {
    const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
    const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
    let with = |meta: &Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
        RawRequest::rpc(&body)
    };
    let changed = |key: &str, value: Value| {
        let mut meta = meta();
        meta[key] = value;
        meta
    };
    let without = |key: &str| {
        let mut meta = meta();
        meta.as_object_mut().unwrap().remove(key);
        meta
    };
    let malformed = [
        json!(null),
        json!(5),
        json!([]),
        json!("x"),
        json!({}),
        without(VERSION_KEY),
        changed(VERSION_KEY, json!(20_260_728)),
        changed(VERSION_KEY, json!(null)),
        changed(VERSION_KEY, json!([VERSION])),
        without(CAPABILITIES_KEY),
        changed(CAPABILITIES_KEY, json!([])),
        changed(CAPABILITIES_KEY, json!("all")),
        changed(CAPABILITIES_KEY, json!(null)),
        changed("progressToken", json!(1.5)),
        changed("progressToken", json!({})),
        changed("progressToken", json!(true)),
        changed("io.modelcontextprotocol/logLevel", json!("loud")),
        changed("io.modelcontextprotocol/logLevel", json!(5)),
    ];
    let mut rows: Vec<RequestCase> = malformed
        .iter()
        .map(|meta| RequestCase::new(format!("_meta {meta}"), with(meta), 400, -32602, Some("1")))
        .collect();
    for version in ["2025-11-25", "2027-01-01", "", "2026-07-28 "] {
        let meta = changed(VERSION_KEY, json!(version));
        let same = with(&meta).set("MCP-Protocol-Version", version);
        // White space around a header's value is not part of it.
        let code = if version == "2026-07-28 " { -32020 } else { -32022 };
        rows.push(RequestCase::new(format!("version {version:?} in both"), same, 400, code, Some("1")));
        rows.push(RequestCase::new(format!("version {version:?} in the body"), with(&meta), 400, -32020, Some("1")));
        let only_header = with(&self::meta()).set("MCP-Protocol-Version", version);
        if version != "2026-07-28 " {
            rows.push(RequestCase::new(
                format!("version {version:?} in the header"),
                only_header,
                400,
                -32020,
                Some("1"),
            ));
        }
    }
    // Unknown capabilities are ignored, and so are values that are not objects.
    for capabilities in [json!({ "unknown": 5 }), json!({ "extensions": [] }), json!({ "elicitation": true })] {
        let request = with(&changed(CAPABILITIES_KEY, capabilities.clone()));
        rows.push(RequestCase::fine(format!("capabilities {capabilities}"), request));
    }
    rows
}

/// The version and the method in headers.
fn headers() -> Vec<RequestCase> {
    let good = || RawRequest::rpc(&discover());
    let mut rows = vec![
        RequestCase::new("no version header", good().without("MCP-Protocol-Version"), 400, -32020, Some("1")),
        RequestCase::new("two version headers", good().with("MCP-Protocol-Version", VERSION), 400, -32020, Some("1")),
        RequestCase::new(
            "a version header of bytes",
            good().set("MCP-Protocol-Version", b"\xff\xfe"),
            400,
            -32020,
            Some("1"),
        ),
        RequestCase::new("no method header", good().without("Mcp-Method"), 400, -32020, Some("1")),
        RequestCase::new("two method headers", good().with("Mcp-Method", "server/discover"), 400, -32020, Some("1")),
        RequestCase::new(
            "an encoded method",
            good().set("Mcp-Method", "=?base64?c2VydmVyL2Rpc2NvdmVy?="),
            400,
            -32020,
            Some("1"),
        ),
    ];
    for method in ["tools/list", "Server/Discover", "", "server/discover/", "server"] {
        let request = good().set("Mcp-Method", method);
        rows.push(RequestCase::new(format!("the method header {method:?}"), request, 400, -32020, Some("1")));
    }
    rows.push(RequestCase::fine(
        "header names in any case",
        good().without("Mcp-Method").with("mCP-mETHOD", "server/discover"),
    ));
    rows.push(RequestCase::fine("a name header where none is due", good().with("Mcp-Name", "whatever")));
    rows.push(RequestCase::fine(
        "an unknown header",
        good().with("Mcp-Param-Unknown", "x").with("Mcp-Param-Unknown", "y"),
    ));
    rows
}

/// The name in a header.
fn names() -> Vec<RequestCase> {
    let greet = || RawRequest::rpc(&call(json!({ "name": "greet", "arguments": { "name": "Ada" } })));
    let name = |value: &str| greet().set("Mcp-Name", value);
    let mut rows = vec![
        RequestCase::fine("the encoded name", name("=?base64?Z3JlZXQ=?=")),
        RequestCase::fine("white space around the name", name("  greet  ")),
        RequestCase::new("no name", greet().without("Mcp-Name"), 400, -32020, Some("1")),
        RequestCase::new("the name twice", greet().with("Mcp-Name", "greet"), 400, -32020, Some("1")),
        RequestCase::new("a name of bytes", greet().set("Mcp-Name", b"gr\xc3\xbc\xc3\x9f"), 400, -32020, Some("1")),
    ];
    let wrong = [
        "",
        "Greet",
        "greet2",
        "echo",
        "=?base64?ZWNobw==?=",
        "=?base64?Z3JlZXQ?=",
        "=?base64?Z3JlZXQ=",
        "=?BASE64?Z3JlZXQ=?=",
        "=?base64??=",
        "=?base64?!!?=",
        "=?base64?/w==?=",
        "=?base64?Z3JlZXQ=?= ,x",
        "=?utf-8?q?greet?=",
    ];
    rows.extend(
        wrong.map(|value| RequestCase::new(format!("the name {value:?}"), name(value), 400, -32020, Some("1"))),
    );
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let about = || RawRequest::rpc(&message(&json!(1), method, json!({ "taskId": "t1", "inputResponses": {} })));
        rows.push(RequestCase::new(format!("{method}, no name"), about().without("Mcp-Name"), 400, -32020, Some("1")));
        rows.push(RequestCase::new(
            format!("{method}, another name"),
            about().set("Mcp-Name", "t2"),
            400,
            -32020,
            Some("1"),
        ));
        rows.push(RequestCase::new(
            format!("{method}, an encoded name"),
            about().set("Mcp-Name", "=?base64?dDE=?="),
            200,
            -32602,
            Some("1"),
        ));
    }
    // If both the method and the name are wrong, the error names the method.
    let both = greet().set("Mcp-Method", "tools/list").set("Mcp-Name", "echo");
    rows.push(RequestCase::new("another method and another name", both, 400, -32020, Some("1")));
    rows
}

/// Arguments repeated in headers.
fn mirrored() -> Vec<RequestCase> {
    let region =
        |arguments: Value| RawRequest::rpc(&call(json!({ "name": "test_custom_header", "arguments": arguments })));
    let west = || region(json!({ "region": "west" }));
    let far = || region(json!({ "region": "дальний" }));
    vec![
        RequestCase::fine("the argument's header", west().with("Mcp-Param-Region", "west")),
        RequestCase::fine(
            "the argument's header, encoded",
            far().with("Mcp-Param-Region", "=?base64?0LTQsNC70YzQvdC40Lk=?="),
        ),
        RequestCase::fine("neither argument nor header", region(json!({}))),
        RequestCase::fine("a null argument and no header", region(json!({ "region": null }))),
        RequestCase::new("no header for the argument", west(), 400, -32020, Some("1")),
        RequestCase::new("another header", west().with("Mcp-Param-Region", "east"), 400, -32020, Some("1")),
        RequestCase::new(
            "the header twice",
            west().with("Mcp-Param-Region", "west").with("Mcp-Param-Region", "west"),
            400,
            -32020,
            Some("1"),
        ),
        RequestCase::new(
            "a header without the argument",
            region(json!({})).with("Mcp-Param-Region", "west"),
            400,
            -32020,
            Some("1"),
        ),
        RequestCase::new("a header of bytes", far().with("Mcp-Param-Region", "дальний"), 400, -32020, Some("1")),
    ]
}

/// Invalid calls of tools.
fn calls() -> Vec<RequestCase> {
    let refused = [
        json!({}),
        json!({ "name": null }),
        json!({ "name": 5 }),
        json!({ "name": ["greet"] }),
        json!({ "name": "" }),
        json!({ "name": "unknown" }),
        json!({ "name": "Greet" }),
        json!({ "name": "имя" }),
        json!({ "name": "x".repeat(5_000) }),
        json!({ "name": "greet", "arguments": [] }),
        json!({ "name": "greet", "arguments": "x" }),
        json!({ "name": "greet", "arguments": 5 }),
        json!({ "name": "greet", "arguments": null }),
        json!({ "name": "greet", "arguments": { "name": "Ada" }, "inputResponses": [] }),
        json!({ "name": "greet", "arguments": { "name": "Ada" }, "inputResponses": "x" }),
        json!({ "name": "greet", "arguments": { "name": "Ada" }, "requestState": 5 }),
        json!({ "name": "greet", "arguments": { "name": "Ada" }, "requestState": "made up" }),
    ];
    let mut rows: Vec<RequestCase> = refused
        .into_iter()
        .map(|params| {
            RequestCase::new(
                format!("tools/call {params:.120}"),
                RawRequest::rpc(&call(params)),
                200,
                -32602,
                Some("1"),
            )
        })
        .collect();
    // The `params.task` of an older generation is ignored.
    let older = json!({ "name": "greet", "arguments": { "name": "Ada" }, "task": { "ttl": 5 } });
    rows.push(RequestCase::fine("an older generation's task", RawRequest::rpc(&call(older))));
    // A tool that requires a client with tasks.
    let mut plain = call(json!({ "name": "failing_job", "arguments": {} }));
    plain["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    rows.push(RequestCase::new(
        "a required task without the capability",
        RawRequest::rpc(&plain),
        400,
        -32021,
        Some("1"),
    ));
    plain["params"]["arguments"] = json!({ "wrong": 1 });
    rows.push(RequestCase::new(
        "the same before its arguments are judged",
        RawRequest::rpc(&plain),
        400,
        -32021,
        Some("1"),
    ));
    let mut asks = call(json!({ "name": "test_missing_capability", "arguments": {} }));
    asks["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    rows.push(RequestCase::new(
        "a question that the client cannot take",
        RawRequest::rpc(&asks),
        400,
        -32021,
        Some("1"),
    ));
    rows
}

/// `tasks/*` with an invalid ID.
fn tasks() -> Vec<RequestCase> {
    let mut rows = Vec::new();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for id in [json!(null), json!(5), json!([]), json!({}), json!(true)] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let request = RawRequest::rpc(&message(&json!(1), method, params));
            rows.push(RequestCase::new(format!("{method} of {id}"), request, 200, -32602, Some("1")));
        }
        let request = RawRequest::rpc(&message(&json!(1), method, json!({ "inputResponses": {} })));
        rows.push(RequestCase::new(format!("{method} of nothing"), request, 200, -32602, Some("1")));
    }
    for responses in [json!(null), json!(5), json!([]), json!("x")] {
        let params = json!({ "taskId": "t", "inputResponses": responses });
        let request = RawRequest::rpc(&message(&json!(1), "tasks/update", params));
        rows.push(RequestCase::new(format!("tasks/update with {responses}"), request, 200, -32602, Some("1")));
    }
    rows
}

/// Lists and subscriptions.
fn others() -> Vec<RequestCase> {
    let mut rows = Vec::new();
    for cursor in [json!("made up"), json!(""), json!(5), json!({}), json!(null)] {
        let request = RawRequest::rpc(&message(&json!(1), "tools/list", json!({ "cursor": cursor })));
        rows.push(RequestCase::new(format!("cursor {cursor}"), request, 200, -32602, Some("1")));
    }
    let too_many = vec!["t"; 1_001];
    for notifications in [
        json!(null),
        json!(5),
        json!([]),
        json!("x"),
        json!({ "taskIds": "t" }),
        json!({ "taskIds": 5 }),
        json!({ "taskIds": [5] }),
        json!({ "taskIds": [null] }),
        json!({ "taskIds": {} }),
        json!({ "taskIds": too_many }),
        json!({ "toolsListChanged": "yes" }),
    ] {
        let params = json!({ "notifications": notifications });
        let request = RawRequest::rpc(&message(&json!(1), "subscriptions/listen", params));
        rows.push(RequestCase::new(format!("notifications {notifications:.60}"), request, 200, -32602, Some("1")));
    }
    let request = RawRequest::rpc(&message(&json!(1), "subscriptions/listen", json!({})));
    rows.push(RequestCase::new("no notifications", request, 200, -32602, Some("1")));
    let mut plain = message(&json!(1), "subscriptions/listen", json!({ "notifications": { "taskIds": [] } }));
    plain["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    rows.push(RequestCase::new(
        "a task subscription without the capability",
        RawRequest::rpc(&plain),
        400,
        -32021,
        Some("1"),
    ));
    rows
}

/// Messages that get no response.
fn notifications() -> Vec<RequestCase> {
    let mut rows = Vec::new();
    let accepted = |what: &str, body: &str| RequestCase {
        code: None,
        ..RequestCase::new(what, RawRequest::post(body), 202, 0, None)
    };
    rows.push(accepted(
        "a notification",
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    ));
    rows.push(accepted("a notification of nothing known", r#"{"jsonrpc":"2.0","method":"x"}"#));
    rows.push(accepted(
        "a request's name without an ID",
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}"#,
    ));
    let wrong = RawRequest::post(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}"#);
    rows.push(RequestCase::new("a notification with a list", wrong, 400, -32602, None));
    rows
}
