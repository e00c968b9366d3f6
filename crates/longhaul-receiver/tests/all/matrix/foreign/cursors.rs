use longhaul_testkit::SessionClient;
use serde_json::{Value, json};

use super::probe::Prober;
use crate::matrix::kit::SteeredServer;

const TASKS: usize = 60;

/// A cursor of Ada, and the client that received it.
async fn cursor(stage: &SteeredServer) -> (String, Prober, SessionClient) {
    let (prober, ada) = Prober::of(stage, "ada").await;
    for _ in 0..TASKS {
        ada.create("work", json!({ "end": "answer" })).await;
    }
    let page = ada.result("tasks/list", json!({})).await;
    (page["nextCursor"].as_str().expect("a second page").to_owned(), prober, ada)
}

async fn list(prober: &Prober, cursor: &str) -> String {
    // The refusal does not contain the cursor, so there is nothing to replace.
    prober.send(&prober.stateful("tasks/list", json!({ "cursor": cursor })), "\0").await
}

#[tokio::test]
async fn a_cursor_is_good_for_its_owner_alone() {
    let stage = SteeredServer::set().await;
    let (good, _, ada) = cursor(&stage).await;
    let (bob, _) = Prober::of(&stage, "bob").await;
    let refused = list(&bob, "nonsense").await;
    assert!(refused.contains("-32602"), "{refused}");
    assert_eq!(list(&bob, &good).await, refused);
    // A cursor of another server.
    let elsewhere = SteeredServer::set().await;
    let (others, ..) = cursor(&elsewhere).await;
    let (prober, other_session) = Prober::of(&stage, "ada").await;
    for wrong in [&others, &bob.session, &prober.session, ""] {
        assert_eq!(list(&prober, wrong).await, refused, "{wrong}");
    }
    // The cursor is valid in every session of the owner.
    for session in [ada, other_session] {
        let page = session.result("tasks/list", json!({ "cursor": good })).await;
        assert_eq!(page["tasks"].as_array().map(Vec::len), Some(TASKS - 50));
        assert_eq!(page.get("nextCursor"), None::<&Value>);
    }
}

#[tokio::test]
async fn a_cursor_of_which_any_byte_was_changed_is_refused() {
    let stage = SteeredServer::set().await;
    let (good, ada, _) = cursor(&stage).await;
    let refused = list(&ada, "nonsense").await;
    for place in 0..good.len() {
        for other in ["A", "B", "=", "\u{1f}"] {
            if &good[place..=place] != other {
                let touched = format!("{}{other}{}", &good[..place], &good[place + 1..]);
                assert_eq!(list(&ada, &touched).await, refused, "{other:?} at {place}");
            }
        }
        assert_eq!(list(&ada, &good[..place]).await, refused, "up to {place}");
    }
    assert_eq!(list(&ada, &format!("{good}A")).await, refused);
    assert!(list(&ada, &good).await.contains(r#""tasks":[{"#));
}
