use longhaul::{Ctx, JsonSchema, NoArgs, Sampling, Severity};
use longhaul_testkit::tools::{CHATTER_LINES, Door, forms, open, open_session, start};
use longhaul_testkit::{LATEST, SessionClient, TestServer, in_time};
use serde_json::{Value, json};

const RELATED: &str = "io.modelcontextprotocol/related-task";

fn call(tool: &str) -> Value {
    json!({ "name": tool, "arguments": {} })
}

fn as_task(tool: &str) -> Value {
    json!({ "name": tool, "arguments": {}, "task": {} })
}

fn said(line: &Value) -> (&Value, &Value) {
    assert_eq!(line["method"], "notifications/message", "{line}");
    (&line["params"]["level"], &line["params"]["data"])
}

#[tokio::test]
async fn the_lines_of_a_call_come_on_its_stream_before_its_answer() {
    let (server, door) = start().await;
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let client = SessionClient::new(&server).initialize(revision, forms()).await;
        assert_eq!(client.initialize_result["capabilities"]["logging"], json!({}));
        let mut stream = client.send("tools/call", call("talk")).await;
        let first = stream.must_next().await;
        assert_eq!(said(&first), (&json!("info"), &json!("first")), "what is only for fault-finding takes asking for");
        assert!(first["params"].get("logger").is_none() && first["params"].get("_meta").is_none(), "{first}");
        door.open(1);
        let second = stream.must_next().await;
        assert_eq!(said(&second), (&json!("error"), &json!({ "error": 7 })));
        assert_eq!(second["params"]["logger"], "database");
        assert_eq!(stream.last().await["result"]["content"][0]["text"], "talked");
    }
}

#[tokio::test]
async fn a_session_hears_from_its_own_log_level_on() {
    let (server, door, client) = open_session().await;
    let other = open(&server).await;
    let levels = async |client: &SessionClient| {
        door.open(1);
        let messages = client.send("tools/call", call("talk")).await.rest().await;
        let lines = messages.iter().filter(|message| message.get("method").is_some());
        lines.map(|line| said(line).0.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let heard = [
        ("debug", vec!["debug", "info", "error"]),
        ("info", vec!["info", "error"]),
        ("error", vec!["error"]),
        ("critical", vec![]),
    ];
    assert_eq!(client.error("logging/setLevel", json!({ "level": "loud" })).await["code"], -32602);
    for (level, expected) in heard {
        client.result("logging/setLevel", json!({ "level": level })).await;
        assert_eq!(levels(&client).await, expected, "{level}");
        assert_eq!(levels(&other).await, ["info", "error"], "its own level");
    }
}

#[tokio::test]
async fn the_lines_of_a_task_name_it_and_come_where_its_client_listens() {
    let (server, door, client) = open_session().await;
    let mut listening = client.listening().await;
    let made = client.result("tools/call", as_task("talk")).await;
    let id = &made["task"]["taskId"];
    let line = listening.next_of("notifications/message").await;
    assert_eq!(said(&line), (&json!("info"), &json!("first")), "from its first line on, in either order");
    assert_eq!(line["params"]["_meta"][RELATED], json!({ "taskId": id }));
    // A request for the result gets the lines on its own stream.
    let (mut waiting, ()) = tokio::join!(client.send("tasks/result", json!({ "taskId": id })), async {
        // The request for the result, and the followed task.
        server.client().await.until_metric("longhaul_session_jobs", 2.0).await;
        door.open(1);
    });
    let last = waiting.next_of("notifications/message").await;
    assert_eq!(said(&last), (&json!("error"), &json!({ "error": 7 })));
    assert_eq!(last["params"]["_meta"][RELATED], json!({ "taskId": id }));
    assert_eq!(waiting.last().await["result"]["content"][0]["text"], "talked");
}

#[tokio::test]
async fn a_late_stream_carries_the_log_lines_since_the_task_was_made() {
    let (_server, _door, client) = open_session().await;
    let made = client.result("tools/call", as_task("talk")).await;
    for _ in 0..20 {
        client.get(made["task"]["taskId"].as_str().unwrap()).await;
    }
    let mut listening = client.listen(None).await;
    assert_eq!(said(&listening.next_of("notifications/message").await), (&json!("info"), &json!("first")));
}

#[tokio::test]
async fn a_client_that_does_not_read_misses_lines_and_holds_up_no_tool() {
    let (_server, door, client) = open_session().await;
    let unheard = client.listen(None).await;
    let id = client.create("chatter", json!({})).await;
    in_time("the end of a task without listeners", door.pass()).await;
    client.until(&id, "completed").await;
    drop(unheard);
    let mut unread = client.send("tools/call", call("chatter")).await;
    in_time("the end of a call that is not read", door.pass()).await;
    let mut heard = 0;
    let answer = loop {
        match unread.must_next().await {
            line if line.get("method").is_some() => heard += 1,
            answer => break answer,
        }
    };
    assert!(heard < CHATTER_LINES, "all of it was kept");
    assert_eq!(answer["result"]["content"][0]["text"], "chattered");
}

#[derive(serde::Serialize, serde::Deserialize, JsonSchema)]
struct Begin {}

#[tokio::test]
async fn lines_said_before_the_client_read_the_creation_are_not_lost_by_a_poll() {
    let door = Door::closed();
    let talk = door.tool("ask_then_talk", |door, ctx: Ctx, _: Begin| async move {
        ctx.log(Severity::Info, "first");
        door.open(1);
        ctx.cancelled().await;
        Ok("stopped")
    });
    let ask = |mut ctx: Ctx, _: NoArgs| async move {
        ctx.ask("model", Sampling::new("Begin?")).await?;
        Ok(Begin {})
    };
    let server = TestServer::start(longhaul::Server::new("test").tool(talk.ask_first(ask))).await;
    let client = SessionClient::new(&server).with_token("ada").initialize(LATEST, json!({ "sampling": {} })).await;
    let mut listening = client.listening().await;
    let mut call = client.send("tools/call", as_task("ask_then_talk")).await;
    let question = call.next_of("sampling/createMessage").await;
    let yes = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "yes" } });
    client.respond(&question, yes).await;
    in_time("the first line", door.pass()).await;
    // The client finds the task before it has read the response that created it.
    let page = client.result("tasks/list", json!({})).await;
    let id = page["tasks"][0]["taskId"].as_str().unwrap().to_owned();
    client.get(&id).await;
    let made = call.last().await;
    assert_eq!(made["result"]["task"]["taskId"], json!(id));
    assert_eq!(said(&listening.next_of("notifications/message").await), (&json!("info"), &json!("first")));
}
