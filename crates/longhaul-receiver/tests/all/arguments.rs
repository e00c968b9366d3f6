//! Arguments that a client wrote in an unusual way, and those that fit the schema of a tool but not its type.

use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema, Server, TaskSupport, Tool};
use longhaul_testkit::{LATEST, SessionClient, StatelessClient, TestServer, tasks_and_forms};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema, Default)]
#[serde(default)]
struct Order {
    count: u32,
    shift: i64,
    lines: Vec<Line>,
    code: Code,
}

#[derive(Deserialize, JsonSchema)]
struct Line {
    amount: u64,
}

/// A type whose schema cannot say what it refuses.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
struct Code;

impl TryFrom<String> for Code {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "known" { Ok(Self) } else { Err(format!("there is no code {text}")) }
    }
}

fn server() -> Server {
    let order = |_: Ctx, order: Order| async move {
        let amounts: u64 = order.lines.iter().map(|line| line.amount).sum();
        Ok::<_, Failure>(format!("{} {} {amounts}", order.count, order.shift))
    };
    Server::new("orders")
        .tool(Tool::new("order", order))
        .tool(Tool::new("order_now", order).task_support(TaskSupport::Forbidden))
        .tool(Tool::new("order_after", order).ask_first(|_: Ctx, line: Line| async move {
            Ok::<_, Failure>(json!({ "lines": [{ "amount": line.amount }] }))
        }))
        .tool(Tool::new("ask", |mut ctx: Ctx, _: longhaul::NoArgs| async move {
            let FormAnswer::Accepted(line) = ctx.ask("line", Form::<Line>::new("How many?")).await? else {
                return Err(Failure::tool("no answer"));
            };
            Ok(line.amount.to_string())
        }))
        .poll_interval_ms(10)
}

/// The result of a call whose arguments have exactly this text.
async fn call(client: &mut StatelessClient, tool: &str, arguments: &str) -> Value {
    let (message, headers) = client.message("tools/call", json!({ "name": tool, "arguments": "PLACE" }));
    let body = message.to_string().replace(r#""PLACE""#, arguments);
    client.exchange(body, &headers).await.unwrap().json()["result"].take()
}

#[tokio::test]
async fn arguments_that_the_type_refuses_make_no_task() {
    let server = TestServer::start(server()).await;
    let mut client = server.client().await.with_token("ada");
    let long = format!(r#"{{"code":"{}"}}"#, "x".repeat(100_000));
    let wrong = [
        (r#"{"count":1,"count":2}"#, "`count` occurs twice"),
        (r#"{"count":1,"\u0063ount":1}"#, "`count` occurs twice"),
        (r#"{"lines":[{"amount":1,"amount":2}]}"#, "`amount` occurs twice"),
        (r#"{"other":{"a":1,"a":2}}"#, "`a` occurs twice"),
        (r#"{"count":5000000000}"#, "invalid value"),
        (r#"{"count":5e9}"#, "invalid value"),
        (r#"{"shift":1e30}"#, "invalid type"),
        (r#"{"code":"unknown"}"#, "there is no code unknown"),
        (&long, "there is no code xxx"),
    ];
    for tool in ["order", "order_now"] {
        for (arguments, why) in wrong {
            let result = call(&mut client, tool, arguments).await;
            let told = result["content"][0]["text"].as_str().unwrap_or_default();
            assert_eq!(
                (&result["resultType"], &result["isError"]),
                (&json!("complete"), &json!(true)),
                "{arguments}: {result}"
            );
            let begin = format!("The arguments do not fit the tool `{tool}`: ");
            assert!(told.starts_with(&begin) && told.contains(why), "{arguments}: {told}");
            assert!(told.len() < 500, "{} bytes", told.len());
        }
    }
    let result = call(&mut client, "order_after", r#"{"amount":1,"amount":2}"#).await;
    assert_eq!(result["isError"], true, "{result}");
    let session = SessionClient::new(&server).with_token("ada").initialize(LATEST, json!({})).await;
    assert_eq!(session.result("tasks/list", json!({})).await["tasks"], json!([]));
}

#[tokio::test]
async fn a_whole_number_is_an_integer_in_every_kind_of_call() {
    let server = TestServer::start(server()).await;
    let mut client = server.client().await;
    let arguments =
        r#"{"count":10.0,"shift":-2e1,"lines":[{"amount":3.0},{"amount":18446744073709551612}],"code":"known"}"#;
    let expected = "10 -20 18446744073709551615";
    let created = call(&mut client, "order", arguments).await;
    let done = client.settled(created["taskId"].as_str().expect("a task")).await;
    assert_eq!(done.result_text(), expected);
    let result = call(&mut client, "order_now", arguments).await;
    assert_eq!(result["content"][0]["text"], expected, "{result}");
    let created = call(&mut client, "order_after", r#"{"amount":7.0}"#).await;
    let done = client.settled(created["taskId"].as_str().expect("a task")).await;
    assert_eq!(done.result_text(), "0 0 7");

    let id = client.create("ask", json!({})).await.unwrap();
    let key = client.asked(&id, 1).await.remove(0);
    let (message, headers) =
        client.message("tasks/update", json!({ "taskId": id, "inputResponses": { &key: "PLACE" } }));
    let answer = |content: &str| {
        message.to_string().replace(r#""PLACE""#, &format!(r#"{{"action":"accept","content":{content}}}"#))
    };
    let refused = client.exchange(answer(r#"{"amount":1,"amount":2}"#), &headers).await.unwrap().json();
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    client.exchange(answer(r#"{"amount":8.0}"#), &headers).await.unwrap();
    assert_eq!(client.settled(&id).await.result_text(), "8");
}

#[tokio::test]
async fn a_session_gets_the_same_refusal() {
    let server = TestServer::start(server()).await;
    let session = SessionClient::open(&server, tasks_and_forms()).await;
    let message =
        session.message("tools/call", json!({ "name": "order", "arguments": "PLACE", "task": {} })).to_string();
    let mut reply = session.post(message.replace(r#""PLACE""#, r#"{"count":1,"count":2}"#)).await;
    let result = reply.last().await["result"].take();
    assert_eq!((&result["isError"], &result["task"]), (&json!(true), &Value::Null), "{result}");
}
