//! Command injection through every type of argument, in every place where an argument can be: nothing reaches a shell.

use serde_json::{Value, json};

use crate::ConfigFolder;

/// `show` prints what it receives: arguments of every type as whole words and as parts of words, environment variables, and
/// JSON on standard input. `shell` is a shell script that gets its argument in an environment variable.
const CONFIG: &str = r#"
[tool.show]
command = ["python3", "-c", '''
import json, os, sys
print(json.dumps(dict(argv=sys.argv[1:], env=[os.environ["V"], os.environ["W"]], stdin=json.loads(sys.stdin.readline()))))
''', "{text}", "--text={text}", "{number}", "{flag}", "{object}", "{list}", ["--maybe", "{maybe}"], "end"]
args.text = { type = "string", default = "" }
args.number = { type = "number", default = 1 }
args.flag = { type = "boolean", default = false }
args.object = { type = "object", default = {} }
args.list = { type = "array", default = [] }
args.maybe = { type = "string", required = false }
env.V = "{text}"
env.W = "{list}"
stdin = "json"
output = "json"

[tool.shell]
shell = true
command = 'printf %s "$TEXT"'
args.text = { type = "string" }
env.TEXT = "{text}"
"#;

const NASTY: [&str; 14] = [
    "; touch @/pwned",
    "$(touch @/pwned)",
    "`touch @/pwned`",
    "| touch @/pwned",
    "&& touch @/pwned",
    "\n touch @/pwned \n",
    "' ; touch @/pwned ; '",
    "\" ; touch @/pwned ; \"",
    "> @/pwned",
    "${IFS}touch${IFS}@/pwned",
    "{text} {flag}",
    "* ? [a-z] ~",
    "a  b\tc",
    "longhaul: {\"status\":\"no\"}",
];

#[tokio::test]
async fn no_argument_of_any_type_reaches_a_shell() {
    let place = ConfigFolder::new(CONFIG);
    // A client without tasks gets each result as the answer to its call.
    let (server, mut client) = place.serve(json!({})).await;
    for nasty in NASTY {
        let nasty = nasty.replace('@', place.folder.path().to_str().unwrap());
        let object = json!({ &nasty: [&nasty] });
        let arguments = json!({ "text": nasty, "object": object, "list": [&nasty, &nasty], "maybe": nasty });
        let shown = client.call("show", arguments).await.unwrap();
        let shown = &shown["structuredContent"];
        let expected = json!([
            &nasty,
            format!("--text={nasty}"),
            "1",
            "false",
            object.to_string(),
            &nasty,
            &nasty,
            "--maybe",
            &nasty,
            "end"
        ]);
        assert_eq!(shown["argv"], expected);
        assert_eq!(shown["env"], json!([&nasty, json!([&nasty, &nasty]).to_string()]));
        assert_eq!(shown["stdin"]["text"], nasty);

        let shown = client.call("shell", json!({ "text": nasty })).await.unwrap();
        assert_eq!(shown["content"][0]["text"], nasty.trim_end_matches(['\n', '\r']));
        assert!(!place.path("pwned").exists(), "{nasty}");
    }
    // A value of another type is refused.
    for (name, wrong) in [("number", json!("1; touch pwned")), ("flag", json!("$(touch pwned)")), ("list", json!([1]))]
    {
        let refused = client.call("show", json!({ name: wrong })).await.unwrap();
        assert_eq!(refused["isError"], true, "{refused}");
    }
    let numbers = client.call("show", json!({ "number": -1.5, "flag": true })).await.unwrap();
    let argv = &numbers["structuredContent"]["argv"];
    assert_eq!((&argv[2], &argv[3]), (&Value::from("-1.5"), &Value::from("true")));
    assert_eq!(argv.as_array().unwrap().len(), 6, "an argument that was not given is left out with its flag: {argv}");
    let refused = client.call("show", json!({ "text": "a\u{0}b" })).await.unwrap();
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(!place.path("pwned").exists());
    assert!(server.stop().await);
}
