//! `esker study scale`: what happens to the cost of an operation when there is more of everything: entries, threads, data than memory. And how
//! long opening takes.

mod arguments;
mod figures;
mod parts;

use crate::bench::{EXIT_FAILED, EXIT_OK, EXIT_USAGE};
use crate::engine::EngineKind;
use crate::flags::config::default_directory;
use crate::host;
use crate::interrupt::{EXIT_INTERRUPTED, Interrupt};
use crate::output::{LineFile, say};
use crate::progress::Display;
use crate::record::{Host, Record};
use crate::study::child::Place;
use crate::study::grid::{Execution, GridArguments, Plan, perform};
use arguments::Part;
use figures::Figure;
use serde::Serialize;
use std::io::Write;

pub use arguments::Arguments;

/// Shown below the options.
pub const EXAMPLES: &str = "\
Examples:
  esker study scale
  esker study scale --parts open
  esker study scale --parts dataset --dataset-gb 20 --engines esker,rocksdb --json dataset.jsonl
  esker study scale --parts grow --nums 1000000,10000000

Parts: `grow` measures counters by merge, random loads, and random reads of what is in memory at each of --nums; `threads` divides
the same work among each of --threads; `open` measures creating a database, opening an empty one, and opening
one of --open-entries that was closed; `dataset` loads --dataset-gb in random order, settles, reads and scans.

Exit codes: 0 all went well; 1 an engine failed; 2 wrong command line; 130 interrupted.";

/// One line of `--json`.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'a> {
    Machine { host: &'a Host },
    Row { part: Part, record: &'a Record },
    Figure(&'a Figure),
}

/// Runs the study and returns the exit code of the process.
pub fn main(arguments: &Arguments) -> i32 {
    let (kinds, display) = (crate::all_kinds(), Display::detect());
    run(arguments, &kinds, &mut std::io::stdout(), display, Interrupt::from_signals(), Place::children())
}

/// The same with everything it depends on passed in, and all in this process.
pub fn main_with(arguments: &Arguments, kinds: &[EngineKind], out: &mut dyn Write, interrupt: Interrupt) -> i32 {
    run(arguments, kinds, out, Display::Hidden, interrupt, Place::Here)
}

fn run(
    arguments: &Arguments,
    kinds: &[EngineKind],
    out: &mut dyn Write,
    display: Display,
    interrupt: Interrupt,
    place: Place,
) -> i32 {
    let study = match Study::new(arguments, kinds, display, interrupt.clone(), place) {
        Ok(study) => study,
        Err(problem) => {
            eprintln!("esker study scale: {problem}");
            return EXIT_USAGE;
        }
    };
    match study.measure(out) {
        _ if interrupt.is_requested() => EXIT_INTERRUPTED,
        Ok(true) => EXIT_OK,
        Ok(false) => EXIT_FAILED,
        Err(problem) => {
            eprintln!("esker study scale: {problem}");
            EXIT_FAILED
        }
    }
}

struct Study<'a> {
    arguments: &'a Arguments,
    plan: Plan,
    host: Host,
    execution: Execution<'a>,
}

impl<'a> Study<'a> {
    fn new(
        arguments: &'a Arguments,
        kinds: &'a [EngineKind],
        display: Display,
        interrupt: Interrupt,
        place: Place,
    ) -> Result<Study<'a>, String> {
        parts::check(arguments)?;
        let (engines, libraries) = (Some(arguments.engines.clone()), arguments.libraries.clone());
        let present = GridArguments { engines, libraries, ..GridArguments::default() }.present("esker", kinds)?;
        let db = arguments.db.clone().unwrap_or_else(default_directory);
        let host = host::describe(&db);
        let plan = parts::plan(arguments, &present.names, host.memory_bytes)?;
        let execution = Execution { kinds, libraries: present.libraries, db, interrupt, display, place };
        Ok(Study { arguments, plan, host, execution })
    }

    /// Whether every engine did all it was asked for.
    fn measure(&self, out: &mut dyn Write) -> Result<bool, String> {
        let mut file = self.arguments.json.as_deref().map(LineFile::create).transpose()?;
        let mut keep = |line: &Line<'_>| -> Result<(), String> {
            let Some(file) = &mut file else { return Ok(()) };
            file.line(&serde_json::to_string(line).map_err(|error| format!("cannot write a line as JSON: {error}"))?)
        };
        keep(&Line::Machine { host: &self.host })?;
        let mut all_well = true;
        for part in parts::chosen(self.arguments) {
            let mut records = Vec::new();
            for cell in self.plan.cells.iter().filter(|cell| cell.experiment == part.name()) {
                if self.execution.interrupt.is_requested() {
                    break;
                }
                eprintln!("{}", cell.name());
                let performed = perform(cell, &self.execution, &self.host)?;
                for record in &performed.records {
                    keep(&Line::Row { part, record })?;
                }
                records.extend(performed.records.iter().cloned());
                if let Some(problem) = performed.finished(cell, &self.host).and_then(|finished| finished.failure) {
                    eprintln!("{}: {problem}", cell.name());
                    all_well = false;
                }
            }
            let figures = figures::of(part, &records);
            for figure in &figures {
                keep(&Line::Figure(figure))?;
            }
            say(out, &figures::text(part, &records, &figures));
        }
        Ok(all_well)
    }
}
