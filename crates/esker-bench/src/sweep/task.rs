//! One engine's part of a study: a database, and benchmarks on it one after another. It can be done
//! in this process or, as JSON, in another.

use super::memory::{self, LARGE_VALUE_BYTES, Work};
use crate::flags::Given;
use crate::flags::config::{Config, Latency};
use crate::interrupt::Interrupt;
use crate::process;
use crate::progress::Display;
use crate::record::{Host, Record, Verification};
use crate::run::{Outcome, Runner, Setup};
use crate::values::ValuePool;
use crate::workload;
use esker_engines::EngineKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Latencies are taken of one operation in so many, unless a step wants every one: a clock reading
/// after every operation would weigh most on the fastest engines.
const LATENCY_EVERY: u32 = 16;

/// A database and what is done with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The engine.
    pub engine: String,
    /// 1, 2, ...
    pub repetition: u32,
    /// Flags of `esker bench` that hold for all steps.
    pub flags: BTreeMap<String, String>,
    /// Shared libraries by engine.
    pub libraries: BTreeMap<String, PathBuf>,
    /// Bytes for write buffer and cache together; `None`: as the flags say.
    pub memory: Option<u64>,
    /// The machine, for the records.
    pub host: Host,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Time for this and everything after it.
    pub budget: Option<Budget>,
    /// Whether the database stays when the task ends, for another that says `use_existing_db`.
    #[serde(default)]
    pub keep: bool,
    /// Whether everything is read once more before a step empties the database and after the last
    /// step, for [`Record::verification`]. That warms caches and may start compactions: not in a
    /// task whose database another one goes on to measure.
    #[serde(default)]
    pub verify: bool,
}

/// One benchmark of a task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The benchmark.
    pub benchmark: String,
    /// The row it makes; `None`: it is run for its effect.
    pub row: Option<String>,
    /// Client threads.
    pub threads: u32,
    /// Writes per thread, where not the benchmark's own number.
    pub writes: Option<u64>,
    /// Reads per thread, where not the benchmark's own number.
    pub reads: Option<u64>,
    /// Whether the latency of every operation is taken.
    pub every_latency: bool,
    /// Longest time in seconds; none if it is not positive.
    pub most_seconds: f64,
    /// Whether the bytes on the device are looked at once the engine has settled, before anything
    /// else is written.
    pub settle: bool,
    /// Rate of the thread that writes beside readers.
    pub writes_per_second: Option<f64>,
    /// Operations a second of all threads together, at times fixed beforehand.
    #[serde(default)]
    pub rate: Option<f64>,
}

impl Step {
    /// Whether its values are of 100,000 bytes, whatever the flags say.
    pub fn has_large_values(&self) -> bool {
        self.benchmark.ends_with("100K")
    }

    /// Whether it is one of the benchmarks that write without ever removing a key.
    pub fn only_adds(&self) -> bool {
        const BEGINNINGS: [&str; 4] = ["fill", "overwrite", "updaterandom", "mergerandom"];
        BEGINNINGS.iter().any(|beginning| self.benchmark.starts_with(beginning))
    }

    /// A step with one thread and nothing out of the ordinary.
    pub fn new(benchmark: &str, row: Option<&str>) -> Step {
        Step { benchmark: benchmark.into(), row: row.map(String::from), threads: 1, ..Step::default() }
    }

    /// The flags of the task as they are for this step.
    pub fn config(&self, task: &Config, max_seconds: Option<f64>) -> Config {
        let mut config = task.clone();
        config.threads = self.threads.max(1);
        config.writes = self.writes.or(config.writes);
        config.reads = self.reads.unwrap_or(config.reads);
        config.writes_per_second = self.writes_per_second;
        config.rate = self.rate.or(config.rate);
        config.max_seconds = max_seconds;
        if self.every_latency {
            config.latency = Latency::Every;
            config.flags.insert("latency_every".into(), "1".into());
        }
        config.flags.insert("threads".into(), config.threads.to_string());
        config.flags.insert("writes".into(), config.writes.map_or("-1".into(), |writes| writes.to_string()));
        config.flags.insert("reads".into(), config.reads.to_string());
        config.flags.insert("writes_per_second".into(), config.writes_per_second.unwrap_or(0.0).to_string());
        config.flags.insert("rate".into(), config.rate.unwrap_or(0.0).to_string());
        config
    }
}

/// Time that is left for a number of steps, those of later tasks included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Seconds.
    pub seconds: f64,
    /// Steps.
    pub steps: u32,
}

/// What a task reports while it is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A row is done.
    Row(Box<Record>),
    /// The load before has settled to so many bytes on the device.
    Settled(u64),
    /// The whole database was looked at.
    Verified(Verification),
    /// The task was interrupted, and ends.
    Interrupted,
    /// The process is about to kill itself, as the last step wants it. Nothing follows.
    Dying,
    /// The engine failed, for the reason given in one line, and the task ends.
    Failed(String),
}

/// What a task is done with.
pub struct Surroundings<'a> {
    /// The engine.
    pub kind: &'a EngineKind,
    /// How progress is shown.
    pub display: Display,
    /// Ends the task early.
    pub interrupt: &'a Interrupt,
}

/// Where events go; an error ends the task.
pub type Sink<'a> = dyn FnMut(Event) -> Result<(), String> + 'a;

impl Task {
    /// The flags of the task. The error is one line.
    pub fn config(&self) -> Result<Config, String> {
        let mut given = Given::default();
        for (name, value) in &self.flags {
            given.set(name, value.clone());
        }
        given.set("engine", self.engine.clone());
        let mut config = Config::new(&given)?;
        config.libraries = self.libraries.clone();
        config.latency = Latency::Sampled(LATENCY_EVERY);
        config.flags.insert("latency_every".into(), LATENCY_EVERY.to_string());
        if let Some(memory) = self.memory {
            let work = self.work(&config);
            memory::set_memory(&mut config.options, &self.engine, work, memory);
            let (buffer, cache) = (config.options.write_buffer_bytes, config.options.cache_bytes.unwrap_or(0));
            config.flags.insert("write_buffer_size".into(), buffer.to_string());
            config.flags.insert("cache_size".into(), cache.to_string());
        }
        Ok(config)
    }

    fn work(&self, config: &Config) -> Work {
        if config.options.merge_operator.is_some() {
            Work::Counters
        } else if config.value_size >= LARGE_VALUE_BYTES || self.steps.iter().any(Step::has_large_values) {
            Work::LargeValues
        } else {
            Work::Entries
        }
    }

    /// Does it in this process. The error is one line about what is not the engine's doing; an
    /// engine that fails is an event.
    pub fn perform(&self, around: &Surroundings<'_>, sink: &mut Sink<'_>) -> Result<(), String> {
        let config = self.config()?;
        let pool = ValuePool::new(config.compression_ratio);
        let setup = Setup {
            config: &config,
            kind: around.kind,
            pool: &pool,
            host: &self.host,
            interrupt: around.interrupt,
            display: around.display,
            repetition: self.repetition,
        };
        let began = Instant::now();
        let mut runner = match Runner::open(setup) {
            Ok(runner) => runner,
            Err(problem) => return sink(Event::Failed(problem)),
        };
        let mut unsettled = false;
        for (done, step) in self.steps.iter().enumerate() {
            let Some(benchmark) = workload::find(&step.benchmark) else {
                return Err(format!("no benchmark {}", step.benchmark));
            };
            let waits = matches!(benchmark.body, workload::Body::WaitIdle);
            if unsettled && (benchmark.writes() || waits) {
                settle(&runner, sink)?;
                unsettled = false;
            }
            if self.verify && done > 0 && benchmark.fresh && !config.use_existing_db {
                verify(&runner, sink)?;
            }
            let config = step.config(&config, self.limit(step, done, began));
            match runner.run(benchmark, &config) {
                Outcome::Row(mut record) => {
                    unsettled = step.settle && record.skipped.is_none();
                    if let Some(row) = &step.row {
                        record.row.clone_from(row);
                        sink(Event::Row(record))?;
                    }
                }
                Outcome::Text(_) => {}
                Outcome::Dying => {
                    // Only who has heard this takes a killed process for one that did what it was
                    // to do.
                    sink(Event::Dying)?;
                    return sink(Event::Failed(process::die()));
                }
                Outcome::Interrupted(_) => {
                    sink(Event::Interrupted)?;
                    break;
                }
                Outcome::Failed(problem) => {
                    // Whatever is left of the engine goes away with the runner; the failure is what
                    // is reported.
                    let _ = runner.close();
                    let row = step.row.as_deref().unwrap_or(&step.benchmark);
                    return sink(Event::Failed(format!("{row}: {problem}")));
                }
            }
        }
        if unsettled && !around.interrupt.is_requested() {
            settle(&runner, sink)?;
        }
        if self.verify && !around.interrupt.is_requested() {
            verify(&runner, sink)?;
        }
        let closed = if self.keep { runner.close() } else { runner.close_and_remove() };
        closed.or_else(|problem| sink(Event::Failed(problem)))
    }

    /// Whether it works on the database that the one before it left.
    pub fn continues(&self) -> bool {
        self.flags.get("use_existing_db").is_some_and(|value| value == "1")
    }

    /// Whether the process that does it is to die at its end.
    pub fn dies(&self) -> bool {
        let last = self.steps.last().and_then(|step| workload::find(&step.benchmark));
        last.is_some_and(|benchmark| matches!(benchmark.body, workload::Body::Crash(_)))
    }

    /// The time a step may take: where there is a budget, a few times its even share of what is
    /// left, because most steps take far less.
    fn limit(&self, step: &Step, done: usize, began: Instant) -> Option<f64> {
        let most = (step.most_seconds > 0.0).then_some(step.most_seconds);
        let Some(budget) = self.budget else { return most };
        let left = Duration::from_secs_f64(budget.seconds.max(0.0)).saturating_sub(began.elapsed()).as_secs_f64();
        let steps = f64::from(budget.steps).max(done as f64 + 1.0) - done as f64;
        Some((left * 4.0 / steps).clamp(0.05, most.unwrap_or(f64::MAX).max(0.05)))
    }
}

fn settle(runner: &Runner<'_>, sink: &mut Sink<'_>) -> Result<(), String> {
    match runner.settled_disk_bytes() {
        Ok(bytes) => sink(Event::Settled(bytes)),
        // The next benchmark meets the same trouble and reports it.
        Err(_) => Ok(()),
    }
}

fn verify(runner: &Runner<'_>, sink: &mut Sink<'_>) -> Result<(), String> {
    sink(match runner.verification() {
        Ok(Some(verification)) => Event::Verified(verification),
        Ok(None) => Event::Interrupted,
        Err(problem) => Event::Failed(format!("reading everything afterwards: {problem}")),
    })
}

/// Adds the records of an event to `records`. Returns how the task ended, if the event is a failure
/// or an interrupt.
pub fn collect(event: Event, records: &mut Vec<Record>) -> Option<Ended> {
    match event {
        Event::Row(record) => records.push(*record),
        Event::Settled(bytes) => {
            // The load is the last record that wrote.
            if let Some(load) = records.iter_mut().rev().find(|record| record.durability.is_some()) {
                load.settled_disk_bytes = Some(bytes);
            }
        }
        Event::Verified(verification) => {
            if let Some(last) = records.last_mut() {
                last.verification = Some(verification);
            }
        }
        Event::Dying => {}
        Event::Interrupted => return Some(Ended::Interrupted),
        Event::Failed(problem) => return Some(Ended::Failed(problem)),
    }
    None
}

/// Why a task ended before its last step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Somebody requested it.
    Interrupted,
    /// The engine failed, for the reason in one line.
    Failed(String),
}
