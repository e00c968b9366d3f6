//! Metrics for operators.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_engine::Budget;
use longhaul_receiver::Receiver;
use longhaul_wire::Operation;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Counters and gauges in the Prometheus text format.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// One handle per method, so that counting takes no lock.
    by_method: Vec<(&'static str, Counter, Counter)>,
    refused: Counter,
    streams: Gauge,
    sessions: Gauge,
    session_jobs: Gauge,
    running: Family<ToolLabels, Gauge<u64, AtomicU64>>,
    queued: Family<ToolLabels, Gauge<u64, AtomicU64>>,
    calls: Family<ToolLabels, Gauge<u64, AtomicU64>>,
    /// The budgets of the transport.
    budgets: Vec<Arc<Budget>>,
    budget_used: Family<BudgetLabels, Gauge>,
    budget_capacity: Family<BudgetLabels, Gauge>,
    budget_refused: Family<BudgetLabels, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BudgetLabels {
    resource: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl Metrics {
    /// Metrics that include these budgets, beside those of the receiver.
    pub(crate) fn new(budgets: Vec<Arc<Budget>>) -> Self {
        let mut registry = Registry::with_prefix("longhaul");
        let requests = Family::<RequestLabels, Counter>::default();
        registry.register("requests", "Requests by method, and whether they were refused", requests.clone());
        let refused = Counter::default();
        registry.register("messages_refused", "Messages that were not a request of a known method", refused.clone());
        let streams = Gauge::default();
        registry.register("streams_open", "Open response streams", streams.clone());
        let sessions = Gauge::default();
        registry.register("sessions", "Sessions in memory", sessions.clone());
        let session_jobs = Gauge::default();
        let help = "Requests of sessions that are under way, and tasks that sessions follow";
        registry.register("session_jobs", help, session_jobs.clone());
        let running = Family::default();
        registry.register("tasks_running", "Attempts that hold a worker, by tool", running.clone());
        let queued = Family::default();
        registry.register("tasks_queued", "Tasks that wait for a worker, by tool", queued.clone());
        let calls = Family::default();
        registry.register("calls_running", "Calls without a task that run, by tool", calls.clone());
        let budget_used = Family::default();
        registry.register("budget_used", "How much of a shared resource is in use", budget_used.clone());
        let budget_capacity = Family::default();
        registry.register("budget_capacity", "How much of a shared resource there is", budget_capacity.clone());
        let budget_refused = Family::default();
        let help = "How often an owner had used up its share of a resource";
        registry.register("budget_refused", help, budget_refused.clone());
        let by_method = Operation::METHODS
            .iter()
            .map(|&method| {
                let counter = |status| {
                    let labels = RequestLabels { method, status };
                    requests.get_or_create(&labels).clone()
                };
                (method, counter("ok"), counter("refused"))
            })
            .collect();
        Self {
            registry,
            by_method,
            refused,
            streams,
            sessions,
            session_jobs,
            running,
            queued,
            calls,
            budgets,
            budget_used,
            budget_capacity,
            budget_refused,
        }
    }

    /// Counts a request.
    pub(crate) fn request(&self, method: &str, is_ok: bool) {
        match self.by_method.iter().find(|(known, ..)| *known == method) {
            Some((_, ok, _)) if is_ok => ok.inc(),
            Some((_, _, refused)) => refused.inc(),
            None => self.refused.inc(),
        };
    }

    /// Counts a message that was not a request of a known method.
    pub(crate) fn refused(&self) {
        self.refused.inc();
    }

    pub(crate) fn stream_opened(&self) {
        self.streams.inc();
    }

    pub(crate) fn stream_closed(&self) {
        self.streams.dec();
    }

    /// All metrics in the Prometheus text format.
    pub fn render(&self, receiver: &Receiver) -> String {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.sessions.set(count(receiver.sessions()));
        self.session_jobs.set(count(receiver.session_jobs()));
        for (tool, running, queued) in receiver.engine().load() {
            let labels = ToolLabels { tool: tool.name.to_string() };
            self.running.get_or_create(&labels).set(running as u64);
            self.queued.get_or_create(&labels).set(queued as u64);
        }
        for (tool, calls) in receiver.engine().running_calls() {
            self.calls.get_or_create(&ToolLabels { tool: tool.to_string() }).set(calls as u64);
        }
        for budget in self.budgets.iter().map(|budget| budget.usage()).chain(receiver.budgets()) {
            let labels = BudgetLabels { resource: budget.resource };
            self.budget_used.get_or_create(&labels).set(count(budget.used));
            self.budget_capacity.get_or_create(&labels).set(count(budget.capacity));
            self.budget_refused.get_or_create(&labels).inner().store(budget.refused, Ordering::Relaxed);
        }
        let mut page = String::new();
        match text::encode(&mut page, &self.registry) {
            Ok(()) => page,
            Err(error) => format!("# {error}\n"),
        }
    }
}
