//! A command: runs another program, and kills it with everything that it has started when the task is cancelled.
//!
//! `cargo run --release -p longhaul --example command`

use std::process::{Output, Stdio};

use longhaul::{Ctx, Failure, NoArgs, Server, StoreUrl, Tool};
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessGroup};

/// A tool that runs `sh -c SCRIPT`. The script comes from the server, not from the caller.
fn script(name: &str, script: &'static str) -> Tool {
    Tool::new(name, move |ctx: Ctx, _: NoArgs| async move {
        let output = tokio::select! {
            output = run(script) => output?,
            // The task is cancelled, whatever this returns. Returning drops `run`, which kills the processes.
            () = ctx.cancelled() => return Err(Failure::tool("stopped")),
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() { Ok(text) } else { Err(Failure::tool(format!("{}: {text}", output.status))) }
    })
    // By default a crash of the server fails the task: a script may do harm if it runs twice.
}

/// Runs a script in a process group of its own. When this future is dropped, the group is killed: also when the client of an
/// ordinary call goes away, or when a cancelled handler does not end in time.
async fn run(script: &str) -> std::io::Result<Output> {
    let mut command = CommandWrap::with_new("sh", |command| {
        command.arg("-c").arg(script).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    let mut group = KilledOnDrop(Some(command.wrap(ProcessGroup::leader()).spawn()?));
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let child = group.0.as_mut().expect("it was just started");
    let (out, err) = (child.stdout().take(), child.stderr().take());
    tokio::try_join!(read(out, &mut stdout), read(err, &mut stderr))?;
    let status = child.wait().await?;
    group.0 = None;
    Ok(Output { status, stdout, stderr })
}

async fn read(pipe: Option<impl tokio::io::AsyncRead + Unpin>, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    use tokio::io::AsyncReadExt as _;
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(bytes).await?;
    }
    Ok(())
}

struct KilledOnDrop(Option<Box<dyn ChildWrapper>>);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        if let Some(group) = &mut self.0 {
            let _ = group.start_kill();
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let disk_use = script("disk_use", "du -sh .").description("How much space the folder of the server takes.");
    let store = "sqlite:commands.db".parse::<StoreUrl>()?.open().await?;
    let server = Server::new("commands").tool(disk_use).start(store).await?;
    Ok(server.listen("127.0.0.1:8377".parse()?).await?.serve_until(tokio::signal::ctrl_c()).await?)
}

#[tokio::test]
async fn a_script_answers_with_what_it_prints() {
    let mut run = longhaul::testing::run(script("hello", "echo hello"), serde_json::json!({})).await;
    assert_eq!(run.result().await.text().unwrap(), "hello\n");
    let mut run = longhaul::testing::run(script("fail", "echo no; exit 3"), serde_json::json!({})).await;
    assert_eq!(run.result().await.error().unwrap(), "exit status: 3: no\n");
}

#[tokio::test]
async fn a_cancelled_script_is_killed_with_its_children() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let sleeps = format!("sleep 1000 >'{}' & wait", pipe.display());
    let mut run = longhaul::testing::run(script("sleeps", sleeps.leak()), serde_json::json!({})).await;
    run.start().await;
    // This waits until the sleeper has opened the pipe.
    let mut pipe = tokio::fs::File::open(&pipe).await.unwrap();
    run.cancel().await;
    assert!(run.result().await.is_cancelled());
    // The pipe ends when the sleeper, a child of the script, is dead.
    read(Some(&mut pipe), &mut Vec::new()).await.unwrap();
}
