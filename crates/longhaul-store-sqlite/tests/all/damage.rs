//! Single bits of a store are wrong: what it still tells is right.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::common::{key, new_task, opened, place};
use longhaul_store::{ClaimRequest, ListQuery, Store, StoreError, SystemClock};
use longhaul_store_sqlite::{SqliteOptions, open};
use longhaul_task::transition::Settle;
use longhaul_task::{
    Event, JournalEntry, JournalPosition, Json, NodeId, Outcome, Retention, Task, TaskKey, ToolRef,
};

const SETTLED: u64 = 40;
const QUEUED: u64 = 20;

/// What a store holds, as its clients know it.
struct Contents {
    tasks: BTreeMap<TaskKey, Arc<Task>>,
    inputs: BTreeMap<TaskKey, Json>,
    entry: JournalEntry,
}

/// A closed store with settled tasks, of which the first has a journal, and queued ones.
async fn closed_store_of_all_kinds(path: &Path) -> Contents {
    let store = opened(path);
    let (mut tasks, mut inputs) = (BTreeMap::new(), BTreeMap::new());
    let position = JournalPosition { fork: "main".into(), seq: 0 };
    let entry = JournalEntry { position, key: "charge".into(), digest: 7, output: Some(Json::from_text("\"paid\"")) };
    for n in 0..SETTLED + QUEUED {
        let is_queued = n >= SETTLED;
        // Some arguments and results are in the row of their task, and some are not.
        let mut new = new_task(n, if n % 2 == 0 { 50 } else { 1_000 });
        new.create.retention = Retention::FromEnd(1_000_000);
        if is_queued {
            new.create.claimed_by = None;
            inputs.insert(key(n), new.input.clone());
        }
        let mut task = store.create(new).await.unwrap().task;
        if n == 0 {
            store.record(&key(n), 1, entry.clone()).await.unwrap();
        }
        if !is_queued {
            let text = if n % 3 == 0 { "short".to_owned() } else { "long ".repeat(200) };
            let outcome = Outcome::Result { body: Json::from_text(format!("\"{text}\"")), is_error: false };
            task = store.apply(&key(n), Event::Settle(Settle { fence: 1, outcome })).await.unwrap().task;
        }
        tasks.insert(key(n), task);
    }
    store.close().await;
    Contents { tasks, inputs, entry }
}

/// An error of the store that is not "there is no such task".
fn is_noticed(error: &StoreError) -> bool {
    matches!(error, StoreError::Stopped(_) | StoreError::Unavailable(_))
}

/// Everything that a damaged store tells and that is wrong.
async fn wrong_answers(path: &Path, contents: &Contents) -> Vec<String> {
    let Ok(store) = open(path, &SqliteOptions::default(), SystemClock) else { return Vec::new() };
    let mut wrong = Vec::new();
    for (key, task) in &contents.tasks {
        match store.read(key).await {
            Ok(found) if found.task == *task => {}
            Err(error) if is_noticed(&error) => {}
            other => wrong.push(format!("{} is read as {other:?}", key.id)),
        }
    }
    match store.list(&ListQuery { owner: None, after: None, limit: 1_000 }).await {
        Ok(page) => {
            let listed: Vec<_> = page.tasks.iter().rev().map(|found| &found.task).collect();
            if listed != contents.tasks.values().collect::<Vec<_>>() {
                wrong.push(format!("{} tasks are listed, or not as they were", listed.len()));
            }
        }
        Err(error) if is_noticed(&error) => {}
        Err(error) => wrong.push(error.to_string()),
    }
    match store.records(&key(0), contents.tasks[&key(0)].epoch()).await {
        Ok(entries) if entries == std::slice::from_ref(&contents.entry) => {}
        Err(error) if is_noticed(&error) => {}
        other => wrong.push(format!("the journal is {other:?}")),
    }
    let tools = vec![(ToolRef::new("echo", "1"), 1_000)];
    match store.claim(ClaimRequest { node: NodeId::mint([2; 16]), tools }).await {
        Ok(claimed) => {
            let inputs: BTreeMap<_, _> = claimed.into_iter().map(|it| (it.task.key.clone(), it.input)).collect();
            if inputs != contents.inputs {
                wrong.push(format!("{} tasks are claimed, or with other arguments", inputs.len()));
            }
        }
        Err(error) if is_noticed(&error) => {}
        Err(error) => wrong.push(error.to_string()),
    }
    store.close().await;
    wrong
}

/// Random numbers that are the same in every run.
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state >> 8).unwrap()
}

#[tokio::test]
async fn a_flipped_bit_is_an_error_or_harmless_and_never_a_wrong_answer() {
    let (_directory, path) = place();
    let contents = closed_store_of_all_kinds(&path).await;
    let whole = fs::read(&path).unwrap();
    assert_eq!(wrong_answers(&path, &contents).await, [""; 0], "without damage");
    let mut wrong = Vec::new();
    let mut random = 0x2545_f491_4f6c_dd1d;
    for _ in 0..400 {
        let (byte, bit) = (next(&mut random) % whole.len(), next(&mut random) % 8);
        let mut damaged = whole.clone();
        damaged[byte] ^= 1 << bit;
        fs::write(&path, damaged).unwrap();
        let found = wrong_answers(&path, &contents).await;
        if !found.is_empty() {
            wrong.push(format!("bit {bit} of byte {byte}: {}", found.join("; ")));
        }
    }
    assert!(wrong.is_empty(), "{} of 400 stores told something wrong:\n{}", wrong.len(), wrong.join("\n"));
}
