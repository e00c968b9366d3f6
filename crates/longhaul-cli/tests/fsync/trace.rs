//! The output of `strace -f -y`: one line for each call, or two if a call of another thread came between its start and
//! its end.

use std::collections::HashMap;
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq)]
enum SystemCall {
    /// A request with this method was read.
    Request(String),
    /// The first write of a response.
    Answer,
    /// A write to the log.
    LogWrite,
    /// A sync of the log begins in this thread.
    SyncBegins(u32),
    /// A sync in this thread has ended.
    SyncEnds(u32),
    /// The times of the log were read, which makes its next sync slower.
    LogTimesRead,
    /// The server listens on a socket for clients or for the operator.
    Listen,
}

#[derive(Debug)]
pub(crate) struct Trace(Vec<SystemCall>);

#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Acknowledgements of changes.
    pub(crate) acknowledged: usize,
    /// Acknowledgements that were sent before the change was on the disk.
    pub(crate) too_early: Vec<String>,
    /// How often the times of the log were read during requests.
    pub(crate) times_read: usize,
}

impl Trace {
    pub(crate) fn read(file: &Path) -> Self {
        let text = std::fs::read(file).expect("strace wrote its file");
        Self(parse(&String::from_utf8_lossy(&text)))
    }

    /// Checks that a sync precedes each acknowledgement. The requests were sent one at a time.
    pub(crate) fn acknowledgements(&self) -> Checked {
        let mut checked = Checked::default();
        let mut method = None;
        // What has happened to the log since the request.
        let (mut written, mut synced) = (false, false);
        let mut syncing = HashMap::new();
        for call in &self.0 {
            match call {
                SystemCall::Request(name) => {
                    assert_eq!(method.replace(name), None, "a request came before the last one was answered");
                    (written, synced) = (false, false);
                    syncing.clear();
                }
                SystemCall::LogWrite => written = true,
                SystemCall::SyncBegins(thread) => {
                    syncing.insert(*thread, written);
                }
                // Only a sync that began after the write has waited for it.
                SystemCall::SyncEnds(thread) => synced |= syncing.remove(thread).unwrap_or(false),
                SystemCall::Answer => {
                    let method = method.take().expect("an answer follows a request");
                    if matches!(method.as_str(), "tools/call" | "tasks/update" | "tasks/cancel") {
                        checked.acknowledged += 1;
                        if !synced {
                            checked.too_early.push(format!("{method}: written: {written}, synced: {synced}"));
                        }
                    }
                }
                SystemCall::LogTimesRead => checked.times_read += usize::from(method.is_some()),
                SystemCall::Listen => {}
            }
        }
        checked
    }

    /// Syncs of the log before the server listened.
    pub(crate) fn syncs_before_it_listens(&self) -> usize {
        let listens = self.0.iter().position(|call| *call == SystemCall::Listen).expect("the server listened");
        self.0[..listens].iter().filter(|call| matches!(call, SystemCall::SyncEnds(_))).count()
    }
}

fn parse(text: &str) -> Vec<SystemCall> {
    let mut calls = Vec::new();
    // Threads whose sync of the log has begun and not ended.
    let mut syncing = Vec::new();
    for line in text.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let Ok(thread) = thread.parse::<u32>() else { continue };
        let call = call.trim_start();
        let is_sync = |call: &str| ["fsync", "fdatasync"].iter().any(|name| call.starts_with(name));
        let is_stat = |call: &str| call.split('(').next().is_some_and(|name| name.contains("stat"));
        let is_log = call.contains("-wal>");
        if let Some(resumed) = call.strip_prefix("<... ") {
            if is_sync(resumed) && syncing.contains(&thread) {
                syncing.retain(|other| *other != thread);
                if resumed.ends_with("= 0") {
                    calls.push(SystemCall::SyncEnds(thread));
                }
            }
        } else if is_sync(call) && is_log {
            calls.push(SystemCall::SyncBegins(thread));
            if call.ends_with("= 0") {
                calls.push(SystemCall::SyncEnds(thread));
            } else {
                syncing.push(thread);
            }
        } else if call.starts_with("pwrite") && is_log {
            calls.push(SystemCall::LogWrite);
        } else if is_stat(call) && call.contains("-wal") && !call.contains(" STATX_INO,") {
            calls.push(SystemCall::LogTimesRead);
        } else if call.contains("\"HTTP/1.1 200 OK") {
            calls.push(SystemCall::Answer);
        } else if call.starts_with("listen(") {
            calls.push(SystemCall::Listen);
        }
        if call.contains("\"POST /mcp") {
            let method = call.split_once("mcp-method: ").and_then(|(_, rest)| rest.split_once("\\r\\n"));
            let (method, _) = method.expect("a request names its method");
            calls.push(SystemCall::Request(method.to_owned()));
        }
    }
    calls
}
