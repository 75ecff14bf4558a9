//! The cells of a sweep: every combination of its axes, on every engine, as often as it is repeated.

use super::checked::{Sweep, SweepProcess};
use super::problem::Problem;
use crate::study::grid::{Cell, Plan};
use crate::study::process::{Process, cell};
use crate::study::task::Step;
use std::collections::BTreeMap;

/// More than anybody means.
const MOST_CELLS: u64 = 100_000;

/// For each axis, which of its values.
type Choice = Vec<usize>;

/// The sweep as a plan for these engines.
pub fn plan(sweep: &Sweep, engines: &[String], title: &str) -> Result<Plan, Problem> {
    let combinations = sweep.axes.iter().try_fold(1u64, |product, axis| product.checked_mul(axis.values.len() as u64));
    let cells = combinations.and_then(|n| n.checked_mul(engines.len() as u64)?.checked_mul(u64::from(sweep.repeat)));
    if cells.is_none_or(|cells| cells > MOST_CELLS) {
        return Err(Problem::at(0..0, format!("more than {MOST_CELLS} cells; take some values out of [axes]")));
    }
    let mut cells = Vec::new();
    for repetition in 1..=sweep.repeat {
        for choice in choices(sweep) {
            for engine in engines {
                cells.push(one_cell(sweep, engine, &choice, repetition));
            }
        }
    }
    let title = sweep.title.clone().unwrap_or_else(|| title.to_owned());
    Ok(Plan { study: "sweep".into(), title, cells })
}

/// Checks what only a whole set of flags shows, with each value of each axis once.
pub fn check_values(sweep: &Sweep) -> Result<(), Problem> {
    let engine = sweep.engines.first().map_or("esker", String::as_str);
    let check = |choice: &Choice, at: Option<std::ops::Range<usize>>| {
        let cell = one_cell(sweep, engine, choice, 1);
        for (task, process) in cell.tasks.iter().zip(&sweep.processes) {
            task.config().map_err(|text| Problem::at(at.clone().unwrap_or(process.at.clone()), text))?;
        }
        Ok(())
    };
    let first = vec![0; sweep.axes.len()];
    check(&first, None)?;
    for (number, axis) in sweep.axes.iter().enumerate() {
        for (index, (_, _, at)) in axis.values.iter().enumerate().skip(1) {
            let mut choice = first.clone();
            choice[number] = index;
            check(&choice, Some(at.clone()))?;
        }
    }
    Ok(())
}

/// All choices, the last axis the fastest.
fn choices(sweep: &Sweep) -> Vec<Choice> {
    sweep.axes.iter().fold(vec![Vec::new()], |shorter, axis| {
        let longer = |choice: Choice| (0..axis.values.len()).map(move |index| [&choice[..], &[index]].concat());
        shorter.into_iter().flat_map(longer).collect()
    })
}

fn one_cell(sweep: &Sweep, engine: &str, choice: &Choice, repetition: u32) -> Cell {
    let chosen: Vec<_> = sweep.axes.iter().zip(choice).map(|(axis, index)| (axis.flag, &axis.values[*index])).collect();
    let variables: Vec<(&str, String)> = chosen.iter().map(|(flag, (shown, ..))| (*flag, shown.clone())).collect();
    let axes: BTreeMap<&str, String> = chosen.iter().map(|(flag, (_, value, _))| (*flag, value.clone())).collect();
    let processes = sweep.processes.iter().map(|process| one_process(sweep, process, &axes)).collect();
    cell("sweep", engine, "", &variables, repetition, processes)
}

fn one_process(sweep: &Sweep, process: &SweepProcess, axes: &BTreeMap<&str, String>) -> Process {
    let mut flags: BTreeMap<&str, String> = process.common.iter().map(|(name, value)| (*name, value.clone())).collect();
    flags.extend(axes.iter().map(|(name, value)| (*name, value.clone())));
    flags.extend(process.own.iter().map(|(name, value)| (*name, value.clone())));
    let steps = process.steps.iter().map(|(benchmark, row)| step(sweep, &flags, benchmark, row)).collect();
    let flags: Vec<(&str, String)> = flags.into_iter().collect();
    let process = if process.continues { Process::continued(steps) } else { Process::fresh(steps) };
    process.flags(&flags)
}

/// A step. What a step says for itself, it says instead of the flags.
fn step(sweep: &Sweep, flags: &BTreeMap<&str, String>, benchmark: &str, row: &str) -> Step {
    fn number<T: std::str::FromStr>(flags: &BTreeMap<&str, String>, name: &str) -> Option<T> {
        flags.get(name).and_then(|value| value.parse().ok())
    }
    let limit = number(flags, "max_seconds").filter(|seconds: &f64| *seconds > 0.0).unwrap_or(sweep.benchmark_seconds);
    Step {
        threads: number(flags, "threads").unwrap_or(1),
        every_latency: matches!(flags.get("histogram").map(String::as_str), Some("1" | "true")),
        most_seconds: limit,
        writes_per_second: number(flags, "writes_per_second").filter(|rate: &f64| *rate > 0.0),
        ..Step::new(benchmark, Some(row))
    }
}
