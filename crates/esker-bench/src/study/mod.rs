//! Studies: fixed experiments over several engines, from one command each.

pub mod child;
pub mod compare;
pub mod fairness;
pub mod grid;
pub mod leveldb_2011;
pub mod memory;
pub mod memtable;
pub mod process;
pub mod rmw;
pub mod scale;
pub mod scoreboard;
pub mod task;
pub mod ttl;
pub mod workloads;

use crate::bench::{EXIT_OK, EXIT_USAGE};
use crate::survivors;
use clap::error::{Error, ErrorKind};
use clap::{Parser, Subcommand};

/// Fixed experiments that put engines side by side.
#[derive(Parser)]
#[command(name = "esker study", bin_name = "esker study", no_binary_name = true, max_term_width = 120)]
struct Command {
    #[command(subcommand)]
    study: Study,
}

#[derive(Subcommand)]
enum Study {
    /// Every engine on the published workloads: medians, spreads, and Esker's ratio to the best peer and to RocksDB
    #[command(after_help = scoreboard::EXAMPLES)]
    Scoreboard(scoreboard::Arguments),
    /// Whether a scoreboard lost against a kept one, with the other engines as the yardstick
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::Arguments),
    /// Counters by update against counters by merge, with the flags of the published run and what varies them
    #[command(after_help = rmw::EXAMPLES)]
    Rmw(rmw::Arguments),
    /// What more entries, more threads and more data than memory cost, and how long opening takes
    #[command(after_help = scale::EXAMPLES)]
    Scale(scale::Arguments),
    /// Loads with write buffers and tables of several sizes, and reads by another process afterwards
    #[command(after_help = memtable::EXAMPLES)]
    Memtable(memtable::Arguments),
    /// The page that came with LevelDB in 2011, with every engine
    #[command(name = "leveldb-2011", after_help = leveldb_2011::EXAMPLES)]
    LevelDb2011(leveldb_2011::Arguments),
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
    /// YCSB's mixes, a queue, tombstones, expiry, popular counters, recovery, and latencies at fixed rates
    #[command(after_help = workloads::EXAMPLES)]
    Workloads(workloads::Arguments),
}

/// Runs `esker study` with the arguments after that word and returns the exit code of the process.
pub fn study_main(args: &[String]) -> i32 {
    let command = match Command::try_parse_from(args) {
        Ok(command) => command,
        Err(error) => return explain(&error, args),
    };
    match command.study {
        Study::Compare(arguments) => compare::main(&arguments),
        Study::Rmw(arguments) => rmw::main(&arguments),
        Study::Scale(arguments) => scale::main(&arguments),
        Study::Memtable(arguments) => memtable::main(&arguments),
        Study::LevelDb2011(arguments) => leveldb_2011::main(&arguments),
        Study::Child => child::main(),
        Study::KilledWriter { .. } => survivors::writer_main(&crate::all_kinds()),
        Study::Scoreboard(arguments) => scoreboard::main(&arguments),
        Study::Ttl(arguments) => ttl::main(&arguments),
        Study::Workloads(arguments) => workloads::main(&arguments),
    }
}

/// Help goes to standard output with code 0; a mistake is one line on standard error with code 2.
fn explain(error: &Error, args: &[String]) -> i32 {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            return EXIT_OK;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
        }
        _ => {
            let studies = ["scoreboard", "ttl", "compare", "scale", "rmw", "memtable", "leveldb-2011", "workloads"];
            let study = args.first().filter(|name| studies.contains(&name.as_str()));
            let command = study.map_or("esker study".to_owned(), |name| format!("esker study {name}"));
            eprintln!("{command}: {}", esker_usage::summary(&error.to_string(), &command));
        }
    }
    EXIT_USAGE
}
