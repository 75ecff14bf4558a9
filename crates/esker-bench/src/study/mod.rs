//! Studies: fixed experiments over several engines, from one command each.

pub mod scoreboard;

use clap::{Parser, Subcommand};

/// Fixed experiments that put engines side by side.
#[derive(Parser)]
#[command(name = "esker study", bin_name = "esker study", no_binary_name = true)]
struct Command {
    #[command(subcommand)]
    study: Study,
}

#[derive(Subcommand)]
enum Study {
    /// Every engine on the published workloads: medians, spreads, and Esker's ratio to the best peer and to RocksDB.
    Scoreboard(scoreboard::Arguments),
}

/// Runs `esker study` with the arguments after that word and returns the exit code of the process.
pub fn study_main(args: &[String]) -> i32 {
    let command = match Command::try_parse_from(args) {
        Ok(command) => command,
        Err(error) => {
            // Help goes to standard output with code 0, mistakes to standard error with code 2.
            let _ = error.print();
            return error.exit_code();
        }
    };
    match command.study {
        Study::Scoreboard(arguments) => scoreboard::main(&arguments),
    }
}
