//! The sessions that this process knows. A cache: each can be made again from its token, here or elsewhere.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longhaul_receiver::core2025::{Pass, Session, SessionId};
use longhaul_receiver::{Receiver, SOON_MS};
use longhaul_task::{Owner, Timestamp};
use longhaul_wire::jsonrpc::RpcError;
use parking_lot::Mutex;

use crate::{Caller, Limits};

/// The sessions of an endpoint.
pub(crate) struct Sessions {
    limits: Limits,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    live: HashMap<SessionId, Live>,
    by_owner: HashMap<Owner, usize>,
    /// Those that were ended before their time, and until when their tokens would be good.
    ended: HashMap<SessionId, Timestamp>,
}

struct Live {
    session: Arc<Session>,
    expires_at: Timestamp,
}

/// There is no room for one more session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl From<Full> for RpcError {
    fn from(Full: Full) -> Self {
        let why = "too many sessions are open; end one, or try again in a moment";
        Self::try_later("TOO_MANY_SESSIONS", why, SOON_MS).with_status(503)
    }
}

impl Sessions {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { limits: limits.clone(), known: Mutex::default() }
    }

    /// The session that a pass is for, taken up again if it is not at hand; none if it was ended.
    pub(crate) fn find(&self, receiver: &Receiver, caller: &Caller, pass: &Pass) -> Result<Option<Arc<Session>>, Full> {
        let mut known = self.known.lock();
        if let Some(live) = known.live.get(&pass.id) {
            return Ok(Some(Arc::clone(&live.session)));
        }
        if known.ended.contains_key(&pass.id) {
            return Ok(None);
        }
        let evicted = known.make_room(&caller.owner, &self.limits)?;
        let session = receiver.session(Some(pass.id), caller, pass.peer, self.limits.session.clone());
        *known.by_owner.entry(caller.owner.clone()).or_default() += 1;
        known.live.insert(pass.id, Live { session: Arc::clone(&session), expires_at: pass.expires_at });
        drop(known);
        for session in evicted {
            session.end();
        }
        Ok(Some(session))
    }

    /// Ends a session for good; says whether it was one.
    pub(crate) fn end(&self, pass: &Pass) -> bool {
        let live = {
            let mut known = self.known.lock();
            if known.ended.contains_key(&pass.id) {
                return false;
            }
            if known.ended.len() >= self.limits.sessions_ended_max
                && let Some(soonest) = known.ended.iter().min_by_key(|(_, until)| **until).map(|(id, _)| *id)
            {
                known.ended.remove(&soonest);
            }
            known.ended.insert(pass.id, pass.expires_at);
            known.remove(&pass.id)
        };
        if let Some(session) = live {
            session.end();
        }
        true
    }

    /// Lets go of what is over: expired sessions, idle ones, streams whose clients did not come back.
    pub(crate) fn tidy(&self, now: Timestamp) {
        let (over, rest) = {
            let mut known = self.known.lock();
            known.ended.retain(|_, until| now < *until);
            let is_idle = |session: &Session| {
                session.idle_since().is_some_and(|since| since.elapsed() >= self.limits.session_idle_max)
            };
            let over: Vec<SessionId> = known
                .live
                .iter()
                .filter(|(_, live)| live.expires_at <= now || is_idle(&live.session))
                .map(|(id, _)| *id)
                .collect();
            let over: Vec<_> = over.iter().filter_map(|id| known.remove(id)).collect();
            let rest: Vec<_> = known.live.values().map(|live| Arc::clone(&live.session)).collect();
            (over, rest)
        };
        for session in over {
            session.end();
        }
        for session in rest {
            session.tidy();
        }
    }

    /// How often that is to be done.
    pub(crate) fn tidy_interval(&self) -> Duration {
        let shortest = self.limits.session_idle_max.min(self.limits.session.broken_time_max);
        (shortest / 4).clamp(Duration::from_millis(10), Duration::from_secs(15))
    }

    /// Ends the streams that would not end by themselves.
    pub(crate) fn stop_listening(&self) {
        let all: Vec<_> = self.known.lock().live.values().map(|live| Arc::clone(&live.session)).collect();
        for session in all {
            session.stop_listening();
        }
    }

    /// Ends all of them here; their clients may come back to another process.
    pub(crate) fn end_all(&self) {
        let all: Vec<_> = self.known.lock().live.drain().map(|(_, live)| live.session).collect();
        for session in all {
            session.end();
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.known.lock().live.len()
    }
}

impl Known {
    /// Makes room for one more session of an owner, at the cost of one that is idle: that can be taken up again.
    fn make_room(&mut self, owner: &Owner, limits: &Limits) -> Result<Vec<Arc<Session>>, Full> {
        let mut evicted = Vec::new();
        let owns = |known: &Self| known.by_owner.get(owner).copied().unwrap_or_default();
        if owns(self) >= limits.sessions_per_owner_max {
            evicted.extend(self.evict(|session| session.owner() == owner));
        }
        if self.live.len() >= limits.sessions_max {
            evicted.extend(self.evict(|_| true));
        }
        let has_room = owns(self) < limits.sessions_per_owner_max && self.live.len() < limits.sessions_max;
        has_room.then_some(evicted).ok_or(Full)
    }

    /// Lets go of the session that has been idle for longest.
    fn evict(&mut self, of: impl Fn(&Session) -> bool) -> Option<Arc<Session>> {
        let idle = |(id, live): (&SessionId, &Live)| -> Option<(Instant, SessionId)> {
            Some((live.session.idle_since().filter(|_| of(&live.session))?, *id))
        };
        let (_, longest) = self.live.iter().filter_map(idle).min()?;
        self.remove(&longest)
    }

    fn remove(&mut self, id: &SessionId) -> Option<Arc<Session>> {
        let session = self.live.remove(id)?.session;
        if let Some(count) = self.by_owner.get_mut(session.owner()) {
            *count -= 1;
            if *count == 0 {
                self.by_owner.remove(session.owner());
            }
        }
        Some(session)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("count", &self.count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use longhaul_wire::Capabilities;
    use longhaul_wire::core2025::{Peer, Revision};

    use super::*;

    #[test]
    fn of_too_many_ended_sessions_the_one_is_forgotten_that_would_expire_first() {
        let sessions = Sessions::new(&Limits { sessions_ended_max: 2, ..Limits::default() });
        let peer = Peer { revision: Revision::ALL[0], capabilities: Capabilities::from_bits(0) };
        let pass = |number: u8| Pass { id: [number; 16], peer, expires_at: Timestamp::from_ms(number.into()) };
        assert!(sessions.end(&pass(1)) && sessions.end(&pass(2)));
        assert!(!sessions.end(&pass(1)) && !sessions.end(&pass(2)), "both are known to be over");
        assert!(sessions.end(&pass(3)));
        assert!(!sessions.end(&pass(3)) && !sessions.end(&pass(2)));
        assert!(sessions.end(&pass(1)), "as if it had not been ended");
    }
}
