//! Kept runs as CSV: a line for each record and repetition, with the cell it belongs to; a cell that made none has a line that says why.

use crate::output::csv::{self, join};
use crate::record::Record;
use crate::study::grid::{Finished, StudyRun};

/// The whole file, with its header.
pub fn text(runs: &[StudyRun]) -> String {
    let mut text = format!("study,experiment,variant,variables,failure,{}\n", csv::header());
    for run in runs {
        for finished in &run.finished {
            let cell = cell_fields(&run.study, finished);
            if finished.records.is_empty() {
                let (engine, repetition) = (finished.cell.engine.clone(), finished.cell.repetition);
                let nothing = Record { engine, repetition, ..Record::default() };
                text.push_str(&format!("{cell},{}\n", csv::row(&nothing)));
            }
            for record in &finished.records {
                text.push_str(&format!("{cell},{}\n", csv::row(record)));
            }
        }
    }
    text
}

fn cell_fields(study: &str, finished: &Finished) -> String {
    let cell = &finished.cell;
    let variables: Vec<String> = cell.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let fields = [
        study.to_string(),
        cell.experiment.clone(),
        cell.variant.clone(),
        variables.join(";"),
        finished.failure.clone().unwrap_or_default(),
    ];
    join(fields.into_iter())
}
