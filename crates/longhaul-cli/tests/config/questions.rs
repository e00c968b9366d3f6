//! A command that waits for an answer does nothing more without one, however its question ends.

use longhaul_testkit::{tasks_and_forms, until};
use serde_json::json;

use crate::{ConfigFolder, processes_with_variable};

// It ignores SIGTERM, so that it would go on between the end of its input and SIGKILL.
const SCRIPT: &str = r#"
trap "" TERM
echo 'longhaul: {"ask": "approve", "message": "Deploy?"}'
read -r answer
echo "deployed: $answer" >> log
"#;

/// A folder with the script as a tool that can be a task, `deploy`, and as one that cannot, `deploy_now`.
fn config_folder() -> ConfigFolder {
    let tool = |name: &str, task: &str| {
        format!(
            "[tool.{name}]\nshell = true\ncommand = '''{SCRIPT}'''\nenv.MARK = \"deploy @\"\nmessages = \"stdout\"\n\
             grace = \"300ms\"\ntask = \"{task}\"\n"
        )
    };
    ConfigFolder::new(&format!("{}{}", tool("deploy", "optional"), tool("deploy_now", "forbidden")))
}

async fn nothing_was_deployed(folder: &ConfigFolder) {
    let mark = format!("MARK=deploy {}", folder.folder.path().display());
    until("no process is left", async || processes_with_variable(&mark).is_empty()).await;
    let log = std::fs::read_to_string(folder.path("log")).unwrap_or_default();
    assert_eq!(log, "", "the command went on without an answer");
}

#[tokio::test]
async fn a_command_whose_question_is_cancelled_does_not_go_on() {
    let folder = config_folder();
    let (_server, mut client) = folder.serve(tasks_and_forms()).await;
    let id = client.create("deploy", json!({})).await.unwrap();
    client.asked(&id, 1).await;
    client.cancel(&id).await.unwrap();
    nothing_was_deployed(&folder).await;

    let asks = client.call("deploy_now", json!({})).await.unwrap();
    assert_eq!(asks["resultType"], "input_required", "{asks}");
    nothing_was_deployed(&folder).await;
}

#[tokio::test]
async fn a_command_that_waits_for_an_answer_does_not_go_on_when_its_server_ends() {
    for is_killed in [false, true] {
        let folder = config_folder();
        let (server, mut client) = folder.serve(tasks_and_forms()).await;
        let id = client.create("deploy", json!({})).await.unwrap();
        client.asked(&id, 1).await;
        if is_killed {
            server.kill().await;
        } else {
            assert!(server.stop().await);
        }
        nothing_was_deployed(&folder).await;
    }
}
