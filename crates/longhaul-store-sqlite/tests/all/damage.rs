//! Single bits of a store are wrong: what it still tells is right.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::common::{key, new_task, opened, place};
use longhaul_store::embedded::Reader;
use longhaul_store::{
    ClaimRequest, Damage, IdempotencyKey, ListQuery, ManualClock, ReadOnlyStore, Store, StoreError, StoreReport,
    SystemClock, ToolClaim,
};
use longhaul_store_sqlite::{SqliteOptions, open, open_read_only};
use longhaul_task::transition::Settle;
use longhaul_task::{
    EntryKind, EntryState, Event, JournalEntry, JournalPosition, Json, NodeId, Outcome, Retention, Task, TaskKey,
    Timestamp, ToolRef,
};

const SETTLED: u64 = 40;
const QUEUED: u64 = 20;

/// What a store holds, as its clients know it.
struct Contents {
    tasks: BTreeMap<TaskKey, Arc<Task>>,
    inputs: BTreeMap<TaskKey, Json>,
    entry: JournalEntry,
}

/// The idempotency key of every fourth task.
fn request(n: u64) -> IdempotencyKey {
    IdempotencyKey { key: format!("request {n}").into(), digest: [u8::try_from(n).unwrap(); 32] }
}

/// A closed store with settled tasks, of which the first has a journal, and queued ones.
async fn closed_store_of_all_kinds(path: &Path) -> Contents {
    let store = opened(path);
    let (mut tasks, mut inputs) = (BTreeMap::new(), BTreeMap::new());
    let position = JournalPosition { fork: "main".into(), seq: 0 };
    let state = EntryState::Done(Json::from_text("\"paid\""));
    let entry = JournalEntry::new(position, EntryKind::Step, "charge".into(), 7, state);
    for n in 0..SETTLED + QUEUED {
        let is_queued = n >= SETTLED;
        // Some arguments and results are in the row of their task, and some are not.
        let mut new = new_task(n, if n % 2 == 0 { 50 } else { 1_000 });
        new.create.retention = Retention::FromEnd(1_000_000);
        new.idempotency = (n % 4 == 0).then(|| Box::new(request(n)));
        if is_queued {
            new.create.claimed_by = None;
            inputs.insert(key(n), new.input.clone());
        }
        let mut task = store.create(new).await.unwrap().task;
        if n == 0 {
            store.record(&key(n), 1, vec![entry.clone()]).await.unwrap();
        }
        if !is_queued {
            let text = if n % 3 == 0 { "short".to_owned() } else { "long ".repeat(200) };
            let outcome = Outcome::Result { body: Json::from_text(format!("\"{text}\"")), is_error: false };
            task = store
                .apply(&key(n), Event::Settle(Settle { fence: 1, outcome, entries: Vec::new() }))
                .await
                .unwrap()
                .task;
        }
        tasks.insert(key(n), task);
    }
    let entry = store.journal(&key(0), 1).await.unwrap().remove(0);
    store.close().await;
    Contents { tasks, inputs, entry }
}

/// An error of the store that is not "there is no such task".
fn is_noticed(error: &StoreError) -> bool {
    error.code().starts_with("STORE_")
}

/// What a damaged store tells.
#[derive(Default)]
struct Answers {
    wrong: Vec<String>,
    /// Whether the store could not be opened, or an answer was an error.
    is_damage_noticed: bool,
}

impl Answers {
    fn error(&mut self, error: &StoreError) {
        if is_noticed(error) {
            self.is_damage_noticed = true;
        } else {
            self.wrong.push(error.to_string());
        }
    }
}

async fn answers(path: &Path, contents: &Contents) -> Answers {
    let mut answers = Answers::default();
    let Ok(store) = open(path, &SqliteOptions::default(), SystemClock) else {
        answers.is_damage_noticed = true;
        return answers;
    };
    for (key, task) in &contents.tasks {
        match store.read(key).await {
            Ok(found) if found.task == *task => {}
            Ok(found) => answers.wrong.push(format!("{} is read as {found:?}", key.id)),
            Err(error) => answers.error(&error),
        }
    }
    for n in (0..SETTLED + QUEUED).step_by(4) {
        match store.find_created(&key(n).owner, &request(n)).await {
            Ok(Some(found)) if found.task == contents.tasks[&key(n)] => {}
            Ok(found) => answers.wrong.push(format!("under the idempotency key of {n} is {found:?}")),
            Err(error) => answers.error(&error),
        }
    }
    match store.list(&ListQuery { owner: None, after: None, limit: 1_000 }).await {
        Ok(page) => {
            let listed: Vec<_> = page.tasks.iter().rev().map(|found| &found.task).collect();
            if listed != contents.tasks.values().collect::<Vec<_>>() {
                answers.wrong.push(format!("{} tasks are listed, or not as they were", listed.len()));
            }
        }
        Err(error) => answers.error(&error),
    }
    match store.journal(&key(0), contents.tasks[&key(0)].epoch()).await {
        Ok(entries) if entries == std::slice::from_ref(&contents.entry) => {}
        Ok(entries) => answers.wrong.push(format!("the journal is {entries:?}")),
        Err(error) => answers.error(&error),
    }
    let tools = vec![ToolClaim::new(ToolRef::new("echo", "1"), 1_000)];
    match store.claim(ClaimRequest { node: NodeId::mint([2; 16]), tools }).await {
        Ok(claimed) => {
            let inputs: BTreeMap<_, _> = claimed.into_iter().map(|it| (it.task.key.clone(), it.input)).collect();
            if inputs.iter().any(|(key, input)| contents.inputs.get(key) != Some(input)) {
                answers.wrong.push("a task is claimed that was not queued, or with other arguments".to_owned());
            }
            // A claim passes over damaged tasks, which the check must name.
            answers.is_damage_noticed |= inputs.len() < contents.inputs.len();
        }
        Err(error) => answers.error(&error),
    }
    store.close().await;
    answers
}

/// What `longhaul store check` finds; `None` if the store is not even opened.
async fn report(path: &Path) -> Option<StoreReport> {
    let store = open_read_only(path).ok()?;
    Some(store.check().await.unwrap())
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
    assert_eq!(report(&path).await, Some(StoreReport::new(SETTLED + QUEUED, Vec::new())), "without damage");
    assert_eq!(answers(&path, &contents).await.wrong, [""; 0], "without damage");
    let (mut wrong, mut missed) = (Vec::new(), Vec::new());
    let mut random = 0x2545_f491_4f6c_dd1d;
    for _ in 0..200 {
        let (byte, bit) = (next(&mut random) % whole.len(), next(&mut random) % 8);
        let mut damaged = whole.clone();
        damaged[byte] ^= 1 << bit;
        fs::write(&path, damaged).unwrap();
        let report = report(&path).await;
        let answers = answers(&path, &contents).await;
        if !answers.wrong.is_empty() {
            wrong.push(format!("bit {bit} of byte {byte}: {}", answers.wrong.join("; ")));
        }
        if answers.is_damage_noticed && report.is_some_and(|report| report.damage.is_empty()) {
            missed.push(format!("bit {bit} of byte {byte}"));
        }
    }
    assert!(wrong.is_empty(), "{} of 200 stores told something wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(missed.is_empty(), "the check finds nothing wrong in {} stores: {missed:?}", missed.len());
}

#[tokio::test]
async fn a_check_names_the_tasks_that_are_lost() {
    let (_directory, path) = place();
    let contents = closed_store_of_all_kinds(&path).await;
    let whole = fs::read(&path).unwrap();
    let mut lost = 0;
    for page in 1..whole.len() / 4_096 {
        let mut damaged = whole.clone();
        damaged[page * 4_096..][..4_096].fill(0x5a);
        fs::write(&path, damaged).unwrap();
        let Some(report) = report(&path).await else { continue };
        let named = report.damaged_tasks();
        let store = open_read_only(&path).unwrap();
        for (key, task) in &contents.tasks {
            if !Reader::read(&store, key).is_ok_and(|found| found.is_some_and(|found| found.task == *task)) {
                assert!(named.contains(key), "page {page}: {} is lost and not named in {report:#?}", key.id);
                lost += 1;
            }
        }
    }
    assert!(lost > 20, "only {lost} were lost");
}

#[tokio::test]
async fn a_check_compares_the_tables_with_each_other() {
    let (_directory, path) = place();
    closed_store_of_all_kinds(&path).await;
    let whole = fs::read(&path).unwrap();
    let of = |n| format!("WHERE id = '{}'", key(n).id);
    for (sql, n, words) in [
        (format!("DELETE FROM input {}", of(1)), 1, "arguments"),
        (format!("DELETE FROM outcome {}", of(1)), 1, "settled task needs"),
        (format!("DELETE FROM task {}", of(0)), 0, "only its journal is left"),
        (format!("UPDATE journal SET output = '1' {}", of(0)), 0, "journal cannot be read"),
        (format!("UPDATE idempotency SET digest = zeroblob(32) {}", of(8)), 8, "idempotency key cannot be read"),
        (format!("DELETE FROM task {}; DELETE FROM journal", of(0)), 0, "only its idempotency key is left"),
        (format!("UPDATE task SET small_input = '2' {}", of(2)), 2, "arguments cannot be read"),
        (format!("UPDATE task SET message = 'done' {}", of(3)), 3, "checksum"),
        (format!("UPDATE task SET parent = 'x', checksum = NULL {}", of(4)), 4, "its parent x is missing"),
        (format!("UPDATE task SET children = 3, checksum = NULL {}", of(5)), 5, "0 children instead of 3"),
        (format!("UPDATE task SET small_input = '{{', input_checksum = NULL {}", of(6)), 6, "not JSON"),
    ] {
        fs::write(&path, &whole).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
        let report = report(&path).await.unwrap();
        let is_named = |damage: &Damage| damage.task.as_ref() == Some(&key(n)) && damage.problem.contains(words);
        assert!(report.damage.iter().any(is_named), "{sql}: {report:#?}");
        assert_eq!(report.damaged_tasks().len(), 1, "{sql}: {report:#?}");
    }
}

/// The sweep would otherwise end no task of a store with one damaged row.
#[tokio::test]
async fn a_damaged_task_does_not_keep_others_from_being_due() {
    let (_directory, path) = place();
    closed_store_of_all_kinds(&path).await;
    let damage = format!("UPDATE task SET message = 'done' WHERE id = '{}'", key(0).id);
    rusqlite::Connection::open(&path).unwrap().execute_batch(&damage).unwrap();
    let later = ManualClock::at(Timestamp::from_ms(u64::MAX / 4));
    let store = open(&path, &SqliteOptions::default(), later).unwrap();
    let due = store.due(1_000).await.unwrap();
    assert_eq!(due.tasks.len() as u64, SETTLED + QUEUED - 1);
}

#[tokio::test]
async fn a_damaged_task_does_not_keep_others_from_being_claimed() {
    let (_directory, path) = place();
    let store = opened(&path);
    for n in 0..5 {
        let mut new = new_task(n, 50);
        new.create.claimed_by = None;
        store.create(new).await.unwrap();
    }
    store.close().await;
    let of = |n| format!("WHERE id = '{}'", key(n).id);
    let damage = [
        format!("UPDATE task SET message = 'done' {}", of(0)),
        format!("UPDATE task SET small_input = '2' {}", of(1)),
        format!("UPDATE task SET phase = 'queueb' {}", of(3)),
    ];
    rusqlite::Connection::open(&path).unwrap().execute_batch(&damage.join(";")).unwrap();
    let store = opened(&path);
    let node = NodeId::mint([2; 16]);
    let mut claimed = Vec::new();
    for _ in 0..4 {
        let tools = vec![ToolClaim::new(ToolRef::new("echo", "1"), 1)];
        claimed
            .extend(store.claim(ClaimRequest { node, tools }).await.unwrap().into_iter().map(|it| it.task.key.clone()));
    }
    assert_eq!(claimed, [key(2), key(4)]);
    let held = store.held(node, None, 10).await.unwrap();
    assert_eq!(held.into_iter().map(|attempt| attempt.key).collect::<Vec<_>>(), claimed, "none is claimed unheard");
}

#[tokio::test]
async fn damaged_tasks_do_not_keep_others_from_being_recovered_and_counted() {
    let (_directory, path) = place();
    let store = opened(&path);
    for n in 0..4 {
        store.create(new_task(n, 50)).await.unwrap();
    }
    store.close().await;
    let of = |n| format!("WHERE id = '{}'", key(n).id);
    let damage = [
        format!("UPDATE task SET node = 'x' {}", of(0)),
        format!("UPDATE task SET phase = 'runniog' {}", of(1)),
        format!("UPDATE task SET fence = -1 {}", of(2)),
    ];
    rusqlite::Connection::open(&path).unwrap().execute_batch(&damage.join(";")).unwrap();
    let store = opened(&path);
    let orphans = store.orphans(10).await.unwrap();
    assert_eq!(orphans.into_iter().map(|attempt| attempt.key).collect::<Vec<_>>(), [key(1), key(3)]);
    let counts = store.count_open_tasks().await.unwrap();
    assert_eq!(counts.iter().map(|count| count.tasks).sum::<u64>(), 3, "a task in no known phase is not counted");
}
