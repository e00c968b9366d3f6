//! Token files of the program.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use longhaul::{Owner, Tokens};
use longhaul_testkit::StatelessClient;
use longhaul_testkit::raw::RawRequest;
use serde_json::json;

use crate::kit::{Launch, longhaul, place};
use crate::operator::{Said, run};

/// The output of `longhaul token new`.
async fn new_token(owner: &str, file: &Path) -> String {
    run(&["token", "new", owner, "--token-file", file.to_str().unwrap()]).await.succeeded().trim_end().to_owned()
}

fn with_tokens(file: &Path) -> Launch {
    Launch::conformance().arg("--token-file").arg(file)
}

#[tokio::test]
async fn each_owner_can_be_given_a_token() {
    let (_directory, file) = place("tokens");
    let ada = new_token("ada", &file).await;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // As an editor may save the file.
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.trim_end()).unwrap();
    let bob = new_token("bob", &file).await;
    let (server, mut client) = with_tokens(&file).start_with_client().await;
    client.token = Some(ada);
    let id = client.create("echo", json!({ "text": "hers" })).await.unwrap();
    client.settled(&id).await;
    client.token = Some(bob);
    client.get(&id).await.unwrap_err();
    assert!(!server.log().contains("chmod"), "{}", server.log());
    assert!(server.stop().await);

    std::fs::write(&file, "dear diary").unwrap();
    let refused = run(&["token", "new", "eve", "--token-file", file.to_str().unwrap()]).await;
    assert!(refused.code != 0 && refused.out.is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "dear diary", "it was no token file");
}

#[tokio::test]
async fn a_token_that_could_not_be_used_is_refused() {
    let (_directory, file) = place("tokens");
    let make = |owner: &str| {
        let mut command = tokio::process::Command::new(longhaul());
        command.args(["token", "new", "--token-file"]).arg(&file).args(["--", owner]);
        command
    };
    for owner in ["#ada", " ada", "ada "] {
        assert_eq!(make(owner).output().await.unwrap().status.code(), Some(2), "{owner:?}");
        assert!(!file.exists(), "{owner:?}");
    }
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let unseen = make("ada").stdout(full).stderr(std::process::Stdio::null()).status().await.unwrap();
    assert_eq!(unseen.code(), Some(1));
}

#[tokio::test]
async fn a_token_file_that_others_can_read_is_used_with_a_warning() {
    let (_directory, file) = place("tokens");
    new_token("ada", &file).await;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let server = with_tokens(&file).start().await;
    assert!(server.log().contains("chmod 600"), "{}", server.log());
    assert!(server.stop().await);
}

#[tokio::test]
async fn a_token_file_is_made_for_its_user_alone_and_shows_its_token_once() {
    let (_directory, file) = place("tokens");
    let server = Launch::longhaul().arg("--token-file").arg(&file).start().await;
    let log = server.log();
    assert!(log.contains("shown this once"), "{log}");
    let is_token = |line: &&str| line.len() == 64 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    let token = log.lines().map(str::trim).find(is_token).expect("a token").to_owned();
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(!kept.contains(&token), "only the hash is kept");
    assert_eq!(kept.lines().filter(|line| !line.starts_with('#')).count(), 1, "{kept}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let call = |token: &str| RawRequest::discover().with("Authorization", format!("Bearer {token}"));
    assert_eq!(call(&token).send(server.address()).await.status, 200);
    assert_eq!(
        call(&kept[kept.len() - 65..kept.len() - 1]).send(server.address()).await.status,
        401,
        "the hash is no token"
    );
    assert!(server.stop().await);

    let server = Launch::longhaul().arg("--token-file").arg(&file).start().await;
    assert!(!server.log().contains(&token) && !server.log().contains("shown this once"), "{}", server.log());
    assert_eq!(call(&token).send(server.address()).await.status, 200);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), kept);
}

#[tokio::test]
async fn without_tokens_only_this_machine_is_served() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let Said { code, err: said, .. } = run(&["serve", "--store", "memory:", "--listen", address]).await;
        assert_eq!(code, 5, "{said}");
        assert!(said.contains("add --token-file FILE"), "{said}");
        assert!(said.contains(&address.replace(":0", "")) && said.contains("[TOKEN_NEEDED]"), "{said}");
        assert!(!said.contains("is listening on"), "{said}");
    }
    let server = Launch::longhaul().start().await;
    server.says("only this machine can connect").await;
}

#[tokio::test]
async fn a_bad_token_file_keeps_the_server_from_starting() {
    let (_directory, file) = place("tokens");
    let path = file.to_str().unwrap();
    for (text, why) in [("", "no tokens"), ("# none\n", "no tokens"), ("ada\n", "line 1"), ("\nada 12\n", "line 2")] {
        std::fs::write(&file, text).unwrap();
        let serve = ["serve", "--store", "memory:", "--listen", "127.0.0.1:0", "--token-file", path];
        let Said { code, err: said, .. } = run(&serve).await;
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(why) && said.contains("[BAD_TOKEN_FILE]"), "{said}");
    }
    let Said { code, err: said, .. } = run(&["serve", "--stdio", "--token-file", path]).await;
    assert_eq!(code, 2, "{said}");
}

#[tokio::test]
async fn no_token_can_name_the_owners_local_and_anonymous() {
    let (_directory, file) = place("tokens");
    for name in ["local", "anonymous"] {
        let said = run(&["token", "new", name, "--token-file", file.to_str().unwrap()]).await;
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains(&format!("{name:?} is the server's own name")), "{}", said.err);
        assert!(!file.exists(), "nothing was made");
    }
}

#[tokio::test]
async fn a_broken_token_file_changes_nothing_and_the_log_says_why() {
    let (_directory, file) = place("tokens");
    // Replaced atomically, so that the server never reads a part of it.
    let write = |text: &str| {
        std::fs::write(file.with_extension("new"), text).unwrap();
        std::fs::rename(file.with_extension("new"), &file).unwrap();
    };
    let adas = Tokens::line(&Owner::parse("ada").unwrap(), "adas");
    write(&adas);
    let server = with_tokens(&file).start().await;
    let status = async |token: &str| {
        RawRequest::discover().with("Authorization", format!("Bearer {token}")).send(server.address()).await.status
    };
    let client = StatelessClient::connect(server.address()).await.unwrap().with_token("adas");
    let mut stays = client.listen(&[]).await;
    stays.next().await.unwrap();
    let bobs = Tokens::line(&Owner::parse("bob").unwrap(), "bobs");
    let locals = Tokens::line(&Owner::parse("local").unwrap(), "locals");

    write(&format!("{bobs}\nada secret\n"));
    server.says("line 2 must be an owner's name").await;
    write(&format!("{bobs}\n\n{locals}\n"));
    server.says("line 3: \"local\" is reserved for callers without a token").await;
    std::fs::remove_file(&file).unwrap();
    server.says("No such file").await;
    std::fs::create_dir(&file).unwrap();
    server.says("it is not a regular file").await;
    assert_eq!((status("adas").await, status("bobs").await, status("locals").await), (200, 401, 401));

    std::fs::remove_dir(&file).unwrap();
    write(&format!("{adas}\n{bobs}"));
    server.says("the token file is valid again").await;
    assert_eq!((status("adas").await, status("bobs").await), (200, 200));
    let log = server.log();
    for cause in ["line 2 must", "line 3: ", "not a regular file", "valid again"] {
        assert_eq!(log.matches(cause).count(), 1, "{cause}:\n{log}");
    }
    assert!(log.contains(file.to_str().unwrap()), "{log}");
    assert!(server.stop().await);
    assert!(stays.next().await.unwrap().get("result").is_some(), "Ada's stream was there all the time");
}

#[tokio::test]
async fn the_log_says_that_an_empty_token_file_lets_no_caller_in() {
    let (_directory, file) = place("tokens");
    new_token("ada", &file).await;
    let server = with_tokens(&file).start().await;
    std::fs::write(&file, "# no tokens for now\n").unwrap();
    server.says("no caller is accepted").await;
    assert!(server.stop().await);
}

#[tokio::test]
async fn a_revoked_owner_is_refused_and_the_other_lines_stay() {
    let (_directory, file) = place("tokens");
    let path = file.to_str().unwrap();
    let (first, second) = (new_token("ada", &file).await, new_token("ada", &file).await);
    let bobs = new_token("bob", &file).await;
    let before = std::fs::read_to_string(&file).unwrap();
    let server = with_tokens(&file).start().await;
    let status = async |token: &str| {
        RawRequest::discover().with("Authorization", format!("Bearer {token}")).send(server.address()).await.status
    };
    assert_eq!((status(&first).await, status(&second).await, status(&bobs).await), (200, 200, 200));
    let client = StatelessClient::connect(server.address()).await.unwrap().with_token(&first);
    let mut ends = client.listen(&[]).await;
    ends.next().await.unwrap();

    let said = run(&["token", "revoke", "ada", "--token-file", path]).await;
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("2 tokens of ada"), "{}", said.err);
    let kept: String = before.split_inclusive('\n').filter(|line| !line.starts_with("ada ")).collect();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), kept);
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions()) & 0o777, 0o600);
    while ends.next().await.is_some() {}
    assert_eq!((status(&first).await, status(&second).await, status(&bobs).await), (401, 401, 200));

    run(&["token", "revoke", "ada", "--token-file", path]).await.fails(1, "NO_SUCH_TOKEN");
    let missing = file.with_file_name("nothing");
    run(&["token", "revoke", "ada", "--token-file", missing.to_str().unwrap()]).await.fails(1, "BAD_TOKEN_FILE");
    assert!(!missing.exists());
    assert!(server.stop().await);
}
