use longhaul_testkit::raw::RawRequest;
use longhaul_testkit::tools::accepted_name;
use serde_json::{Value, json};

use super::probe::{Prober, unknown};
use crate::matrix::kit::SteeredServer;

fn in_each_method(prober: &Prober) -> Vec<RawRequest> {
    let empty = |method| prober.in_session(RawRequest::post("").method(method));
    vec![prober.stateful("ping", json!({})), empty("GET"), empty("DELETE")]
}

#[tokio::test]
async fn a_foreign_session_is_byte_for_byte_an_unknown_one() {
    let (stage, elsewhere) = (SteeredServer::set().await, SteeredServer::set().await);
    let (_, ada) = Prober::of(&stage, "ada").await;
    let (_, ended) = Prober::of(&stage, "bob").await;
    ended.end().await;
    let (_, of_another_server) = Prober::of(&elsewhere, "bob").await;
    let (mut bob, _) = Prober::of(&stage, "bob").await;
    let adas = ada.session.clone().unwrap();
    let mut answers = Vec::new();
    for session in
        [&unknown(&adas), &adas, ended.session.as_ref().unwrap(), of_another_server.session.as_ref().unwrap()]
    {
        assert_eq!(session.len(), adas.len());
        bob.session.clone_from(session);
        let mut of_session = Vec::new();
        for request in in_each_method(&bob) {
            of_session.push(bob.send(&request, session).await);
        }
        answers.push(of_session);
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    assert!(answers[0].iter().all(|answer| answer.starts_with("404 ")), "{answers:#?}");
    assert_eq!(ada.result("ping", json!({})).await, json!({}), "and hers goes on");
}

#[tokio::test]
async fn the_events_of_another_session_cannot_be_resumed() {
    let stage = SteeredServer::set().await;
    let (_, ada) = Prober::of(&stage, "ada").await;
    let mut hers = ada.listen(None).await;
    let first_event_id = hers.first_event_id().await;
    let id = ada.create("work", json!({ "end": "answer" })).await;
    let call = ada.message("tools/call", json!({ "name": "confirm", "arguments": {} }));
    let mut asks = ada.post(call.to_string()).await;
    let before_the_question = asks.first_event_id().await;
    let question = asks.next_of("elicitation/create").await;
    let newest = asks.last_event.clone().unwrap();
    let mut strangers = Vec::new();
    for name in ["bob", "ada"] {
        let (_, other) = Prober::of(&stage, name).await;
        for event in [&first_event_id, &before_the_question, &newest] {
            let mut stream = other.listen(Some(event)).await;
            let stream_of = |event: &str| event.split('.').next().unwrap().to_owned();
            assert_ne!(stream_of(&stream.first_event_id().await), stream_of(event), "{name} listens anew");
            strangers.push(stream);
        }
        // An answer of another owner is ignored, whatever ID it has.
        other.respond(&question, accepted_name("Eve")).await;
        other.refuse(&question, -1, "no").await;
        for request in [&question["id"], &call["id"]] {
            assert_eq!(other.notify("notifications/cancelled", json!({ "requestId": request })).await, 202);
        }
        strangers.push(other.listen(None).await);
        other.end().await;
    }
    for mut stream in strangers {
        assert_eq!(stream.rest().await, Vec::<Value>::new());
    }
    // Ada's streams still work.
    stage.open_door(1);
    let told = hers.next_of("notifications/tasks/status").await;
    assert_eq!((&told["params"]["taskId"], &told["params"]["status"]), (&json!(id), &json!("completed")));
    ada.respond(&question, accepted_name("Ada")).await;
    assert_eq!(asks.last().await["result"]["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn the_question_of_another_sessions_task_is_not_answered_from_outside() {
    let stage = SteeredServer::set().await;
    let (_, ada) = Prober::of(&stage, "ada").await;
    let (_listening, id, question) = ada.create_until_form("greet").await;
    for name in ["bob", "ada"] {
        let (_, other) = Prober::of(&stage, name).await;
        other.respond(&question, accepted_name("Eve")).await;
        other.refuse(&question, -1, "no").await;
        assert_eq!(ada.get(&id).await["status"], "input_required");
    }
    ada.respond(&question, accepted_name("Ada")).await;
    assert_eq!(ada.result_text(&id).await, "Hello, Ada!");
}

#[tokio::test]
async fn a_request_state_is_of_no_use_to_another_owner() {
    let stage = SteeredServer::set().await;
    let (ada, _) = Prober::of(&stage, "ada").await;
    let (bob, _) = Prober::of(&stage, "bob").await;
    let mut client = stage.server.client().await.with_token(&ada.token);
    let asked = client.call("confirm", json!({})).await.unwrap();
    let kept = asked["requestState"].as_str().expect("a state").to_owned();
    let again = async |who: &Prober, kept: &str| {
        let answers = json!({ "name": accepted_name("Eve") });
        let params = json!({ "name": "confirm", "arguments": {}, "inputResponses": answers, "requestState": kept });
        who.send(&who.stateless("tools/call", params), kept).await
    };
    let touched = unknown(&kept);
    assert_eq!(again(&bob, &kept).await, again(&bob, &touched).await);
    assert!(again(&bob, &kept).await.contains("-32602"));
    assert!(again(&ada, &kept).await.contains("Hello, Eve!"));
}
