//! What the command line asks of the plan in `studies/scale.toml`.

use super::arguments::{Arguments, Part};
use crate::study::grid::Plan;
use crate::study::plan::{PlanText, Wanted};
use std::path::Path;

/// Bytes of a key.
const KEY_BYTES: u64 = 16;

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

/// The cells of the parts that were requested, for these engines on a machine with so much memory.
/// The error is one line.
pub fn plan(arguments: &Arguments, engines: &[String], machine_bytes: u64) -> Result<Plan, String> {
    let text = PlanText::parse(Path::new("studies/scale.toml"), include_str!("../../../studies/scale.toml"))?;
    let list = |numbers: Vec<String>| numbers.join(",");
    let numbers = [
        ("nums", list(arguments.nums.iter().map(u64::to_string).collect())),
        ("reads", arguments.reads.to_string()),
        ("thread_counts", list(arguments.threads.iter().map(u32::to_string).collect())),
        ("threads_num", arguments.threads_num.to_string()),
        ("open_entries", arguments.open_entries.to_string()),
        ("dataset_bytes", (arguments.dataset_gb.unwrap_or(0.0) * 1e9).to_string()),
        ("dataset_value_size", arguments.dataset_value_size.to_string()),
        ("memory", arguments.memory.unwrap_or(0).to_string()),
        ("machine", machine_bytes.to_string()),
    ];
    text.plan(&Wanted {
        engines: engines.to_vec(),
        repeat: arguments.repeat,
        experiments: chosen(arguments).into_iter().map(Part::name).collect(),
        numbers: numbers.map(|(name, value)| (name.to_string(), value)).into(),
    })
}
