//! Runs the client threads of one benchmark: they are made ready, start together, and are timed
//! until the last has finished.

use crate::flags::config::{Config, Latency};
use crate::interrupt::Interrupt;
use crate::keys::KeyBuffer;
use crate::meter::{Control, Meter, SCAN_SAMPLING};
use crate::process::Consumption;
use crate::progress::{Display, Progress};
use crate::random::{KeyGeneration, KeyRandom};
use crate::schedule::Schedule;
use crate::times::Times;
use crate::values::ValuePool;
use crate::worker::{Job, Worker};
use crate::workload::{Access, Benchmark, Body, ThreadBody};
use esker_engines::{EngineError, Opened, Result, Session};
use std::any::Any;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// A thread that others wait for, and that may panic: then this tells them on its way out.
struct Awaited<'a> {
    control: &'a Control,
    /// Threads that still work, for the writer beside them; `None` for that writer.
    readers_left: Option<&'a AtomicU32>,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.control.fail();
        }
        if let Some(left) = self.readers_left {
            left.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Starts the threads of a benchmark together. Nothing is sent: the receiver waits until every
/// thread has dropped its sender, by getting ready or by a panic.
struct Start<'a> {
    ready: Sender<()>,
    go: &'a OnceLock<()>,
}

impl Start<'_> {
    /// The thread is ready; returns when all are.
    fn wait(self) {
        drop(self.ready);
        self.go.wait();
    }
}

/// One line of what a thread panicked with.
fn describe_panic(panic: &(dyn Any + Send)) -> EngineError {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let first = text.and_then(|text| text.lines().next());
    EngineError(format!("a client thread panicked: {}", first.unwrap_or("it does not say why")))
}

/// What threads of one benchmark are made from.
pub struct Crew<'a> {
    /// The flags.
    pub config: &'a Config,
    /// The benchmark.
    pub benchmark: &'a Benchmark,
    /// The open engine.
    pub engine: &'a Opened,
    /// Where values come from.
    pub pool: &'a ValuePool,
    /// What each thread does.
    pub job: &'a Job,
    /// Threads created in this run before.
    pub created: u64,
    /// Ends the benchmark early.
    pub interrupt: &'a Interrupt,
    /// How progress is shown.
    pub display: Display,
}

/// What the threads did, or what was done without any.
#[derive(Debug, Default)]
pub struct CrewResult {
    /// Their counts and times, without the extra writer's.
    pub times: Times,
    /// Keys found by the first thread that looked for any.
    pub found: Option<u64>,
    /// What the first thread with something to say said.
    pub message: String,
    /// Operations a second of the extra writer, if there was one.
    pub writer_ops_per_sec: Option<f64>,
    /// What the timed part consumed, where more was done besides it.
    pub consumed: Option<Consumption>,
}

impl From<Times> for CrewResult {
    fn from(times: Times) -> CrewResult {
        CrewResult { times, ..CrewResult::default() }
    }
}

/// The random seed of thread `index` of a benchmark, if the run created `created` threads before
/// it.
pub fn thread_seed(generation: KeyGeneration, base: u64, created: u64, index: u32) -> u64 {
    match generation {
        KeyGeneration::LevelDb => base + created + u64::from(index) + 1,
        KeyGeneration::RocksDb => base + u64::from(index),
    }
}

type ThreadResult = Result<(Times, Option<u64>, String)>;

impl Crew<'_> {
    /// How many threads this benchmark creates, an extra writer included: 0 for what db_bench does
    /// not have.
    pub fn size(config: &Config, benchmark: &Benchmark) -> u32 {
        match benchmark.body {
            Body::WaitIdle | Body::Check(_) => 0,
            Body::BesideWriter(..) => config.threads + 1,
            Body::EveryKeyOnce(_) => 1,
            _ => config.threads,
        }
    }

    fn body(&self, index: u32) -> Option<ThreadBody> {
        match self.benchmark.body {
            Body::Threads(body) | Body::EveryKeyOnce(body) => Some(body),
            Body::BesideWriter(_, writer) if index == 0 => Some(writer),
            Body::BesideWriter(reader, _) => Some(reader),
            _ => None,
        }
    }

    fn is_extra_writer(&self, index: u32) -> bool {
        index == 0 && matches!(self.benchmark.body, Body::BesideWriter(..))
    }

    /// When thread `index` is to start its operations, at a fixed rate.
    fn schedule(&self, index: u32) -> Option<Schedule> {
        let extra = u32::from(self.is_extra_writer(0));
        let threads = Crew::size(self.config, self.benchmark) - extra;
        let thread = index.checked_sub(extra)?;
        self.config.rate.map(|rate| Schedule::new(rate, threads, thread))
    }

    fn latency(&self) -> Latency {
        match (self.config.latency, self.benchmark.access) {
            (Latency::Automatic, Access::Scan) => Latency::Sampled(SCAN_SAMPLING),
            (Latency::Automatic, _) => Latency::Every,
            (chosen, _) => chosen,
        }
    }

    /// Runs the benchmark.
    pub fn run(&self) -> Result<CrewResult> {
        let threads = Crew::size(self.config, self.benchmark);
        let counted = threads - u32::from(self.is_extra_writer(0));
        self.job.readers_left.store(counted, Ordering::Relaxed);
        let control = Control::new(self.interrupt, self.config.max_seconds.map(Duration::from_secs_f64));
        let (go, working) = (OnceLock::new(), AtomicU32::new(threads));
        let ((ready, all_ready), (sender, finished)) = (mpsc::channel(), mpsc::channel());
        let label = format!("{} {}", self.engine.description.name, self.benchmark.name);
        let results: Vec<ThreadResult> = thread::scope(|scope| {
            let mut handles = Vec::new();
            let mut failure = None;
            for index in 0..threads {
                let start = Start { ready: ready.clone(), go: &go };
                let (sender, control, working) = (sender.clone(), &control, &working);
                let work = move || {
                    // Dropped when the thread ends, however it ends.
                    let _sender = sender;
                    self.thread(index, start, control, working)
                };
                match thread::Builder::new().spawn_scoped(scope, work) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        control.fail();
                        failure = Some(EngineError(format!("cannot start thread {index}: {error}")));
                        break;
                    }
                }
            }
            drop((ready, sender));
            let _ = all_ready.recv();
            let _ = go.set(());
            self.watch(&control, &finished, label, u64::from(counted) * self.job.ops);
            let joined = handles
                .into_iter()
                .map(|handle| handle.join().unwrap_or_else(|panic| Err(describe_panic(panic.as_ref()))));
            let mut results: Vec<ThreadResult> = joined.collect();
            results.extend(failure.map(Err));
            results
        });
        self.add_up(results)
    }

    /// Shows progress until all threads have ended.
    fn watch(&self, control: &Control, finished: &mpsc::Receiver<()>, label: String, total: u64) {
        let mut progress = Progress::start(self.display, label, total);
        let mut next_statistics = self.config.stats_interval;
        while let Err(RecvTimeoutError::Timeout) = finished.recv_timeout(Duration::from_millis(100)) {
            let done = control.done.load(Ordering::Relaxed);
            progress.update(done);
            let per_thread = done / u64::from(self.config.threads);
            if self.config.stats_per_interval && next_statistics > 0 && per_thread >= next_statistics {
                next_statistics = per_thread + self.config.stats_interval;
                eprintln!("{}", self.engine.property("stats").unwrap_or_default());
            }
        }
    }

    /// Does something in this thread, alone and untimed: what has to be done before the threads
    /// start.
    pub fn alone<T>(&self, work: impl FnOnce(&mut Worker<'_>, &mut dyn Session) -> Result<T>) -> Result<T> {
        let control = Control::new(self.interrupt, None);
        let mut worker = self.worker(0, self.config.seed, Meter::new(&control, Latency::Off, 0));
        let mut session = self.engine.session()?;
        work(&mut worker, session.as_mut())
    }

    fn worker<'a>(&'a self, index: u32, seed: u64, meter: Meter<'a>) -> Worker<'a> {
        Worker {
            index,
            job: self.job,
            random: KeyRandom::new(self.config.key_generation, seed),
            key: KeyBuffer::new(self.config.key_prefix, self.config.key_size),
            values: self.pool.cursor(),
            value: Vec::with_capacity(self.job.value_size),
            meter,
            found: None,
            message: String::new(),
        }
    }

    fn thread(&self, index: u32, start: Start<'_>, control: &Control, working: &AtomicU32) -> ThreadResult {
        let extra_writer = self.is_extra_writer(index);
        let readers_left = (!extra_writer).then_some(&self.job.readers_left);
        let awaited = Awaited { control, readers_left };
        let seed = thread_seed(self.config.key_generation, self.config.seed, self.created, index);
        let session = self.engine.session();
        let latency = if extra_writer { Latency::Off } else { self.latency() };
        let mut meter = Meter::new(control, latency, self.config.stats_interval);
        if let Some(schedule) = self.schedule(index) {
            meter = meter.with_schedule(schedule);
        }
        let mut worker = self.worker(index, seed, meter);
        start.wait();
        worker.meter.restart();
        let mut result = session.and_then(|mut session| match self.body(index) {
            Some(body) => body(&mut worker, session.as_mut()),
            None => Ok(()),
        });
        drop(awaited);
        // The thread that is done last finishes the writes for all, inside its own time.
        if working.fetch_sub(1, Ordering::AcqRel) == 1 && self.benchmark.writes() && result.is_ok() {
            result = self.engine.finish_writes();
        }
        if result.is_err() {
            control.fail();
        }
        let times = worker.meter.finish();
        result.map(|()| (times, worker.found, worker.message))
    }

    fn add_up(&self, results: Vec<ThreadResult>) -> Result<CrewResult> {
        let mut sum = CrewResult::default();
        for (index, result) in results.into_iter().enumerate() {
            let (times, found, message) = result?;
            if self.is_extra_writer(index as u32) {
                sum.writer_ops_per_sec = Some(times.ops as f64 / times.wall_s().max(1e-9));
                continue;
            }
            sum.times = sum.times.and(times);
            sum.found = sum.found.or(found);
            if sum.message.is_empty() {
                sum.message = message;
            }
        }
        Ok(sum)
    }
}
