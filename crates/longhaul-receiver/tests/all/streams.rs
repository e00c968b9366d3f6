use std::time::Duration;

use longhaul::SessionLimits;
use longhaul_testkit::tools::{accepted_name, open, open_session, open_session_within};
use longhaul_testkit::{SessionClient, in_time};
use serde_json::json;

#[tokio::test]
async fn a_call_whose_connection_broke_goes_on_and_is_resumed_where_it_was() {
    let (_server, door, client) = open_session().await;
    let params = json!({ "name": "steps", "arguments": {}, "_meta": { "progressToken": "p" } });
    let mut call = client.send("tools/call", params).await;
    let first = call.must_next().await;
    assert_eq!(first["params"]["progress"], 1.0);
    let last_event = call.last_event.clone().unwrap();
    drop(call);
    door.open(3);
    let mut resumed = client.listen(Some(&last_event)).await;
    let messages = resumed.rest().await;
    let (answer, said) = messages.split_last().unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "three steps");
    let steps: Vec<f64> = said.iter().map(|told| told["params"]["progress"].as_f64().unwrap()).collect();
    assert!(steps.iter().all(|step| *step > 1.0), "what was seen is not sent again: {steps:?}");
}

#[tokio::test]
async fn a_call_can_be_resumed_again_and_again_before_anything_was_said() {
    let (_server, _, client) = open_session().await;
    let mut call = client.send("tools/call", json!({ "name": "greet", "arguments": {} })).await;
    let before = call.first_event_id().await;
    drop(call);
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut resumed = client.listen(Some(&before)).await;
        let question = resumed.next_of("elicitation/create").await;
        ids.push((question["id"].clone(), resumed.last_event.clone().unwrap()));
    }
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "the same message under the same number: {ids:?}");
    let mut resumed = client.listen(Some(&ids[0].1)).await;
    client.respond(&json!({ "id": ids[0].0 }), accepted_name("Ada")).await;
    assert_eq!(resumed.last().await["result"]["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn a_stream_to_listen_on_is_resumed_and_an_unknown_one_begun_anew() {
    let (_server, door, client) = open_session().await;
    let mut listening = client.listen(None).await;
    let first_event_id = listening.first_event_id().await;
    drop(listening);
    let mut resumed = client.listen(Some(&first_event_id)).await;
    assert_eq!(resumed.first_event_id().await, first_event_id, "the same stream");
    let id = client.create("wait", json!({})).await;
    for unknown in ["0000000000000000.7", "nonsense", "x.y", ""] {
        let mut listening = client.listen(Some(unknown)).await;
        assert_ne!(listening.first_event_id().await, first_event_id);
    }
    drop(resumed);
    let mut listening = client.listening().await;
    door.open(1);
    let told = listening.next_of("notifications/tasks/status").await;
    assert_eq!(told["params"]["taskId"], json!(id));
}

#[tokio::test]
async fn a_message_goes_only_to_the_newest_stream() {
    let (_server, _, client) = open_session().await;
    let mut old = client.listening().await;
    let (mut new, id, question) = client.create_until_form("greet").await;
    client.respond(&question, accepted_name("Ada")).await;
    let end = new.next_status("completed").await;
    assert_eq!(end["params"]["taskId"], json!(id));
    client.end().await;
    assert_eq!(old.rest().await, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn of_too_many_streams_to_listen_on_the_oldest_ends() {
    let (_server, _, client) = open_session_within(SessionLimits::default().listening_max(2)).await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let stream = client.listening().await;
        streams.push(stream);
    }
    assert!(streams[0].next().await.is_none());
    let id = client.create("greet", json!({})).await;
    let question = streams[2].next_of("elicitation/create").await;
    assert!(question["params"]["_meta"].to_string().contains(&id));
}

#[tokio::test]
async fn a_broken_stream_is_given_up_after_a_while_with_what_it_waited_for() {
    let (_server, _, client) =
        open_session_within(SessionLimits::default().broken_time_max(Duration::from_millis(1))).await;
    let message = client.message("tools/call", json!({ "name": "greet", "arguments": {} }));
    let mut call = client.post(message.to_string()).await;
    let first_event_id = call.first_event_id().await;
    call.next_of("elicitation/create").await;
    drop(call);
    // Once the server has given the call up, the client can use its request ID again.
    in_time("the end of a call without a client", async {
        loop {
            let mut again = client.post(message.to_string()).await;
            if again.is_stream() {
                break;
            }
            assert!(again.last().await["error"]["message"].as_str().unwrap().contains("still under way"));
        }
    })
    .await;
    let mut fresh = client.listen(Some(&first_event_id)).await;
    assert_ne!(fresh.first_event_id().await, first_event_id);
}

#[tokio::test]
async fn the_messages_kept_of_a_stream_are_bounded() {
    let (_server, _, client) = open_session_within(SessionLimits::default().kept_messages_max(2)).await;
    let mut listening = client.listen(None).await;
    let first_event_id = listening.first_event_id().await;
    for _ in 0..2 {
        let id = client.create("greet", json!({})).await;
        let question = listening.next_of("elicitation/create").await;
        client.respond(&question, accepted_name("Ada")).await;
        client.until(&id, "completed").await;
    }
    let newest = loop {
        let told = listening.next_of("notifications/tasks/status").await;
        if told["params"]["status"] == "completed" {
            break listening.last_event.clone().unwrap();
        }
    };
    drop(listening);
    let mut resumed = client.listen(Some(&newest)).await;
    assert_eq!(resumed.first_event_id().await, newest);
    drop(resumed);
    let mut fresh = client.listen(Some(&first_event_id)).await;
    let stream = |event: &str| event.split('.').next().unwrap().to_owned();
    assert_ne!(stream(&fresh.first_event_id().await), stream(&first_event_id), "the beginning is not kept any more");
}

#[tokio::test]
async fn a_server_that_stops_ends_its_streams() {
    let (server, _, client) = open_session().await;
    let id = client.create("greet", json!({})).await;
    client.until(&id, "input_required").await;
    let mut waiting = client.send("tasks/result", json!({ "taskId": id })).await;
    waiting.next_of("elicitation/create").await;
    let mut listening = client.listening().await;
    server.begin_stop();
    listening.rest().await;
    assert_eq!(waiting.last().await["error"]["data"]["code"], "DRAINING");
    server.stop().await;
}

#[tokio::test]
async fn a_wait_is_answered_by_a_task_that_ends_while_the_server_stops() {
    let (server, door, client) = open_session().await;
    let id = client.create("steps", json!({})).await;
    let mut listening = client.listen(None).await;
    let params = json!({ "taskId": id });
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.response("tasks/result", params).await }
    });
    server.client().await.until_metric("longhaul_session_jobs", 2.0).await;
    server.begin_stop();
    listening.rest().await;
    door.open(3);
    assert_eq!(waiting.await.unwrap()["result"]["content"][0]["text"], "three steps");
    server.stop().await;
}

#[tokio::test]
async fn unread_waits_for_results_make_way_for_other_requests() {
    let (_server, _, client) = open_session_within(SessionLimits::default().requests_max(2)).await;
    let id = client.create("greet", json!({})).await;
    let mut events = Vec::new();
    for _ in 0..2 {
        let mut wait = client.send("tasks/result", json!({ "taskId": id })).await;
        wait.next_of("elicitation/create").await;
        events.push(wait.last_event.clone().unwrap());
    }
    let call = || client.response("tools/call", json!({ "name": "echo", "arguments": { "text": "x" } }));
    in_time("room", async { while call().await["error"]["data"]["code"] == "TOO_MANY_IN_FLIGHT" {} }).await;
    // A client that resumes one of the streams continues to wait for the result.
    let mut again = client.listen(Some(&events[0])).await;
    let question = again.next_of("elicitation/create").await;
    client.respond(&question, accepted_name("Ada")).await;
    assert_eq!(again.last().await["result"]["content"][0]["text"], "Hello, Ada!");
}

/// Makes a call whose response is a stream, and reads it to its end. Returns the event ID that resumes it from the
/// start.
async fn streamed_call(client: &SessionClient) -> String {
    let mut call = client.send("tools/call", json!({ "name": "greet", "arguments": {} })).await;
    let first_event_id = call.first_event_id().await;
    let question = call.next_of("elicitation/create").await;
    client.respond(&question, accepted_name("Ada")).await;
    assert_eq!(call.last().await["result"]["content"][0]["text"], "Hello, Ada!");
    first_event_id
}

#[tokio::test]
async fn the_last_streams_that_ended_are_kept_and_older_ones_are_not() {
    let (_server, _, client) = open_session_within(SessionLimits::default().ended_streams_max(1)).await;
    let first = streamed_call(&client).await;
    let again = client.listen(Some(&first)).await.last().await;
    assert_eq!(again["result"]["content"][0]["text"], "Hello, Ada!", "it is still there");
    let second = streamed_call(&client).await;
    in_time("the first to go", async { while client.listen(Some(&first)).await.first_event_id().await == first {} })
        .await;
    let again = client.listen(Some(&second)).await.last().await;
    assert_eq!(again["result"]["content"][0]["text"], "Hello, Ada!");
}

#[tokio::test]
async fn a_session_follows_only_so_many_tasks() {
    for followed_max in [1, 2] {
        let (server, door, client) = open_session_within(SessionLimits::default().followed_max(followed_max)).await;
        let mut listening = client.listening().await;
        let mut tasks = Vec::new();
        for _ in 0..2 {
            let id = client.create("wait", json!({})).await;
            // The session follows a task that its client has read, up to the limit.
            client.get(&id).await;
            tasks.push(id);
        }
        // The second task ends first, so a notification about it would come before the one about the first task.
        let other = open(&server).await;
        other.result("tasks/cancel", json!({ "taskId": tasks[1] })).await;
        if followed_max == 2 {
            let told = listening.next_of("notifications/tasks/status").await;
            assert_eq!((&told["params"]["taskId"], &told["params"]["status"]), (&json!(tasks[1]), &json!("cancelled")));
        }
        door.open(1);
        let told = listening.next_of("notifications/tasks/status").await;
        assert_eq!((&told["params"]["taskId"], &told["params"]["status"]), (&json!(tasks[0]), &json!("completed")));
        assert_eq!(client.get(&tasks[1]).await["status"], "cancelled");
        server.stop().await;
    }
}
