//! Clients without tasks: a durable task behind an ordinary call, a ticket, and the tools to go on with.

use std::time::Duration;

use longhaul::{Annotations, Ctx, NoArgs, Server, Structured, Tool};
use longhaul_testkit::tools::{Door, accepted_name, ask_name, tools};
use longhaul_testkit::{SessionClient, TestServer, until};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(600);

async fn start(door: &Door, patience: Duration) -> TestServer {
    TestServer::start(server(door, patience)).await
}

fn server(door: &Door, patience: Duration) -> Server {
    let joins = Annotations { idempotent: Some(true), ..Annotations::default() };
    let wait = |name: &str| {
        door.tool(name, |door, ctx: Ctx, _: NoArgs| async move {
            tokio::select! {
                () = door.pass() => Ok("waited"),
                () = ctx.cancelled() => Err(longhaul::Failure::tool("stopped")),
            }
        })
    };
    let asking = door.tool("fragile_question", |door, mut ctx: Ctx, _: NoArgs| async move {
        door.pass().await;
        ask_name(&mut ctx).await
    });
    let typed = Tool::new("typed", |_: Ctx, _: NoArgs| async move { Ok(Structured(NoArgs {})) });
    Server::new("tickets")
        .tools(tools(door))
        .tools([wait("joined").annotations(joins), wait("fragile").cancel_abandoned_calls(), typed])
        .tool(asking.cancel_abandoned_calls())
        .poll_interval_ms(50)
        .patience(patience)
}

async fn open(server: &TestServer, capabilities: Value) -> SessionClient {
    SessionClient::new(server).with_token("ada").initialize("2025-06-18", capabilities).await
}

fn ticket(result: &Value) -> &Value {
    &result["_meta"]["longhaul/task"]
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// They stand on the last page, beside the rest of the server's own tools.
#[tokio::test]
async fn the_tools_for_tickets_are_listed_once_over_all_pages() {
    for page_max in [1, 2, 3, 100] {
        let server = TestServer::start(server(&Door::closed(), LONG).list_page_max(page_max)).await;
        let client = SessionClient::new(&server).with_token("ada").initialize("2025-11-25", json!({})).await;
        let (mut names, mut params) = (Vec::new(), json!({}));
        loop {
            let page = client.result("tools/list", params).await;
            names
                .extend(page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
            let Some(cursor) = page.get("nextCursor") else { break };
            params = json!({ "cursor": cursor });
        }
        for tool in ["task_status", "task_result", "task_answer", "task_cancel", "task_list", "echo"] {
            assert_eq!(names.iter().filter(|name| *name == tool).count(), 1, "{tool} in {names:?}");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_done_in_time_has_an_ordinary_result() {
    let door = Door::closed();
    let server = start(&door, LONG).await;
    let client = open(&server, json!({})).await;
    let result = client.call("echo", json!({ "text": "hello" })).await;
    assert_eq!(result, json!({ "content": [{ "type": "text", "text": "hello" }] }));
    let failed = client.call("fail", json!({ "text": "no" })).await;
    assert_eq!(failed["isError"], true);
    let broken = client.error("tools/call", json!({ "name": "break", "arguments": { "text": "no" } })).await;
    assert_eq!(broken["code"], -32_001);
    // Each was a task.
    let listed = client.call("task_list", json!({})).await;
    assert_eq!(ticket(&listed)["tasks"].as_array().unwrap().len(), 3, "{listed}");
}

#[tokio::test]
async fn a_call_that_takes_longer_has_a_ticket_and_its_result_later() {
    let door = Door::closed();
    let server = start(&door, Duration::ZERO).await;
    let client = open(&server, json!({})).await;
    let result = client.call("wait", json!({})).await;
    let id = ticket(&result)["taskId"].as_str().unwrap();
    assert_eq!(ticket(&result)["status"], "working");
    assert!(result.get("isError").is_none() && text(&result).contains("task_status"), "{result}");
    assert!(text(&result).contains(id), "{result}");
    let shown = client.call("task_status", json!({ "taskId": id })).await;
    assert_eq!(ticket(&shown), ticket(&result));
    let early = client.call("task_result", json!({ "taskId": id })).await;
    assert_eq!(ticket(&early)["status"], "working");
    door.open(1);
    until("its end", async || {
        let shown = client.call("task_status", json!({ "taskId": id, "waitSeconds": 30 })).await;
        ticket(&shown)["status"] == "completed"
    })
    .await;
    let result = client.call("task_result", json!({ "taskId": id })).await;
    assert_eq!((text(&result), &ticket(&result)["status"]), ("waited", &json!("completed")));
}

#[tokio::test]
async fn a_question_that_cannot_be_asked_comes_with_the_ticket_at_once() {
    let door = Door::closed();
    let server = start(&door, LONG).await;
    let client = open(&server, json!({})).await;
    let result = client.call("greet", json!({})).await;
    let id = ticket(&result)["taskId"].as_str().unwrap();
    assert_eq!(ticket(&result)["status"], "input_required", "{result}");
    let (key, request) = ticket(&result)["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    assert!(text(&result).contains("What is your name?") && text(&result).contains("task_answer"), "{result}");
    let wrong = client.call("task_answer", json!({ "taskId": id, "answers": { key: { "action": "accept" } } })).await;
    assert_eq!(wrong["isError"], true, "{wrong}");
    let unknown =
        client.call("task_answer", json!({ "taskId": id, "answers": { "other": accepted_name("Ada") } })).await;
    assert!(unknown["isError"] == true && text(&unknown).contains(key), "{unknown}");
    client.call("task_answer", json!({ "taskId": id, "answers": { key: accepted_name("Ada") } })).await;
    client.call("task_status", json!({ "taskId": id, "waitSeconds": 60 })).await;
    assert_eq!(text(&client.call("task_result", json!({ "taskId": id })).await), "Hello, Ada!");
}

#[tokio::test]
async fn a_client_that_can_be_asked_is_asked_while_its_call_waits() {
    let door = Door::closed();
    let server = start(&door, LONG).await;
    let client = open(&server, json!({ "elicitation": {} })).await;
    let (mut call, question) = client.call_until_form("greet").await;
    assert_eq!(question["params"].get("_meta"), None);
    client.respond(&question, accepted_name("Ada")).await;
    let last = call.last().await;
    assert_eq!(text(&last["result"]), "Hello, Ada!");
}

#[tokio::test]
async fn a_silent_call_sends_a_heartbeat_that_leaves_room_for_progress() {
    let door = Door::closed();
    let server = TestServer::start(server(&door, LONG).heartbeat(Duration::from_millis(5))).await;
    let client = open(&server, json!({})).await;
    let params = json!({ "name": "wait", "arguments": {}, "_meta": { "progressToken": 7 } });
    let mut call = client.send("tools/call", params).await;
    let mut last = -1.0;
    for _ in 0..3 {
        let told = call.next_of("notifications/progress").await;
        let done = told["params"]["progress"].as_f64().unwrap();
        assert!(done > last && done < 0.01, "{told}");
        assert_eq!(told["params"]["progressToken"], 7);
        assert!(told["params"]["message"].as_str().unwrap().contains(" s"), "{told}");
        last = done;
    }
    door.open(1);
    let last = call.last().await;
    assert_eq!(text(&last["result"]), "waited");
}

#[tokio::test]
async fn a_client_that_gives_up_leaves_the_task_running_unless_the_tool_says_otherwise() {
    let door = Door::closed();
    let server = start(&door, LONG).await;
    let client = open(&server, json!({})).await;
    for (tool, status) in [("wait", "working"), ("fragile", "cancelled")] {
        let message = client.message("tools/call", json!({ "name": tool, "arguments": {} }));
        let posting = tokio::spawn({
            let (client, message) = (client.clone(), message.to_string());
            async move { client.post(message).await.rest().await }
        });
        let newest = async || ticket(&client.call("task_list", json!({})).await)["tasks"][0].clone();
        until("a task", async || newest().await["status"] == "working").await;
        assert_eq!(client.notify("notifications/cancelled", json!({ "requestId": message["id"] })).await, 202);
        posting.await.unwrap();
        until("what the tool says", async || newest().await["status"] == status).await;
        let id = newest().await["taskId"].clone();
        let cancelled = client.call("task_cancel", json!({ "taskId": id })).await;
        assert_eq!(ticket(&cancelled)["status"], "cancelled");
    }
}

#[tokio::test]
async fn the_same_call_joins_the_task_that_runs_where_the_tool_allows_it() {
    let door = Door::closed();
    let server = start(&door, Duration::ZERO).await;
    let (one, other) = (open(&server, json!({})).await, open(&server, json!({})).await);
    let first = one.call("joined", json!({})).await;
    let again = other.call("joined", json!({})).await;
    assert_eq!(ticket(&first)["taskId"], ticket(&again)["taskId"]);
    let (apart, too) = (one.call("wait", json!({})).await, one.call("wait", json!({})).await);
    assert_ne!(ticket(&apart)["taskId"], ticket(&too)["taskId"]);
    one.call("task_cancel", json!({ "taskId": ticket(&first)["taskId"] })).await;
    let new = one.call("joined", json!({})).await;
    assert_ne!(ticket(&first)["taskId"], ticket(&new)["taskId"], "one that has ended is not joined");
}

#[tokio::test]
async fn a_call_whose_key_was_added_on_its_way_joins_and_is_found_when_it_is_repeated() {
    let door = Door::closed();
    let server = start(&door, Duration::ZERO).await;
    let client = open(&server, json!({})).await;
    let call = async |key: &str, mut meta: Value| {
        meta["longhaul/idempotency-key"] = json!(key);
        let params = json!({ "name": "joined", "arguments": {}, "_meta": meta });
        let result = client.result("tools/call", params).await;
        ticket(&result)["taskId"].clone()
    };
    let relayed = json!({ "longhaul/relayed": 1 });
    let repeated = |sent_ms: u64| json!({ "longhaul/relayed": sent_ms, "longhaul/repeated": true });
    let first = call("a", relayed.clone()).await;
    assert_eq!(call("b", relayed.clone()).await, first);
    assert_eq!(ticket(&client.call("joined", json!({})).await)["taskId"], first, "of a client without a key");
    assert_ne!(call("own", json!({})).await, first, "a client's own key is for a task of its own");
    door.open(2);
    until("its end", async || {
        let shown = client.call("task_status", json!({ "taskId": first })).await;
        ticket(&shown)["status"] == "completed"
    })
    .await;
    assert_eq!(call("b", repeated(1)).await, Value::Null, "the result of the task that it waited for");
    let late = u64::MAX;
    let new = call("c", repeated(late)).await;
    assert!(new != first && new.is_string(), "one that had ended before the call is not joined");
    assert_eq!(call("c", repeated(late)).await, new, "and the new one is found by its key");
}

#[tokio::test]
async fn the_tools_are_offered_to_clients_without_tasks_under_free_names() {
    let door = Door::closed();
    let own = Tool::new("task_status", |_: Ctx, _: NoArgs| async move { Ok("mine") });
    let server = TestServer::start(server(&door, LONG).tool(own)).await;
    let names = |list: &Value| {
        let tools = list["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let client = open(&server, json!({})).await;
    let list = client.result("tools/list", json!({})).await;
    for name in ["task_status", "longhaul_task_status", "task_result", "task_answer", "task_cancel", "task_list"] {
        assert!(names(&list).iter().any(|listed| listed == name), "{name}");
    }
    assert_eq!(text(&client.call("task_status", json!({})).await), "mine");
    let typed = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "typed").unwrap();
    assert_eq!(typed.get("outputSchema"), None, "a ticket would not fit it");
    let anonymous = SessionClient::open(&server, json!({})).await;
    let list = anonymous.result("tools/list", json!({})).await;
    assert!(!names(&list).contains(&"task_list".to_owned()) && names(&list).contains(&"task_result".to_owned()));
    let mut stateless = server.client().await;
    let list = stateless.send("tools/list", json!({})).await.json();
    assert!(!names(&list["result"]).contains(&"task_result".to_owned()), "it takes tasks");
}

#[tokio::test]
async fn a_foreign_task_is_an_unknown_one_for_these_tools_too() {
    let door = Door::closed();
    let server = start(&door, Duration::ZERO).await;
    let ada = open(&server, json!({})).await;
    let id = ticket(&ada.call("wait", json!({})).await)["taskId"].clone();
    let bob = SessionClient::new(&server).with_token("bob").initialize("2025-06-18", json!({})).await;
    for (tool, more) in [
        ("task_status", json!({})),
        ("task_result", json!({})),
        ("task_cancel", json!({})),
        ("task_answer", json!({ "answers": {} })),
    ] {
        let mut arguments = more;
        arguments["taskId"] = id.clone();
        let foreign = bob.call(tool, arguments.clone()).await;
        arguments["taskId"] = json!("none");
        assert_eq!(foreign, bob.call(tool, arguments).await, "{tool}");
        assert_eq!(foreign["isError"], true);
    }
    let listed = bob.call("task_list", json!({})).await;
    assert_eq!(ticket(&listed)["tasks"], json!([]));
}

#[tokio::test]
async fn a_tool_that_answers_soon_needs_no_task_for_a_client_that_takes_one() {
    let door = Door::closed();
    let quick = |name: &str, time| {
        door.tool(name, |door, _: Ctx, _: NoArgs| async move {
            door.pass().await;
            Ok("done")
        })
        .answers_within(time)
    };
    let server = Server::new("quick").tools([quick("quick", LONG), quick("slow", Duration::ZERO)]);
    let server = TestServer::start(server).await;
    let mut client = server.client().await;
    door.open(1);
    let answer = client.call("quick", json!({})).await.unwrap();
    assert_eq!((&answer["resultType"], text(&answer)), (&json!("complete"), "done"));
    let answer = client.call("slow", json!({})).await.unwrap();
    assert_eq!(answer["resultType"], "task");
    // A client that asks for a task gets one.
    door.open(2);
    let session = SessionClient::open(&server, json!({})).await;
    session.create("quick", json!({})).await;
}

#[tokio::test]
async fn a_stateless_client_is_asked_by_rounds_and_its_work_is_one_task() {
    let door = Door::closed();
    let server = start(&door, LONG).await;
    let mut client = server.client().await.with_token("ada");
    client.capabilities = json!({ "elicitation": {} });
    let call = |more: Value| {
        let mut params = json!({ "name": "greet", "arguments": {} });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let asked = client.send("tools/call", call(json!({}))).await.json()["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let round =
        |answer: Value| call(json!({ "requestState": asked["requestState"], "inputResponses": { &key: answer } }));
    let again = client.send("tools/call", round(json!({ "action": "accept" }))).await.json();
    assert_eq!(again["error"]["code"], -32_602, "an answer that does not fit: {again}");
    let done = client.send("tools/call", round(accepted_name("Ada"))).await.json();
    assert_eq!(text(&done["result"]), "Hello, Ada!", "{done}");
    let repeated = client.send("tools/call", round(accepted_name("Bob"))).await.json();
    assert_eq!(text(&repeated["result"]), "Hello, Ada!", "the first answer counts: {repeated}");
    let session = open(&server, json!({})).await;
    let tasks = ticket(&session.call("task_list", json!({})).await)["tasks"].as_array().unwrap().len();
    assert_eq!(tasks, 1);
    // The state is sealed for its owner.
    let mut bob = server.client().await.with_token("bob");
    bob.capabilities = json!({ "elicitation": {} });
    assert_eq!(bob.send("tools/call", round(accepted_name("Bob"))).await.json()["error"]["code"], -32_602);
}

#[tokio::test]
async fn a_stateless_client_that_knows_no_tasks_gets_a_ticket_and_the_tools() {
    let door = Door::closed();
    let server = start(&door, Duration::ZERO).await;
    let mut client = server.client().await;
    client.capabilities = json!({});
    let list = client.send("tools/list", json!({})).await.json();
    let tools = list["result"]["tools"].as_array().unwrap().clone();
    assert!(tools.iter().any(|tool| tool["name"] == "task_result"));
    assert!(tools.iter().all(|tool| tool["name"] != "task_list"), "it cannot be told from others");
    let required = client.send("tools/call", json!({ "name": "only_task", "arguments": {} })).await.json();
    assert_eq!(required["error"]["code"], -32_021, "the error of its generation");
    let given = client.call("wait", json!({})).await.unwrap();
    assert_eq!((&given["resultType"], &ticket(&given)["status"]), (&json!("complete"), &json!("working")));
    let id = ticket(&given)["taskId"].clone();
    door.open(1);
    until("its end", async || {
        let shown = client.call("task_status", json!({ "taskId": id, "waitSeconds": 30 })).await.unwrap();
        ticket(&shown)["status"] == "completed"
    })
    .await;
    assert_eq!(text(&client.call("task_result", json!({ "taskId": id })).await.unwrap()), "waited");
}

#[tokio::test]
async fn anonymous_callers_join_no_task_of_each_other() {
    let door = Door::closed();
    let server = start(&door, Duration::ZERO).await;
    let (one, other) = (SessionClient::open(&server, json!({})).await, SessionClient::open(&server, json!({})).await);
    let id = |result: &Value| ticket(result)["taskId"].as_str().unwrap().to_owned();
    let first = id(&one.call("joined", json!({})).await);
    assert_eq!(id(&one.call("joined", json!({})).await), first, "its own");
    assert_ne!(id(&other.call("joined", json!({})).await), first);
    let mut stateless = server.client().await;
    stateless.capabilities = json!({});
    let (a, b) =
        (stateless.call("joined", json!({})).await.unwrap(), stateless.call("joined", json!({})).await.unwrap());
    assert!(id(&a) != id(&b) && id(&a) != first);
}

#[tokio::test]
async fn a_call_goes_on_when_its_tool_and_all_others_are_removed() {
    let door = Door::closed();
    let waiting = door.tool("only", |door, _: Ctx, _: NoArgs| async move {
        door.pass().await;
        Ok("waited")
    });
    let server = Server::new("small").tool(waiting).patience(Duration::ZERO);
    let handle = server.handle();
    let server = TestServer::start(server).await;
    let client = open(&server, json!({})).await;
    let id = ticket(&client.call("only", json!({})).await)["taskId"].clone();
    handle.remove_tool("only").await.unwrap();
    assert_eq!(client.result("tools/list", json!({})).await["tools"], json!([]));
    door.open(1);
    until("its end", async || {
        let shown = client.call("task_status", json!({ "taskId": id })).await;
        ticket(&shown)["status"] == "completed"
    })
    .await;
    assert_eq!(text(&client.call("task_result", json!({ "taskId": id })).await), "waited");
}

#[tokio::test]
async fn a_stateless_client_that_disconnects_leaves_the_task_unless_the_tool_says_otherwise() {
    let door = Door::closed();
    let server = start(&door, LONG).await;
    let session = open(&server, json!({})).await;
    for (tool, status) in [("wait", "working"), ("fragile", "cancelled")] {
        let mut client = server.client().await.with_token("ada");
        client.capabilities = json!({});
        let calling = tokio::spawn(async move { client.call(tool, json!({})).await });
        let newest = async || ticket(&session.call("task_list", json!({})).await)["tasks"][0].clone();
        until("a task", async || newest().await["status"] == "working").await;
        calling.abort();
        assert!(calling.await.is_err());
        until("what the tool says", async || newest().await["status"] == status).await;
        session.call("task_cancel", json!({ "taskId": newest().await["taskId"] })).await;
    }
}

#[tokio::test]
async fn a_client_of_a_session_that_is_not_back_for_its_ticket_has_abandoned_its_call() {
    let door = Door::closed();
    let server = start(&door, LONG).await;
    for (comes_back, status) in [(false, "cancelled"), (true, "input_required")] {
        let client = SessionClient::new(&server).with_token("ada").initialize("2025-11-25", json!({})).await;
        let mut call = client.send("tools/call", json!({ "name": "fragile_question", "arguments": {} })).await;
        let event = call.first_event_id().await;
        drop(call);
        let mut metrics = server.client().await;
        until("the end of the connection", async || {
            metrics.metric_of("longhaul_budget_used", "kept_bytes").await.is_some_and(|kept| kept > 0.0)
        })
        .await;
        let resumed = if comes_back { Some(client.listen(Some(&event)).await) } else { None };
        // The question makes the ticket due.
        door.open(1);
        let newest = async || ticket(&client.call("task_list", json!({})).await)["tasks"][0].clone();
        until("what the client did", async || newest().await["status"] == status).await;
        if let Some(mut resumed) = resumed {
            assert_eq!(ticket(&resumed.last().await["result"])["status"], "input_required");
            client.call("task_cancel", json!({ "taskId": newest().await["taskId"] })).await;
        }
        client.end().await;
    }
}

#[tokio::test]
async fn a_task_that_failed_is_said_to_have_failed_and_why_with_its_code() {
    let door = Door::closed();
    let late = door.tool("late", |door, _: Ctx, _: NoArgs| async move {
        door.pass().await;
        Err::<String, _>(longhaul::Failure::tool("no"))
    });
    let panics = door.tool("panics", |door, _: Ctx, _: NoArgs| async move {
        door.pass().await;
        Ok(std::iter::empty::<&str>().next().expect("nothing, on purpose"))
    });
    let server = TestServer::start(server(&door, Duration::ZERO).tools([late, panics])).await;
    let client = open(&server, json!({})).await;
    for (tool, expected) in [("late", "no"), ("panics", "[HANDLER_PANIC]")] {
        let id = ticket(&client.call(tool, json!({})).await)["taskId"].clone();
        door.open(1);
        let status = async || client.call("task_status", json!({ "taskId": id, "waitSeconds": 30 })).await;
        until("its end", async || ticket(&status().await)["status"] == "failed").await;
        let said = status().await;
        assert!(text(&said).contains("has failed") && text(&said).contains("task_result"), "{said}");
        let result = client.call("task_result", json!({ "taskId": id })).await;
        assert!(text(&result).ends_with(expected), "{result}");
    }
}

#[tokio::test]
async fn a_result_keeps_its_images_and_its_structure_behind_a_ticket() {
    let door = Door::closed();
    let picture = door.tool("picture", |door, _: Ctx, _: NoArgs| async move {
        door.pass().await;
        Ok(longhaul::ToolResult::text("seen").with(longhaul::Content::image(b"\x89PNG", "image/png")))
    });
    let shaped = door.tool("shaped", |door, _: Ctx, _: NoArgs| async move {
        door.pass().await;
        Ok(Structured(NoArgs {}))
    });
    let server = TestServer::start(server(&door, Duration::ZERO).tools([picture, shaped])).await;
    let client = open(&server, json!({})).await;
    for (tool, part, expected) in [
        ("picture", "/content/1", json!({ "type": "image", "data": "iVBORw==", "mimeType": "image/png" })),
        ("shaped", "/structuredContent", json!({})),
    ] {
        let id = ticket(&client.call(tool, json!({})).await)["taskId"].clone();
        door.open(1);
        until("its end", async || {
            ticket(&client.call("task_status", json!({ "taskId": id })).await)["status"] == "completed"
        })
        .await;
        let result = client.call("task_result", json!({ "taskId": id })).await;
        assert_eq!(result.pointer(part), Some(&expected), "{result}");
        assert_eq!(ticket(&result)["taskId"], id);
    }
}

#[tokio::test]
async fn arguments_past_the_limit_are_refused_as_for_any_call() {
    let door = Door::closed();
    let server = start(&door, LONG).await;
    let client = open(&server, json!({})).await;
    let huge = json!({ "name": "echo", "arguments": { "text": "x".repeat((1 << 20) + 1) } });
    assert_eq!(client.error("tools/call", huge).await["data"]["code"], "INPUT_TOO_LARGE");
    let listed = client.call("task_list", json!({})).await;
    assert_eq!(ticket(&listed)["tasks"], json!([]));
}

#[tokio::test]
async fn names_that_are_equal_are_told_apart() {
    let door = Door::closed();
    let names = longhaul::TicketNames { status: "job".into(), result: "job".into(), ..Default::default() };
    let server = TestServer::start(server(&door, Duration::ZERO).ticket_names(names)).await;
    let client = open(&server, json!({})).await;
    let given = client.call("wait", json!({})).await;
    assert!(text(&given).contains("`job`") && text(&given).contains("`longhaul_job`"), "{given}");
    let id = ticket(&given)["taskId"].clone();
    door.open(1);
    until("its end", async || ticket(&client.call("job", json!({ "taskId": id })).await)["status"] == "completed")
        .await;
    assert_eq!(text(&client.call("longhaul_job", json!({ "taskId": id })).await), "waited");
}
