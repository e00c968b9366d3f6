//! `longhaul config new|check|host`, and `serve --config` with a file that is wrong.

use std::process::{Command, Output};

use longhaul_testkit::StatelessClient;
use serde_json::{Value, json};

use crate::Place;
use crate::kit::longhaul;

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(longhaul()).args(arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[tokio::test]
async fn the_example_that_config_new_writes_works() {
    let place = Place::new("");
    let file = place.path("longhaul.toml");
    let path = file.to_str().unwrap();
    let (code, _, stderr) = run(&["config", "new", path]);
    assert_eq!(code, Some(1), "an existing file is left alone: {stderr}");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(run(&["config", "new", path]).0, Some(0));
    let (code, stdout, _) = run(&["config", "check", path]);
    assert_eq!(
        (code, stdout.trim()),
        (Some(0), &*format!("{path} is valid. Its tools: count_words, slow_list, approve."))
    );

    let server = place.launch().start().await;
    let mut client = StatelessClient::connect(server.address()).await.unwrap();
    // Ordinary calls.
    client.capabilities = json!({});
    let counted = client.call("count_words", json!({ "text": "one two  three" })).await.unwrap();
    assert_eq!(counted["content"][0]["text"].as_str().unwrap().trim(), "3");
    client.capabilities = longhaul_testkit::tasks_and_forms();
    let listed = client.create("slow_list", json!({ "pause": 0 })).await.unwrap();
    let listed = client.settled(&listed).await;
    assert!(listed.result_text().starts_with("step 1/3\nstep 2/3\nstep 3/3\n"), "{}", listed.result_text());
    assert!(listed.result_text().contains("longhaul.toml"), "{}", listed.result_text());
    let asked = client.create("approve", json!({})).await.unwrap();
    let key = client.asked(&asked, 1).await.remove(0);
    client.update(&asked, json!({ key: { "action": "accept", "content": { "yes": true } } })).await.unwrap();
    assert!(client.settled(&asked).await.result_text().contains(r#""content":{"yes":true}"#));
    assert!(server.stop().await);
}

#[test]
fn a_wrong_file_is_refused_with_all_its_mistakes() {
    let place = Place::new("[tool.a]\ncomand = [\"true\"]\n\n[server]\nlisten = 5\n");
    let path = place.path("longhaul.toml");
    for arguments in [["config", "check"], ["serve", "--config"]] {
        let (code, _, stderr) = run(&[arguments[0], arguments[1], path.to_str().unwrap()]);
        assert_eq!(code, Some(6), "{stderr}");
        for expected in [
            "line 1, column 7: `tool.a.command` is missing",
            "did you mean `command`?",
            "line 5, column 10: `server.listen`",
            "[BAD_CONFIG]",
        ] {
            assert!(stderr.contains(expected), "{expected} is not in:\n{stderr}");
        }
    }
}

#[test]
fn what_hosts_need_is_in_their_own_format() {
    let place = Place::new("[server]\nlisten = \"127.0.0.1:9\"\ntoken_file = \"tokens\"\n");
    let config = place.path("longhaul.toml");
    let config = config.to_str().unwrap();
    for host in ["claude-code", "claude-desktop", "cursor", "vscode", "codex"] {
        let (code, stdout, _) = run(&["config", "host", host, "--config", config, "--name", "my tools"]);
        assert_eq!(code, Some(0));
        assert!(stdout.contains(config) && stdout.contains("http://127.0.0.1:9/mcp"), "{host}: {stdout}");
        // Each object of JSON in the text is one that the host reads.
        let servers = if host == "vscode" { "servers" } else { "mcpServers" };
        for block in stdout.split("\n{\n").skip(1) {
            let block = format!("{{\n{}\n}}", block.split("\n}").next().unwrap());
            let parsed: Value = serde_json::from_str(&block).unwrap_or_else(|error| panic!("{host}: {error}: {block}"));
            let server = &parsed[servers]["my tools"];
            assert!(
                server["command"].is_string() || server["headers"]["Authorization"].is_string(),
                "{host}: {parsed}"
            );
        }
    }
}
