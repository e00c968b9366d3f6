//! The measured time. Everything runs on one thread, so the counters need no synchronisation.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use hdrhistogram::Histogram;
use procfs::{CurrentSI, KernelStats, process::Process};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Latencies above this are recorded as this.
const LATENCY_NS_MAX: u64 = 120_000_000_000;

/// Flags for the duration of a run and the measured process.
#[derive(clap::Args, Clone)]
pub struct Timing {
    /// Number of connections.
    #[arg(long, default_value_t = 32)]
    pub connections: usize,
    /// Length of the measured window.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Duration of the load before the window, which is not measured.
    #[arg(long, default_value_t = 1.0)]
    pub warmup_seconds: f64,
    /// The server's process, to read its processor time.
    #[arg(long)]
    pub pid: Option<i32>,
}

/// The counters of a run.
pub struct Window {
    phase: Phase,
    latency_ns: Histogram<u64>,
    requests: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Warmup,
    Measured,
    Over,
}

pub type SharedWindow = Rc<RefCell<Window>>;

impl Window {
    fn new() -> anyhow::Result<SharedWindow> {
        Ok(Rc::new(RefCell::new(Self {
            phase: Phase::Warmup,
            latency_ns: Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3)?,
            requests: 0,
        })))
    }

    /// Whether connections should stop.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether an operation that ends now is measured.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.phase == Phase::Measured
    }

    /// Counts a request that was answered now.
    pub fn count_request(&mut self) {
        if self.is_measured() {
            self.requests += 1;
        }
    }

    /// Records one operation that ended now.
    pub fn record(&mut self, started: Instant) {
        if self.is_measured() {
            let elapsed = u64::try_from(started.elapsed().as_nanos()).unwrap_or(LATENCY_NS_MAX);
            self.latency_ns.saturating_record(elapsed);
        }
    }
}

/// Runs `connections` copies of `client` through warm-up and window, and returns the figures.
///
/// # Errors
/// The first error of any connection, which fails the run.
pub fn measure<Client, Running>(timing: &Timing, mut client: Client) -> anyhow::Result<Value>
where
    Client: FnMut(usize, SharedWindow) -> Running,
    Running: Future<Output = anyhow::Result<()>> + 'static,
{
    on_one_thread(async {
        let window = Window::new()?;
        let mut clients = JoinSet::new();
        for index in 0..timing.connections {
            clients.spawn_local(client(index, Rc::clone(&window)));
        }
        let figures = tokio::select! {
            figures = follow(&window, timing) => figures?,
            failed = first_failure(&mut clients) => return Err(failed),
        };
        while let Some(ended) = clients.join_next().await {
            ended??;
        }
        Ok(figures)
    })
}

/// Runs a future on the one thread of this program.
///
/// # Errors
/// Those of the future.
pub fn on_one_thread<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, work)
}

async fn first_failure(clients: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Error {
    while let Some(ended) = clients.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error,
            Err(error) => return error.into(),
        }
    }
    // All clients have ended without an error, so the window is over and `follow` is about to return.
    std::future::pending().await
}

async fn follow(window: &SharedWindow, timing: &Timing) -> anyhow::Result<Value> {
    tokio::time::sleep(Duration::from_secs_f64(timing.warmup_seconds)).await;
    let before = Sample::take(timing.pid)?;
    window.borrow_mut().phase = Phase::Measured;
    tokio::time::sleep(Duration::from_secs_f64(timing.seconds)).await;
    let mut window = window.borrow_mut();
    window.phase = Phase::Over;
    let after = Sample::take(timing.pid)?;
    Ok(figures(&window, timing, &before, &after))
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run are far below 2^52")]
fn figures(window: &Window, timing: &Timing, before: &Sample, after: &Sample) -> Value {
    let seconds = (after.at - before.at).as_secs_f64();
    let latency = &window.latency_ns;
    let operations = latency.len();
    let micros = |quantile: f64| latency.value_at_quantile(quantile) as f64 / 1e3;
    let mut line = json!({
        "connections": timing.connections,
        "seconds": round(seconds),
        "operations": operations,
        "requests": window.requests,
        "errors": 0,
        "rate_per_s": round(operations as f64 / seconds),
        "requests_per_s": round(window.requests as f64 / seconds),
        "p50_us": round(micros(0.5)),
        "p99_us": round(micros(0.99)),
        "max_us": round(latency.max() as f64 / 1e3),
    });
    let mut cpu = |side: &str, seconds_cpu: f64| {
        line[format!("{side}_cpu_us_per_operation")] = round(seconds_cpu * 1e6 / operations.max(1) as f64).into();
        line[format!("{side}_cpu_us_per_request")] = round(seconds_cpu * 1e6 / window.requests.max(1) as f64).into();
        line[format!("{side}_cores")] = round(seconds_cpu / seconds).into();
    };
    cpu("load", after.own_cpu_s - before.own_cpu_s);
    if let (Some(after), Some(before)) = (after.server_cpu_s, before.server_cpu_s) {
        cpu("server", after - before);
    }
    line["other_cores"] = round(after.other_cores_since(before)).into();
    line
}

/// Rounds to three decimals.
pub(crate) fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Processor time at one moment.
pub(crate) struct Sample {
    at: Instant,
    own_cpu_s: f64,
    server_cpu_s: Option<f64>,
    machine_cpu_s: f64,
}

impl Sample {
    pub(crate) fn take(server: Option<i32>) -> anyhow::Result<Self> {
        Ok(Self {
            at: Instant::now(),
            own_cpu_s: cpu_seconds(&Process::myself()?)?,
            server_cpu_s: server.map(|pid| cpu_seconds(&process(pid)?)).transpose()?,
            machine_cpu_s: machine_cpu_seconds()?,
        })
    }

    /// Processor cores used by other processes. Their load makes a measurement unreliable.
    pub(crate) fn other_cores_since(&self, before: &Self) -> f64 {
        let known_s = |sample: &Self| sample.own_cpu_s + sample.server_cpu_s.unwrap_or_default();
        let other_s = self.machine_cpu_s - before.machine_cpu_s - (known_s(self) - known_s(before));
        other_s.max(0.0) / (self.at - before.at).as_secs_f64()
    }
}

/// # Errors
/// If there is no such process.
pub fn process(pid: i32) -> anyhow::Result<Process> {
    Process::new(pid).with_context(|| format!("there is no process {pid}"))
}

/// User and system time of all threads, including those that have ended.
fn cpu_seconds(process: &Process) -> anyhow::Result<f64> {
    let stat = process.stat()?;
    Ok(seconds(stat.utime + stat.stime))
}

/// Time for which the processors of this machine were not idle.
fn machine_cpu_seconds() -> anyhow::Result<f64> {
    let cpu = KernelStats::current()?.total;
    let interrupts = cpu.irq.unwrap_or(0) + cpu.softirq.unwrap_or(0);
    let stolen = cpu.steal.unwrap_or(0);
    Ok(seconds(cpu.user + cpu.nice + cpu.system + interrupts + stolen))
}

#[expect(clippy::cast_precision_loss, reason = "clock ticks since boot are far below 2^52")]
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / procfs::ticks_per_second() as f64
}
