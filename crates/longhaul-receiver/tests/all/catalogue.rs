//! What a server offers changes while it runs, and clients hear of it.

use longhaul::{Ctx, NoArgs, Prompt, Resource, Server, ServerLimits, TaskSupport, Tool};
use longhaul_testkit::tools::Door;
use longhaul_testkit::{LATEST, PipeClient, SessionClient, TestServer, until};
use serde_json::{Value, json};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn saying(name: &str, text: &'static str) -> Tool {
    Tool::new(name, move |_: Ctx, _: NoArgs| async move { Ok(text) }).task_support(TaskSupport::Forbidden)
}

fn prompt(name: &str) -> Prompt {
    Prompt::new(name, |_: Ctx, _: NoArgs| async { Ok("Hello!") })
}

async fn names(client: &SessionClient, method: &str, list: &str, name: &str) -> Vec<Value> {
    let page = client.result(method, json!({})).await;
    page[list].as_array().unwrap().iter().map(|entry| entry[name].clone()).collect()
}

#[tokio::test]
async fn tools_prompts_and_resources_come_and_go() {
    let server = Server::new("test").tool(saying("first", "1")).prompts([]).resources([]);
    let handle = server.handle();
    let server = TestServer::start(server).await;
    let client = SessionClient::new(&server).initialize(LATEST, json!({})).await;
    assert_eq!(client.initialize_result["capabilities"]["tools"], json!({ "listChanged": true }));
    assert_eq!(names(&client, "prompts/list", "prompts", "name").await, [] as [Value; 0]);
    let mut stream = client.listening().await;

    handle.put_tool(saying("second", "2")).await.unwrap();
    assert_eq!(stream.must_next().await["method"], "notifications/tools/list_changed");
    assert_eq!(names(&client, "tools/list", "tools", "name").await, ["first", "second"]);
    assert_eq!(client.call("second", json!({})).await["content"][0]["text"], "2");
    handle.put_tool(saying("first", "one")).await.unwrap();
    assert_eq!(client.call("first", json!({})).await["content"][0]["text"], "one", "it is replaced");
    assert!(handle.remove_tool("second").await.unwrap());
    assert!(!handle.remove_tool("second").await.unwrap());
    assert_eq!(names(&client, "tools/list", "tools", "name").await, ["first"]);
    let gone = client.error("tools/call", json!({ "name": "second", "arguments": {} })).await;
    assert_eq!(gone["code"], -32602, "{gone}");

    handle.put_prompt(prompt("hello")).await.unwrap();
    stream.next_of("notifications/prompts/list_changed").await;
    assert_eq!(names(&client, "prompts/list", "prompts", "name").await, ["hello"]);
    client.result("prompts/get", json!({ "name": "hello" })).await;
    assert!(handle.remove_prompt("hello").await.unwrap());
    assert_eq!(client.error("prompts/get", json!({ "name": "hello" })).await["code"], -32602);

    handle.put_resource(Resource::text("a:b", "text")).await.unwrap();
    stream.next_of("notifications/resources/list_changed").await;
    assert_eq!(names(&client, "resources/list", "resources", "uri").await, ["a:b"]);
    client.result("resources/read", json!({ "uri": "a:b" })).await;
    assert!(handle.remove_resource("a:b").await.unwrap());
    assert_eq!(client.error("resources/read", json!({ "uri": "a:b" })).await["code"], -32002);
}

#[tokio::test]
async fn a_client_that_did_not_listen_is_told_once_when_it_does() {
    let server = Server::new("test");
    let handle = server.handle();
    let server = TestServer::start(server).await;
    let client = SessionClient::new(&server).initialize(LATEST, json!({})).await;
    for name in ["a", "b", "c"] {
        handle.put_tool(saying(name, "x")).await.unwrap();
    }
    let mut stream = client.listening().await;
    assert_eq!(stream.must_next().await["method"], "notifications/tools/list_changed");
    handle.put_prompt(prompt("p")).await.unwrap();
    assert_eq!(stream.must_next().await["method"], "notifications/prompts/list_changed");
}

#[tokio::test]
async fn a_client_at_a_pipe_is_told() {
    let server = Server::new("test");
    let handle = server.handle();
    let server = TestServer::start(server).await;
    let pipe = PipeClient::connect(&server, longhaul_server::local(), ServerLimits::default());
    let mut pipe = pipe.initialize(LATEST, json!({})).await;
    handle.put_tool(saying("a", "x")).await.unwrap();
    pipe.next_of("notifications/tools/list_changed").await;
}

#[tokio::test]
async fn a_subscription_stream_hears_of_the_lists_that_it_asked_for() {
    let server = Server::new("test").prompts([]);
    let handle = server.handle();
    let server = TestServer::start(server).await;
    let client = server.client().await;
    let filter = json!({ "toolsListChanged": true, "resourcesListChanged": true });
    let mut tools = client.stream("subscriptions/listen", json!({ "notifications": filter })).await;
    let filter = json!({ "promptsListChanged": true });
    let mut prompts = client.stream("subscriptions/listen", json!({ "notifications": filter })).await;
    assert_eq!(tools.must_next().await["params"]["notifications"], json!({ "toolsListChanged": true }));
    assert_eq!(prompts.must_next().await["params"]["notifications"], filter);
    handle.put_tool(saying("a", "x")).await.unwrap();
    handle.put_prompt(prompt("p")).await.unwrap();
    let told = |method: &str| json!({ "jsonrpc": "2.0", "method": method, "params": { "_meta": { SUBSCRIPTION: 1 } } });
    assert_eq!(tools.must_next().await, told("notifications/tools/list_changed"));
    assert_eq!(prompts.must_next().await, told("notifications/prompts/list_changed"));
    handle.remove_tool("a").await.unwrap();
    assert_eq!(tools.must_next().await, told("notifications/tools/list_changed"), "prompts are not its business");
}

#[tokio::test]
async fn every_list_has_pages_that_stay_true_while_it_changes() {
    let server = Server::new("test")
        .tools(["a", "b", "c", "d", "e"].map(|name| saying(name, "x")))
        .prompts(["a", "b", "c"].map(prompt))
        .resources(["r:a", "r:b", "r:c"].map(|uri| Resource::text(uri, "x")))
        .list_page_max(2);
    let handle = server.handle();
    let server = TestServer::start(server).await;
    let client = SessionClient::new(&server).initialize(LATEST, json!({})).await;
    let page = async |method: &str, list: &str, name: &str, cursor: &Value| {
        let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
        let page = client.result(method, params).await;
        let names: Vec<_> = page[list].as_array().unwrap().iter().map(|entry| entry[name].clone()).collect();
        (names, page["nextCursor"].clone())
    };
    let (first, cursor) = page("tools/list", "tools", "name", &Value::Null).await;
    assert_eq!(first, ["a", "b"]);
    handle.remove_tool("b").await.unwrap();
    handle.put_tool(saying("f", "x")).await.unwrap();
    let (second, cursor) = page("tools/list", "tools", "name", &cursor).await;
    assert_eq!(second, ["c", "d"]);
    let (third, cursor) = page("tools/list", "tools", "name", &cursor).await;
    assert_eq!((third, cursor), (vec![json!("e"), json!("f")], Value::Null));
    for (method, list, name, last) in
        [("prompts/list", "prompts", "name", "c"), ("resources/list", "resources", "uri", "r:c")]
    {
        let (_, cursor) = page(method, list, name, &Value::Null).await;
        assert_eq!(page(method, list, name, &cursor).await, (vec![json!(last)], Value::Null));
        assert_eq!(client.error("tools/list", json!({ "cursor": cursor })).await["code"], -32602, "of another list");
    }
}

#[tokio::test]
async fn a_task_of_a_removed_tool_runs_to_its_end() {
    let door = Door::closed();
    let slow = |text: &'static str| {
        let door = door.clone();
        Tool::new("slow", move |_: Ctx, _: NoArgs| {
            let door = door.clone();
            async move {
                door.pass().await;
                Ok(text)
            }
        })
    };
    let server = Server::new("test").tool(slow("old"));
    let handle = server.handle();
    let server = TestServer::start(server).await;
    let client = SessionClient::new(&server).initialize(LATEST, json!({})).await;
    let id = client.create("slow", json!({})).await;
    let busy = handle.put_tool(slow("other").version("2")).await.unwrap_err();
    assert_eq!(busy.code(), "TOOL_BUSY", "{busy}");
    assert!(handle.remove_tool("slow").await.unwrap());
    let refused = client.error("tools/call", json!({ "name": "slow", "arguments": {}, "task": {} })).await;
    assert_eq!(refused["code"], -32602);
    door.open(1);
    assert_eq!(client.result_text(&id).await, "old");
    // The result can be read a moment before the worker is free again.
    until("the new version", async || handle.put_tool(slow("new").version("2")).await.is_ok()).await;
    door.open(1);
    let id = client.create("slow", json!({})).await;
    assert_eq!(client.result_text(&id).await, "new");
}

#[tokio::test]
async fn a_handle_works_from_the_start_of_its_server_on() {
    let server = Server::new("test");
    let handle = server.handle();
    let error = handle.put_tool(saying("a", "x")).await.unwrap_err();
    assert_eq!(error.code(), "NOT_RUNNING", "{error}");
    handle.resource_updated("a:b");
    let _server = TestServer::start(server).await;
    handle.put_tool(saying("a", "x")).await.unwrap();
}
