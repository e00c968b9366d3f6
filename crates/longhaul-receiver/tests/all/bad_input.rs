//! Invalid requests: each gets its own error, and the server continues.

mod table;

use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, Server, Tool};
use longhaul_testkit::raw::RawRequest;
use longhaul_testkit::{LATEST, SessionClient, TestServer, conformance};
use serde_json::{Value, json};

async fn tasks(server: &TestServer, owner: &str) -> Vec<Value> {
    let session = SessionClient::new(server).with_token(owner).initialize(LATEST, json!({})).await;
    let page = session.result("tasks/list", json!({})).await;
    page["tasks"].as_array().expect("tasks").iter().map(|task| task["taskId"].clone()).collect()
}

#[tokio::test]
async fn every_bad_request_gets_its_error_makes_no_task_and_leaves_nothing() {
    let server = TestServer::start(conformance()).await;
    for mut row in table::rows() {
        row.request = row.request.with("Authorization", "Bearer ada");
        row.check(&server).await;
    }
    let mut client = server.client().await;
    let greeting = client.call("greet", json!({ "name": "Ada" })).await.unwrap();
    assert_eq!(greeting["content"][0]["text"], "Hello, Ada!");
    for gauge in ["longhaul_session_jobs", "longhaul_tasks_running", "longhaul_tasks_queued"] {
        client.until_metric(gauge, 0.0).await;
    }
    assert_eq!(tasks(&server, "ada").await, [] as [Value; 0]);
}

#[tokio::test]
async fn an_unknown_task_looks_the_same_whatever_its_id_is_like() {
    let server = TestServer::start(conformance()).await;
    let [longest, too_long, far_too_long] = [256, 257, 10_000].map(|bytes| "x".repeat(bytes));
    let ids = [
        "",
        " ",
        "x",
        "0000000000000000000000000000000000000000",
        "../../etc/passwd",
        "' OR 1=1 --",
        "line\nbreak",
        "\u{0}",
        "задача",
        "=?base64?eA==?=",
        &longest,
        &too_long,
        &far_too_long,
    ];
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let mut first = None;
        for id in ids {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let reply = RawRequest::rpc(&table::message(&json!(7), method, params)).send(&server).await;
            let (shown, seen) = (reply.json(), (reply.status, reply.body));
            assert_eq!((seen.0, &shown["error"]["code"], &shown["id"]), (200, &json!(-32602), &json!(7)), "{shown}");
            assert_eq!(seen, *first.get_or_insert_with(|| seen.clone()), "{method} {id:?}");
        }
    }
}

#[tokio::test]
async fn without_the_capability_a_task_is_not_even_looked_up() {
    let server = TestServer::start(conformance()).await;
    let mut client = server.client().await;
    let known = client.create("echo", json!({ "text": "mine" })).await.unwrap();
    client.capabilities = json!({});
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for id in [json!(known), json!("unknown"), json!(""), json!(5), Value::Null] {
            let answer = client.send(method, json!({ "taskId": id, "inputResponses": 5 })).await;
            let error = &answer.json()["error"];
            assert_eq!((answer.status, &error["code"]), (400, &json!(-32021)), "{method} {id}: {error}");
            let required = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
            assert_eq!(error["data"]["requiredCapabilities"], required);
        }
    }
}

#[tokio::test]
async fn only_an_answer_that_fits_an_open_question_is_taken() {
    let server = TestServer::start(conformance()).await;
    let mut client = server.client().await;
    let id = client.create("confirm_delete", json!({ "filename": "a.txt" })).await.unwrap();
    let key = client.asked(&id, 1).await.remove(0);
    let before = client.get(&id).await.unwrap();

    let wrong = [
        json!(5),
        json!(null),
        json!("accept"),
        json!([]),
        json!({}),
        json!({ "action": "perhaps" }),
        json!({ "action": 5 }),
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": {} }),
        json!({ "action": "accept", "content": [] }),
        json!({ "action": "accept", "content": { "confirm": "yes" } }),
        json!({ "action": "accept", "content": { "confirm": null } }),
    ];
    for answer in wrong {
        let error = client.error("tasks/update", json!({ "taskId": id, "inputResponses": { &key: answer } })).await;
        assert_eq!(error["code"], -32602, "{answer}: {error}");
    }
    // One invalid answer refuses the request: the valid answer beside it is not stored.
    let unread = json!({ "never-asked": 5, "": [], &key: 7 });
    assert_eq!(client.error("tasks/update", json!({ "taskId": id, "inputResponses": unread })).await["code"], -32602);
    for responses in [json!(5), json!([]), json!("x"), json!(null)] {
        let error = client.error("tasks/update", json!({ "taskId": id, "inputResponses": responses })).await;
        assert_eq!(error["code"], -32602, "{responses}: {error}");
    }
    assert_eq!(client.error("tasks/update", json!({ "taskId": id })).await["code"], -32602);
    // An answer to an unknown question is acknowledged and ignored.
    client.update(&id, json!({ "never-asked": { "action": "accept" }, "": 5 })).await.unwrap();
    client.update(&id, json!({})).await.unwrap();
    let after = client.get(&id).await.unwrap();
    assert_eq!(after.value["lastUpdatedAt"], before.value["lastUpdatedAt"], "a refused answer has changed the task");
    assert_eq!(after.questions(), std::slice::from_ref(&key));

    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    client.update(&id, json!({ &key: yes })).await.unwrap();
    let done = client.settled(&id).await;
    assert_eq!(done.result_text(), "a.txt is deleted.");
    // The question is closed.
    client.update(&id, json!({ &key: { "action": "accept", "content": { "confirm": false } } })).await.unwrap();
    client.update(&id, json!({ &key: "nonsense" })).await.unwrap();
    assert_eq!(client.get(&id).await.unwrap().value["result"], done.value["result"]);
}

#[tokio::test]
async fn a_request_state_opens_for_its_own_call_alone() {
    const TOOL: &str = "test_input_required_result_request_state";
    let server = TestServer::start(conformance()).await;
    let mut client = server.client().await;
    let asked = client.call(TOOL, json!({})).await.unwrap();
    assert_eq!(asked["resultType"], "input_required");
    let state = asked["requestState"].as_str().unwrap().to_owned();
    let yes = json!({ "confirm": { "action": "accept", "content": { "ok": true } } });
    let again = |tool: &str, arguments: Value, state: &str| json!({ "name": tool, "arguments": arguments, "inputResponses": yes, "requestState": state });
    let mut flipped = state.clone().into_bytes();
    flipped[40] = if flipped[40] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    let other = "test_input_required_result_tampered_state";
    for params in [
        again(TOOL, json!({}), &flipped),
        again(TOOL, json!({}), ""),
        again(TOOL, json!({}), "AAAA"),
        again(TOOL, json!({}), &format!("{state}A")),
        again(TOOL, json!({}), &state[1..]),
        again(TOOL, json!({}), "not base64 at all: ✗"),
        again(TOOL, json!({ "more": 1 }), &state),
        again(other, json!({}), &state),
    ] {
        let error = client.error("tools/call", params.clone()).await;
        assert_eq!(error["code"], -32602, "{params}: {error}");
    }
    let done = client.request("tools/call", again(TOOL, json!({}), &state)).await.unwrap();
    assert!(done.get().contains("state-ok"), "{done}");
}

#[tokio::test]
async fn the_last_round_before_a_task_sent_again_finds_the_task_that_it_made() {
    const TOOL: &str = "test_tool_with_task";
    let server = TestServer::start(conformance()).await;
    let mut client = server.client().await;
    let asked = client.call(TOOL, json!({})).await.unwrap();
    let last = |name: &str| {
        json!({
            "name": TOOL, "arguments": {}, "requestState": asked["requestState"],
            "inputResponses": { "user_name": { "action": "accept", "content": { "name": name } } },
        })
    };
    let task = |created: Box<serde_json::value::RawValue>| -> String {
        let created: Value = serde_json::from_str(created.get()).unwrap();
        assert_eq!(created["resultType"], "task");
        created["taskId"].as_str().unwrap().to_owned()
    };
    let first = task(client.request("tools/call", last("Ada")).await.unwrap());
    client.settled(&first).await;
    assert_eq!(task(client.request("tools/call", last("Ada")).await.unwrap()), first);
    // The first answer stays.
    assert_eq!(task(client.request("tools/call", last("Bob")).await.unwrap()), first);
    assert_eq!(client.get(&first).await.unwrap().result_text(), "Hello, Ada, from a task!");

    // The state of another call of the same tool leads to another task.
    let other = client.call(TOOL, json!({})).await.unwrap();
    let mut params = last("Ada");
    params["requestState"] = other["requestState"].clone();
    assert_ne!(task(client.request("tools/call", params).await.unwrap()), first);
}

#[derive(serde::Deserialize, JsonSchema)]
struct Confirmation {
    ok: bool,
}

#[tokio::test]
async fn a_request_state_is_refused_when_its_hour_is_over() {
    let ask = Tool::new("ask", |mut ctx: Ctx, _: NoArgs| async move {
        match ctx.ask("confirm", Form::<Confirmation>::new("Please confirm")).await? {
            FormAnswer::Accepted(Confirmation { ok }) => Ok(ok.to_string()),
            _ => Err(Failure::tool("no answer")),
        }
    })
    .task_support(longhaul::TaskSupport::Forbidden);
    let (server, clock) = TestServer::start_with_clock(Server::new("test").tool(ask)).await;
    let mut client = server.client().await;
    let asked = client.call("ask", json!({})).await.unwrap();
    let yes = json!({ "confirm": { "action": "accept", "content": { "ok": true } } });
    let again = json!({ "name": "ask", "arguments": {}, "inputResponses": yes, "requestState": asked["requestState"] });

    clock.advance_ms(60 * 60 * 1_000 - 1);
    client.request("tools/call", again.clone()).await.unwrap();
    clock.advance_ms(1);
    assert_eq!(client.error("tools/call", again).await["code"], -32602);
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_told_to_the_model_and_make_no_task() {
    let server = TestServer::start(conformance()).await;
    let mut client = server.client().await.with_token("ada");
    let wrong = [
        ("slow_compute", json!({})),
        ("slow_compute", json!({ "seconds": "1" })),
        ("slow_compute", json!({ "seconds": -1 })),
        ("slow_compute", json!({ "seconds": 1_000_001 })),
        ("slow_compute", json!({ "seconds": null })),
        ("slow_compute", json!({ "seconds": [] })),
        ("echo", json!({ "text": 5 })),
        ("confirm_delete", json!({ "filename": {} })),
    ];
    for (tool, arguments) in wrong {
        let result = client.call(tool, arguments.clone()).await.unwrap();
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        assert_eq!(result["resultType"], "complete", "{tool} {arguments}: {result}");
        assert!(result.get("taskId").is_none());
        assert!(result["content"][0]["text"].as_str().unwrap().contains(tool), "{result}");
    }
    let made = client.create("echo", json!({ "text": "the only one" })).await.unwrap();
    assert_eq!(tasks(&server, "ada").await, [json!(made)]);
}
