//! How to read the page, and what is wrong with what it shows.

use crate::report::blocks::{Block, Section};
use crate::report::measured::{Measured, SHORT};
use crate::sweep::grid::StudyRun;
use crate::text::number;
use crate::text::words::some;

/// The section.
pub fn section(runs: &[StudyRun], all: &[Measured<'_>], violations: usize) -> Section {
    let mut blocks = Vec::new();
    let missing: usize = runs.iter().map(|run| run.missing).sum();
    let failed = runs.iter().flat_map(|run| &run.finished).filter(|finished| finished.failure.is_some()).count();
    if all.is_empty() {
        blocks.push(Block::Warning("These runs hold no record yet. There is nothing to compare.".into()));
    } else {
        blocks.push(Block::Text(reading(all)));
    }
    if missing > 0 {
        let count = number::whole(missing as f64);
        blocks.push(Block::Warning(format!("Not complete: of the plan, {count} cells are not done yet.")));
    }
    if failed > 0 {
        let count = number::whole(failed as f64);
        blocks.push(Block::Warning(format!("Cells that failed: {count}; they are listed under the conditions.")));
    }
    if violations > 0 {
        blocks.push(Block::Warning(format!(
            "Broken rules of fairness: {violations}; the rows are marked with \u{2021} and listed."
        )));
    }
    let short: Vec<String> = all.iter().filter(|measured| measured.short_load.is_some()).map(place).collect();
    if !short.is_empty() {
        blocks.push(Block::Warning(format!(
            "{SHORT} marks what was measured on fewer entries, since a load ended early: {}.",
            some(&short)
        )));
    }
    Section::new("about", "About this page", blocks)
}

fn place(measured: &Measured<'_>) -> String {
    format!("{} in {}", measured.key.engine_name(), measured.key.row)
}

fn reading(all: &[Measured<'_>]) -> String {
    let repetitions = all.iter().map(|measured| measured.ran.len()).max().unwrap_or(0);
    let repeated = match repetitions {
        0 | 1 => "Every figure comes from a single repetition, so that small differences mean nothing.".to_string(),
        _ => format!(
            "Figures are medians of up to {repetitions} repetitions; the thin line across a bar reaches from the slowest to the \
             fastest: where two such lines overlap, the order is not settled."
        ),
    };
    format!(
        "{} measurements. Rates are operations per second of wall time, where more is better; times are microseconds per \
         operation, where less is better. {repeated} What was not measured says so.",
        number::whole(all.len() as f64)
    )
}
