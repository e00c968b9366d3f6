//! The sessions in memory. The table is a cache: every session can be rebuilt from its token, here or on another node.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use longhaul_engine::{Budget, BudgetUse, Share};
use longhaul_task::{Owner, Timestamp};
use longhaul_wire::jsonrpc::RpcError;
use parking_lot::Mutex;

use super::Session;
use super::token::{SessionClaims, SessionId};
use crate::receiver::ReceiverInner;
use crate::{Caller, SOON_MS};

/// How many sessions of an owner are looked at to find one to evict. With a full table every `initialize` looks for one.
const EXAMINED_MAX: usize = 32;

pub(crate) struct SessionTable {
    budget: Arc<Budget>,
    entries: Mutex<Entries>,
    /// Sessions over pipes, which have no token.
    pipes: Mutex<Vec<Weak<Session>>>,
}

#[derive(Default)]
struct Entries {
    live: HashMap<SessionId, LiveSession>,
    /// The sessions of each owner by their places. Those with the lowest places are examined first.
    by_owner: HashMap<Owner, BTreeMap<u64, SessionId>>,
    next_place: u64,
    /// Sessions that their clients ended, with the time at which their tokens expire.
    ended: HashMap<SessionId, Timestamp>,
}

struct LiveSession {
    session: Arc<Session>,
    expires_at: Timestamp,
    place: u64,
    _share: Share,
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
    pub(crate) fn new(sessions_max: usize) -> Self {
        Self { budget: Budget::new("sessions", sessions_max), entries: Mutex::default(), pipes: Mutex::default() }
    }

    pub(crate) fn usage(&self) -> BudgetUse {
        self.budget.usage()
    }

    /// Adds the session of a token that was just made.
    pub(crate) fn open(
        &self,
        receiver: &Arc<ReceiverInner>,
        caller: &Caller,
        claims: &SessionClaims,
    ) -> Result<(), TableFull> {
        self.find_or_add(receiver, caller, claims, false).map(drop)
    }

    /// The session of a token, rebuilt if it is not in memory; `None` if its client has ended it.
    pub(crate) fn find(
        &self,
        receiver: &Arc<ReceiverInner>,
        caller: &Caller,
        claims: &SessionClaims,
    ) -> Result<Option<Arc<Session>>, TableFull> {
        self.find_or_add(receiver, caller, claims, true)
    }

    fn find_or_add(
        &self,
        receiver: &Arc<ReceiverInner>,
        caller: &Caller,
        claims: &SessionClaims,
        is_restored: bool,
    ) -> Result<Option<Arc<Session>>, TableFull> {
        let limits = &receiver.options.sessions;
        let mut entries = self.entries.lock();
        if let Some(live) = entries.live.get(&claims.id) {
            return Ok(Some(Arc::clone(&live.session)));
        }
        if entries.ended.contains_key(&claims.id) {
            return Ok(None);
        }
        let mut evicted = Vec::new();
        let share = loop {
            match self.budget.take(&caller.owner, 1) {
                None => match entries.evict(&caller.owner) {
                    Some(session) => evicted.push(session),
                    None => break None,
                },
                share => break share,
            }
        };
        let session = share.map(|share| {
            let (receiver, peer, limits) = (Arc::clone(receiver), claims.peer, limits.clone());
            let session = Session::new(receiver, Some(claims.id), caller, peer, limits, is_restored);
            entries.insert(claims, &session, share);
            session
        });
        drop(entries);
        for session in evicted {
            session.end();
        }
        session.map(Some).ok_or(TableFull)
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
        let all: Vec<_> = {
            let mut entries = self.entries.lock();
            entries.by_owner.clear();
            entries.live.drain().map(|(_, live)| live.session).collect()
        };
        for session in all {
            session.end();
        }
    }

    /// Adds a session over a pipe.
    pub(crate) fn add_pipe(&self, session: &Arc<Session>) {
        let mut pipes = self.pipes.lock();
        pipes.retain(|pipe| pipe.strong_count() > 0);
        pipes.push(Arc::downgrade(session));
    }

    /// All sessions in memory.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        let live: Vec<_> = self.entries.lock().live.values().map(|live| Arc::clone(&live.session)).collect();
        live.into_iter().chain(self.pipes.lock().iter().filter_map(Weak::upgrade)).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.lock().live.len()
    }
}

impl Entries {
    fn insert(&mut self, claims: &SessionClaims, session: &Arc<Session>, share: Share) {
        let place = self.next_place;
        self.next_place += 1;
        self.by_owner.entry(session.owner.clone()).or_default().insert(place, claims.id);
        let live = LiveSession { session: Arc::clone(session), expires_at: claims.expires_at, place, _share: share };
        self.live.insert(claims.id, live);
    }

    /// Removes a session to make room for a new one of this owner: one of its own, or if it has none, one of the owner that
    /// has most.
    fn evict(&mut self, owner: &Owner) -> Option<Arc<Session>> {
        if self.by_owner.contains_key(owner) {
            return self.evict_of(owner);
        }
        let (most, _) = self.by_owner.iter().max_by_key(|(_, sessions)| sessions.len())?;
        let most = most.clone();
        self.evict_of(&most)
    }

    /// Removes the session of an owner that has been idle for longest, or else the one whose client has been away for
    /// longest. Only some are examined, and these move behind the others.
    fn evict_of(&mut self, owner: &Owner) -> Option<Arc<Session>> {
        let places = self.by_owner.get_mut(owner)?;
        let mut examined = Vec::new();
        while examined.len() < EXAMINED_MAX
            && let Some((_, id)) = places.pop_first()
        {
            examined.push(id);
        }
        for id in &examined {
            if let Some(live) = self.live.get_mut(id) {
                live.place = self.next_place;
                places.insert(self.next_place, *id);
                self.next_place += 1;
            }
        }
        let session = |id: &SessionId| self.live.get(id).map(|live| &live.session);
        let idle = examined.iter().filter_map(|id| Some((session(id)?.idle_since()?, *id))).min();
        let away = || examined.iter().filter_map(|id| Some((session(id)?.disconnected_since()?, *id))).min();
        let (_, longest) = idle.or_else(away)?;
        self.remove(&longest)
    }

    fn remove(&mut self, id: &SessionId) -> Option<Arc<Session>> {
        let LiveSession { session, place, .. } = self.live.remove(id)?;
        if let Some(places) = self.by_owner.get_mut(&session.owner) {
            places.remove(&place);
            if places.is_empty() {
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
        let sessions = SessionTable::new(1);
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
