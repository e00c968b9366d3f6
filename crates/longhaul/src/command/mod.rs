//! Other programs, for tools that run them.
//!
//! A [`Command`] runs in a process group of its own. When its task is cancelled, when its time is over, and when its handler is
//! dropped, the whole group ends: with SIGTERM, and after a grace period with SIGKILL. If the server dies, the next one ends what
//! is left of its commands before it starts a task, so that two attempts never run side by side.
//!
//! ```
//! use longhaul::command::Command;
//! use longhaul::{Ctx, Failure, NoArgs, Tool};
//!
//! let disk_use = Tool::new("disk_use", |ctx: Ctx, _: NoArgs| async move {
//!     Command::new("du").args(["-sh", "."]).output(&ctx).await?.text()
//! });
//! ```
//!
//! Output can be read line by line, for example to report progress:
//!
//! ```
//! use longhaul::command::{Command, OutputStream};
//! use longhaul::{Ctx, Failure};
//!
//! async fn build(mut ctx: Ctx) -> Result<String, Failure> {
//!     let mut make = Command::new("make").arg("all").start().await?;
//!     let mut lines = 0;
//!     while let Some(line) = make.next_line(&ctx).await? {
//!         lines += 1;
//!         ctx.progress(lines, None, &line.text()).await?;
//!     }
//!     make.finish(&ctx).await?.text()
//! }
//! ```
//!
//! # Where processes are recorded
//!
//! Records of running commands are in `/tmp/longhaul-UID` (elsewhere in the directory for temporary files), or in the directory
//! that the environment variable `LONGHAUL_PROCESS_DIR` names. Only this user may be able to write to it. Each process of a
//! command has the variable `LONGHAUL_RUN` in its environment; a process that should outlive its command starts a session of its
//! own (`setsid`), and is ended only if the server dies while the command runs.

mod group;
mod leftover;
mod lines;
mod process;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use longhaul_engine::{Ctx, CtxError, Failure};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::group::Group;
pub use self::lines::LINE_BYTES_MAX;
use self::lines::LineReader;

/// How long the processes of a group may take to end after SIGTERM, unless the command says otherwise. Shorter than the time that
/// a cancelled handler has.
const COMMAND_GRACE_TIME_MAX: Duration = Duration::from_secs(2);

/// The most bytes of standard output that are kept, unless the command says otherwise.
const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// The end of standard error that is kept.
const STDERR_BYTES_MAX: usize = 4 << 10;

/// How long output is read after the last process of a group has ended. Only a process that has left the group can still write.
const REST_TIME_MAX: Duration = Duration::from_secs(1);

/// A program to run, with its arguments. No shell is involved.
#[derive(Debug, Clone)]
pub struct Command {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: Option<PathBuf>,
    input: StandardInput,
    time_limit: Option<Duration>,
    grace: Duration,
    output_bytes_max: usize,
}

#[derive(Debug, Clone)]
enum StandardInput {
    Nothing,
    Bytes(Vec<u8>),
    Open(Vec<u8>),
    Endless(Vec<u8>),
}

impl Command {
    /// A program, by its path, or by its name if it is in one of the directories of `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            directory: None,
            input: StandardInput::Nothing,
            time_limit: None,
            grace: COMMAND_GRACE_TIME_MAX,
            output_bytes_max: OUTPUT_BYTES_MAX,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds several arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment. The others are those of the server.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The working directory. By default it is the server's.
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// What the program reads from standard input. By default it reads nothing.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = StandardInput::Bytes(bytes.into());
        self
    }

    /// Like [`input`](Self::input), and standard input stays open for [`RunningCommand::write`].
    pub fn open_input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = StandardInput::Open(bytes.into());
        self
    }

    /// Like [`open_input`](Self::open_input), and on Linux the program never finds the end of standard input: not when it is
    /// ended, and not when the server dies. So a program that waits for an answer does not take the end of its input for one in
    /// the moment before it is ended. A program that reads to the end of its input waits for ever.
    pub fn endless_input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = StandardInput::Endless(bytes.into());
        self
    }

    /// The longest time that the program may run. The time between two calls of [`RunningCommand::next_line`], in which a
    /// handler waits for an answer for example, does not count.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// How long the processes of the group may take to end after SIGTERM, before they are killed. Default: 2 s. The handler
    /// must have more time to end than that: see [`ToolLimits::grace_ms`](crate::ToolLimits::grace_ms), 5 s by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// The most bytes of standard output that [`finish`](RunningCommand::finish) returns. A program that writes more is ended.
    /// Default: 8 MiB.
    pub fn output_bytes_max(mut self, bytes: usize) -> Self {
        self.output_bytes_max = bytes;
        self
    }

    /// Starts the program. The first command of a process ends what dead servers have left behind.
    pub async fn start(self) -> Result<RunningCommand, CommandError> {
        let program = self.program.display().to_string();
        let (time_limit, grace, output_bytes_max) = (self.time_limit, self.grace, self.output_bytes_max);
        let failed = |cause: io::Error| CommandError::NotStarted { program: program.clone(), cause };
        let started = tokio::task::spawn_blocking(move || self.spawn()).await;
        let (mut group, stdin, input) =
            started.map_err(io::Error::other).and_then(|started| started).map_err(&failed)?;
        let child = group.child_mut().ok_or_else(|| failed(io::Error::other("it is gone")))?;
        let (stdin, stdout, stderr) = (child.stdin.take().or(stdin), child.stdout.take(), child.stderr.take());
        let no_pipe = || failed(io::Error::other("its output is not a pipe"));
        let stdout = ChildStdout::from_std(stdout.ok_or_else(no_pipe)?).map_err(&failed)?;
        let stderr = ChildStderr::from_std(stderr.ok_or_else(no_pipe)?).map_err(&failed)?;
        let stdin = stdin.map(ChildStdin::from_std).transpose().map_err(&failed)?;
        let stdin = match (stdin, input) {
            (Some(stdin), StandardInput::Bytes(bytes)) => {
                InputWriter::start(stdin, bytes);
                None
            }
            (Some(stdin), StandardInput::Open(bytes) | StandardInput::Endless(bytes)) => {
                Some(InputWriter::start(stdin, bytes))
            }
            (_, StandardInput::Nothing) | (None, _) => None,
        };
        Ok(RunningCommand {
            group: Some(group),
            status: None,
            stdin,
            stdout: LineReader::new(stdout),
            stderr: LineReader::new(stderr),
            kept: KeptOutput { stdout: Vec::new(), stderr: Vec::new(), stdout_bytes_max: output_bytes_max },
            time_limit,
            used: Duration::ZERO,
            rest_until: None,
            grace,
        })
    }

    /// Runs the program to its end.
    pub async fn output(self, ctx: &Ctx) -> Result<CommandOutput, CommandError> {
        self.start().await?.finish(ctx).await
    }

    /// Also returns the writing end of an endless input.
    fn spawn(self) -> io::Result<(Group, Option<std::process::ChildStdin>, StandardInput)> {
        let mut command = std::process::Command::new(self.program);
        command.args(self.arguments).envs(self.environment).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut stdin = None;
        command.stdin(match self.input {
            StandardInput::Nothing => Stdio::null(),
            StandardInput::Bytes(_) | StandardInput::Open(_) => Stdio::piped(),
            StandardInput::Endless(_) => {
                let (reader, writer) = io::pipe()?;
                stdin = Some(OwnedFd::from(writer).into());
                endless(reader)
            }
        });
        if let Some(directory) = self.directory {
            command.current_dir(directory);
        }
        Ok((Group::start(&mut command)?, stdin, self.input))
    }
}

/// Opens a pipe for reading and writing. A pipe has no end as long as it is open for writing in some process, and the process
/// that reads this one has it open.
fn endless(reader: io::PipeReader) -> Stdio {
    let name = format!("/proc/self/fd/{}", reader.as_raw_fd());
    match File::options().read(true).write(true).open(name) {
        Ok(file) => file.into(),
        // Only Linux can open a pipe by such a name.
        Err(_) => reader.into(),
    }
}

/// Writes to standard input beside the handler: a program that reads slowly, or writes before it reads, stops nothing else.
/// Dropping it closes standard input once everything is written.
#[derive(Debug)]
struct InputWriter(mpsc::UnboundedSender<Vec<u8>>);

impl InputWriter {
    fn start(mut stdin: ChildStdin, first: Vec<u8>) -> Self {
        let (sender, mut waiting) = mpsc::unbounded_channel::<Vec<u8>>();
        tokio::spawn(async move {
            let mut next = Some(first);
            while let Some(bytes) = next {
                // A program may end without having read everything.
                if stdin.write_all(&bytes).await.is_err() {
                    break;
                }
                next = waiting.recv().await;
            }
        });
        Self(sender)
    }
}

/// Ends the processes that dead servers of this user have left behind, and waits until they are gone.
/// [`Server::start`](crate::Server::start) does this, and so does the first command of a process.
pub async fn end_leftovers() -> io::Result<()> {
    tokio::task::spawn_blocking(leftover::end_leftovers).await.map_err(io::Error::other)?
}

/// Why a command gave no output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// It could not be started.
    #[error("cannot start {program:?}: {cause}")]
    NotStarted {
        /// The program, as it was given.
        program: String,
        /// What the system said.
        cause: io::Error,
    },
    /// It ran for too long, and was ended.
    #[error("the command was ended because it ran for longer than {}{}", seconds(*limit), said(stderr))]
    TimeLimit {
        /// Its time limit.
        limit: Duration,
        /// The end of its standard error.
        stderr: String,
    },
    /// It wrote too much, and was ended.
    #[error("the command was ended because it wrote more than {bytes_max} bytes to standard output")]
    OutputTooLarge {
        /// Its limit.
        bytes_max: usize,
    },
    /// Its task was cancelled, and it was ended.
    #[error("{0}")]
    Cancelled(#[source] CtxError),
    /// The system refused an operation on it.
    #[error("{0}")]
    System(#[from] io::Error),
}

fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}

fn said(stderr: &str) -> String {
    let stderr = stderr.trim_end();
    if stderr.is_empty() { String::new() } else { format!(":\n{stderr}") }
}

/// The end of a command.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CommandOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output, without the lines that [`RunningCommand::discard`] took out.
    pub stdout: Vec<u8>,
    /// The end of what it wrote to standard error: at most 4 KiB.
    pub stderr: String,
}

impl CommandOutput {
    /// Its standard output as text; a tool error with the end of its standard error if it did not succeed.
    pub fn text(self) -> Result<String, Failure> {
        if self.status.success() {
            return Ok(into_text(self.stdout));
        }
        let Self { status, stdout, stderr } = self;
        // Some programs say what is wrong on standard output.
        let stderr = if stderr.trim().is_empty() { into_text(last(stdout)) } else { stderr };
        Err(Failure::tool(format!("The command failed ({status}){}", said(&stderr))))
    }
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn last(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.drain(..bytes.len().saturating_sub(STDERR_BYTES_MAX));
    bytes
}

/// The output streams of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A line of output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputLine {
    /// Where it was written.
    pub stream: OutputStream,
    /// The line with its line break. A line of more than [`LINE_BYTES_MAX`] bytes comes in pieces.
    pub bytes: Vec<u8>,
}

impl OutputLine {
    /// The text without its line break.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim_end_matches(['\n', '\r']).to_owned()
    }
}

#[derive(Debug)]
struct KeptOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    stdout_bytes_max: usize,
}

impl KeptOutput {
    fn keep(&mut self, line: &OutputLine) -> Result<(), CommandError> {
        match line.stream {
            OutputStream::Stdout => {
                if self.stdout.len() + line.bytes.len() > self.stdout_bytes_max {
                    return Err(CommandError::OutputTooLarge { bytes_max: self.stdout_bytes_max });
                }
                self.stdout.extend_from_slice(&line.bytes);
            }
            OutputStream::Stderr => {
                self.stderr.extend_from_slice(&line.bytes);
                if self.stderr.len() > 2 * STDERR_BYTES_MAX {
                    self.stderr = last(std::mem::take(&mut self.stderr));
                }
            }
        }
        Ok(())
    }

    fn stderr(&self) -> String {
        into_text(last(self.stderr.clone()))
    }
}

/// A command that runs. Dropping it ends its process group.
#[derive(Debug)]
pub struct RunningCommand {
    /// `None` once it has ended.
    group: Option<Group>,
    status: Option<ExitStatus>,
    stdin: Option<InputWriter>,
    stdout: LineReader<ChildStdout>,
    stderr: LineReader<ChildStderr>,
    kept: KeptOutput,
    time_limit: Option<Duration>,
    used: Duration,
    /// Until when the rest of its output is read, once its processes have ended.
    rest_until: Option<Instant>,
    grace: Duration,
}

impl RunningCommand {
    /// Waits for the next line of either output stream. `None` when the program and everything in its process group has ended and
    /// all output was read. The lines are also kept for [`finish`](Self::finish).
    ///
    /// When the task is cancelled, or the time limit is reached, the process group is ended, and then this returns an error.
    pub async fn next_line(&mut self, ctx: &Ctx) -> Result<Option<OutputLine>, CommandError> {
        let begin = Instant::now();
        let line = self.wait_for_line(ctx, begin).await;
        self.used += begin.elapsed();
        if line.is_err() {
            self.end().await?;
        }
        line
    }

    async fn wait_for_line(&mut self, ctx: &Ctx, begin: Instant) -> Result<Option<OutputLine>, CommandError> {
        let time_limit = self.time_limit.map(|limit| (limit, begin + limit.saturating_sub(self.used)));
        loop {
            if self.stdout.has_ended() && self.stderr.has_ended() && self.group.is_none() {
                return Ok(None);
            }
            let next = tokio::select! {
                biased;
                () = ctx.cancelled() => return Err(CommandError::Cancelled(CtxError::Cancelled)),
                limit = reached(time_limit) => return Err(CommandError::TimeLimit { limit, stderr: self.kept.stderr() }),
                line = self.stdout.next(), if !self.stdout.has_ended() => (OutputStream::Stdout, line?),
                line = self.stderr.next(), if !self.stderr.has_ended() => (OutputStream::Stderr, line?),
                exited = exited(self.group.as_ref()) => {
                    exited?;
                    // What it has started in the background ends with it.
                    self.end().await?;
                    continue;
                }
                () = reached_instant(self.rest_until) => return Ok(None),
            };
            if let (stream, Some(bytes)) = next {
                let line = OutputLine { stream, bytes };
                self.kept.keep(&line)?;
                return Ok(Some(line));
            }
        }
    }

    /// Waits until the program itself has ended. Use it beside something that only the running program needs, such as the answer
    /// to a question that it asked.
    pub async fn exited(&self) -> io::Result<()> {
        match &self.group {
            Some(group) => group.exited().await,
            None => Ok(()),
        }
    }

    /// Removes a line from what [`finish`](Self::finish) returns. It must be the last one of its stream that was read.
    pub fn discard(&mut self, line: &OutputLine) {
        let kept = match line.stream {
            OutputStream::Stdout => &mut self.kept.stdout,
            OutputStream::Stderr => &mut self.kept.stderr,
        };
        if kept.ends_with(&line.bytes) {
            kept.truncate(kept.len() - line.bytes.len());
        }
    }

    /// Writes to standard input, without waiting for the program to read it. The command must have been made with
    /// [`Command::open_input`].
    pub fn write(&mut self, bytes: impl Into<Vec<u8>>) -> io::Result<()> {
        let is_written = self.stdin.as_ref().is_some_and(|stdin| stdin.0.send(bytes.into()).is_ok());
        if is_written { Ok(()) } else { Err(io::Error::new(io::ErrorKind::BrokenPipe, "standard input is not open")) }
    }

    /// Closes standard input, reads the rest of the output and waits for the end.
    pub async fn finish(mut self, ctx: &Ctx) -> Result<CommandOutput, CommandError> {
        self.stdin = None;
        while self.next_line(ctx).await?.is_some() {}
        let status = self.status.ok_or_else(|| io::Error::other("the exit status is not known"))?;
        Ok(CommandOutput { status, stderr: self.kept.stderr(), stdout: std::mem::take(&mut self.kept.stdout) })
    }

    async fn end(&mut self) -> io::Result<()> {
        if let Some(group) = &mut self.group {
            // It stays in its place meanwhile: if this future is dropped, so is the group.
            self.status = Some(group.end(self.grace).await?);
            self.group = None;
            self.rest_until = Some(Instant::now() + REST_TIME_MAX);
        }
        Ok(())
    }
}

async fn reached(limit: Option<(Duration, Instant)>) -> Duration {
    match limit {
        Some((limit, until)) => {
            tokio::time::sleep_until(until).await;
            limit
        }
        None => std::future::pending().await,
    }
}

async fn reached_instant(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

async fn exited(group: Option<&Group>) -> io::Result<()> {
    match group {
        Some(group) => group.exited().await,
        None => std::future::pending().await,
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if let Some(mut group) = self.group.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let grace = self.grace;
            // If the runtime ends before that, the group is killed.
            runtime.spawn(async move {
                if let Err(error) = group.end(grace).await {
                    tracing::error!(%error, "a command could not be ended");
                }
            });
        }
    }
}
