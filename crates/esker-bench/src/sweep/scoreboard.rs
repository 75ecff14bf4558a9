//! What the scoreboard measures: its plan, and what its rows are called.

use crate::sweep::grid::Plan;
use crate::sweep::plan::{PlanText, Wanted};
use std::path::Path;
use std::sync::LazyLock;

static PLAN: LazyLock<PlanText> = LazyLock::new(|| {
    let text = include_str!("../../studies/scoreboard.toml");
    PlanText::parse(Path::new("studies/scoreboard.toml"), text).expect("it is part of the program, and a test reads it")
});

/// The rows that are shown, each with its number of threads.
static ROWS: LazyLock<Vec<(String, u32)>> = LazyLock::new(|| {
    let wanted = Wanted { engines: vec!["esker".into()], ..PLAN.wanted() };
    let cells = plan(&wanted).map(|plan| plan.cells).unwrap_or_default();
    let steps = cells.into_iter().flat_map(|cell| cell.tasks).flat_map(|task| task.steps);
    steps.filter_map(|step| Some((step.row?, step.threads))).collect()
});

/// Rows that several numbers of threads share.
const COUNTERS: [&str; 3] = ["updaterandom", "mergerandom", "mergerandom with log"];

/// All cells: groups of rows on one database. The error is one line.
pub fn plan(wanted: &Wanted) -> Result<Plan, String> {
    PLAN.plan(wanted)
}

/// What a row is called in tables.
pub fn label(row: &str, threads: u32) -> String {
    let is_known = ROWS.iter().any(|(known, of)| known == row && *of == threads);
    match (is_known && COUNTERS.contains(&row), threads) {
        (false, _) => row.to_string(),
        (true, 1) => format!("{row}, 1 thread"),
        (true, threads) => format!("{row}, {threads} threads"),
    }
}

/// Whether there is such a row.
pub fn is_label(name: &str) -> bool {
    ROWS.iter().any(|(row, threads)| label(row, *threads) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_unique_and_rates_are_named() {
        let mut labels: Vec<String> = ROWS.iter().map(|(row, threads)| label(row, *threads)).collect();
        let count = labels.len();
        assert!(labels.contains(&"mergerandom, 10 threads".to_string()) && is_label("zipfian"));
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), count);
        let cells = plan(&Wanted { engines: vec!["esker".into()], ..PLAN.wanted() }).unwrap().cells;
        for step in cells.iter().flat_map(|cell| &cell.tasks).flat_map(|task| &task.steps) {
            let rate = step.writes_per_second.map(|rate| rate.to_string());
            assert!(rate.is_none_or(|rate| step.row.as_ref().unwrap().contains(&rate)));
        }
    }
}
