//! The test suite that every backend must pass, with one test per guarantee of the [`Store`] trait.
//!
//! A backend implements [`Subject`], which creates an empty store and opens it again, and calls the macro:
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use longhaul_store::contract::{CacheSize, START, Subject};
//! use longhaul_store::{ManualClock, Store, memory};
//! use longhaul_task::Timestamp;
//!
//! struct Mine {
//!     store: Arc<dyn Store>,
//!     clock: ManualClock,
//! }
//!
//! #[async_trait]
//! impl Subject for Mine {
//!     async fn empty(_cache_size: CacheSize) -> Self {
//!         let clock = ManualClock::at(START);
//!         Self { store: Arc::new(memory::open(clock.clone()).unwrap()), clock }
//!     }
//!
//!     async fn handle(&self) -> Arc<dyn Store> {
//!         Arc::clone(&self.store)
//!     }
//!
//!     async fn reopen(self) -> Self {
//!         // A durable store is closed and opened again here.
//!         self
//!     }
//!
//!     async fn set_time(&self, now: Timestamp) {
//!         self.clock.set(now);
//!     }
//! }
//!
//! longhaul_store::contract_suite!(Mine);
//! ```
//!
//! An embedded backend calls [`transactions::a_dropped_transaction_leaves_nothing`], too.
//!
//! The tests run on tokio with two workers, so the dev-dependencies of the backend's crate need tokio with the features
//! `macros` and `rt-multi-thread`.

// Every function is a test: it panics if it fails, and its name says what it tests.
#![allow(clippy::missing_panics_doc, missing_docs, clippy::wildcard_imports)]

use std::sync::Arc;

use async_trait::async_trait;
use longhaul_task::Timestamp;

use crate::Store;

pub mod apply;
pub mod claim;
pub mod create;
pub mod due;
pub mod eviction;
pub mod families;
pub mod idempotency;
pub mod journal;
mod kit;
pub mod list;
pub mod nodes;
pub mod progress;
pub mod secrets;
pub mod time;
pub mod transactions;
pub mod two_handles;
pub mod watch;

pub use kit::START;

/// A backend under test.
#[async_trait]
pub trait Subject: Sized + Send + Sync + 'static {
    /// Creates an empty store whose clock shows [`START`].
    async fn empty(cache_size: CacheSize) -> Self;

    /// Returns a handle on the store. Two handles share as little as the backend allows.
    async fn handle(&self) -> Arc<dyn Store>;

    /// Opens the store again, as after a crash: only durable state is kept.
    async fn reopen(self) -> Self;

    /// Sets the store's clock, forwards or backwards.
    async fn set_time(&self, now: Timestamp);
}

/// The amount of memory that a store may use for its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheSize {
    /// The default.
    Default,
    /// So little that a few hundred settled tasks do not fit.
    Tiny,
}

/// Declares one test per function of the suite for a [`Subject`](crate::contract::Subject), in a module `contract`.
#[macro_export]
macro_rules! contract_suite {
    ($subject:ty) => {
        $crate::contract_suite! {
            @claims $subject;
            create {
                a_created_task_reads_back_the_same,
                a_task_created_for_a_node_runs_there_under_its_first_fence,
                an_acknowledged_write_survives_a_restart,
                arguments_and_results_of_every_size_read_back_the_same,
                an_owner_cannot_use_an_id_twice,
                of_many_concurrent_creations_of_one_id_one_succeeds,
                two_owners_can_use_the_same_id,
                a_foreign_task_and_an_unknown_one_give_the_same_error,
                an_id_can_be_used_again_after_its_family_was_deleted,
                an_attempt_of_a_deleted_task_cannot_write_to_a_new_one_with_its_id,
                names_and_payloads_read_back_as_the_same_bytes,
                unlimited_values_read_back_the_same,
            }
            apply {
                every_phase_reads_back_the_same_after_a_restart,
                each_change_raises_the_revision_by_one,
                concurrent_events_are_applied_one_after_another,
                a_late_attempt_cannot_overwrite_the_winner,
                a_settled_task_never_changes_again,
                a_refused_event_does_not_make_others_fail,
                of_many_concurrent_ends_one_wins_and_every_reader_sees_it,
                a_late_wake_does_not_wake_a_task_that_was_parked_again,
                an_answered_question_stays_closed,
            }
            claim {
                each_task_is_claimed_by_one_node_only,
                a_claim_matches_tool_and_version,
                one_claim_returns_tasks_of_several_tools_within_their_limits,
                the_task_that_has_waited_longest_is_claimed_first,
                owners_take_turns_however_many_tasks_one_of_them_has_queued,
                a_claim_gives_equal_parts_to_owners_and_the_rest_to_those_that_have_more,
                a_claim_goes_on_after_the_owner_that_was_served_last,
                a_claim_returns_no_more_tasks_of_an_owner_than_its_limit,
                tasks_of_one_owner_keep_their_order_while_owners_take_turns,
                an_owner_whose_tasks_must_wait_gets_its_turn_when_their_time_has_come,
                a_task_is_not_claimed_early_after_the_clock_was_set_back,
                a_task_is_not_claimed_before_its_earliest_time,
                a_claim_returns_no_more_than_its_limit,
                a_claim_returns_the_arguments_and_a_new_fence,
                a_claim_is_durable,
                a_cancelled_task_is_not_claimed,
                next_queued_is_the_earliest_time_among_the_given_tools,
                open_tasks_are_counted_by_owner_tool_and_phase,
                concurrent_creation_and_claims_lose_no_task,
            }
            list {
                an_owner_sees_its_own_tasks_newest_first,
                pages_contain_every_task_exactly_once,
                pages_contain_every_task_exactly_once_while_tasks_change,
                a_list_without_an_owner_contains_the_tasks_of_all_owners,
                a_page_past_the_last_task_is_empty,
                a_page_continues_after_a_deleted_task,
                a_list_shows_the_same_as_a_read,
                a_reader_never_sees_an_older_revision_after_a_newer_one,
            }
            due {
                due_tasks_are_ordered_by_time_and_followed_by_the_next_time,
                due_tasks_past_the_limit_are_reported_by_the_next_time,
                a_task_is_no_longer_due_after_its_event,
                a_settled_task_is_due_when_its_retention_is_over,
                a_settled_task_with_unlimited_retention_is_never_due,
                a_parked_task_is_due_at_its_timer,
                a_timer_wakes_a_waiting_task_and_leaves_its_question_open,
                due_times_survive_a_restart,
            }
            families {
                children_are_listed_in_the_order_of_creation,
                a_spawned_child_is_claimed_like_any_other,
                a_child_with_an_existing_id_is_refused_and_changes_nothing,
                children_with_the_same_id_are_refused_and_change_nothing,
                a_parent_settles_after_its_children,
                a_parent_never_settles_while_a_concurrent_spawn_succeeds,
                cancelling_a_family_ends_all_of_it_in_one_commit,
                a_half_cancelled_family_is_never_visible,
                cancelling_a_child_leaves_its_siblings_and_its_parent,
                a_settled_child_keeps_its_outcome_when_its_family_is_cancelled,
                losing_a_parent_ends_its_descendants,
                children_end_in_the_commit_that_loses_an_attempt_that_starts_over,
                the_commit_that_ends_a_child_queues_a_parent_that_waits_for_it,
                children_of_one_event_are_created_together_and_in_order,
                a_parent_that_waits_for_a_range_wakes_when_its_last_child_ends,
                the_first_child_with_an_open_question_is_found,
                a_parent_is_not_woken_by_a_child_it_does_not_wait_for,
                a_parent_that_parks_while_its_child_ends_is_not_left_parked,
                deleting_a_family_leaves_nothing_of_it,
                only_a_settled_root_is_deleted,
                an_expired_family_is_deleted_as_a_whole,
                equal_ids_of_another_owner_are_not_in_the_family,
            }
            idempotency {
                a_repeated_creation_finds_its_task,
                a_repeated_creation_returns_the_task_as_it_is_now,
                another_request_under_a_used_key_is_refused,
                a_request_is_found_under_its_own_key_and_owner_only,
                of_many_concurrent_creations_under_one_key_one_creates,
                a_key_is_free_again_after_its_family_was_deleted,
                a_key_is_kept_as_long_as_its_family,
                a_refused_creation_leaves_its_key_free,
                keys_of_every_form_read_back_the_same,
            }
            journal {
                a_journal_entry_reads_back_the_same,
                an_existing_entry_is_not_replaced,
                a_step_that_is_tried_again_replaces_its_entry_until_it_is_done,
                entries_of_the_last_step_are_written_with_the_end,
                a_question_is_closed_with_its_default_when_its_time_is_over,
                a_lost_race_closes_the_questions_of_its_forks,
                each_attempt_that_ends_before_its_task_leaves_a_record,
                the_beginning_of_an_attempt_does_not_change_with_an_answer,
                only_attempts_that_got_no_further_count_as_failed,
                of_many_concurrent_entries_at_one_position_one_is_kept,
                entries_are_ordered_by_fork_and_position,
                a_journal_entry_does_not_raise_the_revision,
                attempts_share_a_journal_only_if_they_resume,
                an_answer_is_written_to_the_entry_of_its_question,
                an_answer_is_recorded_for_a_parked_task,
                a_resumed_attempt_finds_its_question_with_the_same_key,
                an_answer_between_two_attempts_is_kept_for_the_next,
                a_question_at_the_position_of_another_entry_is_refused,
                a_refused_request_leaves_none_of_its_entries,
            }
            progress {
                the_progress_of_a_parked_task_is_kept,
                the_last_progress_wins_and_does_not_raise_the_revision,
                progress_with_an_outdated_fence_is_ignored,
                a_new_attempt_starts_without_progress,
                progress_is_saved_with_the_next_write,
                a_report_saves_the_progress_before_it,
                progress_that_is_not_a_number_makes_no_write_fail,
            }
            watch {
                a_watch_reports_a_change,
                a_watch_may_start_before_its_task_exists,
                every_watch_of_a_task_reports_its_change,
                a_watch_that_starts_before_the_read_never_misses_the_end,
                a_watch_reports_progress,
                a_watch_reports_the_deletion_of_its_task,
                a_watch_of_a_child_reports_the_cancellation_of_its_family,
                a_watch_reports_neither_other_tasks_nor_refused_events,
            }
            two_handles {
                a_handle_reads_what_another_has_written,
                a_handle_does_not_find_what_another_has_deleted,
                an_event_is_applied_to_what_another_handle_has_written,
                a_watch_reports_writes_of_another_handle,
                a_watch_of_the_queue_reports_every_task_that_enters_it,
            }
            nodes {
                only_attempts_of_dead_nodes_are_orphans,
                a_renewed_lease_keeps_its_attempts,
                a_node_whose_lease_has_ended_loses_its_task_and_cannot_write,
                an_attempt_is_lost_once,
                after_a_restart_every_running_attempt_is_an_orphan,
                a_late_loss_does_not_end_a_newer_attempt_of_the_same_node,
                held_returns_the_attempts_of_a_node,
                a_lease_that_has_ended_cannot_be_renewed,
                a_tool_with_queued_tasks_and_no_living_node_is_unserved,
            }
            time {
                now_is_the_time_of_the_stores_clock,
                a_read_changes_nothing,
                timestamps_do_not_decrease_when_the_clock_does,
                a_clock_that_jumps_back_makes_no_task_wait_longer_than_its_own_wait,
            }
            eviction {
                a_settled_task_that_was_evicted_reads_back_the_same,
                an_event_is_applied_to_a_task_that_was_evicted,
                a_deleted_task_does_not_reappear_from_the_cache,
            }
            secrets {
                a_secret_keeps_its_first_value,
                concurrent_calls_for_a_new_secret_get_the_same_value,
            }
        }
    };
    (@claims $subject:ty; $($group:ident { $($claim:ident,)* })*) => {
        mod contract {
            $(mod $group {
                #[allow(unused_imports)]
                use super::super::*;

                $(#[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $claim() {
                    $crate::contract::$group::$claim::<$subject>().await;
                })*
            })*
        }
    };
}

#[cfg(test)]
mod tests {
    const SUITE: &str = include_str!("mod.rs");
    const GROUPS: &[&str] = &[
        include_str!("create.rs"),
        include_str!("apply.rs"),
        include_str!("claim.rs"),
        include_str!("list.rs"),
        include_str!("due.rs"),
        include_str!("families.rs"),
        include_str!("idempotency.rs"),
        include_str!("journal.rs"),
        include_str!("progress.rs"),
        include_str!("watch.rs"),
        include_str!("two_handles.rs"),
        include_str!("nodes.rs"),
        include_str!("time.rs"),
        include_str!("eviction.rs"),
        include_str!("secrets.rs"),
    ];

    #[test]
    fn every_claim_is_in_the_suite() {
        let claims = GROUPS.iter().flat_map(|source| source.lines()).filter_map(|line| {
            line.strip_prefix("pub async fn ").and_then(|line| line.split_once('<')).map(|(name, _)| name)
        });
        for claim in claims {
            assert!(SUITE.contains(&format!(" {claim},\n")), "{claim} is not run");
        }
    }
}
