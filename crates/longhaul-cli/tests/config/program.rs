//! `longhaul config new|check|host`, and `serve --config`: mistakes in the file, prompts, resources, clients without
//! tasks.

use std::process::{Command, Output};

use longhaul_testkit::{PipeClient, StatelessClient, tasks_and_forms};
use serde_json::{Value, json};

use crate::ConfigFolder;
use crate::kit::longhaul;

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(longhaul()).args(arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[tokio::test]
async fn the_example_that_config_new_writes_works() {
    let place = ConfigFolder::new("");
    let file = place.path("longhaul.toml");
    let path = file.to_str().unwrap();
    let (code, _, stderr) = run(&["config", "new", path]);
    assert_eq!(code, Some(1), "an existing file is left alone: {stderr}");
    assert!(stderr.contains("there is a file of that name; choose another name, or remove the file first"), "{stderr}");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(run(&["config", "new", path]).0, Some(0));
    let (code, stdout, _) = run(&["config", "check", path]);
    assert_eq!(
        (code, stdout.trim()),
        (Some(0), &*format!("{path} is valid. Its tools: count_words, slow_list, approve."))
    );

    // A client that declares no tasks gets the result as the response of its call.
    let (server, mut client) = place.serve(json!({})).await;
    let counted = client.call("count_words", json!({ "text": "one two  three" })).await.unwrap();
    assert_eq!(counted["content"][0]["text"].as_str().unwrap().trim(), "3");
    client.capabilities = tasks_and_forms();
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
fn the_example_on_standard_output_is_the_one_in_a_file() {
    let place = ConfigFolder::new("");
    let file = place.path("new.toml");
    assert_eq!(run(&["config", "new", file.to_str().unwrap()]).0, Some(0));
    let (code, stdout, _) = run(&["config", "new", "-"]);
    assert_eq!((code, stdout), (Some(0), std::fs::read_to_string(file).unwrap()));
}

#[test]
fn a_wrong_file_is_refused_with_all_its_mistakes() {
    let place = ConfigFolder::new("[tool.a]\ncomand = [\"true\"]\n\n[server]\nlisten = 5\n");
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
fn a_file_that_is_not_utf_8_is_refused_with_the_line() {
    let place = ConfigFolder::new("");
    let path = place.path("longhaul.toml");
    std::fs::write(&path, b"# one\n# caf\xe9\n").unwrap();
    let (code, _, stderr) = run(&["config", "check", path.to_str().unwrap()]);
    let expected = format!("the config file {} is not UTF-8 in line 2; save it as UTF-8", path.display());
    assert_eq!((code, stderr.contains(&expected)), (Some(6), true), "{stderr}");
}

#[tokio::test]
async fn what_is_missing_on_this_machine_is_a_warning_of_a_valid_file() {
    let config = "[tool.a]\ncommand = [\"no-such-program\"]\n[tool.b]\ncommand = [\"./here\", \"x\"]\n\
                  [tool.c]\ncommand = [\"sh\"]\ndirectory = \"nowhere\"\n\
                  [tool.d]\ncommand = [\"only-there\"]\nenv.PATH = \"@/there\"\n\
                  [tool.e]\ncommand = [\"sh\", \"-c\", \"true\"]\n\
                  [resource.f]\nuri = \"docs://f\"\nfile = \"no-file.md\"\n";
    let place = ConfigFolder::new(config);
    let path = place.path("longhaul.toml");
    let check = || run(&["config", "check", path.to_str().unwrap()]);
    let (code, stdout, stderr) = check();
    assert_eq!((code, stdout.contains("is valid")), (Some(0), true), "{stderr}");
    let here = place.path("./here");
    for expected in [
        "line 2, column 11: `tool.a.command` runs \"no-such-program\", which is not in PATH; ".to_owned(),
        format!(
            "line 4, column 11: `tool.b.command` runs {}, which is not a program that can be run; ",
            here.display()
        ),
        format!(
            "line 7, column 13: `tool.c.directory` is {}, which is not a folder; ",
            place.path("nowhere").display()
        ),
        "line 9, column 11: `tool.d.command` runs \"only-there\"".to_owned(),
        format!(
            "line 15, column 8: `resource.f.file` is {}, which is not a file; ",
            place.path("no-file.md").display()
        ),
    ] {
        assert!(stderr.contains(&format!("warning: {expected}")), "{expected} is not in:\n{stderr}");
    }
    assert_eq!(stderr.lines().count(), 5, "{stderr}");
    let server = place.launch().start().await;
    server.says("`tool.a.command` runs \"no-such-program\", which is not in PATH").await;
    std::fs::create_dir(place.path("there")).unwrap();
    std::fs::copy("/bin/true", &here).unwrap();
    std::fs::copy("/bin/true", place.path("there/only-there")).unwrap();
    assert_eq!(check().2.lines().count(), 3, "{:?}", check());
}

#[test]
fn what_hosts_need_is_in_their_own_format() {
    let place = ConfigFolder::new("[server]\nlisten = \"127.0.0.1:9\"\ntoken_file = \"tokens\"\n");
    let config = place.path("longhaul.toml");
    let config = config.to_str().unwrap();
    for host in ["claude-code", "claude-desktop", "cursor", "vscode", "codex"] {
        let (code, stdout, _) = run(&["config", "host", host, "--config", config, "--name", "my-tools"]);
        assert_eq!(code, Some(0));
        assert!(stdout.contains(config) && stdout.contains("http://127.0.0.1:9/mcp"), "{host}: {stdout}");
        // Each JSON object in the text has the form that the host reads.
        let servers = if host == "vscode" { "servers" } else { "mcpServers" };
        for block in stdout.split("\n{\n").skip(1) {
            let block = format!("{{\n{}\n}}", block.split("\n}").next().unwrap());
            let parsed: Value = serde_json::from_str(&block).unwrap_or_else(|error| panic!("{host}: {error}: {block}"));
            let server = &parsed[servers]["my-tools"];
            assert!(
                server["command"].is_string() || server["headers"]["Authorization"].is_string(),
                "{host}: {parsed}"
            );
        }
    }
}

/// The command lines in the text for a host. Each begins with the program.
fn commands(host: &str, printed: &str) -> Vec<Vec<String>> {
    let words = |server: &Value| -> Option<Vec<String>> {
        let arguments = server["args"].as_array()?.iter().map(|argument| argument.as_str().unwrap().to_owned());
        Some(std::iter::once(server["command"].as_str()?.to_owned()).chain(arguments).collect())
    };
    if host == "codex" {
        let table = printed.split("\n\n").find(|part| part.contains("command = ")).unwrap();
        let table = toml::de::DeTable::parse(table).unwrap();
        let server = &table.get_ref()["mcp_servers"].get_ref()["tools"].get_ref();
        let arguments = server["args"].get_ref().as_array().unwrap().iter();
        let words = std::iter::once(&server["command"]).chain(arguments);
        return vec![words.map(|word| word.get_ref().as_str().unwrap().to_owned()).collect()];
    }
    let key = if host == "vscode" { "servers" } else { "mcpServers" };
    let objects = printed.split("\n{\n").skip(1).map(|block| {
        let block = format!("{{\n{}\n}}", block.split("\n}").next().unwrap());
        serde_json::from_str::<Value>(&block).unwrap()
    });
    objects.filter_map(|object| words(&object[key]["tools"])).collect()
}

#[tokio::test]
async fn the_printed_command_is_a_server_for_the_host() {
    let place =
        ConfigFolder::new("[server]\nstore = \"sqlite:tasks.db\"\n[tool.hello]\ncommand = [\"echo\", \"hello\"]\n");
    let config = place.path("longhaul.toml");
    for host in ["claude-code", "claude-desktop", "cursor", "vscode", "codex"] {
        let (_, printed, _) = run(&["config", "host", host, "--config", config.to_str().unwrap(), "--name", "tools"]);
        let [command] = &commands(host, &printed)[..] else { panic!("{host}: {printed}") };
        if host == "claude-code" {
            assert!(printed.contains(&format!("claude mcp add tools -- {}\n", command.join(" "))), "{printed}");
        }
        // Hosts start the server in a folder of their choice.
        let mut child = tokio::process::Command::new(&command[0])
            .args(&command[1..])
            .current_dir("/")
            .env("LONGHAUL_PROCESS_DIR", place.path("processes"))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pipe = PipeClient::new(child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut client = pipe.initialize("2025-06-18", json!({})).await;
        let said = client.session_result("tools/call", json!({ "name": "hello", "arguments": {} })).await;
        assert_eq!(said["content"][0]["text"], "hello", "{host}");
        client.finish().await;
        child.wait().await.unwrap();
    }
    let (code, _, stderr) = run(&["config", "host", "codex", "--name", "my tools"]);
    assert_eq!(code, Some(2), "{stderr}");
}

#[tokio::test]
async fn prompts_and_resources_of_the_file_are_offered_and_followed() {
    let config = "[prompt.review]\ndescription = \"Asks.\"\ntext = \"Review it.\"\n[resource.notes]\nuri = \"docs://notes\"\n\
                  file = \"notes.md\"\nmime_type = \"text/markdown\"\n";
    let place = ConfigFolder::new(config);
    std::fs::write(place.path("notes.md"), "first").unwrap();
    let (server, mut client) = place.serve(tasks_and_forms()).await;
    let got = client.send("prompts/get", json!({ "name": "review" })).await.json();
    assert_eq!(got["result"]["messages"][0]["content"]["text"], "Review it.", "{got}");
    let read = async |client: &mut StatelessClient, uri: &str| {
        client.send("resources/read", json!({ "uri": uri })).await.json()["result"]["contents"][0].clone()
    };
    let notes = read(&mut client, "docs://notes").await;
    assert_eq!((&notes["text"], &notes["mimeType"]), (&json!("first"), &json!("text/markdown")));
    std::fs::write(place.path("notes.md"), "second").unwrap();
    assert_eq!(read(&mut client, "docs://notes").await["text"], "second", "a file is read at each request");

    std::fs::write(place.path("longhaul.toml"), "[resource.new]\nuri = \"docs://new\"\ntext = \"new\"\n").unwrap();
    longhaul_testkit::until("the change", async || {
        let listed = client.send("prompts/list", json!({})).await.json();
        listed["result"]["prompts"] == json!([]) && read(&mut client, "docs://new").await["text"] == "new"
    })
    .await;
    assert!(server.stop().await);
}

#[tokio::test]
async fn the_file_sets_what_clients_without_tasks_get() {
    let slow = "[tool.slow]\ncommand = [\"sleep\", \"600\"]\n";
    let named = format!("{slow}[clients_without_tasks]\npatience = \"50ms\"\ntools.status = \"job_status\"\n");
    let place = ConfigFolder::new(&named);
    let (server, mut client) = place.serve(json!({})).await;
    let ticket = client.call("slow", json!({})).await.unwrap();
    let id = ticket["_meta"]["longhaul/task"]["taskId"].clone();
    let stands = client.call("job_status", json!({ "taskId": id })).await.unwrap();
    assert_eq!(stands["_meta"]["longhaul/task"]["status"], "working");
    let refused = client.call("job_status", json!({ "taskId": "" })).await.unwrap();
    assert_eq!(refused["content"][0]["text"], "the task ID cannot be used: it needs at least one character");
    assert!(server.stop().await);

    for (file, flags) in [
        (format!("{slow}[clients_without_tasks]\nenabled = false\n"), &[][..]),
        (named.clone(), &["--patience", "off"][..]),
    ] {
        let place = ConfigFolder::new(&file);
        let launch = flags.iter().fold(place.launch(), crate::kit::Launch::arg);
        let (server, mut client) = launch.start_with_client().await;
        client.capabilities = json!({});
        let listed = client.send("tools/list", json!({})).await.json();
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 1, "{listed}");
        assert!(server.stop().await);
    }
    for wrong in ["0s", "45", "never"] {
        let (code, _, stderr) = run(&["serve", "--patience", wrong]);
        assert_eq!(code, Some(2), "{stderr}");
    }
}

#[tokio::test]
async fn a_prompt_or_resource_whose_file_is_no_regular_file_cannot_be_read() {
    let place = ConfigFolder::new("[prompt.p]\nfile = \"fifo\"\n[resource.r]\nuri = \"docs://r\"\nfile = \"fifo\"\n");
    place.make_fifo("fifo");
    let (server, mut client) = place.serve(tasks_and_forms()).await;
    let error = client.error("resources/read", json!({ "uri": "docs://r" })).await;
    assert_eq!(error["message"], "the file cannot be read", "{error}");
    let error = client.error("prompts/get", json!({ "name": "p" })).await;
    assert_eq!(error["message"], "the file of the prompt cannot be read", "{error}");
    assert!(server.stop().await);
}
