//! What goes wrong on the disk, in the log: who it was, what it was asked for, and not once per request.

use longhaul_task::Timestamp;
use parking_lot::Mutex;

use crate::StoreError;

/// The log gets a line about failed requests at most this often: it may well be on the disk that is full.
const SAY_MS_MIN: u64 = 10_000;

/// The last failure of a store, and what was logged about it.
#[derive(Debug)]
pub(super) struct FailureLog {
    /// The store, as an operator knows it.
    store: String,
    state: Mutex<FailureState>,
}

#[derive(Debug, Default)]
struct FailureState {
    /// Why the last write was refused, if it was.
    refuses: Option<StoreError>,
    said_at: Option<Timestamp>,
    /// Whether the log says that writes are refused, and nothing later.
    is_known: bool,
    left_out: usize,
}

impl FailureLog {
    pub(super) fn of(store: String) -> Self {
        Self { store, state: Mutex::default() }
    }

    /// Why writes are refused, if they are.
    pub(super) fn refuses(&self) -> Option<StoreError> {
        self.state.lock().refuses.clone()
    }

    /// So many requests, the first of them for this, were written; or none was.
    pub(super) fn wrote(&self, operation: &str, requests: usize, refused: Option<&StoreError>, now: Timestamp) {
        let mut state = self.state.lock();
        state.refuses = refused.cloned();
        match refused {
            Some(error) => {
                state.is_known |= self.say(&mut state, operation, requests, error, now);
            }
            // As seldom as the other line: small writes may fit where large ones do not.
            None if state.is_known => {
                state.is_known = false;
                let left_out = std::mem::take(&mut state.left_out);
                tracing::info!(store = %self.store, left_out, "the store takes writes again");
            }
            None => {}
        }
    }

    /// A read failed.
    pub(super) fn did_not_read(&self, operation: &str, error: &StoreError, now: Timestamp) {
        self.say(&mut self.state.lock(), operation, 1, error, now);
    }

    fn say(
        &self,
        state: &mut FailureState,
        operation: &str,
        requests: usize,
        error: &StoreError,
        now: Timestamp,
    ) -> bool {
        let Some(left_out) = state.speak(requests, now) else { return false };
        tracing::error!(store = %self.store, operation, %error, left_out, "the store did not do what it was asked");
        true
    }
}

impl FailureState {
    /// Whether to say now that so many requests failed; if so, how many failed beside the one that is named.
    fn speak(&mut self, requests: usize, now: Timestamp) -> Option<usize> {
        // A clock that went back must not make it silent for longer.
        if self.said_at.is_some_and(|said| said <= now && now.ms_since(said) < SAY_MS_MIN) {
            self.left_out += requests;
            return None;
        }
        self.said_at = Some(now);
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
        assert_eq!(state.speak(1, at(0)), Some(0));
        assert_eq!(state.speak(5, at(1)), None);
        assert_eq!(state.speak(2, at(SAY_MS_MIN - 1)), None);
        assert_eq!(state.speak(3, at(SAY_MS_MIN)), Some(9));
        assert_eq!(state.speak(1, at(0)), Some(0), "the clock went back");
    }

    #[test]
    fn a_write_that_works_ends_the_trouble() {
        let log = FailureLog::of("memory:".into());
        let full = StoreError::Full("no room".into());
        log.wrote("create", 1, Some(&full), Timestamp::ZERO);
        assert_eq!(log.refuses(), Some(full));
        log.wrote("cancel", 1, None, Timestamp::ZERO);
        assert_eq!(log.refuses(), None);
    }
}
