//! A process that a test can kill: a thread with a runtime, a store and an engine.

use std::sync::Arc;
use std::thread;

use longhaul_engine::{Engine, EngineLimits, EngineTool, SystemRandom};
use longhaul_store::embedded::EmbeddedLimits;
use longhaul_store::memory::MemoryDisk;
use longhaul_store::{CrashTrigger, Embedded, ManualClock};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

#[derive(Debug)]
pub(super) struct Process {
    runtime: Handle,
    engine: Engine,
    pub(super) crash_trigger: Arc<CrashTrigger>,
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl Process {
    /// Starts a process on the tables of a disk, with everything that an earlier process left there.
    pub(super) async fn start(disk: &MemoryDisk, clock: ManualClock, tools: Vec<EngineTool>) -> Self {
        let crash_trigger = Arc::<CrashTrigger>::default();
        let (reader, disk) = (disk.reader(), disk.same_tables().with_crash_trigger(Arc::clone(&crash_trigger)));
        let (started, start) = oneshot::channel();
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let process_main = move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
            runtime.block_on(async {
                let store = Embedded::start(disk, reader, clock, &EmbeddedLimits::default());
                let store = Arc::new(store.expect("a thread can be made"));
                let random = Arc::new(SystemRandom);
                let engine = Engine::start(store, tools, EngineLimits::default(), random).await;
                let _ = started.send((Handle::current(), engine.expect("a store in memory works")));
                let _ = stopped.await;
            });
            // Drops every task of the runtime at the point that it has reached.
            runtime.shutdown_background();
            let _ = end.send(());
        };
        thread::Builder::new().name("longhaul-test".into()).spawn(process_main).expect("a thread can be made");
        let (runtime, engine) = start.await.expect("an engine starts on a store in memory");
        Self { runtime, engine, crash_trigger, stop, ended }
    }

    /// Runs a future on the runtime of the process, so that whatever it starts ends with the process. `None` if the process has
    /// ended.
    pub(super) async fn call<F>(&self, call: impl FnOnce(Engine) -> F) -> Option<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtime.spawn(call(self.engine.clone())).await.ok()
    }

    /// Kills the process: it writes nothing from here on, and none of its code runs when this returns.
    pub(super) async fn kill(self) -> Arc<CrashTrigger> {
        self.crash_trigger.crash();
        let _ = self.stop.send(());
        let _ = self.ended.await;
        self.crash_trigger
    }
}
