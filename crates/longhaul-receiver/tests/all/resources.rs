//! Resources, resource templates and their subscriptions, at every revision.

use std::time::Duration;

use longhaul::{
    Ctx, Failure, Form, FormAnswer, JsonSchema, Resource, ResourceContent, ResourceContents, ResourceTemplate, Server,
    ServerLimits, SessionLimits,
};
use longhaul_testkit::tools::{accepted_name, forms};
use longhaul_testkit::{LATEST, SessionClient, StatelessClient, TestServer};
use serde::Deserialize;
use serde_json::{Value, json};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Deserialize, JsonSchema)]
struct Month {
    year: u16,
    month: u8,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn month(_: Ctx, Month { year, month }: Month) -> Result<Option<String>, Failure> {
    Ok((1..=12).contains(&month).then(|| format!("{year}, month {month}")))
}

async fn ask(mut ctx: Ctx) -> Result<String, Failure> {
    match ctx.ask("name", Form::<Name>::new("Who are you?")).await? {
        FormAnswer::Accepted(Name { name }) => Ok(format!("The secrets of {name}")),
        FormAnswer::Declined | FormAnswer::Dismissed => Err(Failure::tool("nothing for nobody")),
    }
}

fn server() -> Server {
    Server::new("test")
        .resources([
            Resource::text("report://2025", "Sales have doubled.").title("2025"),
            Resource::blob("report://chart", [0, 255]).mime_type("image/png"),
            Resource::new("report://both", |_: Ctx| async {
                let chart = ResourceContent::blob([1]).uri("report://both/chart").mime_type("image/png");
                Ok(ResourceContents::new().with(ResourceContent::text("see below")).with(chart))
            })
            .mime_type("text/plain")
            .cache(Duration::from_secs(5)),
            Resource::new("report://secret", ask),
        ])
        .resource_template(
            ResourceTemplate::new("report://{year}/{month}", month)
                .mime_type("text/plain")
                .complete_from("year", ["2025", "2026", "1999"]),
        )
}

fn read(uri: &str) -> Value {
    json!({ "uri": uri })
}

async fn request(client: &mut StatelessClient, method: &str, params: Value) -> Value {
    let result = client.request(method, params).await.unwrap();
    serde_json::from_str(result.get()).unwrap()
}

#[tokio::test]
async fn a_session_lists_and_reads_resources() {
    let server = TestServer::start(server()).await;
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26"] {
        let client = SessionClient::new(&server).initialize(revision, forms()).await;
        let offered = &client.initialize_result["capabilities"];
        assert_eq!(offered["resources"], json!({ "listChanged": true, "subscribe": true }));
        let list = client.result("resources/list", json!({})).await;
        assert_eq!(list["resources"].as_array().unwrap().len(), 4, "{list}");
        assert_eq!(list["resources"][0]["size"], 19);
        let templates = client.result("resources/templates/list", json!({})).await;
        assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "report://{year}/{month}");
        let text = client.result("resources/read", read("report://2025")).await;
        let expected = json!({ "uri": "report://2025", "mimeType": "text/plain", "text": "Sales have doubled." });
        assert_eq!(text, json!({ "contents": [expected] }));
        let blob = client.result("resources/read", read("report://chart")).await;
        assert_eq!(blob["contents"][0]["blob"], "AP8=");
        let both = client.result("resources/read", read("report://both")).await;
        assert_eq!(both["contents"][1]["uri"], "report://both/chart");
        let by_template = client.result("resources/read", read("report://2026/7")).await;
        let expected = json!({ "uri": "report://2026/7", "mimeType": "text/plain", "text": "2026, month 7" });
        assert_eq!(by_template["contents"], json!([expected]));
        let reference = json!({ "type": "ref/resource", "uri": "report://{year}/{month}" });
        let asked = json!({ "ref": reference, "argument": { "name": "year", "value": "20" } });
        let completion = client.result("completion/complete", asked).await;
        assert_eq!(completion["completion"]["values"], json!(["2025", "2026"]));
    }
}

#[tokio::test]
async fn a_missing_resource_has_the_code_of_the_revision() {
    let server = TestServer::start(server()).await;
    let session = SessionClient::new(&server).initialize(LATEST, json!({})).await;
    let mut client = server.client().await;
    // An unknown URI, one that the function of the template refuses, and one with a variable of the wrong type.
    for uri in ["report://none", "report://2026/13", "report://2026/july"] {
        let error = session.error("resources/read", read(uri)).await;
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32002), &json!(uri)));
        let error = client.error("resources/read", read(uri)).await;
        assert_eq!((&error["code"], &error["data"]["uri"]), (&json!(-32602), &json!(uri)));
    }
    assert_eq!(session.error("resources/subscribe", read("report://none")).await["code"], -32002);
    assert_eq!(session.error("resources/list", json!({ "cursor": "x" })).await["code"], -32602);
}

#[tokio::test]
async fn a_stateless_read_says_how_long_it_may_be_cached() {
    let server = TestServer::start(server()).await;
    let mut client = server.client().await;
    for (uri, ttl_ms, scope) in
        [("report://2025", 60_000, "public"), ("report://both", 5_000, "private"), ("report://2026/7", 0, "private")]
    {
        let result = request(&mut client, "resources/read", read(uri)).await;
        assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(ttl_ms), &json!(scope)), "{uri}");
        assert_eq!(result["resultType"], "complete");
    }
    let asked = request(&mut client, "resources/read", read("report://secret")).await;
    assert_eq!((&asked["resultType"], asked.get("ttlMs")), (&json!("input_required"), None), "{asked}");
    let again = json!({ "uri": "report://secret", "requestState": asked["requestState"],
        "inputResponses": { "name": accepted_name("Ada") } });
    let result = request(&mut client, "resources/read", again).await;
    assert_eq!(result["contents"][0]["text"], "The secrets of Ada");
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(0), &json!("private")));
}

#[tokio::test]
async fn a_session_hears_of_the_resources_that_it_subscribed_to() {
    let server = server();
    let handle = server.handle();
    let server = TestServer::start(server).await;
    let client = SessionClient::new(&server).initialize(LATEST, json!({})).await;
    client.result("resources/subscribe", read("report://2025")).await;
    client.result("resources/subscribe", read("report://2026/7")).await;
    // The client does not listen yet. When it does, it gets one notification for both changes.
    handle.resource_updated("report://2026/7");
    handle.resource_updated("report://2026/7");
    let mut stream = client.listening().await;
    let updated = stream.next_of("notifications/resources/updated").await;
    assert_eq!(updated["params"], read("report://2026/7"));
    client.result("resources/unsubscribe", read("report://2026/7")).await;
    client.result("resources/unsubscribe", read("report://none")).await;
    for uri in ["report://2026/7", "report://chart", "report://2025"] {
        handle.resource_updated(uri);
    }
    assert_eq!(stream.must_next().await["params"], read("report://2025"));
}

#[tokio::test]
async fn a_subscription_stream_hears_of_its_resources() {
    let server = server();
    let handle = server.handle();
    let server = TestServer::start(server).await;
    let client = server.client().await;
    let uris = json!(["report://2025", "report://none", "report://2026/7"]);
    let filter = json!({ "notifications": { "resourceSubscriptions": uris, "promptsListChanged": true } });
    let mut stream = client.stream("subscriptions/listen", filter).await;
    let first = stream.must_next().await;
    let honoured = json!({ "resourceSubscriptions": ["report://2025", "report://2026/7"] });
    assert_eq!(first["params"]["notifications"], honoured, "the server has neither prompts nor the second resource");
    for uri in ["report://chart", "report://2026/7", "report://2025"] {
        handle.resource_updated(uri);
    }
    for uri in ["report://2026/7", "report://2025"] {
        let updated = stream.must_next().await;
        assert_eq!(updated["method"], "notifications/resources/updated");
        assert_eq!(updated["params"], json!({ "uri": uri, "_meta": { SUBSCRIPTION: 1 } }));
    }
}

#[tokio::test]
async fn a_session_subscribes_to_so_many_resources_at_most() {
    let limits = ServerLimits::default().session(SessionLimits::default().resource_subscriptions_max(2));
    let server = TestServer::start(server().limits(limits)).await;
    let client = SessionClient::new(&server).initialize(LATEST, json!({})).await;
    for uri in ["report://2025/1", "report://2025/2", "report://2025/1"] {
        client.result("resources/subscribe", read(uri)).await;
    }
    let error = client.error("resources/subscribe", read("report://2025/3")).await;
    assert_eq!(error["data"]["code"], "TOO_MANY_SUBSCRIPTIONS", "{error}");
    client.result("resources/unsubscribe", read("report://2025/1")).await;
    client.result("resources/subscribe", read("report://2025/3")).await;
}

#[tokio::test]
async fn a_file_is_read_at_each_request_and_a_missing_one_does_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let server = TestServer::start(Server::new("test").resource(Resource::file("notes://all", &path))).await;
    let client = SessionClient::new(&server).initialize(LATEST, json!({})).await;
    assert_eq!(client.error("resources/read", read("notes://all")).await["code"], -32002);
    std::fs::write(&path, "one").unwrap();
    let contents = client.result("resources/read", read("notes://all")).await["contents"].clone();
    assert_eq!(contents, json!([{ "uri": "notes://all", "text": "one" }]));
    std::fs::write(&path, [0xff]).unwrap();
    let contents = client.result("resources/read", read("notes://all")).await["contents"].clone();
    assert_eq!(contents, json!([{ "uri": "notes://all", "blob": "/w==" }]));
}
