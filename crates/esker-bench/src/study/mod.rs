//! Studies: fixed experiments over several engines, from one command each.

pub mod compare;
pub mod planned;
pub mod scale;
pub mod scoreboard;
pub mod ttl;

use crate::exit::explain;
use crate::interrupt::Interrupt;
use crate::survivors;
use crate::sweep::child;
use crate::sweep::grid::Execution;
use clap::error::Error;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use planned::Planned;

/// Fixed experiments that put engines side by side.
#[derive(Parser)]
#[command(name = "esker study", bin_name = "esker study", no_binary_name = true, max_term_width = 120)]
struct Command {
    #[command(subcommand)]
    study: Study,
}

/// Those that are more than a plan ([`Planned`]).
#[derive(Subcommand)]
enum Study {
    /// Every engine on the published workloads: medians, spreads, and Esker's ratio to the best
    /// peer and to RocksDB
    #[command(after_help = scoreboard::EXAMPLES)]
    Scoreboard(scoreboard::Arguments),
    /// Whether a scoreboard lost against a kept one, with the other engines as the yardstick
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::Arguments),
    /// What more entries, more threads and more data than memory cost, and how long opening takes
    #[command(after_help = scale::EXAMPLES)]
    Scale(scale::Arguments),
    /// Internal: one engine's part of another study, read from standard input
    #[command(name = child::SUBCOMMAND, hide = true)]
    Child,
    /// Internal: puts keys until it is killed, for the benchmark `killedfill`
    #[command(name = survivors::SUBCOMMAND, hide = true)]
    KilledWriter {
        /// Stands for what only a study may ask for
        #[arg(long, required = true)]
        order_from_standard_input: bool,
    },
    /// Esker's time to live: what expires is hidden, and goes; and what that costs
    #[command(after_help = ttl::EXAMPLES)]
    Ttl(ttl::Arguments),
}

/// Runs `esker study` with the arguments after that word and returns the exit code of the process.
pub fn study_main(args: &[String]) -> i32 {
    let planned = Planned::all();
    let command = Command::command().subcommands(planned.iter().map(Planned::command));
    let names: Vec<String> = command.get_subcommands().map(|study| study.get_name().to_owned()).collect();
    let matches = match command.try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return explain_study(&error, args, &names),
    };
    if let Some((name, matches)) = matches.subcommand()
        && let Some(study) = planned.iter().find(|study| study.name() == name)
    {
        return study.main(matches);
    }
    let command = match Command::from_arg_matches(&matches) {
        Ok(command) => command,
        Err(error) => return explain_study(&error, args, &names),
    };
    let (kinds, out) = (crate::all_kinds(), &mut std::io::stdout());
    match command.study {
        Study::Compare(arguments) => compare::main(&arguments, out),
        Study::Scale(arguments) => scale::main(&arguments, out, Execution::of_program(&kinds)),
        Study::Child => child::main(&kinds),
        Study::KilledWriter { .. } => survivors::writer_main(&kinds),
        Study::Scoreboard(arguments) => scoreboard::main(&arguments, out, Execution::of_program(&kinds)),
        Study::Ttl(arguments) => ttl::main(&arguments, out, Interrupt::from_signals()),
    }
}

/// What is said of a mistake in the arguments of `esker study`, or of one of the studies.
fn explain_study(error: &Error, args: &[String], studies: &[String]) -> i32 {
    let study = args.first().filter(|name| studies.contains(name));
    explain(error, &study.map_or("study".to_owned(), |name| format!("study {name}")))
}
