//! `esker study scale`: what happens to the cost of an operation when there is more of everything: entries, threads, data than memory. And how
//! long opening takes.

mod arguments;
mod figures;
mod parts;

use crate::bench::{EXIT_FAILED, EXIT_OK, EXIT_USAGE};
use crate::engine::{EngineKind, registry};
use crate::flags::config::{default_directory, engine_names, library};
use crate::host;
use crate::interrupt::{EXIT_INTERRUPTED, Interrupt};
use crate::output::{LineFile, say};
use crate::progress::Display;
use crate::record::{Host, Record};
use crate::study::child::Place;
use crate::study::task::{Ended, Surroundings, Task, collect};
use arguments::Part;
use figures::Figure;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

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
    engines: Vec<&'a EngineKind>,
    libraries: BTreeMap<String, PathBuf>,
    db: PathBuf,
    host: Host,
    display: Display,
    interrupt: Interrupt,
    place: Place,
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
        let names = engine_names(&arguments.engines)?;
        let libraries: BTreeMap<String, PathBuf> =
            arguments.libraries.iter().map(|text| library(text)).collect::<Result<_, _>>()?;
        let mut engines = Vec::new();
        for name in &names {
            let kind = kinds.iter().find(|kind| kind.name == name).ok_or_else(|| format!("no engine {name} here"))?;
            match (kind.probe)(libraries.get(name).map(|path| path.as_path())) {
                Ok(_) => engines.push(kind),
                Err(problem) if arguments.engines == "all" => {
                    eprintln!("{}", registry::left_out(name, &problem.to_string()))
                }
                Err(problem) => return Err(problem.to_string()),
            }
        }
        let db = arguments.db.clone().unwrap_or_else(default_directory);
        let host = host::describe(&db);
        Ok(Study { arguments, engines, libraries, db, host, display, interrupt, place })
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
            for repetition in 1..=self.arguments.repeat {
                for parts::Work { mut task, name } in parts::work(part, self.arguments, self.host.memory_bytes) {
                    for kind in &self.engines {
                        if self.interrupt.is_requested() {
                            break;
                        }
                        eprintln!("{name}: {}", kind.name);
                        task.engine = kind.name.into();
                        task.repetition = repetition;
                        let (made, problem) = self.perform(&task, kind)?;
                        for record in &made {
                            keep(&Line::Row { part, record })?;
                        }
                        records.extend(made);
                        if let Some(problem) = problem {
                            eprintln!("{}: {name}: {problem}", kind.name);
                            all_well = false;
                        }
                    }
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

    fn perform(&self, task: &Task, kind: &EngineKind) -> Result<(Vec<Record>, Option<String>), String> {
        let mut task = task.clone();
        task.flags.insert("db".into(), self.db.display().to_string());
        task.libraries = self.libraries.clone();
        task.host = self.host.clone();
        let around = Surroundings { kind, display: self.display, interrupt: &self.interrupt };
        let (mut records, mut ended) = (Vec::new(), None);
        self.place.perform(&task, &around, &mut |event| {
            ended = ended.take().or(collect(event, &mut records));
            Ok(())
        })?;
        let problem = match ended {
            Some(Ended::Failed(problem)) => Some(problem),
            _ => None,
        };
        Ok((records, problem))
    }
}
