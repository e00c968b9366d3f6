//! The SQLite backend keeps what every store promises.

use std::sync::Arc;

use async_trait::async_trait;
use longhaul_store::contract::{CacheSize, START, Subject};
use longhaul_store::{Embedded, ManualClock, Store};
use longhaul_store_sqlite::{SqliteOptions, open};
use longhaul_task::Timestamp;
use tempfile::TempDir;

struct Sqlite {
    directory: TempDir,
    store: Embedded,
    clock: ManualClock,
    options: SqliteOptions,
}

impl Sqlite {
    fn start(directory: TempDir, clock: ManualClock, options: SqliteOptions) -> Self {
        let store = open(directory.path().join("tasks.db"), &options, clock.clone()).unwrap();
        Self { directory, store, clock, options }
    }
}

#[async_trait]
impl Subject for Sqlite {
    async fn empty(cache_size: CacheSize) -> Self {
        let mut options = SqliteOptions::default();
        if cache_size == CacheSize::Tiny {
            options.limits.cache_bytes_max = 20_000;
        }
        Self::start(TempDir::new().unwrap(), ManualClock::at(START), options)
    }

    async fn handle(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    /// As a crash leaves it: the files of the moment, while the old store still runs and has closed nothing.
    async fn reopen(self) -> Self {
        let directory = TempDir::new().unwrap();
        for name in ["tasks.db", "tasks.db-wal"] {
            std::fs::copy(self.directory.path().join(name), directory.path().join(name)).unwrap();
        }
        Self::start(directory, self.clock, self.options)
    }

    async fn set_time(&self, now: Timestamp) {
        self.clock.set(now);
    }
}

longhaul_store::contract_suite!(Sqlite);
