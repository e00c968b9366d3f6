//! Starts the programs under test as processes.
//!
//! ```ignore
//! let server = Launch::conformance().store(&file).start().await;
//! let mut client = StatelessClient::connect(server.address()).await?;
//! server.kill().await;
//! ```
#![allow(dead_code, reason = "each test binary uses its part")]

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use longhaul_testkit::{StatelessClient, in_time};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, oneshot};

/// The command line of a server: on a free port, and with a store in memory unless a test sets another.
pub(crate) struct Launch {
    wrapper: Vec<OsString>,
    program: PathBuf,
    command: Option<&'static str>,
    store: String,
    arguments: Vec<OsString>,
}

impl Launch {
    /// `longhaul serve`
    pub(crate) fn longhaul() -> Self {
        Self::of(longhaul(), Some("serve"))
    }

    /// The example with the tools that tests call.
    pub(crate) fn conformance() -> Self {
        Self::of(conformance_program(), None)
    }

    fn of(program: PathBuf, command: Option<&'static str>) -> Self {
        Self { wrapper: Vec::new(), program, command, store: "memory:".into(), arguments: Vec::new() }
    }

    pub(crate) fn store(mut self, file: &Path) -> Self {
        self.store = format!("sqlite:{}", file.display());
        self
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Runs the server under another program, such as `strace -f`.
    pub(crate) fn under<A: Into<OsString>>(mut self, wrapper: impl IntoIterator<Item = A>) -> Self {
        self.wrapper = wrapper.into_iter().map(Into::into).collect();
        self
    }

    /// Starts the process, without waiting.
    pub(crate) fn spawn(self) -> Starting {
        let mut words = self.wrapper;
        words.push(self.program.into());
        words.extend(self.command.map(OsString::from));
        words.extend(["--listen".into(), "127.0.0.1:0".into(), "--store".into(), self.store.into()]);
        words.extend(self.arguments);
        let mut command = Command::new(&words[0]);
        // A process group, so that a wrapper and its server end together.
        command.args(&words[1..]).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("{} does not start: {error}", words[0].display()));
        let group = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).expect("a new child has an ID");
        let stderr = child.stderr.take().expect("standard error is a pipe");
        let log = StderrLog::default();
        let (greeted, greeting) = oneshot::channel();
        tokio::spawn(read_log(stderr, log.clone(), greeted));
        Starting { process: ProcessGroup { child, group }, log, greeting }
    }

    pub(crate) async fn start(self) -> ServerProcess {
        self.spawn().listening().await
    }

    /// Starts the server and connects a client that declares tasks and forms.
    pub(crate) async fn start_with_client(self) -> (ServerProcess, StatelessClient) {
        let server = self.start().await;
        let client = StatelessClient::connect(server.address()).await.unwrap();
        (server, client)
    }
}

/// A wrapper for a process that [`ServerProcess::limit_files`] limits: a write past the limit fails only if the signal is ignored.
pub(crate) const IGNORE_FILE_LIMIT: [&str; 3] = ["sh", "-c", r#"trap "" XFSZ; exec "$0" "$@""#];

/// A new directory, and the path of a file of this name in it.
pub(crate) fn place(name: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(name);
    (directory, file)
}

pub(crate) fn longhaul() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_longhaul"))
}

pub(crate) fn conformance_program() -> PathBuf {
    let program = longhaul().with_file_name("examples").join("conformance");
    assert!(
        program.exists(),
        "{} is missing: build it with `cargo build -p longhaul-cli --example conformance`, or let \
         `cargo test -p longhaul-cli` (without --test) build all examples",
        program.display()
    );
    program
}

/// The lines that a process has written to standard error.
#[derive(Clone, Default)]
struct StderrLog(Arc<(Mutex<Vec<String>>, Notify)>);

impl StderrLog {
    fn text(&self) -> String {
        self.0.0.lock().unwrap().join("\n")
    }

    fn add(&self, line: String) {
        self.0.0.lock().unwrap().push(line);
        self.0.1.notify_waiters();
    }

    async fn until(&self, words: &str) {
        loop {
            let more = self.0.1.notified();
            if self.text().contains(words) {
                return;
            }
            more.await;
        }
    }
}

/// Reads all lines, so that the process never waits for a reader, and finds the address in them.
async fn read_log(stderr: tokio::process::ChildStderr, log: StderrLog, greeted: oneshot::Sender<SocketAddr>) {
    let mut greeted = Some(greeted);
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let address = line.split_once("listening on http://").and_then(|(_, rest)| rest.strip_suffix("/mcp"));
        if let Some(address) = address.and_then(|address| address.parse().ok())
            && let Some(greeted) = greeted.take()
        {
            let _ = greeted.send(address);
        }
        log.add(line);
    }
}

struct ProcessGroup {
    child: Child,
    group: Pid,
}

impl ProcessGroup {
    async fn kill(mut self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        in_time("the end of a killed process", self.child.wait()).await.expect("a child can be waited for");
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // After the wait the system may use the ID for another process.
        if self.child.id().is_some() {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }
}

pub(crate) struct Starting {
    process: ProcessGroup,
    log: StderrLog,
    greeting: oneshot::Receiver<SocketAddr>,
}

impl Starting {
    /// Waits until the server has printed its address.
    pub(crate) async fn listening(self) -> ServerProcess {
        let Self { process, log, greeting } = self;
        let greeted = in_time("the greeting of a server", greeting).await;
        let address =
            greeted.unwrap_or_else(|_| panic!("the server ended instead of listening; it said:\n{}", log.text()));
        ServerProcess { process, log, address }
    }

    /// Kills it with SIGKILL.
    pub(crate) async fn kill(self) {
        self.process.kill().await;
    }
}

pub(crate) struct ServerProcess {
    process: ProcessGroup,
    log: StderrLog,
    address: SocketAddr,
}

impl ServerProcess {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The ID of its process, or of its wrapper.
    pub(crate) fn pid(&self) -> i32 {
        self.process.group.as_raw_nonzero().get()
    }

    pub(crate) fn log(&self) -> String {
        self.log.text()
    }

    /// Waits until this text is in its standard error.
    pub(crate) async fn says(&self, words: &str) {
        in_time(&format!("a server that says {words:?}"), self.log.until(words)).await;
    }

    /// Lets no file of the process grow past this size, as if its disk were full. The process must run under
    /// [`IGNORE_FILE_LIMIT`].
    #[cfg(target_os = "linux")]
    pub(crate) fn limit_files(&self, bytes_max: Option<u64>) {
        use rustix::process::{Resource, Rlimit, prlimit};
        let limit = Rlimit { current: bytes_max, maximum: None };
        prlimit(Some(self.process.group), Resource::Fsize, limit).expect("the limit of a child can be set");
    }

    /// Sends a signal, without waiting.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process_group(self.process.group, signal).expect("the process is there");
    }

    pub(crate) async fn exit_code(mut self) -> Option<i32> {
        let ended = in_time("the end of a server", self.process.child.wait()).await;
        ended.expect("a child can be waited for").code()
    }

    /// Kills it with SIGKILL.
    pub(crate) async fn kill(self) {
        self.process.kill().await;
    }

    /// Sends SIGTERM to it and its wrapper, and waits for the end. Returns whether it succeeded.
    pub(crate) async fn stop(mut self) -> bool {
        let _ = kill_process_group(self.process.group, Signal::TERM);
        let ended = in_time("the end of a server that was told to stop", self.process.child.wait()).await;
        ended.expect("a child can be waited for").success()
    }
}
