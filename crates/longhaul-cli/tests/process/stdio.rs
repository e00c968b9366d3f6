//! `--stdio`: the real program on its standard streams.

use std::process::Stdio;

use longhaul_testkit::{PipeClient, in_time, names};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::process::{Child, Command};

use crate::kit::conformance_program;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

pub(crate) fn start(store: &str) -> (Child, PipeClient) {
    let mut command = Command::new(conformance_program());
    command.args(["--stdio", "--store", store]).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the example is built");
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, PipeClient::new(input, output))
}

pub(crate) async fn exit_code(mut child: Child) -> Option<i32> {
    in_time("the end of the server", child.wait()).await.expect("a child").code()
}

#[tokio::test]
async fn tasks_survive_into_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("tasks.db").display());
    let (child, mut pipe) = start(&store);
    let done = pipe.create("echo", json!({ "text": "still here" })).await;
    let before = pipe.get_until(&done, |task| task["status"] == "completed").await;
    assert_eq!((pipe.finish().await, exit_code(child).await), (vec![], Some(0)));

    let (child, mut pipe) = start(&store);
    let after = pipe.result("tasks/get", json!({ "taskId": done })).await;
    assert_eq!(after, before);
    assert_eq!((pipe.finish().await, exit_code(child).await), (vec![], Some(0)));
    assert_eq!(names(directory.path()), ["tasks.db"], "the end of input is a clean stop");
}

#[tokio::test]
async fn a_signal_ends_it_gracefully_while_the_client_still_holds_the_line() {
    let (child, mut pipe) = start("memory:");
    pipe.send_request("s", "subscriptions/listen", json!({ "notifications": { "taskIds": [] } })).await;
    assert_eq!(pipe.must_next().await["method"], "notifications/subscriptions/acknowledged");
    let id = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    let rest = pipe.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!((&rest[0]["id"], &rest[0]["result"]["_meta"][SUBSCRIPTION]), (&json!("s"), &json!("s")));
    assert_eq!(exit_code(child).await, Some(0));
}
