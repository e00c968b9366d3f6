//! The table: a request, and the status, code and ID that it is answered with.

use longhaul_testkit::raw::RawRequest;
use longhaul_testkit::{RequestCase, VERSION, stateless_message, tasks_and_forms};
use serde_json::{Value, json};

fn meta() -> Value {
    message(&json!(1), "tools/list", json!({}))["params"]["_meta"].take()
}

pub(crate) fn message(id: &Value, method: &str, params: Value) -> Value {
    stateless_message(id, method, params, &tasks_and_forms())
}

fn discover() -> Value {
    message(&json!(1), "server/discover", json!({}))
}

fn call(params: Value) -> Value {
    message(&json!(1), "tools/call", params)
}

/// A request whose headers do not repeat its message.
fn mismatch(what: impl Into<String>, request: RawRequest) -> RequestCase {
    RequestCase::new(what, request, 400, -32020, Some("1"))
}

/// A request whose parameters its method refuses.
fn bad_params(what: impl Into<String>, request: RawRequest) -> RequestCase {
    RequestCase::new(what, request, 200, -32602, Some("1"))
}

pub(crate) fn rows() -> Vec<RequestCase> {
    [
        no_messages(),
        ids(),
        methods(),
        params(),
        metas(),
        headers(),
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

/// Bodies that are no message, or one that no client may send.
fn no_messages() -> Vec<RequestCase> {
    let whole = discover().to_string();
    let mut bad_utf8 = whole.clone().into_bytes();
    bad_utf8[20] = 0xff;
    let deep = r#"{"a":"#.repeat(100_000) + "[1]" + &"}".repeat(100_000);
    let too_deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{deep}}}"#);
    let rows: Vec<(Vec<u8>, i64, Option<&str>)> = vec![
        (b"".to_vec(), -32700, None),
        (b"nonsense".to_vec(), -32700, None),
        (whole.as_bytes()[..whole.len() / 2].to_vec(), -32700, None),
        (bad_utf8, -32700, None),
        (vec![0; 100], -32700, None),
        (vec![0xff, 0xfe, b'{', 0, b'}', 0], -32700, None),
        (b"5".to_vec(), -32600, None),
        (b"{}".to_vec(), -32600, None),
        (b"[".to_vec(), -32700, None),
        (b"[]".to_vec(), -32600, None),
        (format!("[{whole}]").into_bytes(), -32600, None),
        (format!("[{whole},{whole}]").into_bytes(), -32600, None),
        (br#"{"id":1,"method":"x"}"#.to_vec(), -32600, Some("1")),
        (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#.to_vec(), -32600, None),
        // Answers are not for clients to send.
        (br#"{"jsonrpc":"2.0","id":1,"result":{}}"#.to_vec(), -32600, None),
        (br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#.to_vec(), -32600, None),
        (br#"{"jsonrpc":"2.0","error":{"code":1,"message":"no"}}"#.to_vec(), -32600, None),
        (br#"{"jsonrpc":"2.0","id":1,"result":5}"#.to_vec(), -32600, None),
        (too_deep.into_bytes(), -32600, Some("1")),
        ("[".repeat(1_000_000).into_bytes(), -32700, None),
    ];
    let mut at_the_edge = discover();
    // The message, its parameters and 98 more.
    at_the_edge["params"]["deep"] = (0..98).fold(json!(1), |inner, _| json!([inner]));
    let at_the_edge = RequestCase::fine("the deepest nesting", RawRequest::rpc(&at_the_edge));
    let refused = rows.into_iter().map(|(body, code, id)| {
        let what = format!("body {}", String::from_utf8_lossy(&body[..body.len().min(80)]));
        RequestCase::new(what, RawRequest { body, ..RawRequest::rpc(&discover()) }, 400, code, id)
    });
    refused.chain([at_the_edge]).collect()
}

/// IDs come back as the very text that was sent.
fn ids() -> Vec<RequestCase> {
    let with = |id: &str| {
        let body = discover().to_string().replace(r#""id":1"#, &format!(r#""id":{id}"#));
        RawRequest { body: body.into_bytes(), ..RawRequest::rpc(&discover()) }
    };
    let good = [r#""""#, r#""\u0041""#, r#""ключ""#, "-0", "18446744073709551616"];
    let good =
        good.map(|id| RequestCase { id: Some(id.to_owned()), ..RequestCase::fine(format!("id {id}"), with(id)) });
    let bad = ["null", "1.5", "{}"].map(|id| RequestCase::new(format!("id {id}"), with(id), 400, -32600, None));
    good.into_iter().chain(bad).collect()
}

/// Methods that are not here.
fn methods() -> Vec<RequestCase> {
    let with = |method: &str| RawRequest::rpc(&message(&json!(1), method, json!({})));
    let unknown = ["", "tools/unknown", "tasks/list", "initialize", "notifications/cancelled"];
    let unknown =
        unknown.map(|method| RequestCase::new(format!("method {method:?}"), with(method), 404, -32601, Some("1")));
    let too_long = with(&"m".repeat(100_000)).without("Mcp-Method");
    unknown.into_iter().chain([mismatch("a method too long for a header", too_long)]).collect()
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

/// `_meta` that is malformed, or of a version that is not spoken.
fn metas() -> Vec<RequestCase> {
    const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
    let with = |meta: &Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
        RawRequest::rpc(&body)
    };
    let malformed = [json!(null), json!([]), json!({})];
    let mut rows: Vec<RequestCase> = malformed
        .iter()
        .map(|meta| RequestCase::new(format!("_meta {meta}"), with(meta), 400, -32602, Some("1")))
        .collect();
    for version in ["2025-11-25", "2027-01-01"] {
        let mut meta = meta();
        meta[VERSION_KEY] = json!(version);
        let both = with(&meta).set("MCP-Protocol-Version", version);
        rows.push(RequestCase::new(format!("version {version:?} in both"), both, 400, -32022, Some("1")));
        rows.push(mismatch(format!("version {version:?} in the body"), with(&meta)));
        let only_header = with(&self::meta()).set("MCP-Protocol-Version", version);
        rows.push(mismatch(format!("version {version:?} in the header"), only_header));
    }
    rows
}

/// The version, the method and the name in headers.
fn headers() -> Vec<RequestCase> {
    let good = || RawRequest::rpc(&discover());
    let greet = || RawRequest::rpc(&call(json!({ "name": "greet", "arguments": { "name": "Ada" } })));
    vec![
        mismatch("no version header", good().without("MCP-Protocol-Version")),
        mismatch("two version headers", good().with("MCP-Protocol-Version", VERSION)),
        mismatch("a version header of bytes", good().set("MCP-Protocol-Version", b"\xff\xfe")),
        mismatch("no method header", good().without("Mcp-Method")),
        mismatch("two method headers", good().with("Mcp-Method", "server/discover")),
        mismatch("another method", good().set("Mcp-Method", "tools/list")),
        RequestCase::fine(
            "header names in any case",
            good().without("Mcp-Method").with("mCP-mETHOD", "server/discover"),
        ),
        RequestCase::fine("a name header where none is due", good().with("Mcp-Name", "whatever")),
        RequestCase::fine("a header that nobody knows", good().with("Mcp-Param-X", "x").with("Mcp-Param-X", "y")),
        RequestCase::fine("the encoded name", greet().set("Mcp-Name", "=?base64?Z3JlZXQ=?=")),
        mismatch("no name", greet().without("Mcp-Name")),
        mismatch("the name twice", greet().with("Mcp-Name", "greet")),
        mismatch("another name", greet().set("Mcp-Name", "echo")),
        mismatch("a name of bytes", greet().set("Mcp-Name", b"gr\xc3\xbc\xc3\x9f")),
    ]
}

/// Arguments that are repeated in headers.
fn mirrored() -> Vec<RequestCase> {
    let region =
        |arguments: Value| RawRequest::rpc(&call(json!({ "name": "test_custom_header", "arguments": arguments })));
    let far = || region(json!({ "region": "дальний" }));
    vec![
        RequestCase::fine(
            "the argument's header, encoded",
            far().with("Mcp-Param-Region", "=?base64?0LTQsNC70YzQvdC40Lk=?="),
        ),
        RequestCase::fine("neither argument nor header", region(json!({}))),
        mismatch("no header for the argument", far()),
        mismatch("another header", far().with("Mcp-Param-Region", "east")),
        mismatch("a header without the argument", region(json!({})).with("Mcp-Param-Region", "west")),
        mismatch("a header of bytes", far().with("Mcp-Param-Region", "дальний")),
    ]
}

/// Calls that no tool is made for.
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
        .map(|params| bad_params(format!("tools/call {params:.120}"), RawRequest::rpc(&call(params))))
        .collect();
    // An older generation's way to ask for a task is ignored.
    let older = json!({ "name": "greet", "arguments": { "name": "Ada" }, "task": { "ttl": 5 } });
    rows.push(RequestCase::fine("an older generation's task", RawRequest::rpc(&call(older))));
    // A tool that is only for clients which take tasks.
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

/// `tasks/*` with an ID that cannot be one.
fn tasks() -> Vec<RequestCase> {
    let mut rows = Vec::new();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for id in [json!(null), json!(5), json!([]), json!({}), json!(true)] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let request = RawRequest::rpc(&message(&json!(1), method, params));
            rows.push(bad_params(format!("{method} of {id}"), request));
        }
        let request = RawRequest::rpc(&message(&json!(1), method, json!({ "inputResponses": {} })));
        rows.push(bad_params(format!("{method} of nothing"), request));
    }
    for responses in [json!(null), json!(5), json!([]), json!("x")] {
        let params = json!({ "taskId": "t", "inputResponses": responses });
        let request = RawRequest::rpc(&message(&json!(1), "tasks/update", params));
        rows.push(bad_params(format!("tasks/update with {responses}"), request));
    }
    rows
}

fn others() -> Vec<RequestCase> {
    let mut rows = Vec::new();
    for cursor in [json!("made up"), json!(""), json!(5), json!({})] {
        let request = RawRequest::rpc(&message(&json!(1), "tools/list", json!({ "cursor": cursor })));
        rows.push(bad_params(format!("cursor {cursor}"), request));
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
        rows.push(bad_params(format!("notifications {notifications:.60}"), request));
    }
    let request = RawRequest::rpc(&message(&json!(1), "subscriptions/listen", json!({})));
    rows.push(bad_params("no notifications", request));
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
