//! What every grid study asks for, and what it does with the answer.

use super::cell::Plan;
use super::directory::RunDirectory;
use super::execute::{Ending, Execution, execute};
use crate::exit::{EXIT_FAILED, EXIT_OK, EXIT_USAGE, exit_code};
use crate::flags::config::{engine_names, library};
use crate::output::{complain, say};
use esker_engines::{EngineKind, registry};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

/// Arguments common to all grid studies.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct GridArguments {
    /// Directory that keeps the run; one that holds a part of it is resumed [default:
    /// esker-runs/STUDY]
    #[arg(long, value_name = "DIR")]
    pub run: Option<PathBuf>,
    /// Engines, by name, joined by commas; those that are not here are left out of `all` [default:
    /// the study's]
    #[arg(long, value_name = "NAMES")]
    pub engines: Option<String>,
    /// Repetitions of every cell [default: the study's]
    #[arg(long, value_name = "N")]
    pub repeat: Option<u32>,
    /// Directory for the databases.
    #[arg(long, value_name = "DIR")]
    pub db: Option<PathBuf>,
    /// Shared library of an engine; may be given several times.
    #[arg(long = "lib", value_name = "NAME=PATH")]
    pub libraries: Vec<String>,
    /// Show the cells, and do nothing.
    #[arg(long)]
    pub plan_only: bool,
}

/// The engines that were requested and are here, with their libraries.
pub struct Present {
    /// Their names.
    pub names: Vec<String>,
    /// Shared libraries by engine.
    pub libraries: BTreeMap<String, PathBuf>,
}

impl GridArguments {
    /// An engine that was named must be here; of `all`, and of the study's own choice, those that
    /// are not are left out with a line.
    pub fn present(&self, chosen: &str, kinds: &[EngineKind]) -> Result<Present, String> {
        let wanted = self.engines.as_deref().unwrap_or(chosen);
        let named = self.engines.as_deref().is_some_and(|names| names != "all");
        let libraries: BTreeMap<String, PathBuf> =
            self.libraries.iter().map(|text| library(text)).collect::<Result<_, _>>()?;
        let mut names = Vec::new();
        for name in engine_names(wanted)? {
            let kind = kinds.iter().find(|kind| kind.name == name).ok_or_else(|| format!("no engine {name} here"))?;
            match (kind.probe)(libraries.get(&name).map(|path| path.as_path())) {
                Ok(_) => names.push(name),
                Err(problem) if !named => eprintln!("{}", registry::left_out(&name, &problem.to_string())),
                Err(problem) => return Err(problem.to_string()),
            }
        }
        if names.is_empty() {
            return Err("none of the engines is here".into());
        }
        Ok(Present { names, libraries })
    }
}

/// Does a study: `command` is its name for messages (`study rmw`), `engines` are those it measures
/// when none are requested, `plan` makes its cells for those that are here. Returns the exit code
/// of the process.
pub fn run_study(
    mut execution: Execution<'_>,
    command: &str,
    arguments: &GridArguments,
    engines: &str,
    plan: impl FnOnce(&[String]) -> Result<Plan, String>,
    out: &mut dyn Write,
) -> i32 {
    let prepared = arguments.present(engines, execution.kinds).and_then(|present| {
        let plan = plan(&present.names)?;
        // Whatever is wrong with the flags of a cell: learn it before hours have gone by.
        for cell in &plan.cells {
            for task in &cell.tasks {
                task.config().map_err(|problem| format!("{}: {problem}", cell.name()))?;
            }
        }
        Ok((present, plan))
    });
    let (present, plan) = match prepared {
        Ok(prepared) => prepared,
        Err(problem) => return complain(command, &problem, EXIT_USAGE),
    };
    if arguments.plan_only {
        let names: Vec<String> = plan.cells.iter().map(|cell| format!("{}  {}", cell.hash(), cell.name())).collect();
        say(out, &format!("{}\n{} cells", names.join("\n"), names.len()));
        return EXIT_OK;
    }
    let path = arguments.run.clone().unwrap_or_else(|| PathBuf::from("esker-runs").join(&plan.study));
    let directory = match RunDirectory::create_or_resume(&path, &plan) {
        Ok(directory) => directory,
        Err(problem) => return complain(command, &problem, EXIT_USAGE),
    };
    execution.libraries = present.libraries;
    execution.db = arguments.db.clone().unwrap_or(execution.db);
    match execute(&plan, &directory, &execution) {
        Ok(ending) => {
            say(out, &summary(&ending, &directory));
            exit_code(ending.interrupted, !ending.failed.is_empty())
        }
        Err(problem) => {
            complain(command, &format!("{problem}; finished cells are kept in {}", path.display()), EXIT_FAILED)
        }
    }
}

fn summary(ending: &Ending, directory: &RunDirectory) -> String {
    let mut text = format!("{} cells done, {} kept from before", ending.done, ending.kept);
    if !ending.failed.is_empty() {
        text.push_str(&format!(", {} failed:\n  {}", ending.failed.len(), ending.failed.join("\n  ")));
    }
    if ending.interrupted {
        text.push_str("\nInterrupted: the same command goes on where this one ended.");
    }
    let path = directory.path().display();
    text.push_str(&format!("\nKept in {path}; `esker report {path}` shows them."));
    text
}
