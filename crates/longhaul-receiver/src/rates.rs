//! How often one owner may ask, and how often it may ask for what is not there.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use governor::clock::{Clock, DefaultClock};
use governor::middleware::{NoOpMiddleware, RateLimitingMiddleware, StateInformationMiddleware};
use governor::state::keyed::DashMapStateStore;
use governor::{NotUntil, Quota, RateLimiter};
use longhaul_engine::EngineError;
use longhaul_store::StoreError;
use longhaul_task::Owner;
use longhaul_wire::jsonrpc::RpcError;
use parking_lot::RwLock;

/// How often one owner may ask: so many in a second on average, and so many at once after a pause. One of
/// [`RateLimits::NONE`] is no limit; less than one is taken for one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimits {
    /// Calls of tools in a second.
    pub creates_per_second: u32,
    /// Calls of tools at once.
    pub creates_burst: u32,
    /// Looks at tasks, results, lists and streams in a second.
    pub reads_per_second: u32,
    /// Looks at once.
    pub reads_burst: u32,
    /// Cancellations and answers in a second.
    pub changes_per_second: u32,
    /// Cancellations and answers at once.
    pub changes_burst: u32,
    /// All other requests in a second.
    pub others_per_second: u32,
    /// All other requests at once.
    pub others_burst: u32,
    /// Requests for tasks that are not there, or somebody else's, in a second.
    pub failed_lookups_per_second: u32,
    /// The same at once.
    pub failed_lookups_burst: u32,
}

longhaul_store::setters!(RateLimits {
    creates_per_second: u32,
    creates_burst: u32,
    reads_per_second: u32,
    reads_burst: u32,
    changes_per_second: u32,
    changes_burst: u32,
    others_per_second: u32,
    others_burst: u32,
    failed_lookups_per_second: u32,
    failed_lookups_burst: u32,
});

impl Default for RateLimits {
    // Room for an owner who polls 10,000 tasks once a second, and hands in or calls off 10,000 at once. A loop without a
    // pause gets there in seconds. All of it is well below what a small machine can serve, so that others get their share.
    fn default() -> Self {
        Self {
            creates_per_second: 1_000,
            creates_burst: 10_000,
            reads_per_second: 10_000,
            reads_burst: 20_000,
            changes_per_second: 1_000,
            changes_burst: 10_000,
            others_per_second: 1_000,
            others_burst: 10_000,
            failed_lookups_per_second: 100,
            failed_lookups_burst: 1_000,
        }
    }
}

impl RateLimits {
    /// As many in a second as anybody likes.
    pub const NONE: u32 = u32::MAX;

    /// The same number for everything, in a second and at once.
    pub fn all(requests: u32) -> Self {
        Self {
            creates_per_second: requests,
            creates_burst: requests,
            reads_per_second: requests,
            reads_burst: requests,
            changes_per_second: requests,
            changes_burst: requests,
            others_per_second: requests,
            others_burst: requests,
            failed_lookups_per_second: requests,
            failed_lookups_burst: requests,
        }
    }

    /// No limits.
    pub fn off() -> Self {
        Self::all(Self::NONE)
    }
}

/// What a request asks for, as far as its cost goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A call of a tool, which may make a task.
    Create,
    /// A look at tasks.
    Read,
    /// A cancellation or an answer.
    Change,
    /// Everything else.
    Other,
}

impl Kind {
    /// The kind of a method, in whatever generation.
    pub fn of(method: &str) -> Self {
        match method {
            "tools/call" => Self::Create,
            "tasks/get" | "tasks/result" | "tasks/list" | "subscriptions/listen" => Self::Read,
            "tasks/cancel" | "tasks/update" => Self::Change,
            _ => Self::Other,
        }
    }
}

type Instants = <DefaultClock as Clock>::Instant;
type Limiter<M> = RateLimiter<Owner, DashMapStateStore<Owner>, DefaultClock, M>;

/// What every owner has asked for lately.
pub(crate) struct Rates {
    creates: Option<Limiter<NoOpMiddleware<Instants>>>,
    reads: Option<Limiter<NoOpMiddleware<Instants>>>,
    changes: Option<Limiter<NoOpMiddleware<Instants>>>,
    others: Option<Limiter<NoOpMiddleware<Instants>>>,
    failed_lookups: Option<Limiter<StateInformationMiddleware>>,
    /// Who has missed too often, and until when nothing is looked up for it.
    shut_out: RwLock<HashMap<Owner, Instant>>,
}

fn limiter<M: RateLimitingMiddleware<Instants>>(per_second: u32, burst: u32) -> Option<Limiter<M>> {
    let at_least_one = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    let quota = Quota::per_second(at_least_one(per_second)).allow_burst(at_least_one(burst));
    (per_second != RateLimits::NONE)
        .then(|| RateLimiter::dashmap_with_clock(quota, DefaultClock::default()).with_middleware())
}

impl Rates {
    pub(crate) fn new(limits: &RateLimits) -> Self {
        Self {
            creates: limiter(limits.creates_per_second, limits.creates_burst),
            reads: limiter(limits.reads_per_second, limits.reads_burst),
            changes: limiter(limits.changes_per_second, limits.changes_burst),
            others: limiter(limits.others_per_second, limits.others_burst),
            failed_lookups: limiter(limits.failed_lookups_per_second, limits.failed_lookups_burst),
            shut_out: RwLock::default(),
        }
    }

    /// Counts a request; says when to try again if it is one too many.
    pub(crate) fn admit(&self, owner: &Owner, kind: Kind) -> Result<(), RpcError> {
        let limiter = match kind {
            Kind::Create => &self.creates,
            Kind::Read => &self.reads,
            Kind::Change => &self.changes,
            Kind::Other => &self.others,
        };
        let Some(limiter) = limiter else { return Ok(()) };
        limiter.check_key(owner).map_err(|until| {
            let why = "too many requests of this kind in a short time; slow down";
            RpcError::try_later("TOO_MANY_REQUESTS", why, wait_ms(wait(limiter, &until))).with_status(429)
        })
    }

    /// Carries out a look for a task by the name that a caller gave. Whoever has missed too often is turned away before
    /// it: nobody learns what is there.
    pub(crate) async fn look_up<T>(
        &self,
        owner: &Owner,
        look: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<Result<T, EngineError>, RpcError> {
        let until = self.shut_out.read().get(owner).copied();
        let left = until.and_then(|until| until.checked_duration_since(Instant::now())).filter(|left| !left.is_zero());
        if let Some(left) = left {
            let why = "too many requests for tasks that do not exist; slow down";
            return Err(RpcError::try_later("TOO_MANY_FAILED_LOOKUPS", why, wait_ms(left)).with_status(429));
        }
        let found = look.await;
        if let Err(EngineError::Store(StoreError::NotFound)) = found {
            self.missed(owner);
        }
        Ok(found)
    }

    fn missed(&self, owner: &Owner) {
        let Some(limiter) = &self.failed_lookups else { return };
        let wait = match limiter.check_key(owner) {
            Ok(left) if left.remaining_burst_capacity() > 0 => return,
            Ok(left) => left.quota().replenish_interval(),
            Err(until) => wait(limiter, &until),
        };
        self.shut_out.write().insert(owner.clone(), Instant::now() + wait);
    }

    /// Forgets whoever may ask as often as a newcomer.
    pub(crate) fn tidy(&self) {
        for limiter in [&self.creates, &self.reads, &self.changes, &self.others].into_iter().flatten() {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
        if let Some(limiter) = &self.failed_lookups {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
        let now = Instant::now();
        self.shut_out.write().retain(|_, until| now < *until);
    }
}

fn wait<M: RateLimitingMiddleware<Instants>>(limiter: &Limiter<M>, until: &NotUntil<Instants>) -> Duration {
    until.wait_time_from(limiter.clock().now())
}

/// Rounded up: whoever waits for so long is not too early.
fn wait_ms(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1)
}

impl fmt::Debug for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rates").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MISSED: Result<(), EngineError> = Err(EngineError::Store(StoreError::NotFound));

    fn owner(name: &str) -> Owner {
        Owner::parse(name).unwrap()
    }

    fn limits(per_second: u32, burst: u32) -> RateLimits {
        RateLimits { creates_per_second: per_second, creates_burst: burst, ..RateLimits::all(1) }
    }

    #[test]
    fn each_owner_has_its_own_burst_of_each_kind() {
        let rates = Rates::new(&limits(1, 3));
        let (ada, bob) = (owner("ada"), owner("bob"));
        for who in [&ada, &bob] {
            for _ in 0..3 {
                rates.admit(who, Kind::Create).unwrap();
            }
            let refused = rates.admit(who, Kind::Create).unwrap_err();
            assert!(refused.retry_after_ms().is_some_and(|ms| ms > 0), "{refused:?}");
            assert_eq!(refused.http_status(), 429);
            for kind in [Kind::Read, Kind::Change, Kind::Other] {
                rates.admit(who, kind).unwrap();
                assert!(rates.admit(who, kind).is_err());
            }
        }
    }

    #[test]
    fn nothing_is_counted_where_there_is_no_limit() {
        let rates = Rates::new(&RateLimits::off());
        assert!(rates.creates.is_none() && rates.failed_lookups.is_none());
        rates.admit(&owner("ada"), Kind::Create).unwrap();
    }

    #[test]
    fn owners_with_all_their_room_are_forgotten_and_others_are_not() {
        let others = RateLimits { others_per_second: 1_000_000_000, ..RateLimits::all(1) };
        let rates = Rates::new(&RateLimits { creates_burst: 1_000, ..others });
        let (ada, bob) = (owner("ada"), owner("bob"));
        rates.admit(&ada, Kind::Other).unwrap();
        // Its room is back in a quarter of an hour.
        for _ in 0..1_000 {
            rates.admit(&bob, Kind::Create).unwrap();
        }
        let count = |limiter: &Option<Limiter<NoOpMiddleware<Instants>>>| limiter.as_ref().unwrap().len();
        assert_eq!((count(&rates.others), count(&rates.creates)), (1, 1));
        while count(&rates.others) > 0 {
            rates.tidy();
        }
        assert_eq!(count(&rates.creates), 1);
    }

    #[tokio::test]
    async fn a_look_for_what_is_not_there_is_refused_before_it_is_made_once_there_were_too_many() {
        let rates = Rates::new(&RateLimits { failed_lookups_burst: 2, ..RateLimits::all(1) });
        let (ada, bob) = (owner("ada"), owner("bob"));
        for _ in 0..2 {
            rates.look_up(&ada, async { Ok::<_, EngineError>(()) }).await.unwrap().unwrap();
            assert_eq!(rates.look_up(&ada, async { MISSED }).await.unwrap(), MISSED);
        }
        let looked = async { unreachable!("it was looked up") };
        let refused = rates.look_up::<()>(&ada, looked).await.unwrap_err();
        assert!(refused.data.as_ref().unwrap().as_str().contains("TOO_MANY_FAILED_LOOKUPS"), "{refused:?}");
        rates.look_up(&bob, async { Ok::<_, EngineError>(()) }).await.unwrap().unwrap();
        // As if its time had passed.
        rates.shut_out.write().insert(ada.clone(), Instant::now());
        rates.look_up(&ada, async { Ok::<_, EngineError>(()) }).await.unwrap().unwrap();
    }
}
