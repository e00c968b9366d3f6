//! Prompts and completions, at every revision.

use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema, NoArgs, Prompt, Server, ToolLimits};
use longhaul_testkit::tools::{Door, accepted_name, forms};
use longhaul_testkit::{LATEST, SessionClient, TestServer, in_time};
use serde::Deserialize;
use serde_json::{Value, json};

const SESSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The code to review.
    code: String,
    /// At most so many remarks.
    remarks: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

fn review() -> Prompt {
    Prompt::new("code_review", |_: Ctx, Review { code, remarks }| async move {
        Ok(format!("Review `{code}` with {} remarks.", remarks.unwrap_or(3)))
    })
    .title("Review")
    .complete("code", |request| async move {
        let count = request.arguments.get("remarks").and_then(|count| count.parse().ok()).unwrap_or(2);
        Ok((0..count).map(|n: u32| format!("{}{n}", request.value)).collect())
    })
}

async fn ask(mut ctx: Ctx, _: NoArgs) -> Result<String, Failure> {
    match ctx.ask("name", Form::<Name>::new("Who are you?")).await? {
        FormAnswer::Accepted(Name { name }) => Ok(format!("Write a poem for {name}.")),
        FormAnswer::Declined | FormAnswer::Dismissed => Err(Failure::protocol(-7, "without a name no poem")),
    }
}

fn server() -> Server {
    let broken = Prompt::new("broken", |_: Ctx, _: NoArgs| async { Err::<String, _>(Failure::tool("no paper")) });
    let prompts = [review(), Prompt::new("poem", ask), broken];
    Server::new("test").prompts(prompts)
}

fn text(prompt: &Value) -> &str {
    assert_eq!(prompt["messages"][0]["role"], "user", "{prompt}");
    prompt["messages"][0]["content"]["text"].as_str().unwrap_or_default()
}

fn get(name: &str, arguments: &Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

#[tokio::test]
async fn a_session_lists_gets_and_completes_prompts() {
    let server = TestServer::start(server()).await;
    for revision in SESSIONS {
        let client = SessionClient::new(&server).initialize(revision, forms()).await;
        assert_eq!(client.initialize_result["capabilities"]["prompts"], json!({ "listChanged": true }));
        assert_eq!(client.initialize_result["capabilities"]["completions"], json!({}));
        assert!(client.initialize_result["capabilities"].get("resources").is_none());
        let list = client.result("prompts/list", json!({})).await;
        let names: Vec<_> = list["prompts"].as_array().unwrap().iter().map(|prompt| &prompt["name"]).collect();
        assert_eq!(names, ["code_review", "poem", "broken"]);
        assert_eq!(
            list["prompts"][0]["arguments"],
            json!([
                { "name": "code", "description": "The code to review.", "required": true },
                { "name": "remarks", "description": "At most so many remarks.", "required": false },
            ])
        );
        assert!(list.get("ttlMs").is_none());
        let prompt = client.result("prompts/get", get("code_review", &json!({ "code": "x", "remarks": "5" }))).await;
        assert_eq!(text(&prompt), "Review `x` with 5 remarks.");
        let reference = json!({ "type": "ref/prompt", "name": "code_review" });
        let asked = json!({ "ref": reference, "argument": { "name": "code", "value": "a" } });
        let completion = client.result("completion/complete", asked.clone()).await;
        let expected = json!({ "values": ["a0", "a1"], "total": 2, "hasMore": false });
        assert_eq!(completion, json!({ "completion": expected }));
        let mut with_context = asked;
        with_context["context"] = json!({ "arguments": { "remarks": "101" } });
        let completion = client.result("completion/complete", with_context).await["completion"].clone();
        assert_eq!(completion["values"].as_array().unwrap().len(), 100);
        assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(101), &json!(true)));
    }
}

#[tokio::test]
async fn a_stateless_client_gets_the_same_with_caching_hints() {
    let server = TestServer::start(server()).await;
    let mut client = server.client().await;
    let mut request = async |method: &str, params| -> Value {
        let result = client.request(method, params).await.unwrap();
        serde_json::from_str(result.get()).unwrap()
    };
    let found = request("server/discover", json!({})).await;
    assert_eq!(found["capabilities"]["prompts"], json!({ "listChanged": true }));
    let list = request("prompts/list", json!({})).await;
    assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(60_000), &json!("public")));
    let prompt = request("prompts/get", get("code_review", &json!({ "code": "x" }))).await;
    assert_eq!((text(&prompt), &prompt["resultType"]), ("Review `x` with 3 remarks.", &json!("complete")));
    let reference = json!({ "type": "ref/prompt", "name": "code_review" });
    let asked = json!({ "ref": reference, "argument": { "name": "remarks", "value": "1" } });
    let completion = request("completion/complete", asked).await;
    assert_eq!(completion["completion"]["values"], json!([]), "nothing completes this argument");
}

#[tokio::test]
async fn a_prompt_asks_its_client_in_both_eras() {
    let server = TestServer::start(server()).await;
    let client = SessionClient::new(&server).initialize(LATEST, forms()).await;
    let mut stream = client.send("prompts/get", get("poem", &json!({}))).await;
    let question = stream.next_of("elicitation/create").await;
    client.respond(&question, accepted_name("Ada")).await;
    assert_eq!(text(&stream.last().await["result"]), "Write a poem for Ada.");

    let mut client = server.client().await;
    let result = client.request("prompts/get", get("poem", &json!({}))).await.unwrap();
    let result: Value = serde_json::from_str(result.get()).unwrap();
    assert_eq!(result["resultType"], "input_required", "{result}");
    let again = json!({ "name": "poem", "arguments": {}, "requestState": result["requestState"],
        "inputResponses": { "name": accepted_name("Ada") } });
    let result = client.request("prompts/get", again.clone()).await.unwrap();
    assert_eq!(text(&serde_json::from_str(result.get()).unwrap()), "Write a poem for Ada.");
    let mut other = again;
    other["name"] = json!("broken");
    assert_eq!(client.error("prompts/get", other).await["code"], -32602, "the state belongs to one prompt");
}

#[tokio::test]
async fn every_wrong_request_gets_its_error() {
    let server = TestServer::start(server()).await;
    let session = SessionClient::new(&server).initialize(LATEST, json!({})).await;
    let mut client = server.client().await;
    let complete = |name: &str, argument: &str| json!({ "ref": { "type": "ref/prompt", "name": name }, "argument": { "name": argument, "value": "" } });
    let table = [
        ("prompts/get", get("unknown", &json!({})), -32602),
        ("prompts/get", get("code_review", &json!({})), -32602),
        ("prompts/get", get("code_review", &json!({ "code": 5 })), -32602),
        ("prompts/get", get("code_review", &json!({ "code": "x", "remarks": "many" })), -32602),
        ("prompts/get", get("broken", &json!({})), -32603),
        ("prompts/list", json!({ "cursor": "unknown" }), -32602),
        ("completion/complete", complete("unknown", "code"), -32602),
        ("completion/complete", complete("code_review", "unknown"), -32602),
        ("resources/list", json!({}), -32601),
        ("resources/templates/list", json!({}), -32601),
        ("resources/read", json!({ "uri": "a:b" }), -32601),
    ];
    for (method, params, code) in table {
        assert_eq!(session.error(method, params.clone()).await["code"], code, "{method} {params}");
        assert_eq!(client.error(method, params.clone()).await["code"], code, "{method} {params}");
    }
    assert_eq!(session.error("resources/subscribe", json!({ "uri": "a:b" })).await["code"], -32601);
}

#[tokio::test]
async fn prompts_run_under_the_limits_of_calls() {
    let door = Door::closed();
    let slow = {
        let door = door.clone();
        Prompt::new("slow", move |_: Ctx, _: NoArgs| {
            let door = door.clone();
            async move {
                door.pass().await;
                Ok("done")
            }
        })
    };
    let server = Server::new("test").prompt(slow.limits(ToolLimits::default().calls_max(1)));
    let server = TestServer::start(server).await;
    let client = SessionClient::new(&server).initialize(LATEST, json!({})).await;
    let mut first = client.send("prompts/get", get("slow", &json!({}))).await;
    let error = in_time("a refusal", async {
        loop {
            let response = client.response("prompts/get", get("slow", &json!({}))).await;
            if response.get("error").is_some() {
                break response["error"].clone();
            }
        }
    });
    let error = error.await;
    assert_eq!(error["data"]["code"], "TOO_MANY_CALLS", "{error}");
    door.open(1);
    assert_eq!(text(&first.last().await["result"]), "done");
}
