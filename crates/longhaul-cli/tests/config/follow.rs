//! A config file that changes while the server runs.

use longhaul_testkit::{StatelessClient, tasks_and_forms, until};
use serde_json::json;

use crate::ConfigFolder;

/// The tools of the file, without those for clients that know no tasks.
async fn tools(client: &mut StatelessClient) -> Vec<String> {
    let listed = client.send("tools/list", json!({})).await.json();
    let listed = listed["result"]["tools"].as_array().unwrap();
    let names = listed.iter().map(|tool| tool["name"].as_str().unwrap());
    names.filter(|name| !name.starts_with("task_")).map(str::to_owned).collect()
}

#[tokio::test]
async fn tools_are_added_changed_and_removed_and_a_wrong_file_changes_nothing() {
    let place = ConfigFolder::new("[tool.a]\ncommand = [\"echo\", \"one\"]\n[tool.b]\ncommand = [\"true\"]\n");
    let file = place.path("longhaul.toml");
    let (server, mut client) = place.serve(json!({})).await;
    assert_eq!(tools(&mut client).await, ["a", "b"]);

    std::fs::write(&file, "[tool.a]\ncomand = [\"echo\", \"wrong\"]\n").unwrap();
    server.says("did you mean `command`?").await;
    assert_eq!(tools(&mut client).await, ["a", "b"]);
    assert_eq!(client.call("a", json!({})).await.unwrap()["content"][0]["text"], "one");

    std::fs::write(&file, " \n").unwrap();
    server.says("it is empty; ").await;
    std::fs::remove_file(&file).unwrap();
    server.says("it was removed or renamed; ").await;
    assert_eq!(tools(&mut client).await, ["a", "b"]);

    std::fs::write(&file, "[tool.a]\ncommand = [\"echo\", \"two\"]\n[tool.c]\ncommand = [\"echo\", \"new\"]\n")
        .unwrap();
    until("the new tools", async || {
        let mut listed = tools(&mut client).await;
        listed.sort();
        listed == ["a", "c"]
    })
    .await;
    assert_eq!(client.call("a", json!({})).await.unwrap()["content"][0]["text"], "two");
    assert_eq!(client.call("c", json!({})).await.unwrap()["content"][0]["text"], "new");

    std::fs::write(&file, "[tool.c]\ncommand = [\"echo\", \"new\"]\n[limits]\nserver.connections_max = 5\n").unwrap();
    server.says("take effect at its next start").await;
    assert_eq!(tools(&mut client).await, ["c"]);
    assert!(server.stop().await);
}

#[tokio::test]
async fn another_version_of_a_tool_is_offered_when_the_tasks_of_the_old_one_have_ended() {
    let config = |version: &str| {
        format!(
            "[tool.work]\nshell = true\ncommand = 'while [ ! -e go ]; do sleep 0.02; done; echo {version}'\nversion = \
             \"{version}\"\n"
        )
    };
    let place = ConfigFolder::new(&config("1"));
    let (server, mut client) = place.serve(tasks_and_forms()).await;
    let old = client.create("work", json!({})).await.unwrap();
    std::fs::write(place.path("longhaul.toml"), config("2")).unwrap();
    server.says("is not applied yet").await;
    std::fs::write(place.path("go"), "").unwrap();
    assert_eq!(client.settled(&old).await.result_text(), "1");
    server.says("a changed tool of the config file was applied").await;
    let new = client.create("work", json!({})).await.unwrap();
    assert_eq!(client.settled(&new).await.result_text(), "2");
}
