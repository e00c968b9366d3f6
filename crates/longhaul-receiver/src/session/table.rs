//! The sessions in memory. The table is a cache: every session can be rebuilt from its token, here or on another node.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_task::{Owner, Timestamp};
use longhaul_wire::jsonrpc::RpcError;
use parking_lot::Mutex;

use super::token::{SessionClaims, SessionId};
use super::{Session, SessionLimits};
use crate::receiver::ReceiverInner;
use crate::{Caller, SOON_MS};

#[derive(Default)]
pub(crate) struct SessionTable {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    live: HashMap<SessionId, LiveSession>,
    by_owner: HashMap<Owner, usize>,
    /// Sessions that their clients ended, with the time at which their tokens expire.
    ended: HashMap<SessionId, Timestamp>,
}

struct LiveSession {
    session: Arc<Session>,
    expires_at: Timestamp,
}

/// The table has no room for one more session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableFull;

impl From<TableFull> for RpcError {
    fn from(TableFull: TableFull) -> Self {
        let why = "too many sessions are open; end one, or try again in a moment";
        Self::try_later("TOO_MANY_SESSIONS", why, SOON_MS).with_status(503)
    }
}

impl SessionTable {
    /// The session of a token, rebuilt if it is not in memory; `None` if its client has ended it.
    pub(crate) fn find(
        &self,
        receiver: &Arc<ReceiverInner>,
        caller: &Caller,
        claims: &SessionClaims,
    ) -> Result<Option<Arc<Session>>, TableFull> {
        let limits = &receiver.options.sessions;
        let mut entries = self.entries.lock();
        if let Some(live) = entries.live.get(&claims.id) {
            return Ok(Some(Arc::clone(&live.session)));
        }
        if entries.ended.contains_key(&claims.id) {
            return Ok(None);
        }
        let evicted = entries.make_room(&caller.owner, limits)?;
        let session = Session::new(Arc::clone(receiver), Some(claims.id), caller, claims.peer, limits.clone());
        *entries.by_owner.entry(caller.owner.clone()).or_default() += 1;
        entries.live.insert(claims.id, LiveSession { session: Arc::clone(&session), expires_at: claims.expires_at });
        drop(entries);
        for session in evicted {
            session.end();
        }
        Ok(Some(session))
    }

    /// Ends a session for good. Returns false if it had been ended before.
    pub(crate) fn end(&self, claims: &SessionClaims, ended_max: usize) -> bool {
        let live = {
            let mut entries = self.entries.lock();
            if entries.ended.contains_key(&claims.id) {
                return false;
            }
            if entries.ended.len() >= ended_max
                && let Some(soonest) = entries.ended.iter().min_by_key(|(_, until)| **until).map(|(id, _)| *id)
            {
                entries.ended.remove(&soonest);
            }
            entries.ended.insert(claims.id, claims.expires_at);
            entries.remove(&claims.id)
        };
        if let Some(session) = live {
            session.end();
        }
        true
    }

    /// Ends expired and idle sessions, and closes streams whose clients did not come back.
    pub(crate) fn tidy(&self, now: Timestamp, idle_time_max: Duration) {
        let (over, rest) = {
            let mut entries = self.entries.lock();
            entries.ended.retain(|_, until| now < *until);
            let is_idle =
                |session: &Session| session.idle_since().is_some_and(|since| since.elapsed() >= idle_time_max);
            let over: Vec<SessionId> = entries
                .live
                .iter()
                .filter(|(_, live)| live.expires_at <= now || is_idle(&live.session))
                .map(|(id, _)| *id)
                .collect();
            let over: Vec<_> = over.iter().filter_map(|id| entries.remove(id)).collect();
            let rest: Vec<_> = entries.live.values().map(|live| Arc::clone(&live.session)).collect();
            (over, rest)
        };
        for session in over {
            session.end();
        }
        for session in rest {
            session.close_broken_streams();
        }
    }

    /// Closes the listening streams of all sessions, which would not end by themselves.
    pub(crate) fn stop_listening(&self) {
        let all: Vec<_> = self.entries.lock().live.values().map(|live| Arc::clone(&live.session)).collect();
        for session in all {
            session.stop_listening();
        }
    }

    /// Ends all sessions in this process. Their clients can continue them in the next one.
    pub(crate) fn end_all(&self) {
        let all: Vec<_> = self.entries.lock().live.drain().map(|(_, live)| live.session).collect();
        for session in all {
            session.end();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.lock().live.len()
    }
}

impl Entries {
    /// Makes room for one more session of an owner by evicting an idle one.
    fn make_room(&mut self, owner: &Owner, limits: &SessionLimits) -> Result<Vec<Arc<Session>>, TableFull> {
        let mut evicted = Vec::new();
        let count = |entries: &Self| entries.by_owner.get(owner).copied().unwrap_or_default();
        if count(self) >= limits.sessions_per_owner_max {
            evicted.extend(self.evict(|session| session.owner == *owner));
        }
        if self.live.len() >= limits.sessions_max {
            evicted.extend(self.evict(|_| true));
        }
        let has_room = count(self) < limits.sessions_per_owner_max && self.live.len() < limits.sessions_max;
        has_room.then_some(evicted).ok_or(TableFull)
    }

    /// Removes the session that has been idle for longest.
    fn evict(&mut self, condition: impl Fn(&Session) -> bool) -> Option<Arc<Session>> {
        let idle = |(id, live): (&SessionId, &LiveSession)| -> Option<(Instant, SessionId)> {
            Some((live.session.idle_since().filter(|_| condition(&live.session))?, *id))
        };
        let (_, longest) = self.live.iter().filter_map(idle).min()?;
        self.remove(&longest)
    }

    fn remove(&mut self, id: &SessionId) -> Option<Arc<Session>> {
        let session = self.live.remove(id)?.session;
        if let Some(count) = self.by_owner.get_mut(&session.owner) {
            *count -= 1;
            if *count == 0 {
                self.by_owner.remove(&session.owner);
            }
        }
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use longhaul_wire::{Capabilities, Peer, Revision};

    use super::*;

    #[test]
    fn past_the_limit_the_ended_session_that_expires_first_is_forgotten() {
        let sessions = SessionTable::default();
        let peer = Peer { revision: Revision::SESSIONS[0], capabilities: Capabilities::from_bits(0) };
        let end = |number: u8| {
            let claims = SessionClaims { id: [number; 16], peer, expires_at: Timestamp::from_ms(number.into()) };
            sessions.end(&claims, 2)
        };
        assert!(end(1) && end(2));
        assert!(!end(1) && !end(2), "both are known to have ended");
        assert!(end(3));
        assert!(!end(3) && !end(2));
        assert!(end(1), "it was forgotten");
    }
}
