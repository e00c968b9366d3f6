//! The mutations. Each is a mistake that a programmer could make.

/// One change to one file.
#[derive(Debug, Clone, Copy)]
pub struct Mutation {
    pub name: &'static str,
    /// Relative to the root of the workspace.
    pub file: &'static str,
    pub find: &'static str,
    pub replace: &'static str,
}

const TASK: &str = "crates/longhaul-task/src/task.rs";
const ASK: &str = "crates/longhaul-task/src/transition/ask.rs";
const ENDS: &str = "crates/longhaul-task/src/transition/mod.rs";
const CREATE: &str = "crates/longhaul-task/src/transition/create.rs";
const PARK: &str = "crates/longhaul-task/src/transition/park.rs";
const RELEASE: &str = "crates/longhaul-task/src/transition/release.rs";
const SETTLE: &str = "crates/longhaul-task/src/transition/settle.rs";
const LOSE: &str = "crates/longhaul-task/src/transition/lose.rs";
const ABANDON: &str = "crates/longhaul-task/src/transition/abandon.rs";
const TIME_OUT: &str = "crates/longhaul-task/src/transition/time_out.rs";
const JOURNAL: &str = "crates/longhaul-task/src/journal.rs";
const RETENTION: &str = "crates/longhaul-task/src/retention.rs";
const WRITER: &str = "crates/longhaul-store/src/embedded/writer.rs";
const BATCH_TRANSACTION: &str = "crates/longhaul-store/src/embedded/batch_transaction.rs";
const BATCH_CHANGES: &str = "crates/longhaul-store/src/embedded/batch_changes.rs";
const TASK_CACHE: &str = "crates/longhaul-store/src/embedded/task_cache.rs";
const EMBEDDED: &str = "crates/longhaul-store/src/embedded/mod.rs";
const ADMIT: &str = "crates/longhaul-engine/src/core/admit.rs";
const ATTEMPT: &str = "crates/longhaul-engine/src/core/attempt.rs";
const QUEUE: &str = "crates/longhaul-engine/src/core/queue.rs";
const LOOK: &str = "crates/longhaul-engine/src/core/queue_decision.rs";
const ENDING: &str = "crates/longhaul-engine/src/ending.rs";
const SHELL: &str = "crates/longhaul-engine/src/shell.rs";
const TASK_LINK: &str = "crates/longhaul-engine/src/task_link.rs";
const DRIVE: &str = "crates/longhaul-engine/src/attempt.rs";
const ENGINE_JOURNAL: &str = "crates/longhaul-engine/src/journal.rs";
const STEP: &str = "crates/longhaul-engine/src/step.rs";
const RACE: &str = "crates/longhaul-engine/src/race.rs";
const TIMER: &str = "crates/longhaul-engine/src/timer.rs";
const DOUBT: &str = "crates/longhaul-engine/src/service/doubt.rs";
const LOOK_SERVICE: &str = "crates/longhaul-engine/src/service/queue.rs";

/// All of them.
pub const MUTATIONS: &[Mutation] = &[
    Mutation {
        name: "fence-not-checked",
        file: TASK,
        find: "if self.fence == fence && self.phase.active_attempt().is_some()",
        replace: "if fence > 0 && self.phase.active_attempt().is_some()",
    },
    Mutation { name: "fence-not-raised", file: RELEASE, find: "    next.fence += 1;\n", replace: "" },
    Mutation {
        name: "clock-set-back-unnoticed",
        file: LOOK_SERVICE,
        find: "    clock::shorten_waits(engine).await?;\n",
        replace: "",
    },
    Mutation {
        name: "terminal-not-final",
        file: TASK,
        find: "if self.is_settled() { Err(TransitionError::Settled) } else { Ok(()) }",
        replace: "Ok(())",
    },
    Mutation {
        name: "question-key-reused",
        file: ASK,
        find: "next.questions_asked += 1;",
        replace: "next.questions_asked = 1;",
    },
    Mutation {
        name: "cancel-skips-children",
        file: ENDS,
        find: "surroundings.open_descendants.iter().filter(|task| !task.is_settled())",
        replace: "surroundings.open_descendants.iter().take(0)",
    },
    Mutation {
        name: "parent-not-woken",
        file: ENDS,
        find: "surroundings.parent.as_ref().filter(|parent|",
        replace: "surroundings.parent.as_ref().filter(|_| false).filter(|parent: &&Task|",
    },
    Mutation {
        name: "parked-after-the-answer",
        file: PARK,
        find: "if !event.questions.iter().all(is_open) || event",
        replace: "if !event.questions.iter().all(|key| is_open(key) || true) || event",
    },
    Mutation {
        name: "parked-after-its-children",
        file: PARK,
        find: "|| event.children.iter().any(have_ended)",
        replace: "|| event.children.iter().any(|range| have_ended(range) && false)",
    },
    Mutation {
        name: "question-lost-with-its-attempt",
        file: RELEASE,
        find: ".filter(|_| task.resumes());",
        replace: ".filter(|_| false);",
    },
    Mutation {
        name: "children-outlive-their-attempt",
        file: RELEASE,
        find: "    if !task.resumes() {\n",
        replace: "    if task.resumes() {\n",
    },
    Mutation {
        name: "fences-start-over",
        file: CREATE,
        find: "new.first_fence.saturating_add(claimed.into())",
        replace: "u64::from(claimed)",
    },
    Mutation {
        name: "expired-too-early",
        file: RETENTION,
        find: "Self::FromEnd(ms) => Some(settled_at.plus_ms(ms)),",
        replace: "Self::FromEnd(ms) => Some(settled_at.plus_ms(ms / 2)),",
    },
    Mutation {
        name: "acknowledged-before-commit",
        file: BATCH_TRANSACTION,
        find: "        self.transaction.commit()?;\n",
        replace: "        let _ = self.transaction.commit();\n",
    },
    Mutation {
        name: "published-before-commit",
        file: WRITER,
        find: "        let changes = batch.commit()?;\n",
        replace: "        batch.changes.publish(&self.cache, &self.watchers);\n        let changes = batch.commit()?;\n",
    },
    Mutation {
        name: "refused-request-keeps-its-writes",
        file: WRITER,
        find: "if batch.has_written => {",
        replace: "if false && batch.has_written => {",
    },
    Mutation {
        name: "idempotency-key-not-looked-up",
        file: BATCH_TRANSACTION,
        find: "self.transaction.keyed_task(&key.owner, &request.key)?",
        replace: "self.transaction.keyed_task(&key.owner, &request.key)?.filter(|_| false)",
    },
    Mutation {
        name: "repeated-creation-keeps-its-worker",
        file: SHELL,
        find: "            Ok(created) if created.existed => {\n                self.step(",
        replace: "            Ok(created) if created.existed => {\n                let _ = (",
    },
    Mutation {
        name: "turn-lost-with-a-failed-commit",
        file: WRITER,
        find: "            self.turns.clear();\n",
        replace: "",
    },
    Mutation {
        name: "queued-task-gets-no-turn",
        file: BATCH_TRANSACTION,
        find: "            turns.queued(&task.key.owner, not_before);\n",
        replace: "            let _ = (turns, not_before);\n",
    },
    Mutation {
        name: "untrusted-disk-is-used-on",
        file: WRITER,
        find: "            self.stopped = Some(reason.clone());\n",
        replace: "                    let _ = reason;\n",
    },
    Mutation {
        name: "answer-lost",
        file: BATCH_TRANSACTION,
        find: "self.writes().replace_entry(&task.key, epoch, &asked.answered(answer.clone(), *at))?;",
        replace: "drop((epoch, asked, answer, at));",
    },
    Mutation {
        name: "watcher-not-woken",
        file: BATCH_CHANGES,
        find: "                    cache.show(task);\n                    watchers.changed(&task.key);\n",
        replace: "                    cache.show(task);\n",
    },
    Mutation {
        name: "stale-progress-shown",
        file: TASK_CACHE,
        find: "                snapshot.progress = None;\n",
        replace: "",
    },
    Mutation {
        name: "deleted-task-remembered",
        file: TASK_CACHE,
        find: "        if self.deletions() != deletions {\n",
        replace: "        if self.deletions() < deletions {\n",
    },
    Mutation {
        name: "recovery-skipped",
        file: EMBEDDED,
        find: "    while found.len() < limit {\n",
        replace: "    while found.len() > limit {\n",
    },
    Mutation {
        name: "owner-limit-off-by-one",
        file: ADMIT,
        find: "if open >= open_max {",
        replace: "if open > open_max {",
    },
    Mutation {
        name: "admission-not-taken-back",
        file: ADMIT,
        find: "                state.free_worker(owner);\n",
        replace: "",
    },
    Mutation {
        name: "worker-leaked-on-cancel",
        file: ATTEMPT,
        find: "AttemptState::Working | AttemptState::Stopped { holds_worker: true } => tool_state.free_worker(owner),",
        replace: "AttemptState::Working => tool_state.free_worker(owner),\n                AttemptState::Stopped { holds_worker: true } => {}",
    },
    Mutation {
        name: "place-not-given-back",
        file: ATTEMPT,
        find: "            tool_state.free_place(owner);\n",
        replace: "",
    },
    Mutation {
        name: "claimed-without-a-place",
        file: QUEUE,
        find: "            state.places.add(&key.owner, 1);\n",
        replace: "",
    },
    Mutation {
        name: "stop-that-came-early-forgotten",
        file: ATTEMPT,
        find: "            self.commits.stopped(key, fence);\n",
        replace: "",
    },
    Mutation {
        name: "resumed-without-a-worker",
        file: QUEUE,
        find: "                state.workers.add(&key.owner, 1);\n                actions.push(Action::Resume",
        replace: "                actions.push(Action::Resume",
    },
    Mutation { name: "backoff-forgotten", file: QUEUE, find: "            state.all_wait = false;\n", replace: "" },
    Mutation {
        name: "answered-attempt-left-waiting",
        file: QUEUE,
        find: "        actions.extend(self.assign_workers(tool));\n",
        replace: "",
    },
    Mutation {
        name: "queue-looked-at-without-pause",
        file: LOOK,
        find: "pause_ms: LOOK_MS_MIN,",
        replace: "pause_ms: LOOK_MS_MIN - LOOK_MS_MIN,",
    },
    Mutation {
        name: "end-written-twice-after-doubt",
        file: ENDING,
        find: "StoreError::Unavailable(_) | StoreError::InDoubt(_))) => {",
        replace: "StoreError::Unavailable(_) | StoreError::InDoubt(_) | StoreError::Refused(TransitionError::Settled))) => {",
    },
    Mutation {
        name: "lost-attempt-goes-on",
        file: SHELL,
        find: "        handler.abort();\n",
        replace: "        let _ = handler;\n",
    },
    Mutation {
        name: "worker-not-given-back",
        file: ENDING,
        find: "        self.step(Input::Written { key: key.clone(), fence });\n",
        replace: "",
    },
    Mutation {
        name: "answer-before-the-watch",
        file: TASK_LINK,
        find: "            while self.is_open(&key).await? {\n                tokio::select! {\n                    biased;\n                    () = self.stop.cancelled() => return Err(CtxError::Cancelled),\n                    () = watch.changed() => {}",
        replace: "            while self.is_open(&key).await? {\n                tokio::select! {\n                    biased;\n                    () = self.stop.cancelled() => return Err(CtxError::Cancelled),\n                    () = async { watch = self.engine.store.watch(self.key()); watch.changed().await } => {}",
    },
    Mutation {
        name: "queue-not-looked-at-again",
        file: LOOK_SERVICE,
        find: "(RETRY_MS, 0)",
        replace: "(RETRY_MS, u64::MAX)",
    },
    Mutation {
        name: "counts-wrong-after-doubt",
        file: SHELL,
        find: "            self.recount.notify_one();\n",
        replace: "",
    },
    Mutation {
        name: "attempt-not-stopped-after-doubt",
        file: DOUBT,
        find: "        if is_outdated {\n",
        replace: "        if is_outdated && fence == 0 {\n",
    },
    Mutation {
        name: "unknown-attempt-kept-after-doubt",
        file: DOUBT,
        find: "in held.iter().filter(",
        replace: "in held.iter().take(0).filter(",
    },
    Mutation {
        name: "entry-recorded-twice",
        file: JOURNAL,
        find: "            _ => EntryConflict::Keep,\n",
        replace: "            _ => EntryConflict::Replace(Box::new(self.clone())),\n",
    },
    Mutation {
        name: "entry-lost-at-the-end",
        file: SETTLE,
        find: "    change.journal.extend(entries);\n",
        replace: "    drop(entries);\n",
    },
    Mutation {
        name: "entry-forgotten-while-it-is-written",
        file: TASK_LINK,
        find: "        let entries = self.journal.unwritten();\n",
        replace: "        let entries = self.journal.unwritten();\n        self.journal.mark_written(entries.len());\n",
    },
    Mutation {
        name: "step-before-the-last-entry",
        file: TASK_LINK,
        find: "        self.write_entries().await?;\n        self.journal.replay(",
        replace: "        self.journal.replay(",
    },
    Mutation {
        name: "tried-again-before-the-record",
        file: STEP,
        find: "                ctx.write_entries().await?;\n",
        replace: "",
    },
    Mutation {
        name: "journal-cut-short",
        file: ENGINE_JOURNAL,
        find: "state.recorded = recorded.into_iter().map(",
        replace: "state.recorded = recorded.into_iter().rev().skip(1).map(",
    },
    Mutation {
        name: "parent-settled-early",
        file: SETTLE,
        find: "if !surroundings.open_children.is_empty() {",
        replace: "if surroundings.open_children.len() > 1 {",
    },
    Mutation {
        name: "parent-woken-too-early",
        file: ENDS,
        find: "range.contains(ordinal) && !surroundings.open_siblings.contains(range)",
        replace: "range.contains(ordinal)",
    },
    Mutation {
        name: "question-asked-again",
        file: JOURNAL,
        find: "(None, Some(key)) => EntryConflict::Refuse(TransitionError::AskedAlready(key.clone())),",
        replace: "(None, Some(_)) => EntryConflict::Keep,",
    },
    Mutation {
        name: "race-without-a-record",
        file: RACE,
        find: "        link.journal.append(entry)?;\n",
        replace: "        drop(entry);\n",
    },
    Mutation {
        name: "lost-race-leaves-its-question",
        file: ABANDON,
        find: "        answer::close(&mut change, &question.key, now);\n",
        replace: "",
    },
    Mutation {
        name: "lost-race-leaves-its-child",
        file: RACE,
        find: "    cancel_children(link, &fork).await\n}",
        replace: "    link.ensure_not_cancelled()\n}",
    },
    Mutation {
        name: "failures-counted-for-ever",
        file: LOSE,
        find: "if surroundings.attempt_wrote_at.is_some() { 0 }",
        replace: "if surroundings.attempt_wrote_at.is_some() && false { 0 }",
    },
    Mutation {
        name: "attempt-without-a-record",
        file: PARK,
        find: "    change.ended_attempt = AttemptRecord::of(task, AttemptEnd::Parked, now);\n",
        replace: "    let _ = AttemptRecord::of(task, AttemptEnd::Parked, now);\n",
    },
    Mutation {
        name: "sleep-begins-again",
        file: TIMER,
        find: "let current = self.by_clock(wait).await?;",
        replace: "let wait: Wait = wait;\n                let current = Wait::of_ms(self.clock().await?, wait.until.ms_since(wait.since));",
    },
    Mutation {
        name: "deadline-passes-twice",
        file: TIME_OUT,
        find: "    answer::close(&mut change, &event.key, now);\n",
        replace: "",
    },
    Mutation {
        name: "returned-handler-runs-again",
        file: DRIVE,
        find: "if let Some(returned) = link.journal.returned() {",
        replace: "if let Some(returned) = link.journal.returned().filter(|_| false) {",
    },
    Mutation {
        name: "question-open-after-the-return",
        file: PARK,
        find: "match questions.filter(|_| event.returned.is_none()) {",
        replace: "match questions {",
    },
    Mutation {
        name: "renamed-fork-unnoticed",
        file: ENGINE_JOURNAL,
        find: "                None => return true,\n",
        replace: "                None => return false,\n",
    },
    Mutation {
        name: "ttl-shrinks-at-the-end",
        file: RETENTION,
        find: "    ms.max(age_ms / 2).clamp(AHEAD_MS_MIN, COLLECT_MS_MIN)",
        replace: "    ms.max(age_ms / 2).clamp(AHEAD_MS_MIN, COLLECT_MS_MIN) / (1 + age_ms % 3)",
    },
    Mutation {
        name: "waiting-handler-kept",
        file: DRIVE,
        find: "if !all_wait || !link.journal.resumes() {",
        replace: "if !all_wait || link.journal.resumes() {",
    },
];
