//! What the writer expects of the transactions of a disk. It is not in the suite's macro, because only embedded backends have disks.

use std::slice;

use longhaul_task::transition::{self, Claim};
use longhaul_task::{AttemptEnd, AttemptRecord, Event, Surroundings};

use super::kit::{START, id, json, key, node, owner, progress, queued, resuming, step, tool, written};
use crate::embedded::{Disk, Reader};
use crate::{IdempotencyKey, ListQuery};

/// A transaction that is dropped leaves nothing, whatever it has written, and the next one can begin.
pub fn a_dropped_transaction_leaves_nothing(disk: &mut impl Disk, reader: &impl Reader) {
    let (waiting, running, fresh) = (key(1), key(2), key(3));
    let waiting_task = transition::create(&queued(waiting.clone()).create, START);
    let running_task = transition::create(&resuming(running.clone()).create, START);
    let fresh_task = transition::create(&queued(fresh.clone()).create, START);
    let request = |key: &str| IdempotencyKey { key: key.into(), digest: [1; 32] };

    let mut transaction = disk.begin().unwrap();
    assert!(transaction.insert(&waiting_task, &json("{}")).unwrap());
    transaction.insert_key(&waiting, &request("used")).unwrap();
    assert!(transaction.insert(&running_task, &json("{}")).unwrap());
    assert_eq!(transaction.insert_entry(&running, 0, &written(step("", 0, "1"), 1)).unwrap(), None);
    transaction.write_progress(&running, &progress(1.0)).unwrap();
    transaction.commit().unwrap();
    let before = contents(reader);

    let mut transaction = disk.begin().unwrap();
    assert!(transaction.insert(&fresh_task, &json("{}")).unwrap());
    transaction.insert_key(&fresh, &request("fresh")).unwrap();
    let claim = Event::Claim(Claim { node: node(2) });
    let claimed = transition::apply(&waiting_task, &claim, &Surroundings::default(), START.plus_ms(1)).unwrap().task;
    transaction.update(&waiting_task, &claimed).unwrap();
    assert_eq!(transaction.insert_entry(&running, 0, &written(step("", 1, "2"), 1)).unwrap(), None);
    transaction.replace_entry(&running, 0, &written(step("", 0, "3"), 1)).unwrap();
    let (began_at, ended_at) = (START, START.plus_ms(1));
    let attempt = AttemptRecord { attempt: 1, node: node(1), began_at, ended_at, end: AttemptEnd::Lost };
    transaction.insert_attempt(&running, &attempt).unwrap();
    transaction.write_progress(&running, &progress(2.0)).unwrap();
    assert_eq!(transaction.secret("name", [1; 32]).unwrap(), [1; 32]);
    assert_eq!(transaction.delete_family(&running).unwrap(), slice::from_ref(&running));
    transaction.check().unwrap();
    drop(transaction);
    assert_eq!(contents(reader), before);

    let mut transaction = disk.begin().unwrap();
    assert_eq!(transaction.task(&waiting).unwrap(), Some(waiting_task));
    assert_eq!(transaction.task(&running).unwrap(), Some(running_task));
    assert_eq!(transaction.task(&fresh).unwrap(), None);
    assert_eq!(transaction.keyed_task(&fresh.owner, "fresh").unwrap(), None);
    assert_eq!(transaction.queued(&tool(), &owner("ada"), 10).unwrap(), [(START, id(1))]);
    assert_eq!(transaction.secret("name", [2; 32]).unwrap(), [2; 32]);
    transaction.commit().unwrap();
    assert_eq!(contents(reader), before);
}

/// Everything that a reader sees, in a fixed order.
fn contents(reader: &impl Reader) -> Vec<String> {
    let all = ListQuery { owner: None, after: None, limit: 10 };
    let tasks = reader.list(&all).unwrap().tasks;
    let history = tasks.iter().map(|snapshot| format!("{:?}", reader.history(&snapshot.task.key).unwrap()));
    let keyed = ["used", "fresh"].map(|key| reader.keyed_task(&owner("ada"), key).unwrap());
    let due = reader.due(START.plus_ms(u64::from(u32::MAX)), 10).unwrap();
    let (queued, held) = (reader.queued_tools().unwrap(), reader.held(None, 10).unwrap());
    let open = reader.count_open_tasks().unwrap();
    let mut open: Vec<_> = open.iter().map(|count| format!("{count:?}")).collect();
    open.sort();
    let others = format!("{keyed:?} {due:?} {queued:?} {held:?}");
    let tasks = tasks.iter().map(|snapshot| format!("{snapshot:?}"));
    tasks.chain(history).chain(open).chain([others]).collect()
}
