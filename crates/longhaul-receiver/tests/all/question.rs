use longhaul::SessionLimits;
use longhaul_testkit::SessionClient;
use longhaul_testkit::tools::{
    accepted_name, forms, open, open_session, open_session_with, open_session_within, open_session_without_tickets,
    start,
};
use serde_json::{Value, json};

const RELATED: &str = "io.modelcontextprotocol/related-task";

fn text(response: &Value) -> &str {
    response["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"))
}

#[tokio::test]
async fn an_ordinary_call_asks_on_its_own_stream_and_goes_on_with_the_answer() {
    let (_server, _, client) = open_session_with(json!({ "elicitation": {}, "sampling": {} })).await;
    for (answer, greeting) in [
        (accepted_name("Ada"), "Hello, Ada!"),
        (json!({ "action": "decline" }), "Hello, nobody!"),
        (json!({ "action": "cancel" }), "Hello, somebody!"),
    ] {
        let mut call = client.send("tools/call", json!({ "name": "greet", "arguments": {} })).await;
        let question = call.must_next().await;
        assert_eq!(question["method"], "elicitation/create");
        assert!(question["params"].get("_meta").is_none());
        client.respond(&question, answer).await;
        assert_eq!(text(&call.must_next().await), greeting);
        assert!(call.next().await.is_none());
    }
    let mut call = client.send("tools/call", json!({ "name": "ask_model", "arguments": {} })).await;
    let question = call.next_of("sampling/createMessage").await;
    let said = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "something" } });
    client.respond(&question, said).await;
    assert_eq!(text(&call.last().await), "something");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_asked_for_again_three_times_in_all() {
    let (_server, _, client) = open_session_without_tickets(forms()).await;
    let mut call = client.send("tools/call", json!({ "name": "greet", "arguments": {} })).await;
    let mut ids = Vec::new();
    for answer in
        [json!({ "action": "accept", "content": { "name": 5 } }), json!({ "action": "perhaps" }), accepted_name("Ada")]
    {
        let question = call.next_of("elicitation/create").await;
        assert!(!ids.contains(&question["id"]), "an ID is never used twice");
        ids.push(question["id"].clone());
        client.respond(&question, answer).await;
    }
    assert_eq!(text(&call.last().await), "Hello, Ada!");

    let mut call = client.send("tools/call", json!({ "name": "greet", "arguments": {} })).await;
    for _ in 0..3 {
        let question = call.next_of("elicitation/create").await;
        client.respond(&question, json!({ "action": "accept" })).await;
    }
    assert_eq!(call.last().await["error"]["data"]["code"], "BAD_ANSWER");
}

#[tokio::test]
async fn a_client_whose_answers_do_not_fit_gets_a_ticket_at_once() {
    let (_server, _, client) = open_session().await;
    let mut call = client.send("tools/call", json!({ "name": "greet", "arguments": {} })).await;
    for _ in 0..3 {
        let question = call.next_of("elicitation/create").await;
        client.respond(&question, json!({ "action": "accept" })).await;
    }
    let ticket = call.last().await["result"]["_meta"]["longhaul/task"].clone();
    assert_eq!(ticket["status"], "input_required");
    let key = ticket["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answer = json!({ "taskId": ticket["taskId"], "answers": { key: accepted_name("Ada") } });
    client.call("task_answer", answer).await;
    let waited = json!({ "taskId": ticket["taskId"], "waitSeconds": 60 });
    assert_eq!(client.call("task_status", waited).await["_meta"]["longhaul/task"]["status"], "completed");
}

#[tokio::test]
async fn a_client_that_refuses_to_answer_ends_the_call_with_its_reason() {
    let (_server, _, client) = open_session_without_tickets(json!({ "sampling": {} })).await;
    let mut call = client.send("tools/call", json!({ "name": "ask_model", "arguments": {} })).await;
    let question = call.next_of("sampling/createMessage").await;
    client.refuse(&question, -1, "User rejected sampling request").await;
    let error = call.last().await["error"].clone();
    assert_eq!(error["data"]["code"], "NOT_ANSWERED");
    assert!(error["message"].as_str().unwrap().contains("User rejected sampling request"));
    // This client did not declare that it takes forms, so a call that asks with one fails.
    let error = client.error("tools/call", json!({ "name": "greet", "arguments": {} })).await;
    assert_eq!(error["data"]["code"], "CANNOT_ASK");
    names_question_and_remedy(&error);
}

#[tokio::test]
async fn a_client_whose_revision_has_no_forms_learns_that_a_later_one_has() {
    let (server, ..) = open_session_without_tickets(forms()).await;
    let client = SessionClient::new(&server).initialize("2025-03-26", forms()).await;
    let error = client.error("tools/call", json!({ "name": "greet", "arguments": {} })).await;
    assert_eq!(error["data"]["code"], "CANNOT_ASK");
    assert!(error["message"].as_str().unwrap().contains("a client of a later revision than 2025-03-26"), "{error}");
}

fn names_question_and_remedy(error: &Value) {
    let message = error["message"].as_str().unwrap();
    for words in ["What is your name?", r#"{"elicitation":{"form":{}}}"#, "as a task"] {
        assert!(message.contains(words), "{words:?} is missing in {message:?}");
    }
}

#[tokio::test]
async fn a_stateless_client_that_cannot_be_asked_learns_the_question_and_what_to_do() {
    let (server, ..) = open_session_without_tickets(json!({})).await;
    let mut client = server.client().await;
    client.capabilities = json!({});
    let error = client.call_error("greet", json!({})).await;
    assert_eq!(error["code"], -32_021, "{error}");
    names_question_and_remedy(&error);
}

#[tokio::test]
async fn cancelling_a_call_takes_its_question_back() {
    let (_server, _, client) = open_session().await;
    let message = client.message("tools/call", json!({ "name": "greet", "arguments": {} }));
    let mut call = client.post(message.to_string()).await;
    let question = call.next_of("elicitation/create").await;
    client.notify("notifications/cancelled", json!({ "requestId": message["id"] })).await;
    let rest = call.rest().await;
    assert!(rest.iter().all(|told| told["method"] == "notifications/cancelled"), "{rest:?}");
    // The answer is too late and is ignored.
    client.respond(&question, accepted_name("Ada")).await;
}

#[tokio::test]
async fn questions_asked_first_come_before_there_is_a_task() {
    let (_server, _, client) = open_session().await;
    let mut call = client.send("tools/call", json!({ "name": "ask_first", "arguments": {}, "task": {} })).await;
    let question = call.next_of("elicitation/create").await;
    client.respond(&question, accepted_name("Ada")).await;
    let made = call.last().await;
    let id = made["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    assert_eq!(client.result_text(&id).await, "Hello, Ada, from a task!");
}

#[tokio::test]
async fn a_task_asks_on_the_stream_that_waits_for_its_result() {
    let (_server, _, client) = open_session().await;
    let id = client.create("greet", json!({})).await;
    client.until(&id, "input_required").await;
    let mut wait = client.send("tasks/result", json!({ "taskId": id })).await;
    let question = wait.next_of("elicitation/create").await;
    assert_eq!(question["params"]["_meta"][RELATED], json!({ "taskId": id }));
    let mut answer = accepted_name("Ada");
    answer["_meta"] = json!({ RELATED: { "taskId": id } });
    client.respond(&question, answer).await;
    assert_eq!(text(&wait.last().await), "Hello, Ada!");
}

#[tokio::test]
async fn without_a_waiting_stream_a_task_asks_where_the_client_listens() {
    let (_server, _, client) = open_session().await;
    let (_listening, id, question) = client.create_until_form("greet").await;
    assert_eq!(question["params"]["_meta"][RELATED]["taskId"], json!(id));
    // A `tasks/result` that is sent now does not get the question a second time.
    let waiting = tokio::spawn({
        let (client, id) = (client.clone(), id.clone());
        async move { client.send("tasks/result", json!({ "taskId": id })).await.rest().await }
    });
    assert_eq!(client.get(&id).await["status"], "input_required");
    client.respond(&question, accepted_name("Ada")).await;
    let messages = waiting.await.unwrap();
    assert!(messages.iter().all(|message| message["method"] != "elicitation/create"), "{messages:?}");
    assert_eq!(text(messages.last().unwrap()), "Hello, Ada!");
}

#[tokio::test]
async fn a_question_whose_stream_broke_is_asked_anew_and_either_answer_counts() {
    let (_server, _, client) = open_session().await;
    for answers_first in [true, false] {
        let (listening, id, first) = client.create_until_form("greet").await;
        drop(listening);
        let mut again = client.listen(None).await;
        let second = again.next_of("elicitation/create").await;
        assert_ne!(first["id"], second["id"]);
        assert_eq!(first["params"], second["params"]);
        client.respond(if answers_first { &first } else { &second }, accepted_name("Ada")).await;
        assert_eq!(client.result_text(&id).await, "Hello, Ada!");
    }
}

#[tokio::test]
async fn the_session_that_read_the_task_last_is_asked() {
    let (server, _) = start().await;
    let maker = open(&server).await;
    let id = maker.create("greet", json!({})).await;
    maker.until(&id, "input_required").await;
    let other = open(&server).await;
    let mut listening = other.listening().await;
    assert_eq!(other.get(&id).await["status"], "input_required");
    let question = listening.next_of("elicitation/create").await;
    other.respond(&question, accepted_name("Bob")).await;
    assert_eq!(maker.result_text(&id).await, "Hello, Bob!");
}

#[tokio::test]
async fn only_what_a_client_declared_is_asked_of_it() {
    let (_server, _, client) = open_session_with(json!({ "sampling": {} })).await;
    let mut listening = client.listening().await;
    let id = client.create("greet", json!({})).await;
    let shown = loop {
        let told = listening.must_next().await;
        assert_eq!(told["method"], "notifications/tasks/status", "{told}");
        if told["params"]["status"] == "input_required" {
            break told;
        }
    };
    assert_eq!(shown["params"]["taskId"], json!(id));
    client.result("tasks/cancel", json!({ "taskId": id })).await;
    let told = listening.must_next().await;
    assert_eq!(
        (&told["method"], &told["params"]["status"]),
        (&json!("notifications/tasks/status"), &json!("cancelled"))
    );
}

#[tokio::test]
async fn a_refusal_of_a_tasks_question_reaches_its_handler() {
    let (_server, _, client) = open_session_with(json!({ "sampling": {} })).await;
    let mut listening = client.listening().await;
    let id = client.create("ask_model", json!({})).await;
    let question = listening.next_of("sampling/createMessage").await;
    client.refuse(&question, -1, "not today").await;
    let failed = client.until(&id, "failed").await;
    assert!(failed["statusMessage"].as_str().unwrap().contains("not today"), "{failed}");
}

#[tokio::test]
async fn past_the_question_limit_a_call_gets_a_ticket() {
    let (_server, _, client) = open_session_within(SessionLimits::default().questions_max(1)).await;
    let greet = json!({ "name": "greet", "arguments": {} });
    let mut first = client.send("tools/call", greet.clone()).await;
    let question = first.next_of("elicitation/create").await;
    // The second call cannot ask its question, so it ends with a ticket at once. The ticket shows the question.
    let ticket = client.result("tools/call", greet).await["_meta"]["longhaul/task"].clone();
    assert_eq!(ticket["status"], "input_required");
    client.respond(&question, accepted_name("Ada")).await;
    assert_eq!(text(&first.last().await), "Hello, Ada!");
}
