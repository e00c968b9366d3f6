//! Lists contain each task of the owner exactly once, the newest first.

use std::collections::HashSet;
use std::sync::Arc;

use longhaul_task::{Owner, TaskKey};

use super::Subject;
use super::kit::*;
use crate::{ListQuery, Store};

/// Reads all pages of a list.
async fn pages(store: &dyn Store, owner: Option<Owner>, limit: usize) -> Vec<Vec<TaskKey>> {
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = store.list(&ListQuery { owner: owner.clone(), after, limit }).await.unwrap();
        let keys: Vec<_> = page.tasks.iter().map(|listed| listed.task.key.clone()).collect();
        after = keys.last().cloned();
        pages.push(keys);
        if !page.has_more {
            return pages;
        }
        assert!(pages.len() < 100, "the list does not end");
    }
}

pub async fn an_owner_sees_its_own_tasks_newest_first<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for n in [3, 1, 5, 2, 4] {
        create(&*store, queued(key_of("ada", n))).await;
        create(&*store, queued(key_of("grace", n))).await;
    }
    let expected: Vec<_> = (1..=5).rev().map(|n| key_of("ada", n)).collect();
    assert_eq!(pages(&*store, Some(owner("ada")), 100).await, [expected]);
    assert_eq!(pages(&*store, Some(owner("mallory")), 100).await, [[]]);
}

pub async fn pages_contain_every_task_exactly_once<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for n in 0..10 {
        create(&*store, queued(key(n))).await;
    }
    for limit in 1..12 {
        let pages = pages(&*store, Some(owner("ada")), limit).await;
        assert!(pages.iter().all(|page| page.len() <= limit && !page.is_empty()));
        assert_eq!(pages.len(), 10_usize.div_ceil(limit), "the last page says that it is the last");
        assert_eq!(pages.concat(), (0..10).rev().map(key).collect::<Vec<_>>());
    }
}

pub async fn pages_contain_every_task_exactly_once_while_tasks_change<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for n in 0..40 {
        create(&*store, claimed(key(n))).await;
    }
    let mut seen = Vec::new();
    let mut after = None;
    for n in 40..80 {
        let page = store.list(&ListQuery { owner: Some(owner("ada")), after, limit: 3 }).await.unwrap();
        seen.extend(page.tasks.iter().map(|listed| listed.task.key.clone()));
        after = seen.last().cloned();
        if !page.has_more {
            break;
        }
        create(&*store, claimed(key(n))).await;
        apply(&*store, &key(n - 40), settle(1, "1")).await;
    }
    assert_eq!(seen, (0..40).rev().map(key).collect::<Vec<_>>());
}

pub async fn a_list_without_an_owner_contains_the_tasks_of_all_owners<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    let mut expected = HashSet::new();
    for name in ["ada", "grace", "edsger"] {
        for n in 0..5 {
            create(&*store, queued(key_of(name, n))).await;
            expected.insert(key_of(name, n));
        }
    }
    for limit in [1, 4, 5, 15, 100] {
        let seen = pages(&*store, None, limit).await.concat();
        assert_eq!(seen.len(), expected.len());
        assert_eq!(seen.into_iter().collect::<HashSet<_>>(), expected);
    }
}

pub async fn a_page_past_the_last_task_is_empty<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, queued(key(5))).await;
    let listing = ListQuery { owner: Some(owner("ada")), after: Some(key(5)), limit: usize::MAX };
    let page = store.list(&listing).await.unwrap();
    assert!(page.tasks.is_empty() && !page.has_more);
}

pub async fn a_page_continues_after_a_deleted_task<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    for n in 0..3 {
        create(&*store, queued(key(n))).await;
    }
    apply(&*store, &key(1), cancel()).await;
    apply(&*store, &key(1), longhaul_task::Event::Delete(longhaul_task::transition::Delete)).await;
    let page = store.list(&ListQuery { owner: Some(owner("ada")), after: Some(key(1)), limit: 10 }).await.unwrap();
    assert_eq!(page.tasks.iter().map(|listed| listed.task.key.clone()).collect::<Vec<_>>(), [key(0)]);
}

pub async fn a_list_shows_the_same_as_a_read<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    store.progress(&key(1), 1, progress(3.0)).await.unwrap();
    let page = store.list(&ListQuery { owner: Some(owner("ada")), after: None, limit: 10 }).await.unwrap();
    let snapshot = store.read(&key(1)).await.unwrap();
    assert!(snapshot.progress.is_some());
    assert_eq!(page.tasks[0].task, snapshot.task);
    assert_eq!(page.tasks[0].progress, snapshot.progress);
}

pub async fn a_reader_never_sees_an_older_revision_after_a_newer_one<S: Subject>() {
    let (_subject, store) = empty::<S>().await;
    create(&*store, claimed(key(1))).await;
    let writer = Arc::clone(&store);
    let written = tokio::spawn(async move {
        for _ in 0..200 {
            apply(&*writer, &key(1), report(1, "on")).await;
        }
    });
    let listing = ListQuery { owner: Some(owner("ada")), after: None, limit: 10 };
    wait_for("the last of the changes", async {
        let mut seen = 0;
        while seen < 201 {
            let listed = store.list(&listing).await.unwrap().tasks[0].task.revision;
            assert!(listed >= seen, "listed {listed} after {seen}");
            seen = read(&*store, &key(1)).await.revision;
            assert!(seen >= listed, "read {seen} after {listed}");
            tokio::task::yield_now().await;
        }
    })
    .await;
    written.await.unwrap();
}
