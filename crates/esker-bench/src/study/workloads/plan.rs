//! The cells of the study.

use crate::record::Host;
use crate::study::grid::{Cell, Plan};
use crate::study::task::{Step, Task};
use std::collections::BTreeMap;

/// Bytes of a key and of a value.
const KEY_BYTES: u64 = 16;
const VALUE_BYTES: u64 = 100;

/// One opening is one figure, so there are at least so many.
const LEAST_OPENINGS: u32 = 3;

/// Entries that are in the log, and nowhere else, when the database of `open` is recovered.
const OPEN_LOGGED: u64 = 10_000;

/// One question of the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Experiment {
    /// YCSB's mixes.
    Mixes,
    /// A queue.
    Queue,
    /// Scans over deleted entries.
    Tombstones,
    /// Scans while entries expire.
    Expiry,
    /// Popular counters.
    Counters,
    /// Opening against the size of the database.
    Open,
    /// Opening against the size of the log.
    Log,
    /// Fixed rates.
    Rates,
}

use Experiment::{Counters, Expiry, Log, Mixes, Open, Queue, Rates, Tombstones};

/// All of them, in the order in which they are done.
pub const EXPERIMENTS: [Experiment; 8] = [Mixes, Queue, Tombstones, Expiry, Counters, Open, Log, Rates];

impl Experiment {
    /// Its name in cells and reports.
    pub fn name(self) -> &'static str {
        match self {
            Mixes => "mixes",
            Queue => "queue",
            Tombstones => "tombstones",
            Expiry => "expiry",
            Counters => "counters",
            Open => "open",
            Log => "log",
            Rates => "rates",
        }
    }
}

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Entries of every database but those of `open` and `log`.
    pub num: u64,
    /// Operations of the point benchmarks, over all threads.
    pub requests: u64,
    /// Scans of `tombstones`, and of `mixes`, over all threads.
    pub scans: u64,
    /// Scans of `expiry`, each of up to 10,000 entries.
    pub long_scans: u64,
    /// Milliseconds that entries of `expiry` live.
    pub ttl_ms: u64,
    /// Seconds after which a step ends that has not done all its operations.
    pub most_seconds: f64,
    /// Client threads of `mixes`.
    pub threads: &'static [u32],
    /// Entries of the databases of `open`.
    pub opens: &'static [u64],
    /// MiB of keys and values in the logs of `log`.
    pub logs_mib: &'static [u64],
    /// Operations a second of `rates`.
    pub rates: &'static [u64],
    /// Seconds of each rate.
    pub rate_seconds: u64,
}

/// The size of a kept result: about half an hour for eight engines.
pub const FULL: Size = Size {
    num: 1_000_000,
    requests: 500_000,
    scans: 100_000,
    long_scans: 1000,
    ttl_ms: 500,
    most_seconds: 5.0,
    threads: &[1, 2],
    opens: &[10_000, 100_000, 1_000_000],
    logs_mib: &[1, 8, 64],
    rates: &[1000, 10_000, 50_000],
    rate_seconds: 10,
};

/// The size for a look: about three minutes.
pub const QUICK: Size = Size {
    num: 100_000,
    requests: 50_000,
    scans: 10_000,
    long_scans: 200,
    ttl_ms: 200,
    most_seconds: 0.5,
    threads: &[1, 2],
    opens: &[10_000, 100_000],
    logs_mib: &[1, 8],
    rates: &[1000, 10_000],
    rate_seconds: 2,
};

/// The cells for these engines: each engine's turn comes within each cell of an experiment. `only`: experiments, all if there are none.
/// The error is one line.
pub fn plan(engines: &[String], size: &Size, only: &[Experiment], repeat: u32) -> Result<Plan, String> {
    if repeat == 0 {
        return Err("--repeat must be at least 1".into());
    }
    let mut cells = Vec::new();
    for experiment in EXPERIMENTS.into_iter().filter(|experiment| only.is_empty() || only.contains(experiment)) {
        let repetitions = if matches!(experiment, Open | Log) { repeat.max(LEAST_OPENINGS) } else { repeat };
        for repetition in 1..=repetitions {
            for Point { variables, tasks } in points(experiment, size) {
                cells.extend(engines.iter().map(|engine| Cell {
                    experiment: experiment.name().into(),
                    engine: engine.clone(),
                    variant: String::new(),
                    variables: variables.clone(),
                    repetition,
                    tasks: tasks.clone(),
                }));
            }
        }
    }
    Ok(Plan { study: "workloads".into(), title: "Workloads that other benchmarks leave out".into(), cells })
}

/// One point of an experiment, without its engine.
struct Point {
    variables: BTreeMap<String, String>,
    tasks: Vec<Task>,
}

fn point(variable: Option<(&str, String)>, tasks: Vec<Task>) -> Point {
    let variables = variable.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    Point { variables, tasks }
}

fn points(experiment: Experiment, size: &Size) -> Vec<Point> {
    let alone = |steps: Vec<Step>| vec![point(None, vec![task(size.num, steps)])];
    match experiment {
        Mixes => size.threads.iter().map(|threads| mixes(*threads, size)).collect(),
        Queue => {
            let queue = Step { every_latency: true, ..writes(size.requests, "queue") };
            alone(vec![limited(size, queue)])
        }
        Tombstones => {
            // A tenth of the reads are scans.
            let scan = Step { every_latency: true, ..reads(size.scans.saturating_mul(10), "prefixtombstones") };
            alone(vec![load(), idle(), limited(size, scan)])
        }
        Expiry => vec![expiry(size)],
        Counters => {
            let mut counters = task(size.num, vec![limited(size, writes(size.requests, "zipfiancounters"))]);
            counters.flags.insert("merge_operator".into(), "uint64add".into());
            vec![point(None, vec![counters])]
        }
        Open => size.opens.iter().map(|num| open(*num)).collect(),
        Log => size.logs_mib.iter().map(|mib| log(*mib)).collect(),
        Rates => size.rates.iter().map(|rate| at_rate(*rate, size)).collect(),
    }
}

fn mixes(threads: u32, size: &Size) -> Point {
    // In YCSB's own order: the mix that scans comes last, because it inserts.
    let steps = ["ycsba", "ycsbb", "ycsbc", "ycsbf", "ycsbd", "ycsbe"].map(|name| {
        let all = if name == "ycsbe" { size.scans } else { size.requests };
        let each = (all / u64::from(threads)).max(1);
        limited(size, Step { threads, writes: Some(each), reads: Some(each), ..Step::new(name, Some(name)) })
    });
    let steps = [load(), idle()].into_iter().chain(steps).collect();
    point(Some(("threads", threads.to_string())), vec![task(size.num, steps)])
}

fn expiry(size: &Size) -> Point {
    // A thousandth of the reads are scans.
    let scan = Step { every_latency: true, ..reads(size.long_scans.saturating_mul(1000), "ttlchurn") };
    let mut churn = task(size.num, vec![limited(size, scan)]);
    churn.flags.insert("ttl_ms".into(), size.ttl_ms.to_string());
    point(Some(("ttl_ms", size.ttl_ms.to_string())), vec![churn])
}

/// A database of `num` entries that has come to rest; then a few more entries, and the death of the process.
fn open(num: u64) -> Point {
    let crash = Step { writes: Some(OPEN_LOGGED), ..Step::new("crash", None) };
    let recover = Step { writes: Some(OPEN_LOGGED), ..Step::new("recover", Some("recover")) };
    let before = Task { keep: true, ..task(num, vec![load(), idle(), crash]) };
    let after = existing(task(num, vec![recover, Step::new("reopen", Some("reopen"))]));
    point(Some(("num", num.to_string())), vec![before, after])
}

/// A database that is nothing but a log, because the write buffer holds all of it; as far as an engine has a log and a write buffer.
fn log(mib: u64) -> Point {
    let bytes = mib << 20;
    let entries = bytes / (KEY_BYTES + VALUE_BYTES);
    let with_buffer = |mut task: Task| {
        let memory = bytes.saturating_mul(4).max(8 << 20);
        task.memory = None;
        task.flags.insert("write_buffer_size".into(), memory.to_string());
        task.flags.insert("cache_size".into(), memory.to_string());
        task
    };
    let crash = Step { writes: Some(entries), ..Step::new("crash", None) };
    let recover = Step { writes: Some(entries), ..Step::new("recover", Some("recover")) };
    let before = Task { keep: true, ..with_buffer(task(entries, vec![crash])) };
    let after = existing(with_buffer(task(entries, vec![recover])));
    point(Some(("log_mib", mib.to_string())), vec![before, after])
}

fn at_rate(rate: u64, size: &Size) -> Point {
    let step = Step {
        rate: Some(rate as f64),
        every_latency: true,
        // An engine that cannot keep up is late; it need not go on for ever.
        most_seconds: size.rate_seconds as f64 * 1.5,
        ..writes(rate.saturating_mul(size.rate_seconds), "ycsba")
    };
    point(Some(("rate", rate.to_string())), vec![task(size.num, vec![load(), idle(), step])])
}

/// Every key, in random order.
fn load() -> Step {
    Step::new("fillshuffled", None)
}

/// What the load left to be done is done before something else is measured.
fn idle() -> Step {
    Step::new("waitidle", None)
}

fn writes(operations: u64, name: &str) -> Step {
    Step { writes: Some(operations), ..Step::new(name, Some(name)) }
}

fn reads(operations: u64, name: &str) -> Step {
    Step { reads: Some(operations), ..Step::new(name, Some(name)) }
}

fn limited(size: &Size, step: Step) -> Step {
    Step { most_seconds: size.most_seconds, ..step }
}

fn existing(mut task: Task) -> Task {
    task.flags.insert("use_existing_db".into(), "1".into());
    task
}

/// A task without its engine; memory for about half of the data.
fn task(num: u64, steps: Vec<Step>) -> Task {
    const LEAST: u64 = 8 << 20;
    let names: Vec<&str> = steps.iter().map(|step| step.benchmark.as_str()).collect();
    let flags = [("benchmarks", names.join(",")), ("num", num.to_string()), ("value_size", VALUE_BYTES.to_string())];
    Task {
        engine: String::new(),
        repetition: 1,
        flags: flags.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
        libraries: BTreeMap::new(),
        memory: Some((num * (KEY_BYTES + VALUE_BYTES) / 2).max(LEAST)),
        host: Host::default(),
        steps,
        budget: None,
        keep: false,
        verify: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload;
    use std::collections::BTreeSet;

    fn full() -> Plan {
        plan(&["esker".to_string(), "lmdb".to_string()], &FULL, &[], 1).unwrap()
    }

    #[test]
    fn every_new_benchmark_has_its_row() {
        let plan = full();
        let steps = || plan.cells.iter().flat_map(|cell| &cell.tasks).flat_map(|task| &task.steps);
        for step in steps() {
            assert!(workload::find(&step.benchmark).is_some(), "{}", step.benchmark);
        }
        let rows: BTreeSet<&str> = steps().filter_map(|step| step.row.as_deref()).collect();
        let expected = [
            "prefixtombstones",
            "queue",
            "recover",
            "reopen",
            "ttlchurn",
            "ycsba",
            "ycsbb",
            "ycsbc",
            "ycsbd",
            "ycsbe",
            "ycsbf",
            "zipfiancounters",
        ];
        assert_eq!(rows.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn no_cell_is_there_twice_and_flags_are_right() {
        let plan = full();
        let hashes: BTreeSet<String> = plan.cells.iter().map(Cell::hash).collect();
        assert_eq!(hashes.len(), plan.cells.len());
        for task in plan.cells.iter().flat_map(|cell| &cell.tasks) {
            let config = Task { engine: "esker".into(), ..task.clone() }.config().unwrap();
            assert_eq!(config.num.to_string(), task.flags["num"]);
        }
    }

    #[test]
    fn a_task_that_dies_leaves_its_database_to_the_next() {
        let plan = full();
        for cell in plan.cells.iter().filter(|cell| ["open", "log"].contains(&cell.experiment.as_str())) {
            let [before, after] = &cell.tasks[..] else { panic!("{}", cell.name()) };
            assert!(before.dies() && before.keep && !after.dies() && !after.keep);
            assert_eq!(after.flags["use_existing_db"], "1");
            assert_eq!(before.flags["num"], after.flags["num"]);
            let writes = |task: &Task, name: &str| {
                task.steps.iter().find(|step| step.benchmark == name).and_then(|step| step.writes)
            };
            assert_eq!(writes(before, "crash"), writes(after, "recover"));
        }
    }

    #[test]
    fn experiments_can_be_chosen_and_repeated() {
        let plan = |only: &[Experiment], repeat| plan(&["esker".to_string()], &QUICK, only, repeat);
        let cells = |only: &[Experiment], repeat| plan(only, repeat).unwrap().cells.len();
        assert_eq!((cells(&[Queue], 1), cells(&[Queue], 4), cells(&[Open], 1)), (1, 4, 6));
        assert!(plan(&[], 0).is_err());
    }
}
