//! One disk, and processes that come and go on it.

use std::sync::Arc;

use longhaul_engine::{EngineLimits, EngineTool};
use longhaul_store::Store;
use longhaul_store::memory::MemoryDisk;
use longhaul_task::{TaskKey, Timestamp};
use tokio::runtime::{Builder, Runtime};

use super::{Door, HandlerLog, Lab, START, TestStore, one_worker, waits_at};

/// A machine whose processes do not end: they are killed.
pub(crate) struct Machine {
    disk: MemoryDisk,
    now: Timestamp,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self { disk: MemoryDisk::default(), now: START }
    }

    /// Runs a process on paused time. When that life ends it is killed: nothing in it gets another word.
    pub(crate) fn run<T>(&mut self, life: impl AsyncFnOnce(Arc<TestStore>) -> T) -> T {
        let process = runtime();
        let (end, store) = process.block_on(async {
            let store = TestStore::open(&self.disk, self.now);
            (life(Arc::clone(&store)).await, store)
        });
        process.shutdown_background();
        let embedded = store.inner();
        drop(store);
        self.now = runtime().block_on(async {
            let now = embedded.now().await.unwrap();
            embedded.close().await;
            now
        });
        end
    }

    pub(crate) fn run_engine<T>(&mut self, tools: Vec<EngineTool>, life: impl AsyncFnOnce(Lab) -> T) -> T {
        self.run_engine_with(tools, EngineLimits::default(), life)
    }

    pub(crate) fn run_engine_with<T>(
        &mut self,
        tools: Vec<EngineTool>,
        limits: EngineLimits,
        life: impl AsyncFnOnce(Lab) -> T,
    ) -> T {
        self.run(async |store| life(Lab::on(&store, tools, limits).await).await)
    }

    /// Runs a process that ends with tasks of the tool "work" in the queue.
    pub(crate) fn queue_tasks<const N: usize>(&mut self, limits: EngineLimits) -> [TaskKey; N] {
        let busy = one_worker("work", waits_at(&Door::shut(), &HandlerLog::new()));
        self.run_engine_with(vec![busy], limits, async |lab| {
            lab.create("work").await;
            let queued = futures_util::future::join_all((0..N).map(|_| lab.create("work"))).await;
            queued.try_into().unwrap()
        })
    }

    /// Sets the clock back while no process runs.
    pub(crate) fn set_back_ms(&mut self, ms: u64) {
        self.now = Timestamp::from_ms(self.now.as_ms() - ms);
    }

    /// Lets time pass while no process runs.
    pub(crate) fn wait_ms(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}
