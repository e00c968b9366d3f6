use longhaul_testkit::in_time;
use serde_json::json;

use crate::matrix::generation::{GENERATIONS, TestGeneration, status};
use crate::matrix::kit::SteeredServer;
use crate::matrix::table::{self, Ending, bare};

/// Every way to end, with a cancellation from each generation.
fn endings() -> Vec<Ending> {
    let cancelled = GENERATIONS.iter().map(|by| Ending::CancelledBy(*by));
    [Ending::Answer, Ending::ToolError, Ending::ProtocolError].into_iter().chain(cancelled).collect()
}

#[tokio::test]
async fn each_generation_sees_every_task_as_its_own_column_says() {
    for maker in GENERATIONS {
        // A server for each, so that all tasks are on one page of the list.
        let stage = SteeredServer::set().await;
        for follower in GENERATIONS {
            for ending in endings() {
                let cell = follow_to_its_end(&stage, *maker, *follower, ending);
                in_time(&format!("{follower:?} of a task of {maker:?}: {ending:?}"), cell).await;
            }
        }
    }
}

async fn follow_to_its_end(stage: &SteeredServer, maker: TestGeneration, follower: TestGeneration, ending: Ending) {
    let case = format!("{follower:?} of a task of {maker:?} that ends in {ending:?}");
    let end = match ending {
        Ending::Answer | Ending::CancelledBy(_) => "answer",
        Ending::ToolError => "tool_error",
        Ending::ProtocolError => "protocol_error",
    };
    let id = maker.client(stage, "ada").await.create("work", json!({ "end": end })).await;
    let mut client = follower.client(stage, "ada").await;
    let mut pushes = client.follow(&id).await;
    assert_eq!(bare(client.get(&id).await, &id), table::working(follower, maker), "{case}: while it works");

    // In a separate session: a request for the result would get the status on its own stream.
    let mut waits = follower.client(stage, "ada").await;
    let waiting = match table::too_early(follower) {
        Some(refused) => {
            assert_eq!(waits.result(&id).await, refused, "{case}: a result that is not there yet");
            None
        }
        None => Some(tokio::spawn({
            let id = id.clone();
            async move { waits.result(&id).await }
        })),
    };
    match ending {
        Ending::CancelledBy(canceller) => {
            let answer = canceller.client(stage, "ada").await.cancel(&id).await;
            assert_eq!(bare(answer, &id), table::cancels(canceller), "{case}: the answer to the cancellation");
        }
        _ => stage.open_door(1),
    }
    let seen = table::seen(follower, ending);
    let last = loop {
        let told = pushes.next().await;
        if status(&told) != "working" {
            break told;
        }
    };
    assert_eq!(bare(last, &id), seen.push, "{case}: the last push");
    if let Some(waiting) = waiting {
        assert_eq!(
            bare(waiting.await.unwrap(), &id),
            seen.result,
            "{case}: for the request that waited for the result"
        );
    }
    // Twice: reading changes nothing, and a task that has ended stays as it is when it is cancelled again.
    for _ in 0..2 {
        assert_eq!(bare(client.get(&id).await, &id), seen.get, "{case}: tasks/get");
        assert_eq!(bare(client.result(&id).await, &id), seen.result, "{case}: tasks/result");
        assert_eq!(bare(client.list(&id).await, &id), seen.list, "{case}: tasks/list");
        assert_eq!(bare(client.cancel(&id).await, &id), seen.cancel, "{case}: tasks/cancel");
    }
}
