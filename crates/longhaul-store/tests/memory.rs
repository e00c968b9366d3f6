//! The memory backend passes the contract suite.

use std::sync::Arc;

use async_trait::async_trait;
use longhaul_store::contract::{CacheSize, START, Subject, transactions};
use longhaul_store::embedded::{Embedded, EmbeddedLimits};
use longhaul_store::memory::MemoryDisk;
use longhaul_store::{ManualClock, Store};
use longhaul_task::Timestamp;

struct Memory {
    /// The tables that a store finds after a restart. They outlive the store, though not the process.
    same_tables: MemoryDisk,
    store: Embedded,
    clock: ManualClock,
    limits: EmbeddedLimits,
}

impl Memory {
    fn start(disk: MemoryDisk, clock: ManualClock, limits: EmbeddedLimits) -> Self {
        let same_tables = disk.same_tables();
        let reader = disk.reader();
        let store = Embedded::start(disk, reader, clock.clone(), &limits).unwrap();
        Self { same_tables, store, clock, limits }
    }
}

#[async_trait]
impl Subject for Memory {
    async fn empty(cache_size: CacheSize) -> Self {
        let mut limits = EmbeddedLimits::default();
        if cache_size == CacheSize::Tiny {
            limits.cache_bytes_max = 20_000;
        }
        Self::start(MemoryDisk::default(), ManualClock::at(START), limits)
    }

    async fn handle(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn reopen(self) -> Self {
        self.store.close().await;
        Self::start(self.same_tables, self.clock, self.limits)
    }

    async fn set_time(&self, now: Timestamp) {
        self.clock.set(now);
    }
}

longhaul_store::contract_suite!(Memory);

#[test]
fn a_dropped_transaction_leaves_nothing() {
    let mut disk = MemoryDisk::default();
    let reader = disk.reader();
    transactions::a_dropped_transaction_leaves_nothing(&mut disk, &reader);
}
