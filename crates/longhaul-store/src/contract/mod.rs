//! The suite that every backend passes: one test for each thing that a store promises.
//!
//! A backend says how to make an empty store and how to open it again, and gets all of them:
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use longhaul_store::contract::{Room, START, Subject};
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
//!     async fn empty(_room: Room) -> Self {
//!         let clock = ManualClock::at(START);
//!         Self { store: Arc::new(memory::open(clock.clone()).unwrap()), clock }
//!     }
//!
//!     async fn handle(&self) -> Arc<dyn Store> {
//!         Arc::clone(&self.store)
//!     }
//!
//!     async fn reopen(self) -> Self {
//!         // A store that keeps something lets go of it here and opens it again.
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
//! The tests run on tokio with two workers, so the backend's crate needs it with `macros` and `rt-multi-thread` among
//! its dev-dependencies.

// A claim that does not hold panics; that is how a test fails. What it claims is its name.
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
mod kit;
pub mod list;
pub mod progress;
pub mod records;
pub mod secrets;
pub mod time;
pub mod two_handles;
pub mod watch;

pub use kit::START;

/// A backend under test.
#[async_trait]
pub trait Subject: Sized + Send + Sync + 'static {
    /// Makes an empty store whose clock stands at [`START`].
    async fn empty(room: Room) -> Self;

    /// A handle on the store. Two calls give two handles, as far apart as two users of the backend can be.
    async fn handle(&self) -> Arc<dyn Store>;

    /// Opens the store again with nothing but what it has made durable, as after a crash.
    async fn reopen(self) -> Self;

    /// Sets the store's clock, forwards or backwards.
    async fn set_time(&self, now: Timestamp);
}

/// How much a store may keep in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// As much as it usually does.
    Usual,
    /// So little that a few hundred settled tasks do not fit.
    Tiny,
}

/// Makes a test of each claim about a [`Subject`](crate::contract::Subject), in a module `contract`.
#[macro_export]
macro_rules! contract_suite {
    ($subject:ty) => {
        $crate::contract_suite! {
            @claims $subject;
            create {
                what_is_created_reads_back_the_same,
                a_task_created_for_a_node_runs_there_under_its_first_fence,
                what_was_acknowledged_survives_a_restart,
                an_owner_cannot_use_an_id_twice,
                of_many_who_create_one_id_at_once_one_does,
                two_owners_can_use_the_same_id,
                a_foreign_task_and_an_unknown_one_give_the_same_answer,
                an_id_is_free_again_once_its_family_is_gone,
                a_late_attempt_of_a_deleted_task_cannot_write_to_another_of_the_same_id,
                names_and_payloads_come_back_as_the_same_bytes,
                limits_that_mean_never_come_back_as_they_were,
            }
            apply {
                every_phase_reads_back_the_same_after_a_restart,
                each_change_is_one_revision_on,
                events_that_come_at_once_are_applied_one_after_another,
                a_late_attempt_cannot_overwrite_the_winner,
                a_settled_task_never_changes_again,
                a_refused_event_fails_nobody_else,
                of_many_who_settle_at_once_one_does_and_everybody_reads_that,
                a_late_wake_does_not_end_a_later_nap,
                an_answered_question_is_closed_for_good,
            }
            claim {
                each_task_is_given_to_one_node_only,
                claims_go_by_tool_and_version,
                one_claim_brings_tasks_of_several_tools_each_within_its_limit,
                the_longest_waiting_is_claimed_first,
                a_task_is_not_claimed_before_its_time,
                a_claim_takes_no_more_than_its_limit,
                a_claim_brings_the_arguments_and_a_new_fence,
                a_claim_is_durable,
                a_cancelled_task_is_not_claimed,
                the_next_queued_is_the_earliest_of_the_tools_that_were_named,
                the_census_counts_open_tasks_by_owner_tool_and_phase,
                creating_and_claiming_at_once_loses_no_task,
            }
            list {
                an_owner_sees_its_own_tasks_newest_first,
                pages_show_everything_exactly_once,
                pages_show_everything_exactly_once_while_tasks_are_created_and_settled,
                the_operator_sees_everybodys,
                a_page_past_the_last_task_is_empty,
                a_page_goes_on_where_a_deleted_task_was,
                a_list_shows_what_a_read_shows,
                a_reader_never_sees_a_task_go_back,
            }
            due {
                what_is_due_comes_longest_due_first_and_then_the_next,
                a_limit_leaves_the_rest_for_the_next_look,
                what_was_dealt_with_is_due_no_longer,
                a_settled_task_is_due_when_its_retention_is_over,
                a_settled_task_that_is_kept_for_ever_is_never_due,
                a_parked_task_is_due_when_it_wants_to_wake,
                a_task_that_waits_for_an_answer_and_a_time_wakes_at_that_time_with_its_question_open,
                what_is_due_survives_a_restart,
            }
            families {
                children_come_in_the_order_they_were_made,
                a_spawned_child_is_claimed_like_any_other,
                a_child_with_a_taken_id_is_refused_and_its_parent_is_as_before,
                a_parent_settles_after_its_children,
                a_parent_never_settles_with_a_child_that_was_made_at_the_same_time,
                cancelling_a_family_ends_all_of_it_in_one_commit,
                nobody_sees_a_half_cancelled_family,
                cancelling_a_child_leaves_its_siblings_and_its_parent,
                a_settled_child_keeps_its_outcome_when_its_family_is_cancelled,
                losing_a_parent_ends_what_is_below_it,
                the_children_of_a_lost_attempt_that_starts_over_end_with_it_in_one_commit,
                a_parent_that_waits_for_its_children_is_queued_in_the_commit_that_ends_one,
                a_parent_that_sleeps_is_not_woken_by_a_child_it_does_not_wait_for,
                a_parent_does_not_park_for_a_child_that_ended_meanwhile_and_is_never_left_asleep,
                deleting_a_family_leaves_nothing_of_it,
                only_a_settled_root_is_deleted,
                an_expired_family_is_gone_as_a_whole,
                a_family_of_one_owner_is_not_anothers,
            }
            records {
                a_record_comes_back_as_it_was,
                a_place_that_is_taken_keeps_what_it_has,
                of_many_who_record_at_one_place_one_does,
                records_come_fork_by_fork_in_their_order,
                a_record_makes_no_revision,
                attempts_that_start_over_have_a_shelf_each_and_those_that_resume_share_one,
                an_answer_reaches_its_record,
                an_answer_finds_a_task_that_gave_up_its_memory,
                a_resumed_attempt_finds_its_question_under_the_same_key,
                an_answer_that_comes_between_two_attempts_is_kept_for_the_next,
                a_question_where_something_else_is_on_record_is_refused,
            }
            progress {
                the_last_word_wins_and_makes_no_revision,
                word_of_an_attempt_that_lost_is_dropped,
                a_new_attempt_starts_without_progress,
                progress_is_saved_with_what_is_written_later,
                progress_that_is_no_number_harms_nobody,
            }
            watch {
                a_watch_hears_of_a_change,
                a_watch_may_begin_before_its_task,
                everybody_who_follows_hears_of_it,
                whoever_subscribes_and_then_reads_sees_the_end,
                a_watch_hears_of_progress,
                a_watch_hears_that_its_task_is_gone,
                a_watch_of_a_child_hears_that_its_family_was_cancelled,
                a_watch_hears_nothing_of_others_and_of_refusals,
            }
            two_handles {
                what_one_writes_the_other_reads,
                what_one_deletes_the_other_does_not_find,
                an_event_meets_what_the_other_wrote,
                a_watch_on_one_hears_what_the_other_writes,
                only_attempts_of_dead_nodes_are_orphans,
                a_renewed_lease_keeps_its_attempts,
                the_task_of_an_expired_node_goes_to_another_and_the_first_cannot_write_any_more,
                an_attempt_is_lost_once,
                after_a_restart_everything_that_ran_is_an_orphan,
                a_late_loss_does_not_touch_a_newer_attempt_of_the_same_node,
                a_node_is_told_what_it_holds,
                a_lease_that_is_over_stays_over,
                a_tool_is_unserved_when_its_tasks_are_queued_and_no_living_node_has_it,
                a_watch_of_the_queue_hears_of_whatever_enters_it,
            }
            time {
                the_store_tells_the_time,
                a_read_changes_nothing,
                timestamps_never_go_backwards_when_the_clock_does,
                a_clock_that_went_back_makes_nobody_wait_for_ever,
            }
            eviction {
                settled_tasks_that_left_memory_read_back_the_same,
                events_meet_tasks_that_left_memory,
                a_deleted_task_does_not_come_back_from_memory,
            }
            secrets {
                a_secret_stays_what_it_first_was,
                of_many_who_make_a_secret_at_once_all_get_the_same,
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
        include_str!("records.rs"),
        include_str!("progress.rs"),
        include_str!("watch.rs"),
        include_str!("two_handles.rs"),
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
