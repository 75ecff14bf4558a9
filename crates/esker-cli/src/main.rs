//! The `esker` command: one binary with one file per subcommand.
//!
//! Output goes to standard output, messages and progress to standard error. A failure is one line,
//! `esker: <what>; <what to do>`, and an exit code: 0 success, 1 the key is absent, the operation
//! failed or damage was found, 2 the command line cannot be understood, 3 a node of a cluster has
//! another state than the others.

mod arguments;
#[cfg(feature = "backup")]
mod backup;
mod checkpoint;
mod compact;
mod delete;
mod dump;
mod duration;
mod expiry;
mod explain;
mod exposition;
mod failure;
mod get;
mod help;
mod import;
mod keyspaces;
mod load;
mod measure;
mod merge;
mod open;
mod output;
mod progress;
mod put;
mod record;
mod repair;
#[cfg(test)]
mod round_trips;
mod scan;
#[cfg(feature = "serve")]
mod serve;
mod settings;
mod shell;
mod size;
mod stats;
mod text;
mod usage;
mod verify;
mod watch;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use failure::Failure;
use std::ffi::OsString;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  esker put   --db data user:1 Ada
  esker get   --db data user:1
  esker merge --db data --keyspace hits --merge-operator uint64add page:/ 1
  esker scan  --db data --prefix user: --limit 10
  esker dump  --db data --output data.tsv

Keys and values are text in UTF-8: a byte that is not printable is written \\xNN, a backslash \\\\.
With --hex they are hexadecimal. `esker help COMMAND` shows more about one command.

Exit codes: 0 success; 1 key absent, operation failed or damage found; 2 wrong usage.";

/// Reads, writes, checks and measures Esker databases.
#[derive(Parser)]
#[command(name = "esker", version, after_help = EXAMPLES, disable_help_subcommand = false, max_term_width = 120)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Put(put::Put),
    Get(get::Get),
    Delete(delete::Delete),
    Merge(merge::Merge),
    Scan(scan::Scan),
    Load(load::Load),
    Dump(dump::Dump),
    Import(import::Import),
    Shell(shell::Shell),
    Stats(stats::StatsCommand),
    Compact(compact::Compact),
    Verify(verify::Verify),
    Repair(repair::Repair),
    Checkpoint(checkpoint::Checkpoint),
    #[cfg(feature = "backup")]
    Backup(backup::Backup),
    /// Make, verify, restore and prune incremental backups (not in this build)
    #[cfg(not(feature = "backup"))]
    #[command(disable_help_flag = true)]
    Backup(Passed),
    #[cfg(feature = "serve")]
    Serve(Box<serve::Serve>),
    /// Serve a database to clients of Redis (not in this build)
    #[cfg(not(feature = "serve"))]
    #[command(disable_help_flag = true)]
    Serve(Passed),
    Keyspaces(keyspaces::Keyspaces),
    Explain(explain::Explain),
    /// Measure Esker beside other engines (see `esker bench --help`)
    #[command(disable_help_flag = true)]
    Bench(Passed),
    /// Run a study, a fixed experiment over several engines (see `esker study --help`)
    #[command(disable_help_flag = true)]
    Study(Passed),
    /// Measure every combination of settings that a TOML file asks for (see `esker sweep --help`)
    #[command(disable_help_flag = true)]
    Sweep(Passed),
    /// Show kept runs as HTML, Markdown or CSV, and compare them (see `esker report --help`)
    #[command(disable_help_flag = true)]
    Report(Passed),
}

/// Only for the list of commands in the help: these get their arguments raw, before clap sees them.
#[derive(clap::Args)]
struct Passed {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let outcome = match arguments.get(1).and_then(|name| name.to_str()) {
        Some(name) if measure::COMMANDS.contains(&name) => return measure::run(name, &arguments[2..]),
        _ => match parse(&arguments) {
            Ok(line) => run(line.command),
            Err(error) => return usage::report(&error, &arguments),
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn parse(arguments: &[OsString]) -> Result<CommandLine, clap::Error> {
    let matches = help::in_paragraphs(CommandLine::command()).try_get_matches_from(arguments)?;
    CommandLine::from_arg_matches(&matches)
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Put(command) => command.run(),
        Command::Get(command) => command.run(),
        Command::Delete(command) => command.run(),
        Command::Merge(command) => command.run(),
        Command::Scan(command) => command.run(),
        Command::Load(command) => command.run(),
        Command::Dump(command) => command.run(),
        Command::Import(command) => command.run(),
        Command::Shell(command) => command.run(),
        Command::Stats(command) => command.run(),
        Command::Compact(command) => command.run(),
        Command::Verify(command) => command.run(),
        Command::Repair(command) => command.run(),
        Command::Checkpoint(command) => command.run(),
        #[cfg(feature = "backup")]
        Command::Backup(command) => command.run(),
        #[cfg(not(feature = "backup"))]
        Command::Backup(_) => Err(Failure::Usage(
            "this build has no `backup`, which takes twice as many crates; \
             install it with `cargo install --path crates/esker-cli --features backup`"
                .into(),
        )),
        #[cfg(feature = "serve")]
        Command::Serve(command) => command.run(),
        #[cfg(not(feature = "serve"))]
        Command::Serve(_) => Err(Failure::Usage(
            "this build has no `serve`, which takes a third more crates; \
             install it with `cargo install --path crates/esker-cli --features serve`"
                .into(),
        )),
        Command::Keyspaces(command) => command.run(),
        Command::Explain(command) => command.run(),
        // Reached only if clap accepts them behind something that is not the first argument.
        Command::Bench(passed) | Command::Study(passed) | Command::Sweep(passed) | Command::Report(passed) => {
            Err(Failure::Usage(format!(
                "`bench`, `study`, `sweep` and `report` must be the first argument ({} follow); see `esker --help`",
                passed.arguments.len()
            )))
        }
    }
}
