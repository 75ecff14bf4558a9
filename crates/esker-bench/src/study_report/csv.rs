//! Kept runs as CSV: a line for each record and repetition, with the cell it belongs to; a cell
//! that made none has a line that says why.

use crate::output::csv::COLUMNS;
use crate::record::Record;
use crate::report::render::csv::line;
use crate::study::grid::{Finished, StudyRun};

/// The whole file, with its header.
pub fn text(runs: &[StudyRun]) -> String {
    let header = ["study", "experiment", "variant", "variables", "failure"].map(String::from);
    let mut text = line(header.into_iter().chain(COLUMNS.header()));
    for (run, finished) in runs.iter().flat_map(|run| run.finished.iter().map(move |finished| (run, finished))) {
        let mut add =
            |record: &Record| text.push_str(&line(cell(&run.study, finished).into_iter().chain(COLUMNS.row(record))));
        finished.records.iter().for_each(&mut add);
        if finished.records.is_empty() {
            let (engine, repetition) = (finished.cell.engine.clone(), finished.cell.repetition);
            add(&Record { engine, repetition, ..Record::default() });
        }
    }
    text
}

fn cell(study: &str, finished: &Finished) -> [String; 5] {
    let cell = &finished.cell;
    let variables: Vec<String> = cell.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let failure = finished.failure.clone().unwrap_or_default();
    [study.to_string(), cell.experiment.clone(), cell.variant.clone(), variables.join(";"), failure]
}
