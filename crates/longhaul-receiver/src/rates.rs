//! How often one owner may send requests, and how often it may ask for tasks that do not exist.

use std::fmt;
use std::num::NonZeroU32;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{NotUntil, Quota, RateLimiter};
use longhaul_engine::EngineError;
use longhaul_store::StoreError;
use longhaul_task::Owner;
use longhaul_wire::jsonrpc::RpcError;

/// Rates of requests per owner: an average per second, and a burst after a pause. [`RateLimits::NONE`] means no limit; 0
/// counts as 1.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimits {
    /// `tools/call`, `prompts/get` and `resources/read` per second.
    pub creates_per_second: u32,
    /// These at once.
    pub creates_burst: u32,
    /// Reads of tasks, results, lists and streams per second.
    pub reads_per_second: u32,
    /// Reads at once.
    pub reads_burst: u32,
    /// Cancellations, deletions and answers per second.
    pub changes_per_second: u32,
    /// Cancellations, deletions and answers at once.
    pub changes_burst: u32,
    /// All other requests per second.
    pub others_per_second: u32,
    /// All other requests at once.
    pub others_burst: u32,
    /// Requests per second for tasks that do not exist or belong to another owner.
    pub failed_lookups_per_second: u32,
    /// Such requests at once.
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
    // Enough for an owner that polls 10,000 tasks once a second and creates or cancels 10,000 at once. A loop without a
    // pause reaches the limits in seconds. They are well below what a small machine can serve, so that other owners get
    // their share.
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
    /// No limit.
    pub const NONE: u32 = u32::MAX;

    /// The same number for every kind of request, per second and at once.
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

/// The kind of a request, by its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// `tools/call`, `prompts/get` and `resources/read`, which run a function or create a task.
    Create,
    /// A read of tasks.
    Read,
    /// A cancellation, a deletion or an answer.
    Change,
    /// Everything else.
    Other,
}

impl RequestKind {
    /// The kind of a method.
    pub fn of(method: &str) -> Self {
        match method {
            "tools/call" | "prompts/get" | "resources/read" => Self::Create,
            "tasks/get" | "tasks/status" | "tasks/result" | "tasks/list" | "subscriptions/listen" => Self::Read,
            "tasks/cancel" | "tasks/delete" | "tasks/update" => Self::Change,
            _ => Self::Other,
        }
    }
}

type Instants = <DefaultClock as Clock>::Instant;
type Limiter = RateLimiter<Owner, DashMapStateStore<Owner>, DefaultClock, NoOpMiddleware<Instants>>;

/// The recent requests of every owner.
pub(crate) struct Rates {
    creates: Option<Limiter>,
    reads: Option<Limiter>,
    changes: Option<Limiter>,
    others: Option<Limiter>,
    failed_lookups: Option<Limiter>,
}

fn limiter(per_second: u32, burst: u32) -> Option<Limiter> {
    let at_least_one = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    let quota = Quota::per_second(at_least_one(per_second)).allow_burst(at_least_one(burst));
    (per_second != RateLimits::NONE).then(|| RateLimiter::dashmap_with_clock(quota, DefaultClock::default()))
}

impl Rates {
    pub(crate) fn new(limits: &RateLimits) -> Self {
        Self {
            creates: limiter(limits.creates_per_second, limits.creates_burst),
            reads: limiter(limits.reads_per_second, limits.reads_burst),
            changes: limiter(limits.changes_per_second, limits.changes_burst),
            others: limiter(limits.others_per_second, limits.others_burst),
            failed_lookups: limiter(limits.failed_lookups_per_second, limits.failed_lookups_burst),
        }
    }

    /// Counts a request. The error says when to try again.
    pub(crate) fn admit(&self, owner: &Owner, kind: RequestKind) -> Result<(), RpcError> {
        let limiter = match kind {
            RequestKind::Create => &self.creates,
            RequestKind::Read => &self.reads,
            RequestKind::Change => &self.changes,
            RequestKind::Other => &self.others,
        };
        let Some(limiter) = limiter else { return Ok(()) };
        limiter.check_key(owner).map_err(|until| {
            let why = "too many requests of this kind in a short time; slow down";
            RpcError::try_later("TOO_MANY_REQUESTS", why, wait_ms(limiter, &until)).with_status(429)
        })
    }

    /// Looks up a task by an ID that the caller sent. Only look-ups that find nothing are counted and refused: without an
    /// identity all callers are one owner, and one of them must not keep the others from their tasks. Nothing is lost by
    /// answering for tasks that exist: an ID has too many random bits to be guessed.
    pub(crate) async fn look_up<T>(
        &self,
        owner: &Owner,
        look_up: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<Result<T, EngineError>, RpcError> {
        let found = look_up.await;
        if let (Err(EngineError::Store(StoreError::NotFound)), Some(limiter)) = (&found, &self.failed_lookups) {
            limiter.check_key(owner).map_err(|until| {
                let why = "too many requests for tasks that do not exist; slow down";
                RpcError::try_later("TOO_MANY_FAILED_LOOKUPS", why, wait_ms(limiter, &until)).with_status(429)
            })?;
        }
        Ok(found)
    }

    /// Drops the state of owners that have their whole burst again.
    pub(crate) fn tidy(&self) {
        let limiters = [&self.creates, &self.reads, &self.changes, &self.others, &self.failed_lookups];
        for limiter in limiters.into_iter().flatten() {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
    }
}

/// The wait until a request would pass, rounded up, so that a client that waits this long is not too early.
fn wait_ms(limiter: &Limiter, until: &NotUntil<Instants>) -> u64 {
    let wait = until.wait_time_from(limiter.clock().now());
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

    const NOT_FOUND: Result<(), EngineError> = Err(EngineError::Store(StoreError::NotFound));

    fn owner(name: &str) -> Owner {
        Owner::parse(name).unwrap()
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let rates = Rates::new(&RateLimits::off());
        assert!(rates.creates.is_none() && rates.failed_lookups.is_none());
        rates.admit(&owner("ada"), RequestKind::Create).unwrap();
    }

    #[test]
    fn only_owners_with_their_whole_burst_are_dropped() {
        let others = RateLimits { others_per_second: 1_000_000_000, ..RateLimits::all(1) };
        let rates = Rates::new(&RateLimits { creates_burst: 1_000, ..others });
        let (ada, bob) = (owner("ada"), owner("bob"));
        rates.admit(&ada, RequestKind::Other).unwrap();
        // Its burst is complete again after a quarter of an hour.
        for _ in 0..1_000 {
            rates.admit(&bob, RequestKind::Create).unwrap();
        }
        let count = |limiter: &Option<Limiter>| limiter.as_ref().unwrap().len();
        assert_eq!((count(&rates.others), count(&rates.creates)), (1, 1));
        while count(&rates.others) > 0 {
            rates.tidy();
        }
        assert_eq!(count(&rates.creates), 1);
    }

    #[tokio::test]
    async fn only_lookups_that_miss_are_counted_and_refused() {
        let rates = Rates::new(&RateLimits { failed_lookups_burst: 2, ..RateLimits::all(1) });
        let (ada, bob) = (owner("ada"), owner("bob"));
        for _ in 0..2 {
            assert_eq!(rates.look_up(&ada, async { NOT_FOUND }).await.unwrap(), NOT_FOUND);
        }
        let refused = rates.look_up(&ada, async { NOT_FOUND }).await.unwrap_err();
        assert!(refused.data.as_ref().unwrap().as_str().contains("TOO_MANY_FAILED_LOOKUPS"), "{refused:?}");
        rates.look_up(&ada, async { Ok::<_, EngineError>(()) }).await.unwrap().unwrap();
        assert_eq!(rates.look_up(&bob, async { NOT_FOUND }).await.unwrap(), NOT_FOUND);
    }
}
