//! Tools that run real commands, among them a build with progress, a script that asks for approval, a long copy, and a
//! command that hangs and ignores SIGTERM.

use std::process::Stdio;

use longhaul_testkit::{PipeClient, StatelessClient, tasks_and_forms, until};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::kit::longhaul;
use crate::{ConfigFolder, processes_with_variable};

const CONFIG: &str = r#"
[tool.build]
command = ["sh", "-c", 'for i in 1 2 3; do echo "step $i/3"; done; cat "$0" >/dev/null; echo built "$1"', "{wait}", "{target}"]
args.target = { type = "string", choices = ["debug", "release"], default = "debug" }
args.wait = { type = "string", default = "/dev/null" }
progress = 'step (\d+)/(\d+)'

[tool.deploy]
shell = true
command = '''
echo 'longhaul: {"status": "waiting for approval"}'
echo 'longhaul: {"ask": "approve", "message": "Deploy?", "schema": {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}}'
read -r answer
case "$answer" in *'"yes":true'*) echo deployed;; *) echo "not deployed: $answer" >&2; exit 3;; esac
'''
messages = "stdout"

[tool.impatient]
shell = true
command = '''
echo 'longhaul: {"ask": "approve"}'
cat fifo
echo done
echo gave up >&2
eval "$END"
'''
args.end = { type = "string" }
env.END = "{end}"
messages = "stdout"

[tool.nested]
shell = true
command = '''
echo 'longhaul: {"ask": "x", "schema": {"type": "object", "properties": {"files": {"type": "object"}}}}'
read -r answer
'''
messages = "stdout"

[tool.many]
command = ["echo", "{files}"]
args.files = { type = "array" }

[tool.count]
command = ["echo", "{n}", "{list}"]
args.n = { type = "integer", default = 0 }
args.list = { type = "array", items = "integer", default = [] }

[tool.nested_count]
command = ["cat"]
stdin = "json"
[tool.nested_count.input_schema]
type = "object"
properties.outer = { type = "object", properties = { inner = { type = "integer" } } }

[tool.large]
command = ["echo", "large"]
output_max = 2

[tool.copy]
shell = true
command = '''
echo start >> starts
dd if=/dev/urandom of=source bs=1k count=64 2>/dev/null
while :; do cat source >> target; : > target; sleep 0.05; done
'''
env.MARK = "copy @"
on_crash = "retry"
backoff = "10ms"

[tool.hang]
shell = true
command = '''trap "" TERM; sleep 1000 & echo hanging >> hangs; while :; do sleep 1; done'''
env.MARK = "hang @"
grace = "300ms"

[tool.slow]
shell = true
command = '''trap "" TERM; echo so far >&2; while :; do sleep 1; done'''
env.MARK = "slow @"
timeout = "300ms"
grace = "100ms"
"#;

/// The environment variable by which the processes of a tool are found.
fn mark(place: &ConfigFolder, tool: &str) -> String {
    format!("MARK={tool} {}", place.folder.path().display())
}

async fn wait_for_no_process(place: &ConfigFolder, tool: &str) {
    let mark = mark(place, tool);
    until("no process is left", async || processes_with_variable(&mark).is_empty()).await;
}

/// Waits until a command has been started `times` times. Each start appends a line to `file`.
async fn wait_for_starts(place: &ConfigFolder, file: &str, times: usize) {
    let path = place.path(file);
    until(&format!("{times} lines in {file}"), async || {
        std::fs::read_to_string(&path).unwrap_or_default().lines().count() == times
    })
    .await;
}

#[tokio::test]
async fn commands_are_tasks_with_progress_questions_results_and_errors() {
    let place = ConfigFolder::new(CONFIG);
    let (server, mut client) = place.serve(tasks_and_forms()).await;

    let fifo = place.make_fifo("fifo");
    let id = client.create("build", json!({ "target": "release", "wait": fifo })).await.unwrap();
    let shown = client.get_until(&id, |task| task.value["statusMessage"] == "step 3/3").await.unwrap();
    assert_eq!(shown.status(), "working");
    std::fs::write(&fifo, "").unwrap();
    let end = client.settled(&id).await;
    assert_eq!(end.result_text(), "step 1/3\nstep 2/3\nstep 3/3\nbuilt release");

    for (yes, expected) in [(true, "deployed"), (false, "The command failed (exit status: 3):\nnot deployed: ")] {
        let id = client.create("deploy", json!({})).await.unwrap();
        let key = client.asked(&id, 1).await.remove(0);
        let answer = json!({ key: { "action": "accept", "content": { "yes": yes } } });
        client.update(&id, answer).await.unwrap();
        let end = client.settled(&id).await;
        assert!(end.result_text().starts_with(expected), "{}", end.result_text());
    }

    let id = client.create("slow", json!({})).await.unwrap();
    let end = client.settled(&id).await;
    let expected = "The command of `slow` was ended because it ran for longer than 0.3 s (its `timeout`):\nso far";
    assert_eq!(end.result_text(), expected);
    wait_for_no_process(&place, "slow").await;
    assert!(server.stop().await);
}

#[tokio::test]
async fn an_error_names_the_question_argument_or_limit_that_was_wrong() {
    let place = ConfigFolder::new(CONFIG);
    let (server, mut client) = place.serve(tasks_and_forms()).await;
    let read = |text| serde_json::from_str::<Value>(text).unwrap();
    for (tool, arguments, expected) in [
        ("nested", json!({}), "the field `files` must be a string, number, integer or boolean, or an array of choices"),
        ("build", json!({ "wait": "a\u{0}b" }), "The argument `wait` has the character U+0000"),
        ("impatient", json!({ "end": "\u{0}" }), "The argument `end` has the character U+0000"),
        ("many", json!({ "files": ["a", "\u{0}"] }), "The argument `files` has the character U+0000"),
        ("count", read(r#"{"n":18446744073709551617}"#), "The argument `n` has an integer that is too large"),
        ("count", read(r#"{"list":[1,-9223372036854775809]}"#), "The argument `list` has an integer that is too large"),
        ("nested_count", read(r#"{"outer":{"inner":1e300}}"#), "The argument `outer` has an integer that is too large"),
        (
            "build",
            json!({ "wait": "x".repeat(300_000) }),
            "The command of `build` cannot be started: its arguments are too long for a command line. Pass them with `stdin = \"json\"`",
        ),
        ("large", json!({}), "The command of `large` was ended because it wrote more than 2 bytes"),
    ] {
        let id = client.create(tool, arguments).await.unwrap();
        let end = client.settled(&id).await;
        assert!(end.result_text().contains(expected), "{}", end.result_text());
    }
    assert!(server.stop().await);
}

#[tokio::test]
async fn integers_of_64_bits_arrive_as_they_were_sent() {
    let place = ConfigFolder::new(CONFIG);
    let (server, mut client) = place.serve(json!({})).await;
    let arguments = json!({ "n": u64::MAX, "list": [i64::MIN, 10.0, -9_007_199_254_740_991.0] });
    let shown = client.call("count", arguments).await.unwrap();
    assert_eq!(shown["content"][0]["text"], "18446744073709551615 -9223372036854775808 10 -9007199254740991");
    let shown = client.call("nested_count", json!({ "outer": { "inner": 3.0 } })).await.unwrap();
    assert_eq!(shown["content"][0]["text"], r#"{"outer":{"inner":3}}"#);
    assert!(server.stop().await);
}

#[tokio::test]
async fn a_command_that_ends_while_it_asks_ends_its_task_and_withdraws_the_question() {
    let place = ConfigFolder::new(CONFIG);
    let (server, mut client) = place.serve(tasks_and_forms()).await;
    let fifo = place.make_fifo("fifo");
    for (end, expected) in [
        ("exit", "done"),
        ("exit 3", "The command failed (exit status: 3):\ngave up"),
        ("kill -9 $$", "The command failed (signal: 9 (SIGKILL)):\ngave up"),
    ] {
        let id = client.create("impatient", json!({ "end": end })).await.unwrap();
        client.asked(&id, 1).await;
        std::fs::write(&fifo, "").unwrap();
        let settled = client.settled(&id).await;
        assert_eq!(settled.result_text(), expected);
        assert_eq!(settled.value.get("inputRequests"), None, "{:?}", settled.value);
    }
    assert!(server.stop().await);
}

#[tokio::test]
async fn a_cancelled_command_that_ignores_sigterm_leaves_no_process() {
    let place = ConfigFolder::new(CONFIG);
    let (server, mut client) = place.serve(tasks_and_forms()).await;
    let id = client.create("hang", json!({})).await.unwrap();
    wait_for_starts(&place, "hangs", 1).await;
    assert!(processes_with_variable(&mark(&place, "hang")).len() >= 2);
    client.cancel(&id).await.unwrap();
    wait_for_no_process(&place, "hang").await;
    assert!(server.stop().await);
}

#[tokio::test]
async fn after_a_kill_a_command_fails_or_runs_again_and_nothing_is_left_of_the_old_one() {
    let place = ConfigFolder::new(CONFIG);
    let (server, mut client) = place.serve(tasks_and_forms()).await;
    let copy = client.create("copy", json!({})).await.unwrap();
    let hang = client.create("hang", json!({})).await.unwrap();
    wait_for_starts(&place, "starts", 1).await;
    wait_for_starts(&place, "hangs", 1).await;
    let copies = leaders(&mark(&place, "copy"));
    assert_eq!(copies.len(), 1);
    server.kill().await;

    let server = place.launch().start().await;
    let hangs = processes_with_variable(&mark(&place, "hang"));
    assert!(hangs.is_empty(), "{hangs:?} must have ended before the server listens");
    wait_for_starts(&place, "starts", 2).await;
    let again = leaders(&mark(&place, "copy"));
    assert_eq!(again.len(), 1, "two copies never run side by side");
    assert_ne!(again, copies);
    let mut client = StatelessClient::connect(server.address()).await.unwrap();
    let end = client.settled(&hang).await;
    assert_eq!(end.status(), "failed", "{:?}", end.value);
    client.cancel(&copy).await.unwrap();
    wait_for_no_process(&place, "copy").await;
    assert!(server.stop().await);
    let records = place.path("processes");
    until("only the lock is left", async || longhaul_testkit::names(&records).len() == 1).await;
}

/// The IDs of the processes that have this environment variable and lead a process group.
fn leaders(variable: &str) -> Vec<String> {
    let mut found = processes_with_variable(variable);
    found.retain(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(2)) == Some(pid)
    });
    found
}

#[tokio::test]
async fn the_same_commands_are_served_over_stdio() {
    let place = ConfigFolder::new(CONFIG);
    let mut command = Command::new(longhaul());
    command.args(["serve", "--stdio", "--config"]).arg(place.path("longhaul.toml"));
    command.arg("--store").arg(format!("sqlite:{}", place.path("tasks.db").display()));
    command.env("LONGHAUL_PROCESS_DIR", place.path("processes")).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut client = PipeClient::new(child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let is_settled = |task: &Value| !["working", "input_required"].contains(&task["status"].as_str().unwrap());

    let id = client.create("build", json!({})).await;
    let end = client.get_until(&id, is_settled).await;
    assert_eq!(end["result"]["content"][0]["text"], "step 1/3\nstep 2/3\nstep 3/3\nbuilt debug");

    let id = client.create("deploy", json!({})).await;
    let asked = client.get_until(&id, |task| task["status"] == "input_required").await;
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answers = json!({ key: { "action": "accept", "content": { "yes": true } } });
    client.result("tasks/update", json!({ "taskId": id, "inputResponses": answers })).await;
    let end = client.get_until(&id, is_settled).await;
    assert_eq!(end["result"]["content"][0]["text"], "deployed");

    let id = client.create("hang", json!({})).await;
    wait_for_starts(&place, "hangs", 1).await;
    client.result("tasks/cancel", json!({ "taskId": id })).await;
    wait_for_no_process(&place, "hang").await;
    client.finish().await;
    child.wait().await.unwrap();
}

#[tokio::test]
async fn the_commands_of_a_killed_server_end_without_another_server() {
    let place = ConfigFolder::new(CONFIG);
    let (server, mut client) = place.serve(tasks_and_forms()).await;
    client.create("hang", json!({})).await.unwrap();
    wait_for_starts(&place, "hangs", 1).await;
    server.kill().await;
    wait_for_no_process(&place, "hang").await;
}
