//! `longhaul task history`: what happened to a task.

use longhaul_engine::{HistoryEvent, HistoryItem, history_events};
use longhaul_store::{Snapshot, TaskHistory};
use longhaul_task::{AttemptEnd, EntryState, Json};
use serde_json::{Value, json};

use super::task::when_ms;
use crate::exit::CommandError;
use crate::output::{stdout_line, write_stdout_raw};

/// Prints the events of a task, oldest first. Outputs and answers are left out unless `contents` is set.
pub(super) fn print(
    snapshot: &Snapshot,
    history: &TaskHistory,
    is_json: bool,
    contents: bool,
) -> Result<(), CommandError> {
    let events = history_events(&snapshot.task, history);
    for event in &events {
        if is_json {
            write_stdout_raw(&json_object(event, contents))?;
        } else {
            let (kind, text) = sentence(event, contents);
            stdout_line!("{}  {kind:9}  {text}", when_ms(event.at));
        }
    }
    Ok(())
}

fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

/// The output of an entry, if the operator asked for contents.
fn output(state: &EntryState, contents: bool) -> Option<&Json> {
    match state {
        EntryState::Done(output) if contents => Some(output),
        _ => None,
    }
}

/// An event as it is printed without `--json`: its kind, and what happened.
fn sentence(event: &HistoryEvent, contents: bool) -> (&'static str, String) {
    match &event.what {
        HistoryItem::Created => ("task", "was created".to_owned()),
        HistoryItem::AttemptBegan { attempt, node } => ("attempt", format!("{attempt} began on {node}")),
        HistoryItem::AttemptEnded { attempt, ran_ms, end, .. } => {
            let why = match end {
                AttemptEnd::Lost => "was lost with its server".to_owned(),
                AttemptEnd::Stopped => "was ended by the stop of its server".to_owned(),
                AttemptEnd::Parked => "dropped its handler, which only waited".to_owned(),
                AttemptEnd::Returned => "returned; the task waits for its subtasks".to_owned(),
                AttemptEnd::Released(reason) => format!("failed; the task was queued again: {reason}"),
            };
            let ran = match end {
                AttemptEnd::Lost => format!("was last seen after {}", duration(*ran_ms)),
                _ => format!("ran for {}", duration(*ran_ms)),
            };
            ("attempt", format!("{attempt} {ran} and {why}"))
        }
        HistoryItem::Step { position, name, attempt, took_ms, state, note } => {
            let note = note.as_ref().map_or(String::new(), |note| format!("; {note}"));
            let fork = if position.fork.is_empty() { String::new() } else { format!(" in {}", position.fork) };
            let took = took_ms.map_or(String::new(), |ms| format!(" in {}", duration(ms)));
            let end = match state {
                EntryState::Done(_) => format!("was done{took}"),
                EntryState::Failed(reason) => format!("failed: {reason}"),
                EntryState::TooLarge { bytes, .. } => format!("was done, and its output of {bytes} bytes is too large"),
                EntryState::Retrying(retry) => {
                    format!("failed {} times and is tried again: {}", retry.failures, retry.error)
                }
                EntryState::Open => "began".to_owned(),
            };
            let value = output(state, contents).map_or(String::new(), |output| format!(": {}", output.as_str()));
            ("step", format!("{name:?}{fork} {end} (attempt {attempt}){note}{value}"))
        }
        HistoryItem::Asked { key, attempt, note } => {
            let note = note.as_ref().map_or(String::new(), |note| format!("; {note}"));
            ("question", format!("{key} was asked (attempt {attempt}){note}"))
        }
        HistoryItem::Answered { key, waited_ms, state } => {
            let end = match state {
                EntryState::Failed(reason) => format!("was closed without an answer: {reason}"),
                _ => "was answered".to_owned(),
            };
            let value = output(state, contents).map_or(String::new(), |output| format!(": {}", output.as_str()));
            ("question", format!("{key} {end}, after {}{value}", duration(*waited_ms)))
        }
        HistoryItem::Timer { name, attempt, until } => {
            let until = until.map_or(String::new(), |until| format!(" until {}", when_ms(until)));
            ("timer", format!("{name:?} sleeps{until} (attempt {attempt})"))
        }
        HistoryItem::Subtask { name, attempt, id } => {
            let id = id.as_ref().map_or("", |id| id.as_str());
            ("subtask", format!("{name:?} {id} was created (attempt {attempt})"))
        }
        HistoryItem::Race { name, attempt, winner } => {
            let winner = output(winner, true).map_or("no branch", Json::as_str);
            ("race", format!("{name:?} was won by {winner} (attempt {attempt})"))
        }
        HistoryItem::Settled { status, message } => {
            let message = message.as_ref().map_or(String::new(), |message| format!(": {message}"));
            ("task", format!("{status}{message}"))
        }
        other => ("task", format!("{other:?}")),
    }
}

/// An event as `--json` prints it.
fn json_object(event: &HistoryEvent, contents: bool) -> Value {
    let parsed = |json: &Json| serde_json::from_str::<Value>(json.as_str()).unwrap_or(Value::Null);
    let (kind, mut object) = match &event.what {
        HistoryItem::Created => ("created", json!({})),
        HistoryItem::AttemptBegan { attempt, node } => {
            ("attempt.began", json!({ "attempt": attempt, "node": node.to_string() }))
        }
        HistoryItem::AttemptEnded { attempt, node, ran_ms, end } => {
            let (end, reason) = match end {
                AttemptEnd::Lost => ("lost", None),
                AttemptEnd::Stopped => ("stopped", None),
                AttemptEnd::Parked => ("parked", None),
                AttemptEnd::Returned => ("returned", None),
                AttemptEnd::Released(reason) => ("released", Some(&**reason)),
            };
            let mut fields = json!({ "attempt": attempt, "node": node.to_string(), "end": end, "reason": reason });
            // How long an attempt ran is not known if its process died.
            fields[if end == "lost" { "lastSeenMs" } else { "ranMs" }] = (*ran_ms).into();
            ("attempt.ended", fields)
        }
        HistoryItem::Step { position, name, attempt, took_ms, state, note } => {
            let fields = json!({
                "name": name, "fork": position.fork, "position": position.seq, "attempt": attempt, "tookMs": took_ms,
                "state": state_word(state), "error": error(state), "note": note,
            });
            ("step", with_output(fields, output(state, contents).map(parsed)))
        }
        HistoryItem::Asked { key, attempt, note } => {
            ("question.asked", json!({ "key": key, "attempt": attempt, "note": note }))
        }
        HistoryItem::Answered { key, waited_ms, state } => {
            let fields =
                json!({ "key": key, "waitedMs": waited_ms, "state": state_word(state), "error": error(state) });
            ("question.answered", with_output(fields, output(state, contents).map(parsed)))
        }
        HistoryItem::Timer { name, attempt, until } => {
            let until = until.map(longhaul_task::Timestamp::as_ms);
            ("timer", json!({ "name": name, "attempt": attempt, "untilMs": until }))
        }
        HistoryItem::Subtask { name, attempt, id } => {
            let id = id.as_ref().map(longhaul_task::TaskId::as_str);
            ("subtask", json!({ "name": name, "attempt": attempt, "taskId": id }))
        }
        HistoryItem::Race { name, attempt, winner } => {
            let winner = output(winner, true).map(parsed);
            ("race", json!({ "name": name, "attempt": attempt, "winner": winner }))
        }
        HistoryItem::Settled { status, message } => ("settled", json!({ "status": status, "message": message })),
        other => ("other", json!({ "text": format!("{other:?}") })),
    };
    object["event"] = kind.into();
    object["atMs"] = event.at.as_ms().into();
    object
}

fn with_output(mut fields: Value, output: Option<Value>) -> Value {
    if let Some(output) = output {
        fields["output"] = output;
    }
    fields
}

fn state_word(state: &EntryState) -> &'static str {
    match state {
        EntryState::Open => "open",
        EntryState::Retrying(_) => "retrying",
        EntryState::Done(_) => "done",
        EntryState::Failed(_) => "failed",
        EntryState::TooLarge { .. } => "too_large",
    }
}

fn error(state: &EntryState) -> Option<&str> {
    match state {
        EntryState::Retrying(retry) => Some(&retry.error),
        EntryState::Failed(reason) => Some(reason),
        EntryState::Open | EntryState::Done(_) | EntryState::TooLarge { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use longhaul_task::{NodeId, Timestamp};

    use super::*;

    #[test]
    fn a_lost_attempt_has_no_duration_only_a_last_sign_of_life() {
        let ended = |end| HistoryEvent {
            at: Timestamp::from_ms(5_105),
            what: HistoryItem::AttemptEnded { attempt: 1, node: NodeId::mint([1; 16]), ran_ms: 105, end },
        };
        let (lost, stopped) = (ended(AttemptEnd::Lost), ended(AttemptEnd::Stopped));
        assert_eq!(sentence(&lost, false).1, "1 was last seen after 105 ms and was lost with its server");
        assert_eq!(sentence(&stopped, false).1, "1 ran for 105 ms and was ended by the stop of its server");
        let (lost, stopped) = (json_object(&lost, false), json_object(&stopped, false));
        assert_eq!((&lost["lastSeenMs"], lost.get("ranMs")), (&json!(105), None), "{lost}");
        assert_eq!((&stopped["ranMs"], stopped.get("lastSeenMs")), (&json!(105), None), "{stopped}");
    }
}
