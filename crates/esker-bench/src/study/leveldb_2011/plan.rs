//! The cells of the study. A cell is a list of benchmarks in one process, as the page's programs ran them.

use super::arguments::{Experiment, Part};
use super::engines::{self, Memory};
use crate::engine::device;
use crate::study::grid::{Cell, Plan};
use crate::study::process::{Process, cell, silent, step};
use crate::study::task::Step;

/// Entries at scale 1.
const ENTRIES: f64 = 1_000_000.0;

/// The cells of the chosen experiments. The error is one line.
pub fn plan(part: &Part, engines: &[String], repeat: u32) -> Result<Plan, String> {
    const LEAST: f64 = 0.001;
    if !(LEAST..=1000.0).contains(&part.scale) {
        return Err(format!("--scale must be between {LEAST} and 1000"));
    }
    if repeat == 0 || part.sync_ops == 0 || part.kill_ops == 0 {
        return Err("--repeat, --sync-ops and --kill-ops must be at least 1".into());
    }
    let chosen: Vec<Experiment> = Experiment::ALL
        .into_iter()
        .filter(|experiment| part.experiments.is_empty() || part.experiments.contains(experiment))
        .collect();
    let mut cells = Vec::new();
    for repetition in 1..=repeat {
        for experiment in &chosen {
            if *experiment == Experiment::Sync {
                cells.push(device_cell(part, repetition));
            }
            for engine in engines.iter().filter(|engine| engines::takes_part(engine, *experiment)) {
                for variant in engines::variants(engine) {
                    cells.push(engine_cell(part, *experiment, engine, variant, repetition));
                }
            }
        }
    }
    let scale = if part.scale == 1.0 { String::new() } else { format!(", scale {}", part.scale) };
    Ok(Plan { study: "leveldb-2011".into(), title: format!("The LevelDB page of 2011{scale}"), cells })
}

fn entries(part: &Part) -> u64 {
    (ENTRIES * part.scale).round() as u64
}

fn engine_cell(part: &Part, experiment: Experiment, engine: &str, variant: &str, repetition: u32) -> Cell {
    let memory = match experiment {
        Experiment::MoreMemory => Memory::ForWrites,
        Experiment::LargerCaches => Memory::ForReads,
        _ => Memory::Small,
    };
    const LEAST_BYTES: u64 = 64 << 10;
    let scaled = |bytes: u64| ((bytes as f64 * part.scale).round() as u64).max(LEAST_BYTES);
    let mut process = Process::fresh(steps(part, experiment, engine))
        .flag("num", entries(part))
        .flags(&engines::flags(engine, variant, memory, scaled));
    if matches!(experiment, Experiment::NoCompression | Experiment::NoCompressionReads) {
        process = process.flag("compression", 0);
    }
    cell(experiment.name(), engine, variant, &[], repetition, vec![process])
}

/// What an append and an fdatasync take without an engine.
fn device_cell(part: &Part, repetition: u32) -> Cell {
    let step = Step { writes: Some(part.sync_ops), ..Step::new("fillseqsync", Some("device sync")) };
    let process = Process::fresh(vec![step]).flag("num", entries(part));
    cell(Experiment::Sync.name(), device::NAME, "", &[], repetition, vec![process])
}

fn steps(part: &Part, experiment: Experiment, engine: &str) -> Vec<Step> {
    let all = |names: [&str; 2]| names.map(step).to_vec();
    match experiment {
        Experiment::Baseline => loads_and_reads(engine, step),
        Experiment::LargerCaches | Experiment::NoCompressionReads => loads_and_reads(engine, silent),
        Experiment::LargeValues => all(["fillseq100K", "fillrand100K"]),
        Experiment::Batches => all(["fillseqbatch", "fillrandbatch"]),
        Experiment::NoCompression | Experiment::MoreMemory => all(["fillseq", "fillrandom"]),
        Experiment::Sync => {
            let synced = |step: Step| Step { writes: Some(part.sync_ops), ..step };
            all(["fillseqsync", "fillrandsync"]).into_iter().map(synced).collect()
        }
        Experiment::Kill => {
            vec![Step { writes: Some(part.kill_ops), ..Step::new("killedfill", Some("survivors after kill")) }]
        }
    }
}

/// Reads after a load in order, after a random one, and after packing what that left behind. The page does not say which of these it shows.
fn loads_and_reads(engine: &str, load: fn(&str) -> Step) -> Vec<Step> {
    let mut steps = vec![
        load("fillseq"),
        step("readseq"),
        step("readrandom"),
        load("fillrandom"),
        Step::new("readrandom", Some("readrandom after fillrandom")),
        Step::new("readseq", Some("readseq after fillrandom")),
    ];
    if engines::compacts(engine) {
        steps.extend([
            load("compact"),
            Step::new("readrandom", Some("readrandom after compact")),
            Step::new("readseq", Some("readseq after compact")),
        ]);
    }
    steps
}
