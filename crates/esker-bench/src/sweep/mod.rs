//! Plans and what is done of them. `esker sweep FILE` measures any grid of cells from a TOML file,
//! kept and resumed like a study; studies are plans of their own.

pub mod child;
pub mod fairness;
pub mod grid;
pub(crate) mod memory;
pub mod plan;
pub mod scoreboard;
pub mod task;

use crate::exit::EXIT_USAGE;
use crate::exit::explain;
use crate::output::complain;
use crate::sweep::grid::{Execution, GridArguments, Plan, run_study};
use crate::sweep::plan::{PlanText, Wanted};
use clap::{CommandFactory, FromArgMatches, Parser};
use std::io::Write;
use std::path::{Path, PathBuf};

const EXAMPLE: &str = include_str!("../../../../examples/sweeps/memtable.toml");

const HELP: &str = "The file, as in examples/sweeps/memtable.toml:\n\n";

const REST: &str = include_str!("../../data/help/sweep.txt").trim_ascii_end();

/// Measures every combination of settings that a TOML file asks for.
#[derive(Parser)]
#[command(name = "esker sweep", bin_name = "esker sweep", no_binary_name = true, max_term_width = 120)]
struct Command {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    grid: GridArguments,
}

/// Its name in messages.
const COMMAND: &str = "sweep";

/// Runs `esker sweep` with the arguments after that word and returns the exit code of the process.
pub fn sweep_main(args: &[String]) -> i32 {
    let kinds = crate::all_kinds();
    sweep_with(args, &mut std::io::stdout(), || Execution::of_program(&kinds))
}

/// The same with everything it depends on passed in. `execution` is called once, when the run
/// begins.
pub fn sweep_with<'a>(args: &[String], out: &mut dyn Write, execution: impl FnOnce() -> Execution<'a>) -> i32 {
    let help = format!("{HELP}{}\n{REST}", indented(EXAMPLE));
    let matches = Command::command().after_help(help).try_get_matches_from(args);
    let command = match matches.and_then(|matches| Command::from_arg_matches(&matches)) {
        Ok(command) => command,
        Err(error) => return explain(&error, COMMAND),
    };
    let file = PlanText::read(&command.file);
    let engines = file.as_ref().map_err(String::clone).and_then(|file| file.engines(&file.wanted()));
    let (file, engines) = match file.and_then(|file| engines.map(|engines| (file, engines.join(",")))) {
        Ok(read) => read,
        Err(problem) => return complain(COMMAND, &problem, EXIT_USAGE),
    };
    let mut grid = command.grid;
    grid.run = grid.run.or_else(|| Some(PathBuf::from("esker-runs").join(file.name())));
    let repeat = grid.repeat;
    run_study(execution(), COMMAND, &grid, &engines, |engines| plan(&file, engines, repeat), out)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}").trim_end().to_owned() + "\n").collect()
}

/// The file of a sweep as a plan for these engines; those it names if there are none given. The
/// error is one line: the file, the line and the column in it, and what is wrong there.
pub fn plan_of_file(path: &Path, engines: Option<&[String]>) -> Result<Plan, String> {
    let file = PlanText::read(path)?;
    let own = file.engines(&file.wanted())?;
    plan(&file, engines.unwrap_or(&own), None)
}

/// For these engines, and as often as `repeat` says instead of the file.
fn plan(file: &PlanText, engines: &[String], repeat: Option<u32>) -> Result<Plan, String> {
    let own = file.wanted();
    file.plan(&Wanted { engines: engines.to_vec(), repeat: repeat.unwrap_or(own.repeat), ..own })
}
