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
const RETENTION: &str = "crates/longhaul-task/src/retention.rs";
const WRITER: &str = "crates/longhaul-store/src/embedded/writer.rs";
const TASK_CACHE: &str = "crates/longhaul-store/src/embedded/task_cache.rs";
const EMBEDDED: &str = "crates/longhaul-store/src/embedded/mod.rs";
const ADMIT: &str = "crates/longhaul-engine/src/core/admit.rs";
const ATTEMPT: &str = "crates/longhaul-engine/src/core/attempt.rs";
const QUEUE: &str = "crates/longhaul-engine/src/core/queue.rs";
const LOOK: &str = "crates/longhaul-engine/src/core/queue_decision.rs";
const ENDING: &str = "crates/longhaul-engine/src/ending.rs";
const SHELL: &str = "crates/longhaul-engine/src/shell.rs";
const TASK_LINK: &str = "crates/longhaul-engine/src/task_link.rs";
const DOUBT: &str = "crates/longhaul-engine/src/service/doubt.rs";
const RECOVERY: &str = "crates/longhaul-engine/src/service/recovery.rs";
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
        name: "clock-ahead-at-the-crash",
        file: RECOVERY,
        find: "    super::clock::shorten_waits(engine).await?;\n",
        replace: "",
    },
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
        find: "surroundings.parent.as_ref().filter(waits)",
        replace: "surroundings.parent.as_ref().filter(waits).filter(|_| false)",
    },
    Mutation {
        name: "parked-after-it-came",
        file: PARK,
        find: "surroundings.open_children < event.open_children || open_questions < event.open_questions",
        replace: "event.open_children == u32::MAX",
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
        file: WRITER,
        find: "        self.disk.commit()?;\n",
        replace: "        let _ = self.disk.commit();\n",
    },
    Mutation {
        name: "published-before-commit",
        file: WRITER,
        find: "        self.disk.commit()?;\n",
        replace: "        self.publish();\n        self.disk.commit()?;\n",
    },
    Mutation {
        name: "failed-commit-keeps-working-state",
        file: WRITER,
        find: "                self.working.clear();\n                self.publications.clear();\n",
        replace: "",
    },
    Mutation {
        name: "turn-lost-with-a-failed-commit",
        file: WRITER,
        find: "                self.turns.clear();\n",
        replace: "",
    },
    Mutation {
        name: "queued-task-gets-no-turn",
        file: WRITER,
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
        file: WRITER,
        find: "self.disk.answer_record(&before.key, key, body)?,",
        replace: "drop((key, body)),",
    },
    Mutation {
        name: "watcher-not-woken",
        file: WRITER,
        find: "                    self.cache.show(&task);\n                    self.watchers.changed(&task.key);\n",
        replace: "                    self.cache.show(&task);\n",
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
    Mutation { name: "admission-not-taken-back", file: ADMIT, find: "                state.free += 1;\n", replace: "" },
    Mutation {
        name: "worker-leaked-on-cancel",
        file: ATTEMPT,
        find: "AttemptState::Working | AttemptState::Stopped { holds_worker: true } => tool_state.free += 1,",
        replace: "AttemptState::Working => tool_state.free += 1,\n                AttemptState::Stopped { holds_worker: true } => {}",
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
        find: "                state.free -= 1;\n                actions.push(Action::Resume",
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
        find: "            handler.abort();\n",
        replace: "            let _ = handler;\n",
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
        find: "() = watch.changed() => {}",
        replace: "() = async { self.engine.store.watch(&self.key).changed().await } => {}",
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
];
