//! The cells of the study, in the order in which they are measured.

use super::arguments::{Experiment, Part};
use super::sizes::Sizes;
use super::{grid, topics, why};
use crate::study::grid::Plan;

/// The cells of the chosen experiments. The error is one line.
pub fn plan(part: &Part, engines: &[String], repeat: u32) -> Result<Plan, String> {
    let sizes = Sizes::new(part.scale)?;
    if repeat == 0 || part.spot_repeat == 0 {
        return Err("--repeat and --spot-repeat must be at least 1".into());
    }
    let chosen = |experiment: Experiment| part.experiments.is_empty() || part.experiments.contains(&experiment);
    let mut cells = Vec::new();
    for repetition in 1..=repeat.max(part.spot_repeat) {
        if chosen(Experiment::Grid) {
            cells.extend(grid::cells(part, sizes, engines, repetition, repeat));
        }
        if repetition > repeat {
            continue;
        }
        if chosen(Experiment::Why) {
            cells.extend(why::cells(part, sizes, engines, repetition));
        }
        for topic in topics::ALL.iter().filter(|topic| chosen(topic.experiment)) {
            cells.extend(topic.cells(sizes, engines, repetition));
        }
    }
    let scale = if part.scale == 1.0 { String::new() } else { format!(", scale {}", part.scale) };
    Ok(Plan { study: "memtable".into(), title: format!("Write buffer and table size{scale}"), cells })
}
