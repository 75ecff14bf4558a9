//! What is measured in each part.

use super::arguments::{Arguments, Part};
use crate::record::Host;
use crate::study::task::{Step, Task};
use std::collections::BTreeMap;

/// Bytes of an entry of all parts but `dataset`, and of counters.
const KEY_BYTES: u64 = 16;
const VALUE_BYTES: u64 = 100;
const ENTRY_MEMORY_BYTES: u64 = 134;
/// So much memory for each entry of `grow`: three quarters of it, which a cache gets at least, hold an entry and what a cache adds.
const GROWING_ENTRY_MEMORY_BYTES: u64 = 200;
/// Reads before those of `grow`, for each so many entries one: with 30 and more in a block, nearly all blocks are in memory then.
const ENTRIES_PER_READ_AHEAD: u64 = 6;

/// A task without its engine, and what it is called while it is done.
pub struct Work {
    /// The task.
    pub task: Task,
    /// Its name.
    pub name: String,
}

/// What the command line asks for.
pub fn chosen(arguments: &Arguments) -> Vec<Part> {
    if !arguments.parts.is_empty() {
        return arguments.parts.clone();
    }
    let mut parts = vec![Part::Grow, Part::Threads, Part::Open];
    parts.extend(arguments.dataset_gb.map(|_| Part::Dataset));
    parts
}

/// The error is one line.
pub fn check(arguments: &Arguments) -> Result<(), String> {
    let few = |number: &u64| *number < 1000;
    let Arguments { nums, threads, threads_num, open_entries, dataset_gb, .. } = arguments;
    if nums.is_empty() || nums.iter().chain([threads_num, open_entries, &arguments.reads]).any(few) {
        return Err("--nums, --reads, --threads-num and --open-entries must be at least 1000".into());
    }
    if threads.is_empty() || threads.contains(&0) || arguments.repeat == 0 {
        return Err("--threads and --repeat must be at least 1".into());
    }
    if chosen(arguments).contains(&Part::Dataset) && !dataset_gb.is_some_and(|gb| gb > 0.0 && gb <= 1e6) {
        return Err("the part `dataset` needs --dataset-gb, above 0".into());
    }
    let sizes = match dataset_gb {
        Some(gb) if *gb * 1e9 < 1000.0 * (KEY_BYTES + arguments.dataset_value_size) as f64 => "fewer than 1000 entries",
        Some(_) if arguments.dataset_value_size > 1_000_000 => "a value of at most 1000000 bytes is needed",
        _ => return Ok(()),
    };
    Err(format!("--dataset-gb, --dataset-value-size: {sizes}"))
}

/// The tasks of a part, on a machine with so much memory.
pub fn work(part: Part, arguments: &Arguments, machine_bytes: u64) -> Vec<Work> {
    let make = |num: u64, value_size: u64, steps: Vec<Step>, name: String| {
        let memory = arguments.memory.unwrap_or_else(|| memory(part, num, machine_bytes));
        Work { task: task(num, value_size, memory, steps), name }
    };
    match part {
        Part::Grow => {
            let sizes = arguments.nums.iter().flat_map(|&num| {
                let reads = arguments.reads.min(num);
                let merge = counters(make(num, 8, vec![merging(1, num)], format!("{num} counters")));
                let mut steps = load_and_read(1, num, reads);
                // What grows is to be the cost of reads in memory, not the part of them that are the first of their block.
                let ahead = Some((num / ENTRIES_PER_READ_AHEAD).max(1));
                steps.insert(steps.len() - 1, Step { reads: ahead, ..Step::new("readrandom", None) });
                [merge, make(num, VALUE_BYTES, steps, format!("{num} entries"))]
            });
            sizes.collect()
        }
        Part::Threads => {
            let num = arguments.threads_num;
            let counts = arguments.threads.iter().flat_map(|&threads| {
                let each = (num / u64::from(threads)).max(1);
                let merge =
                    counters(make(num, 8, vec![merging(threads, each)], format!("{threads} threads, counters")));
                let load = load_and_read(threads, each, each);
                [merge, make(num, VALUE_BYTES, load, format!("{threads} threads, load and read"))]
            });
            counts.collect()
        }
        Part::Open => {
            let num = arguments.open_entries;
            let full = format!("open, {num} entries");
            let steps = vec![
                Step::new("create", Some("create")),
                Step::new("reopen", Some("open, empty")),
                Step::new("fillshuffled", None),
                Step::new("waitidle", None),
                Step::new("reopen", Some(&full)),
            ];
            vec![make(num, VALUE_BYTES, steps, full.clone())]
        }
        Part::Dataset => {
            let value_size = arguments.dataset_value_size;
            let bytes = arguments.dataset_gb.unwrap_or(0.0) * 1e9;
            let num = (bytes / (KEY_BYTES + value_size) as f64) as u64;
            // The longest operation is asked for, and sampling might miss it.
            let every = |step: Step| Step { every_latency: true, ..step };
            let steps = vec![
                every(Step::new("fillshuffled", Some("load"))),
                Step::new("waitidle", Some("settle")),
                every(Step { reads: Some(arguments.reads), ..Step::new("readrandom", Some("readrandom")) }),
                Step::new("readseq", Some("readseq")),
            ];
            vec![make(num, value_size, steps, format!("data set of {num} entries"))]
        }
    }
}

fn memory(part: Part, num: u64, machine_bytes: u64) -> u64 {
    const LEAST: u64 = 8 << 20;
    match part {
        Part::Dataset => (machine_bytes / 16).clamp(LEAST, 1 << 30),
        Part::Grow => num.saturating_mul(GROWING_ENTRY_MEMORY_BYTES).min(machine_bytes / 2).max(LEAST),
        _ => num.saturating_mul(ENTRY_MEMORY_BYTES).min(machine_bytes / 4).max(LEAST),
    }
}

fn load_and_read(threads: u32, writes: u64, reads: u64) -> Vec<Step> {
    vec![
        Step { threads, writes: Some(writes), settle: true, ..Step::new("fillrandom", Some("fillrandom")) },
        Step::new("waitidle", None),
        Step { threads, reads: Some(reads), ..Step::new("readrandom", Some("readrandom")) },
    ]
}

fn merging(threads: u32, writes: u64) -> Step {
    Step { threads, writes: Some(writes), ..Step::new("mergerandom", Some("mergerandom")) }
}

fn counters(mut work: Work) -> Work {
    work.task.flags.insert("merge_operator".into(), "uint64add".into());
    work
}

fn task(num: u64, value_size: u64, memory: u64, steps: Vec<Step>) -> Task {
    let names: Vec<&str> = steps.iter().map(|step| step.benchmark.as_str()).collect();
    let flags = [("benchmarks", names.join(",")), ("num", num.to_string()), ("value_size", value_size.to_string())];
    Task {
        engine: String::new(),
        repetition: 1,
        flags: flags.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
        libraries: BTreeMap::new(),
        memory: Some(memory),
        host: Host::default(),
        steps,
        budget: None,
        keep: false,
        verify: false,
    }
}
