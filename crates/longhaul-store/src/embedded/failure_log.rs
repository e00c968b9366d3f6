//! Logs failures of the disk with the store and the operation, at most once in ten seconds.

use longhaul_task::Timestamp;
use parking_lot::Mutex;

use crate::StoreError;

/// The least time between two log lines about failed requests: the log may be on the same full disk.
const SAY_MS_MIN: u64 = 10_000;

/// The last failure of a store, and what was logged about it.
#[derive(Debug)]
pub(super) struct FailureLog {
    /// The name of the store in the log.
    store: String,
    state: Mutex<FailureState>,
}

#[derive(Debug, Default)]
struct FailureState {
    /// The error of the last write, if it failed.
    write_error: Option<StoreError>,
    logged_at: Option<Timestamp>,
    /// Whether the last logged line says that writes are refused.
    is_failure_logged: bool,
    left_out: usize,
}

impl FailureLog {
    pub(super) fn of(store: String) -> Self {
        Self { store, state: Mutex::default() }
    }

    /// The name of the store in the log.
    pub(super) fn store(&self) -> &str {
        &self.store
    }

    /// The error of the last write, if it failed.
    pub(super) fn write_error(&self) -> Option<StoreError> {
        self.state.lock().write_error.clone()
    }

    /// Records the result of a batch of `requests`, of which the first was for `operation`.
    pub(super) fn log_write(&self, operation: &str, requests: usize, refused: Option<&StoreError>, now: Timestamp) {
        let mut state = self.state.lock();
        state.write_error = refused.cloned();
        match refused {
            Some(error) => {
                state.is_failure_logged |= self.log_failure(&mut state, operation, requests, error, now);
            }
            // At most one line for each line about a failure: on a full disk small writes may succeed between large
            // ones that fail.
            None if state.is_failure_logged => {
                state.is_failure_logged = false;
                let left_out = std::mem::take(&mut state.left_out);
                tracing::info!(store = %self.store, left_out, "the store takes writes again");
            }
            None => {}
        }
    }

    pub(super) fn log_read_error(&self, operation: &str, error: &StoreError, now: Timestamp) {
        self.log_failure(&mut self.state.lock(), operation, 1, error, now);
    }

    fn log_failure(
        &self,
        state: &mut FailureState,
        operation: &str,
        requests: usize,
        error: &StoreError,
        now: Timestamp,
    ) -> bool {
        let Some(left_out) = state.next_line(requests, now) else { return false };
        tracing::error!(store = %self.store, operation, %error, left_out, "the store did not do what it was asked");
        true
    }
}

impl FailureState {
    /// `None` if nothing is to be logged now. Otherwise the number of failures that the line stands for, besides the
    /// one it names.
    fn next_line(&mut self, requests: usize, now: Timestamp) -> Option<usize> {
        // If the clock was set back, the next line does not wait longer.
        if self.logged_at.is_some_and(|logged_at| logged_at <= now && now.ms_since(logged_at) < SAY_MS_MIN) {
            self.left_out += requests;
            return None;
        }
        self.logged_at = Some(now);
        Some((std::mem::take(&mut self.left_out) + requests).saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_many_others_there_would_have_been() {
        let mut state = FailureState::default();
        let at = |ms| Timestamp::from_ms(1_000_000 + ms);
        assert_eq!(state.next_line(1, at(0)), Some(0));
        assert_eq!(state.next_line(5, at(1)), None);
        assert_eq!(state.next_line(2, at(SAY_MS_MIN - 1)), None);
        assert_eq!(state.next_line(3, at(SAY_MS_MIN)), Some(9));
        assert_eq!(state.next_line(1, at(0)), Some(0), "the clock went back");
    }

    #[test]
    fn a_write_that_works_ends_the_trouble() {
        let log = FailureLog::of("memory:".into());
        let full = StoreError::Full("no room".into());
        log.log_write("create", 1, Some(&full), Timestamp::ZERO);
        assert_eq!(log.write_error(), Some(full));
        log.log_write("cancel", 1, None, Timestamp::ZERO);
        assert_eq!(log.write_error(), None);
    }
}
