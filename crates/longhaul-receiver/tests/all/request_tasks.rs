//! Prompts and reads of resources as tasks, in the generations that make tasks of any request.

use std::sync::Arc;

use longhaul::{
    Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, OnCrash, Prompt, Resource, ResourceTemplate, Server,
    ServerLimits,
};
use longhaul_server::local;
use longhaul_store::SystemClock;
use longhaul_store_sqlite::SqliteOptions;
use longhaul_testkit::tools::{Door, accepted_name, forms};
use longhaul_testkit::{LATEST, PipeClient, ReplyMessages, SessionClient, TestServer, until};
use serde::Deserialize;
use serde_json::{Value, json};

const TASK: &str = "modelcontextprotocol.io/task";
const RELATED: &str = "modelcontextprotocol.io/related-task";

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Year {
    year: u16,
}

async fn poem(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    match ctx.ask("name", Form::<Name>::new("Who are you?")).await? {
        FormAnswer::Accepted(Name { name }) => Ok(format!("Write a poem for {name}.")),
        FormAnswer::Declined | FormAnswer::Dismissed => Err(Failure::protocol(-7, "without a name no poem")),
    }
}

/// Prompts and resources that wait at the door or ask, and some that are no tasks.
fn server(door: &Door) -> Server {
    let (at_prompt, at_read) = (door.clone(), door.clone());
    let digest = Prompt::new("digest", move |_: Ctx, Name { name }| {
        let door = at_prompt.clone();
        async move {
            door.pass().await;
            Ok(format!("Sum up {name}."))
        }
    });
    let report = ResourceTemplate::new("report://{year}", move |_: Ctx, Year { year }| {
        let door = at_read.clone();
        async move {
            door.pass().await;
            Ok((year > 2000).then(|| format!("The year {year}.")))
        }
    });
    Server::new("test")
        .prompts([
            digest.durable(OnCrash::Fail),
            Prompt::new("poem", poem).durable(OnCrash::Resume),
            Prompt::new("sonnet", poem).durable(OnCrash::Fail),
            Prompt::new("plain", |_: Ctx, _: NoArgs| async { Ok("Hello.") }),
        ])
        .resource(Resource::text("report://fixed", "It never changes."))
        .resource_template(report.durable(OnCrash::Fail))
}

async fn start() -> (TestServer, Door) {
    let door = Door::closed();
    (TestServer::start(server(&door)).await, door)
}

async fn open(server: &TestServer, revision: &str) -> SessionClient {
    SessionClient::new(server).with_token("ada").initialize(revision, forms()).await
}

fn get(prompt: &str, task: &Value) -> Value {
    json!({ "name": prompt, "arguments": { "name": "it" }, "_meta": task })
}

fn read(uri: &str, task: &Value) -> Value {
    json!({ "uri": uri, "_meta": task })
}

fn chosen(id: &str) -> Value {
    json!({ TASK: { "taskId": id } })
}

fn about(id: &str) -> Value {
    json!({ "taskId": id, "_meta": { RELATED: { "taskId": id } } })
}

async fn create(client: &SessionClient, method: &str, params: Value, id: &str) -> ReplyMessages {
    let mut request = client.send(method, params).await;
    let created = request.next_of("notifications/tasks/created").await;
    assert_eq!(created["params"], json!({ "_meta": { RELATED: { "taskId": id } } }));
    request
}

fn messages(text: &str) -> Value {
    json!([{ "role": "user", "content": { "type": "text", "text": text } }])
}

#[tokio::test]
async fn a_prompt_and_a_read_are_announced_and_still_answered_with_their_own_results() {
    let (server, door) = start().await;
    let contents = json!([{ "uri": "report://2025", "text": "The year 2025." }]);
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let client = open(&server, revision).await;
        for (method, params, id, member, expected) in [
            ("prompts/get", get("digest", &chosen(revision)), revision, "messages", messages("Sum up it.")),
            ("resources/read", read("report://2025", &chosen("read")), "read", "contents", contents.clone()),
        ] {
            let mut request = create(&client, method, params.clone(), id).await;
            assert_eq!(client.result("tasks/get", about(id)).await["status"], "working");
            assert_eq!(client.error("tasks/result", about(id)).await["code"], -32_602, "not before it has completed");
            let again = client.error(method, params).await;
            assert_eq!(again["message"], format!("Task ID already exists: {id}"));
            door.open(1);
            let answer = request.last().await["result"].take();
            assert_eq!(answer, json!({ member: expected, "_meta": { RELATED: { "taskId": id } } }));
            assert_eq!(client.result("tasks/result", about(id)).await, answer);
            client.result("tasks/delete", about(id)).await;
        }
    }
}

#[tokio::test]
async fn every_generation_shows_the_result_in_the_form_of_its_request() {
    let (server, door) = start().await;
    let client = open(&server, LATEST).await;
    create(&client, "prompts/get", get("digest", &chosen("p")), "p").await;
    create(&client, "resources/read", read("report://2025", &chosen("r")), "r").await;
    door.open(2);
    let contents = json!([{ "uri": "report://2025", "text": "The year 2025." }]);
    let mut stateless = server.client().await.with_token("ada");
    for (id, member, expected) in [("p", "messages", messages("Sum up it.")), ("r", "contents", contents)] {
        let shown = stateless.settled(id).await.value;
        let mut inlined = json!({ "resultType": "complete", member: expected });
        if id == "r" {
            // The schema requires both of a read, and the task may have ended long ago.
            (inlined["ttlMs"], inlined["cacheScope"]) = (json!(0), json!("private"));
        }
        assert_eq!(shown["result"], inlined);
        let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": id } });
        let result = client.result("tasks/result", json!({ "taskId": id })).await;
        assert_eq!(result, json!({ member: expected, "_meta": related }));
    }
}

#[tokio::test]
async fn what_does_not_run_as_a_task_ignores_the_request_for_one() {
    let (server, _door) = start().await;
    let client = open(&server, LATEST).await;
    for task in [chosen("mine"), json!({ "task": { "required": true } })] {
        let prompt = client.result("prompts/get", get("plain", &task)).await;
        assert_eq!(prompt, json!({ "messages": messages("Hello.") }));
        let contents = client.result("resources/read", read("report://fixed", &task)).await;
        assert_eq!(contents["contents"][0]["text"], "It never changes.");
        assert_eq!(contents.get("_meta"), None, "{contents}");
    }
    assert_eq!(client.error("tasks/get", about("mine")).await["code"], -32_602);
}

/// Its tasks are made of tool calls only.
#[tokio::test]
async fn the_task_parameter_of_2025_11_25_makes_no_task_of_a_prompt() {
    let (server, door) = start().await;
    let client = open(&server, LATEST).await;
    door.open(2);
    for task in [json!({}), json!({ "ttl": 60_000 })] {
        let params = json!({ "name": "digest", "arguments": { "name": "it" }, "task": task });
        assert_eq!(client.result("prompts/get", params).await, json!({ "messages": messages("Sum up it.") }));
    }
    assert_eq!(client.result("tasks/list", json!({})).await["tasks"], json!([]));
}

#[tokio::test]
async fn the_lesson_makes_tasks_of_prompts_and_reads_too() {
    let (server, door) = start().await;
    let client = open(&server, LATEST).await;
    let asks = json!({ "task": { "required": true } });
    for (method, params) in [("prompts/get", get("digest", &asks)), ("resources/read", read("report://2025", &asks))] {
        let created = client.result(method, params).await;
        let task = &created["_meta"]["task"];
        assert_eq!((task["state"].as_str(), created.as_object().unwrap().len()), (Some("working"), 1), "{created}");
        let id = task["id"].as_str().unwrap();
        door.open(1);
        let result = client.result("tasks/result", json!({ "taskId": id })).await;
        assert!(result["messages"].is_array() || result["contents"].is_array(), "{result}");
        assert_eq!(client.result("tasks/status", json!({ "taskId": id })).await["state"], "completed");
    }
}

#[tokio::test]
async fn a_missing_resource_is_the_error_of_its_task_in_the_code_of_each_revision() {
    let (server, door) = start().await;
    let client = open(&server, LATEST).await;
    door.open(1);
    let params = read("report://1999", &chosen("mine"));
    let answer = create(&client, "resources/read", params, "mine").await.last().await;
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["message"]),
        (&json!(-32_002), &json!("Resource not found"))
    );
    let task = client.result("tasks/get", about("mine")).await;
    assert_eq!((&task["status"], &task["error"]), (&json!("failed"), &json!("Resource not found")));
    assert_eq!(client.error("tasks/result", json!({ "taskId": "mine" })).await["code"], -32_002);
    let task = server.client().await.with_token("ada").get("mine").await.unwrap().value;
    assert_eq!(
        task["error"],
        json!({ "code": -32_602, "message": "Resource not found", "data": { "uri": "report://1999" } })
    );
    // What matches no template is refused before there is a task.
    let refused = client.error("resources/read", read("report://1999/may", &chosen("other"))).await;
    assert_eq!(refused["code"], -32_002);
    assert_eq!(client.error("tasks/get", about("other")).await["code"], -32_602);
}

#[tokio::test]
async fn cancelling_the_request_cancels_the_task_of_a_read() {
    let (server, _door) = start().await;
    let client = open(&server, LATEST).await;
    let message = client.message("resources/read", read("report://2025", &chosen("mine")));
    let mut request = client.post(message.to_string()).await;
    request.next_of("notifications/tasks/created").await;
    client.notify("notifications/cancelled", json!({ "requestId": message["id"] })).await;
    assert_eq!(request.rest().await, Vec::<Value>::new());
    assert_eq!(client.result("tasks/get", about("mine")).await["status"], "cancelled");
}

#[tokio::test]
async fn a_prompt_that_asks_goes_on_after_a_restart_if_it_resumes() {
    let directory = tempfile::tempdir().unwrap();
    let door = Door::closed();
    let start = async || {
        let file = directory.path().join("tasks.db");
        let store = longhaul_store_sqlite::open(file, &SqliteOptions::default(), SystemClock).unwrap();
        TestServer::start_on(server(&door), Arc::new(store)).await
    };
    let first = start().await;
    let client = open(&first, LATEST).await;
    let mut request = create(&client, "prompts/get", get("poem", &chosen("mine")), "mine").await;
    let question = request.next_of("elicitation/create").await;
    assert_eq!(question["params"]["_meta"], json!({ RELATED: { "taskId": "mine" } }));
    let last = request.last_event.clone().unwrap();
    create(&client, "prompts/get", get("sonnet", &chosen("fails")), "fails").await.next_of("elicitation/create").await;
    first.stop().await;
    let second = start().await;
    let client = client.at(&second);
    let mut resumed = client.listen(Some(&last)).await;
    client.respond(&question, accepted_name("Ada")).await;
    let answer = resumed.last().await;
    assert_eq!(answer["result"]["messages"], messages("Write a poem for Ada."), "{answer}");
    // The other one says that a crash ends it.
    until("its end", async || client.result("tasks/get", about("fails")).await["status"] == "failed").await;
    let task = client.result("tasks/get", about("fails")).await;
    assert!(task["error"].as_str().unwrap().contains("server"), "{task}");
}

/// The same request as a relay sends it.
fn relayed(mut params: Value, key: &str) -> Value {
    params["_meta"]["longhaul/idempotency-key"] = json!(key);
    params["_meta"]["longhaul/relayed"] = json!(1);
    params
}

fn repeated(mut params: Value) -> Value {
    params["_meta"]["longhaul/repeated"] = json!(true);
    params
}

/// A relay repeats an open request when its server has ended. The client still waits for the one answer.
#[tokio::test]
async fn a_repeated_request_is_answered_by_the_task_that_the_first_one_created() {
    let (server, door) = start().await;
    let client = open(&server, LATEST).await;
    let mut jobs = server.client().await;
    for (method, params, id) in [
        ("prompts/get", relayed(get("digest", &chosen("p")), "1"), "p"),
        ("resources/read", relayed(read("report://2025", &chosen("r")), "2"), "r"),
    ] {
        let mut first = create(&client, method, params.clone(), id).await;
        let params = repeated(params);
        let second = tokio::spawn({
            let (client, params) = (client.clone(), params.clone());
            async move { client.result(method, params).await }
        });
        // The two requests, and the task that the session follows.
        jobs.until_metric("longhaul_session_jobs", 3.0).await;
        door.open(1);
        let answer = first.last().await["result"].take();
        assert_eq!(second.await.unwrap(), answer);
        // Its announcement may have been lost, too.
        let mut third = create(&client, method, params, id).await;
        assert_eq!(third.last().await["result"], answer, "also when it has ended");
        jobs.until_metric("longhaul_session_jobs", 0.0).await;
    }
}

#[tokio::test]
async fn another_request_under_a_used_id_never_gets_the_result_of_the_first() {
    let (server, door) = start().await;
    let client = open(&server, LATEST).await;
    let mut first = create(&client, "resources/read", relayed(read("report://2025", &chosen("r")), "1"), "r").await;
    door.open(1);
    first.last().await;
    for (method, other) in [
        ("resources/read", relayed(read("report://2024", &chosen("r")), "2")),
        ("resources/read", relayed(read("report://2024", &chosen("r")), "1")),
        ("resources/read", relayed(read("report://2025", &chosen("r")), "2")),
        ("resources/read", read("report://2025", &chosen("r"))),
        ("prompts/get", relayed(get("digest", &chosen("r")), "1")),
    ] {
        let refused = client.error(method, repeated(other.clone())).await;
        assert_eq!(refused["message"], "Task ID already exists: r", "{other}");
    }
}

#[tokio::test]
async fn cancelling_a_repeated_request_cancels_the_task_of_the_first_one() {
    let (server, _door) = start().await;
    let client = open(&server, LATEST).await;
    let params = relayed(read("report://2025", &chosen("mine")), "1");
    let _first = create(&client, "resources/read", params.clone(), "mine").await;
    let message = client.message("resources/read", repeated(params));
    let request = tokio::spawn({
        let (client, message) = (client.clone(), message.to_string());
        async move { client.post(message).await.rest().await }
    });
    // The two requests, and the task that the session follows.
    server.client().await.until_metric("longhaul_session_jobs", 3.0).await;
    client.notify("notifications/cancelled", json!({ "requestId": message["id"] })).await;
    let sent = request.await.unwrap();
    assert!(sent.iter().all(|message| message["method"] == "notifications/tasks/created"), "{sent:?}");
    until("the cancellation", async || client.result("tasks/get", about("mine")).await["status"] == "cancelled").await;
}

/// A server and a client of it on a pipe, whose messages are received in their order.
async fn on_a_pipe(revision: &str) -> (TestServer, PipeClient) {
    let server = TestServer::start(server(&Door::closed())).await;
    let pipe = PipeClient::connect(&server, local(), ServerLimits::default()).initialize(revision, forms()).await;
    (server, pipe)
}

fn cancelled(request: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": request } })
}

async fn status(pipe: &mut PipeClient, id: &str) -> Value {
    pipe.session_result("tasks/get", about(id)).await["status"].take()
}

/// In a batch, the cancellation is carried out before the work on the request begins.
#[tokio::test]
async fn a_repeated_request_that_is_cancelled_at_once_cancels_the_task() {
    let (_server, mut pipe) = on_a_pipe("2025-03-26").await;
    let params = relayed(read("report://2025", &chosen("mine")), "1");
    pipe.send_session_request("first", "resources/read", params.clone()).await;
    pipe.next_of("notifications/tasks/created").await;
    let request = json!({ "jsonrpc": "2.0", "id": "second", "method": "resources/read", "params": repeated(params) });
    pipe.send(&json!([request, cancelled("second")])).await;
    assert_eq!(status(&mut pipe, "mine").await, "cancelled");
}

#[tokio::test]
async fn a_repeated_request_that_is_refused_changes_nothing_for_the_open_one_with_its_id() {
    let (_server, mut pipe) = on_a_pipe(LATEST).await;
    let other = relayed(read("report://2026", &chosen("other")), "2");
    pipe.send_session_request("first", "resources/read", read("report://2025", &chosen("mine"))).await;
    pipe.next_of("notifications/tasks/created").await;
    pipe.send_session_request("second", "resources/read", other.clone()).await;
    pipe.next_of("notifications/tasks/created").await;
    pipe.send_session_request("first", "resources/read", repeated(other)).await;
    assert_eq!(pipe.response("first").await["error"]["code"], -32_600);
    pipe.send(&cancelled("first")).await;
    assert_eq!(status(&mut pipe, "mine").await, "cancelled");
    assert_eq!(status(&mut pipe, "other").await, "working");
}

#[tokio::test]
async fn a_used_idempotency_key_is_refused_for_another_task_id() {
    let (server, _door) = start().await;
    let client = open(&server, LATEST).await;
    create(&client, "resources/read", relayed(read("report://2025", &chosen("one")), "1"), "one").await;
    let other = relayed(read("report://2025", &chosen("two")), "1");
    let refused = client.error("resources/read", other).await;
    assert_eq!(refused["data"]["code"], "IDEMPOTENCY_KEY_USED", "{refused}");
}

/// Its client would take that refusal for the end of its request.
#[tokio::test]
async fn a_repeated_request_is_not_refused_for_its_used_id_while_the_store_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tasks.db");
    let store = longhaul_store_sqlite::open(&file, &SqliteOptions::default(), SystemClock).unwrap();
    let door = Door::closed();
    let server = TestServer::start_on(server(&door), Arc::new(store)).await;
    let client = open(&server, LATEST).await;
    let params = relayed(read("report://2025", &chosen("mine")), "1");
    create(&client, "resources/read", params.clone(), "mine").await;
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("ALTER TABLE idempotency RENAME TO hidden").unwrap();
    let refused = client.error("resources/read", repeated(params.clone())).await;
    assert_eq!(refused["code"], -32_603, "{refused}");
    other.execute_batch("ALTER TABLE hidden RENAME TO idempotency").unwrap();
    door.open(1);
    create(&client, "resources/read", repeated(params), "mine").await.last().await;
}

/// A model reads the content of a tool's result, and nothing else.
#[tokio::test]
async fn the_ticket_tools_show_messages_and_contents_to_a_model() {
    let (server, door) = start().await;
    let client = open(&server, LATEST).await;
    create(&client, "prompts/get", get("digest", &chosen("p")), "p").await;
    create(&client, "resources/read", read("report://2025", &chosen("r")), "r").await;
    door.open(2);
    let resource = json!({ "uri": "report://2025", "text": "The year 2025." });
    for (id, content) in [
        ("p", json!([{ "type": "text", "text": "Sum up it." }])),
        ("r", json!([{ "type": "resource", "resource": resource }])),
    ] {
        let wait = json!({ "name": "task_status", "arguments": { "taskId": id, "waitSeconds": 30 } });
        client.result("tools/call", wait).await;
        let params = json!({ "name": "task_result", "arguments": { "taskId": id } });
        let result = client.result("tools/call", params).await;
        assert_eq!(result["content"], content);
        assert_eq!(result["_meta"]["longhaul/task"]["taskId"], id);
        assert_eq!(result.as_object().unwrap().len(), 2, "{result}");
    }
}
