//! The processes of this machine, as far as their process groups and environments are concerned.

use std::io;

use rustix::process::{Pid, Signal};

/// A process that runs: zombies are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) group: Pid,
    /// Together with the process ID and the boot, it is unique.
    pub(super) start: String,
}

pub(super) use system::{boot, find, has_variable, list, signal};

/// The processes of a group that run.
pub(super) fn members(group: Pid) -> io::Result<Vec<Process>> {
    Ok(list()?.into_iter().filter(|process| process.group == group).collect())
}

fn parse_pid(text: &str) -> Option<Pid> {
    Pid::from_raw(text.parse().ok()?)
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

    use super::{Pid, Process, Signal, io, parse_pid};

    /// Names this run of the system: process IDs and start times begin again after the next boot.
    pub(in super::super) fn boot() -> String {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
    }

    pub(in super::super) fn list() -> io::Result<Vec<Process>> {
        let mut processes = Vec::new();
        for entry in std::fs::read_dir("/proc")? {
            let name = entry?.file_name();
            processes.extend(name.to_str().and_then(parse_pid).and_then(find));
        }
        Ok(processes)
    }

    /// The process with this ID, if it runs.
    pub(in super::super) fn find(pid: Pid) -> Option<Process> {
        // A process that has ended has no such file.
        let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        parse_stat(pid, &String::from_utf8_lossy(&stat))
    }

    /// `None` for a zombie.
    pub(super) fn parse_stat(pid: Pid, stat: &str) -> Option<Process> {
        // The name of the program is in parentheses, and may have some of its own.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let is_dead = matches!(*fields.first()?, "Z" | "X" | "x");
        let group = parse_pid(fields.get(2)?)?;
        (!is_dead).then_some(Process { pid, group, start: (*fields.get(19)?).to_owned() })
    }

    /// Whether the process was started with this variable, written `NAME=VALUE`.
    pub(in super::super) fn has_variable(pid: Pid, variable: &str) -> bool {
        let Ok(environment) = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())) else { return false };
        environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    }

    /// Sends a signal to the process for which `is_meant` holds: the descriptor pins the process, so that its ID cannot be
    /// given to another one between the check and the signal.
    pub(in super::super) fn signal(pid: Pid, signal: Signal, is_meant: impl FnOnce() -> bool) {
        if let Ok(pinned) = pidfd_open(pid, PidfdFlags::empty())
            && is_meant()
        {
            // It may have ended by itself.
            let _ = pidfd_send_signal(pinned, signal);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::process::Command;

    use super::{Pid, Process, Signal, io, parse_pid};

    /// Start times are dates here, so they stay unique after the next boot.
    pub(in super::super) fn boot() -> String {
        String::new()
    }

    pub(in super::super) fn list() -> io::Result<Vec<Process>> {
        let output = Command::new("ps").args(["-axo", "pid=,pgid=,stat=,lstart="]).env("LC_ALL", "C").output()?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(parse_line).collect())
    }

    /// The process with this ID, if it runs.
    pub(in super::super) fn find(pid: Pid) -> Option<Process> {
        list().ok()?.into_iter().find(|process| process.pid == pid)
    }

    fn parse_line(line: &str) -> Option<Process> {
        let mut fields = line.split_whitespace();
        let (pid, group) = (parse_pid(fields.next()?)?, parse_pid(fields.next()?)?);
        let is_dead = fields.next()?.starts_with('Z');
        let start = fields.collect::<Vec<_>>().join(" ");
        (!is_dead).then_some(Process { pid, group, start })
    }

    /// Whether the process was started with this variable, written `NAME=VALUE`. The system hides the environment of its own
    /// programs; those are found by their process group.
    pub(in super::super) fn has_variable(pid: Pid, variable: &str) -> bool {
        let pid = pid.as_raw_nonzero().to_string();
        let output = Command::new("ps").args(["-Eww", "-o", "command=", "-p", &pid]).output();
        output
            .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).split_whitespace().any(|word| word == variable))
    }

    /// Sends a signal to the process if `is_meant` holds.
    pub(in super::super) fn signal(pid: Pid, signal: Signal, is_meant: impl FnOnce() -> bool) {
        if is_meant() {
            // It may have ended by itself.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_program_cannot_disguise_its_process() {
        let pid = Pid::from_raw(7).unwrap();
        let stat = "7 (a) S 1 (b) R 1 42 42 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let process = system::parse_stat(pid, stat).unwrap();
        assert_eq!((process.group.as_raw_nonzero().get(), process.start.as_str()), (42, "12345"));
        assert_eq!(system::parse_stat(pid, &stat.replace(") R", ") Z")), None);
        assert_eq!(system::parse_stat(pid, "7 (x"), None);
    }

    #[test]
    fn this_process_is_found_with_its_group_and_environment() {
        let me = find(rustix::process::getpid()).unwrap();
        assert_eq!(me.group, rustix::process::getpgrp());
        assert!(members(me.group).unwrap().contains(&me));
        let path = format!("PATH={}", std::env::var("PATH").unwrap());
        assert!(has_variable(me.pid, &path));
        assert!(!has_variable(me.pid, "PATH="), "only the whole value counts");
    }
}
