//! From the experiments to cells. Every size below is the published run's, or, where it said nothing, the default of its program in that
//! year: among these, no filter. Engines obey the flags that they have; the settings of a row say which are in force.

use super::experiments::{Counting, Experiment, Shape};
use super::scale::Scale;
use crate::record::Host;
use crate::study::grid::{Cell, Plan};
use crate::study::task::{Step, Task};
use std::collections::BTreeMap;

const COUNTERS: u64 = 50_000_000;
const WRITE_BUFFER_BYTES: u64 = 4 << 20;
/// The least write buffer that all engines take as it is: LevelDB and RocksDB make a smaller one this large without a word.
const LEAST_WRITE_BUFFER_BYTES: u64 = 64 << 10;
const FILE_BYTES: u64 = 2 << 20;
const LEVEL_BASE_BYTES: u64 = 10 << 20;
const CACHE_BYTES: u64 = 8 << 20;

/// Far more than the 24 bytes of a counter and its key: several versions of it, and what a cache adds.
const CACHED_COUNTER_BYTES: u64 = 64;

/// Reads after a run, for each so many counters one.
const COUNTERS_PER_READ: u64 = 5;

/// Flags that every cell has as they were published. Not among them: `--stats_interval` and `--stats_per_interval`, which only print.
const FLAGS: [(&str, &str); 16] = [
    ("bloom_bits", "-1"),
    ("value_size", "8"),
    ("disable_wal", "1"),
    ("histogram", "1"),
    ("statistics", "1"),
    ("mmap_read", "0"),
    ("num_levels", "6"),
    ("level0_file_num_compaction_trigger", "4"),
    ("level0_slowdown_writes_trigger", "8"),
    ("level0_stop_writes_trigger", "12"),
    ("min_level_to_compress", "2"),
    ("max_background_compactions", "20"),
    ("max_grandparent_overlap_factor", "10"),
    ("disable_seek_compaction", "1"),
    ("delete_obsolete_files_period_micros", "300000000"),
    ("use_existing_db", "0"),
];

/// Of these, what makes it the same work: the rest tunes an engine of that year.
const WORK: [&str; 7] = ["num", "threads", "block_size", "value_size", "disable_wal", "histogram", "use_existing_db"];

/// The cells of these experiments for these engines; engines take turns, so that a change of the machine's mood meets all of them.
pub fn plan(scale: Scale, experiments: &[Experiment], engines: &[String], repeat: u32) -> Result<Plan, String> {
    if repeat == 0 {
        return Err("--repeat must be at least 1".into());
    }
    let mut cells = Vec::new();
    for repetition in 1..=repeat {
        for experiment in experiments {
            for shape in experiment.shapes() {
                for engine in engines {
                    cells.push(cell(scale, *experiment, &shape, engine, repetition));
                }
            }
        }
    }
    Ok(Plan { study: "rmw".into(), title: "Counters: update against merge".into(), cells })
}

fn cell(scale: Scale, experiment: Experiment, shape: &Shape, engine: &str, repetition: u32) -> Cell {
    let num = COUNTERS / scale.divisor();
    let threads = shape.threads.to_string();
    let mut variables = BTreeMap::from([
        ("threads".to_string(), threads),
        ("num".to_string(), num.to_string()),
        ("scale".to_string(), scale.name().to_string()),
    ]);
    variables.extend(shape.variables.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    let steps = steps(shape, num);
    let mut flags = flags(scale, shape, num);
    let names: Vec<&str> = steps.iter().map(|step| step.benchmark.as_str()).collect();
    flags.insert("benchmarks".into(), names.join(","));
    let task = Task {
        engine: engine.into(),
        repetition,
        flags,
        libraries: BTreeMap::new(),
        memory: shape.recommended.then_some((num * CACHED_COUNTER_BYTES).max(CACHE_BYTES)),
        host: Host::default(),
        steps,
        budget: None,
        keep: false,
        verify: true,
    };
    Cell {
        experiment: experiment.name().into(),
        engine: engine.into(),
        variant: String::new(),
        variables,
        repetition,
        tasks: vec![task],
    }
}

fn flags(scale: Scale, shape: &Shape, num: u64) -> BTreeMap<String, String> {
    let buffer = |bytes: u64| if shape.scaled_buffers { bytes / scale.divisor() } else { bytes };
    let cache = if shape.cache_all { (num * CACHED_COUNTER_BYTES).max(CACHE_BYTES) } else { buffer(CACHE_BYTES) };
    let numbers = [
        ("num", num),
        ("threads", u64::from(shape.threads)),
        ("block_size", shape.block_bytes),
        ("write_buffer_size", buffer(WRITE_BUFFER_BYTES).max(LEAST_WRITE_BUFFER_BYTES)),
        ("max_file_size", buffer(FILE_BYTES)),
        ("max_bytes_for_level_base", buffer(LEVEL_BASE_BYTES)),
        ("cache_size", cache),
    ];
    let numbers = numbers.into_iter().map(|(name, value)| (name, value.to_string()));
    let published = FLAGS.map(|(name, value)| (name, value.to_string()));
    let wanted = |name: &str| !shape.recommended || WORK.contains(&name);
    let all = numbers.chain(published).filter(|(name, _)| wanted(name));
    let mut flags: BTreeMap<String, String> = all.map(|(name, value)| (name.to_string(), value)).collect();
    if shape.counting == Counting::Merge {
        flags.insert("merge_operator".into(), "uint64add".into());
        flags.insert("merge_operand".into(), shape.operand.into());
    }
    flags
}

fn steps(shape: &Shape, num: u64) -> Vec<Step> {
    // Latencies of every operation were taken, and cost what they cost.
    let every = |step: Step| Step { every_latency: true, ..step };
    let name = shape.counting.benchmark();
    let mut steps = vec![every(Step { threads: shape.threads, ..Step::new(name, Some(name)) })];
    if shape.reads {
        let row = format!("readrandom after {name}");
        let after_compact = format!("{row} after compact");
        let read = |row: &str| {
            let reads = Some((num / COUNTERS_PER_READ).max(1));
            every(Step { reads, ..Step::new("readrandom", Some(row)) })
        };
        steps.extend([read(&row), Step::new("compact", None), read(&after_compact)]);
    }
    steps.push(Step::new(shape.counting.check(), Some(shape.counting.check())));
    steps
}
