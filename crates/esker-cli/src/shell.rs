//! `esker shell`: commands on one open database, line by line.

mod command;
mod lines;

use crate::arguments::DatabaseArguments;
use crate::failure::Failure;
use crate::open;
use command::{Outcome, Session};
use lines::{Line, Lines};
use std::io::{self, Write};

const EXAMPLES: &str = "\
Examples:
  esker shell --db data
  esker shell --db data --read-only
  echo 'count user:' | esker shell --db data

On a terminal lines are edited as in other shells, and those of earlier sessions come back with the arrow keys: they
are kept in $ESKER_HISTORY, or in esker_history in $XDG_STATE_HOME or ~/.local/state. `help` lists the commands.
From a pipe the commands run one after the other, and the first that fails ends the shell with exit code 1.";

/// Get, put, scan and count, line by line, with line editing and history on a terminal
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Shell {
    #[command(flatten)]
    database: DatabaseArguments,
    /// The keyspace to begin with
    #[arg(long, value_name = "NAME", default_value = "default")]
    keyspace: String,
    /// Keys and values are hexadecimal, in and out
    #[arg(long)]
    hex: bool,
    /// Open read-only, also beside a running writer: what was there when the shell began
    #[arg(long)]
    read_only: bool,
}

impl Shell {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let directory = &self.database.db;
        let db = if self.read_only { open::read_only(directory)? } else { open::existing(directory)? };
        let mut session = Session::new(&db, self.keyspace.clone(), self.hex, self.database.json);
        let ended = Lines::open().and_then(|mut lines| read_commands(&mut lines, &mut session));
        drop(session);
        let closed = db.close();
        ended?;
        Ok(closed?)
    }
}

fn read_commands(lines: &mut Lines, session: &mut Session<'_>) -> Result<(), Failure> {
    let is_interactive = lines.is_interactive();
    loop {
        let line = match lines.next(&format!("{}> ", session.keyspace_name()))? {
            Line::Text(line) => line,
            Line::Interrupted => continue,
            Line::End => return Ok(()),
        };
        match session.run(&line) {
            Ok(Outcome::Done) => {}
            Ok(Outcome::Quit) => return Ok(()),
            Err(Failure::ClosedPipe) => return Err(Failure::ClosedPipe),
            Err(failure) if is_interactive => {
                failure.report();
            }
            Err(failure) => return Err(at_line(lines.number(), failure)),
        }
        let _ = io::stderr().flush();
    }
}

/// The failure of a line of a pipe.
fn at_line(number: u64, failure: Failure) -> Failure {
    match failure {
        Failure::Usage(text) | Failure::Operation(text) => Failure::Operation(format!("line {number}: {text}")),
        other => other,
    }
}
