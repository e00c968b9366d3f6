use longhaul_testkit::tools::accepted_name;
use serde_json::json;

use crate::matrix::generation::{GENERATIONS, status};
use crate::matrix::kit::SteeredServer;

#[tokio::test]
async fn a_question_can_be_answered_in_any_generation() {
    let stage = SteeredServer::set().await;
    for maker in GENERATIONS {
        for answerer in GENERATIONS {
            let id = maker.client(&stage, "ada").await.create("greet", json!({})).await;
            let mut client = answerer.client(&stage, "ada").await;
            let asked = client.asked(&id).await;
            assert_eq!(asked.message, "What is your name?", "{maker:?}, {answerer:?}");
            assert_eq!(status(&client.get(&id).await["result"]), "input_required");
            client.answer(&asked, accepted_name("Ada")).await;
            for viewer in GENERATIONS {
                let greeting = greeting(&stage, *viewer, &id).await;
                assert_eq!(greeting, "Hello, Ada!", "{maker:?}, {answerer:?}, {viewer:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_question_answered_in_another_generation_is_taken_back() {
    let stage = SteeredServer::set().await;
    for maker in GENERATIONS {
        for first in GENERATIONS {
            for second in GENERATIONS.iter().filter(|second| *second != first) {
                let id = maker.client(&stage, "ada").await.create("greet", json!({})).await;
                let (mut one, mut other) = (first.client(&stage, "ada").await, second.client(&stage, "ada").await);
                let asked = one.asked(&id).await;
                let asked_too = other.asked(&id).await;
                assert_eq!(asked.message, asked_too.message);
                other.answer(&asked_too, accepted_name("Eve")).await;
                one.taken_back(&asked).await;
                assert_eq!(greeting(&stage, *first, &id).await, "Hello, Eve!", "{maker:?}, {first:?}, {second:?}");
                // The answer is too late: it changes nothing, and is not an error.
                one.answer(&asked, accepted_name("Ada")).await;
                assert_eq!(greeting(&stage, *second, &id).await, "Hello, Eve!");
            }
        }
    }
}

/// The result of the task, as this client sees it.
async fn greeting(stage: &SteeredServer, viewer: crate::matrix::generation::TestGeneration, id: &str) -> String {
    let mut client = viewer.client(stage, "ada").await;
    let mut pushes = client.follow(id).await;
    // A client of the stateful era that subscribes too late gets no message. The poll shows the end.
    let mut task = client.get(id).await;
    while status(&task["result"]) != "completed" {
        pushes.next().await;
        task = client.get(id).await;
    }
    let inlined = task["result"]["result"]["content"][0]["text"].as_str().map(str::to_owned);
    match inlined {
        Some(text) => text,
        None => client.result(id).await["result"]["content"][0]["text"].as_str().expect("a text").to_owned(),
    }
}
