//! Which lines of a command are messages, and what is said about one that cannot be obeyed.

use longhaul::command::LINE_BYTES_MAX;
use longhaul_testkit::tasks_and_forms;
use serde_json::{Value, json};

use crate::ConfigFolder;

const CONFIG: &str = r#"
[tool.say]
shell = true
command = 'printf %s "$TEXT"'
args.text = { type = "string" }
env.TEXT = "{text}"
messages = "stdout"
"#;

/// Calls `say` with each text, and passes the results to `check`.
async fn say(cases: &[(String, &str)], check: impl Fn(&Value, &str)) {
    let place = ConfigFolder::new(CONFIG);
    let (server, mut client) = place.serve(json!({ "elicitation": {} })).await;
    for (text, expected) in cases {
        let result = client.call("say", json!({ "text": text })).await.unwrap();
        check(&result, expected);
    }
    assert!(server.stop().await);
}

#[tokio::test]
async fn only_a_line_that_begins_with_the_prefix_is_a_message() {
    let status = r#"longhaul: {"status": "s"}"#;
    let long = "x".repeat(LINE_BYTES_MAX);
    let inside = format!("{long}longhaul: inside of a line");
    let cases = [
        (format!("a\n{status}\nb\n{status}"), "a\nb"),
        (format!("50%\r{status}\r\nb"), "50%\rb"),
        ("  longhaul: no\n\tlonghaul: no".to_owned(), "  longhaul: no\n\tlonghaul: no"),
        (inside.clone(), &*inside),
    ];
    say(&cases, |result, expected| {
        assert_ne!(result["isError"], true, "{result}");
        assert!(result["content"][0]["text"] == expected, "{} is expected", &expected[..expected.len().min(99)]);
    })
    .await;
}

#[tokio::test]
async fn a_message_is_obeyed_up_to_its_limit_and_refused_past_it() {
    let with_length = |bytes: usize| {
        let line = |padding| format!("longhaul: {{\"log\": \"{padding}\"}}\n");
        line("x".repeat(bytes - line(String::new()).len()))
    };
    let cases = [(with_length(LINE_BYTES_MAX), "")];
    say(&cases, |result, expected| {
        assert_ne!(result["isError"], true, "{result}");
        assert_eq!(result["content"][0]["text"], expected);
    })
    .await;
    let refusal = "The command wrote a message that is too long: a line that begins with `longhaul:` can have at most 65536 \
                   bytes, with its line break";
    let cases =
        [(with_length(LINE_BYTES_MAX + 1), refusal), (with_length(LINE_BYTES_MAX + 1).trim_end().to_owned(), refusal)];
    say(&cases, is_error).await;
}

#[tokio::test]
async fn a_question_with_a_bad_label_is_a_tool_error_in_calls_and_tasks() {
    let ask = |label: &str| format!("longhaul: {}\n", json!({ "ask": label }));
    let too_long = "x".repeat(65);
    let place = ConfigFolder::new(CONFIG);
    let (server, mut client) = place.serve(tasks_and_forms()).await;
    for label in ["", "a/b:c", &too_long] {
        let expected = format!("The command cannot ask {label:?}: a question's label must have 1 to 64 characters");
        client.capabilities = json!({ "elicitation": {} });
        is_error(&client.call("say", json!({ "text": ask(label) })).await.unwrap(), &expected);
        client.capabilities = tasks_and_forms();
        let id = client.create("say", json!({ "text": ask(label) })).await.unwrap();
        is_error(&client.settled(&id).await.value["result"], &expected);
    }
    assert!(server.stop().await);
}

#[tokio::test]
async fn a_line_that_is_no_message_is_refused_in_plain_words() {
    let one_kind = "`progress`, `status`, `log` and `ask`";
    let cases = [
        ("[]", "it is not an object of JSON"),
        ("no", "it is not JSON: "),
        (r#"{"progress": "1"}"#, "`progress` must be a number"),
        (r#"{"progress": 1, "total": true}"#, "`total` must be a number"),
        (r#"{"progress": 1, "message": 1}"#, "`message` must be a text"),
        (r#"{"status": {}}"#, "`status` must be a text"),
        (r#"{"ask": 1}"#, "`ask` must be a text"),
        (r#"{"log": 1, "level": "loud"}"#, "`level` must be `debug`, `info`, `notice`, `warning` or `error`"),
        (r#"{"log": 1, "level": 1}"#, "`level` must be `debug`, `info`, `notice`, `warning` or `error`"),
        (r#"{"status": "s", "more": 1}"#, "it has `more`, which no message has"),
        (r#"{"total": 1}"#, &format!("it has none of {one_kind}")),
        (r#"{"progress": 1, "status": "s"}"#, &format!("it has more than one of {one_kind}; write a line for each")),
    ]
    .map(|(message, expected)| {
        let why = "The command wrote a line that begins with `longhaul:` and cannot be read";
        (format!("longhaul: {message}\n"), format!("{why} ({expected}"))
    });
    let cases: Vec<(String, &str)> = cases.iter().map(|(text, expected)| (text.clone(), &**expected)).collect();
    say(&cases, is_error).await;
}

fn is_error(result: &Value, expected: &str) {
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(expected), "{expected:?} is not in {text:?}");
}
