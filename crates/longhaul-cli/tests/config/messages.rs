//! Which lines of a command are messages, and what is said about one that cannot be obeyed.

use longhaul_testkit::StatelessClient;
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

/// The length of a line that is read as a whole, with its line break.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Calls `say` with each text, and passes the results to `check`.
async fn say(cases: &[(String, &str)], check: impl Fn(&Value, &str)) {
    let place = ConfigFolder::new(CONFIG);
    let server = place.launch().start().await;
    let mut client = StatelessClient::connect(server.address()).await.unwrap();
    client.capabilities = json!({ "elicitation": {} });
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
