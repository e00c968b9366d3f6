//! Commands of handlers: output, limits, and that nothing of a process group is left.
#![cfg(feature = "command")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use longhaul::command::{Command, CommandError, OutputStream};
use longhaul::testing::run;
use longhaul::{Ctx, Failure, NoArgs, Tool};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

fn tool<F, Fut>(handler: F) -> Tool
where
    F: Fn(Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, Failure>> + Send + 'static,
{
    Tool::new("command", move |ctx: Ctx, _: NoArgs| handler(ctx))
}

fn sh(script: &str) -> Command {
    Command::new("sh").args(["-c", script])
}

/// A script whose first command keeps a named pipe open in the shell and its children, and the end of the pipe that
/// reads. The end is opened before the script starts: neither side has to wait for the other to open it.
fn script_with_pipe(directory: &Path, script: &str) -> (String, pipe::Receiver) {
    let path = directory.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let receiver = pipe::OpenOptions::new().open_receiver(&path).unwrap();
    (format!("exec 3>'{}'; {script}", path.display()), receiver)
}

/// Waits until no process has the pipe open. A process that was not ended writes to it before it ends by itself.
async fn assert_no_process_is_left(mut pipe: pipe::Receiver) {
    let mut written = String::new();
    pipe.read_to_string(&mut written).await.unwrap();
    assert_eq!(written, "");
}

#[tokio::test]
async fn arguments_environment_directory_and_input_reach_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    let expected = format!("a b|$(id)|{}|read me\n", path.display());
    let mut run = run(
        tool(move |ctx| {
            let path = path.clone();
            async move {
                let script = r#"read line; printf '%s|%s|%s|%s\n' "$1" "$WORD" "$PWD" "$line""#;
                let command = sh(script).args(["sh", "a b"]).env("WORD", "$(id)").directory(path);
                command.input("read me\n").output(&ctx).await?.text()
            }
        }),
        json!({}),
    )
    .await;
    assert_eq!(run.result().await.text().unwrap(), expected);
}

#[tokio::test]
async fn lines_come_as_they_are_written_and_a_discarded_one_is_not_in_the_output() {
    let handler = |ctx: Ctx| async move {
        let mut running = sh("echo one; echo err >&2; read answer; echo $answer").open_input("").start().await?;
        let mut seen = Vec::new();
        while let Some(line) = running.next_line(&ctx).await? {
            if line.text() == "one" {
                running.discard(&line);
                running.write("two\n")?;
            }
            seen.push((line.stream, line.text()));
        }
        seen.sort_by_key(|(stream, _)| *stream == OutputStream::Stderr);
        let seen: Vec<_> = seen.into_iter().map(|(_, text)| text).collect();
        let output = running.finish(&ctx).await?;
        Ok(format!("{}|{}|{}", seen.join(","), output.stderr.clone(), output.text()?))
    };
    let mut run = run(tool(handler), json!({})).await;
    assert_eq!(run.result().await.text().unwrap(), "one,two,err|err\n|two\n");
}

#[tokio::test]
async fn a_group_that_ignores_sigterm_is_killed_when_its_time_is_over() {
    let directory = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; (sleep 60; echo left >&3) & echo stuck >&2; wait; sleep 60";
    let (script, pipe) = script_with_pipe(directory.path(), script);
    let handler = move |ctx: Ctx| {
        let command = sh(&script).time_limit(Duration::from_secs(1)).grace(Duration::from_millis(100));
        async move { command.output(&ctx).await?.text() }
    };
    let mut run = run(tool(handler), json!({})).await;
    let error = run.result().await.error().unwrap();
    assert_eq!(error, "the command was ended because it ran for longer than 1 s:\nstuck");
    assert_no_process_is_left(pipe).await;
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_ends_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let (script, pipe) = script_with_pipe(directory.path(), "(sleep 60; echo left >&3) & echo done");
    let handler = move |ctx: Ctx| {
        let command = sh(&script);
        async move { command.output(&ctx).await?.text() }
    };
    let mut run = run(tool(handler), json!({})).await;
    assert_eq!(run.result().await.text().unwrap(), "done\n");
    assert_no_process_is_left(pipe).await;
}

#[tokio::test]
async fn a_command_that_writes_too_much_is_ended() {
    let handler = |ctx: Ctx| async move { sh("yes").output_bytes_max(100_000).output(&ctx).await?.text() };
    let mut run = run(tool(handler), json!({})).await;
    assert!(run.result().await.error().unwrap().contains("more than 100000 bytes"));
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let error = Arc::new(std::sync::Mutex::new(None));
    let kept = Arc::clone(&error);
    let handler = move |_: Ctx| {
        let kept = Arc::clone(&kept);
        async move {
            let failed = Command::new("/no/such/program").start().await.err();
            *kept.lock().unwrap() = failed;
            Ok(String::new())
        }
    };
    run(tool(handler), json!({})).await.result().await;
    let error = error.lock().unwrap().take();
    assert!(matches!(error, Some(CommandError::NotStarted { program, .. }) if program == "/no/such/program"));
}
