//! `esker study scale`: what happens to the cost of an operation when there is more of everything:
//! entries, threads, data than memory. And how long opening takes.

mod arguments;
mod figures;

use crate::exit::{EXIT_FAILED, EXIT_USAGE, exit_code};
use crate::host;
use crate::interrupt::EXIT_INTERRUPTED;
use crate::output::{LineFile, complain, say};
use crate::record::{Host, Record};
use crate::sweep::grid::{Execution, GridArguments, Performed, Plan, perform};
use arguments::Part;
use figures::Figure;
use serde::Serialize;
use std::io::Write;

pub use arguments::Arguments;

/// Shown below the options.
pub const EXAMPLES: &str = include_str!("../../../data/help/scale.txt").trim_ascii_end();

/// One line of `--json`.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'a> {
    Machine { host: &'a Host },
    Row { part: Part, record: &'a Record },
    Figure(&'a Figure),
}

/// Runs the study and returns the exit code of the process.
pub fn main(arguments: &Arguments, out: &mut dyn Write, execution: Execution<'_>) -> i32 {
    let interrupt = execution.interrupt.clone();
    let study = match Study::new(arguments, execution) {
        Ok(study) => study,
        Err(problem) => return complain("study scale", &problem, EXIT_USAGE),
    };
    match study.measure(out) {
        _ if interrupt.is_requested() => EXIT_INTERRUPTED,
        Ok(all_well) => exit_code(false, !all_well),
        Err(problem) => complain("study scale", &problem, EXIT_FAILED),
    }
}

struct Study<'a> {
    arguments: &'a Arguments,
    plan: Plan,
    host: Host,
    execution: Execution<'a>,
}

impl<'a> Study<'a> {
    fn new(arguments: &'a Arguments, mut execution: Execution<'a>) -> Result<Study<'a>, String> {
        arguments::check(arguments)?;
        let (engines, libraries) = (Some(arguments.engines.clone()), arguments.libraries.clone());
        let grid = GridArguments { engines, libraries, ..GridArguments::default() };
        let present = grid.present("esker", execution.kinds)?;
        execution.libraries = present.libraries;
        execution.db = arguments.db.clone().unwrap_or(execution.db);
        let host = host::describe(&execution.db);
        let plan = arguments::plan(arguments, &present.names, host.memory_bytes)?;
        Ok(Study { arguments, plan, host, execution })
    }

    /// Whether every engine did all that was requested.
    fn measure(&self, out: &mut dyn Write) -> Result<bool, String> {
        let mut file = LineFile::create(self.arguments.json.as_deref())?;
        file.json(&Line::Machine { host: &self.host })?;
        let mut all_well = true;
        for part in arguments::chosen(self.arguments) {
            let mut records = Vec::new();
            for cell in self.plan.cells.iter().filter(|cell| cell.experiment == part.name()) {
                if self.execution.interrupt.is_requested() {
                    break;
                }
                eprintln!("{}", cell.name());
                let Performed { finished, interrupted } = perform(cell, &self.execution, &self.host)?;
                for record in &finished.records {
                    file.json(&Line::Row { part, record })?;
                }
                records.extend(finished.records);
                if let Some(problem) = finished.failure.filter(|_| !interrupted) {
                    eprintln!("{}: {problem}", cell.name());
                    all_well = false;
                }
            }
            let figures = figures::of(part, &records);
            for figure in &figures {
                file.json(&Line::Figure(figure))?;
            }
            say(out, &figures::text(part, &records, &figures));
        }
        Ok(all_well)
    }
}
