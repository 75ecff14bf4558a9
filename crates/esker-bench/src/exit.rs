//! How a command ends: its exit code, and what is said of a mistake in its arguments.

use crate::interrupt::EXIT_INTERRUPTED;
use crate::output::complain;
use clap::error::{Error, ErrorKind};

/// Everything went well.
pub const EXIT_OK: i32 = 0;
/// A benchmark or an engine failed, or a benchmark's name is unknown.
pub const EXIT_FAILED: i32 = 1;
/// The command line is wrong.
pub const EXIT_USAGE: i32 = 2;

/// The exit code of a run that may have been interrupted, and may have had a problem.
pub fn exit_code(interrupted: bool, problem: bool) -> i32 {
    match (interrupted, problem) {
        (true, _) => EXIT_INTERRUPTED,
        (false, true) => EXIT_FAILED,
        (false, false) => EXIT_OK,
    }
}

/// Help goes to standard output with code 0; a mistake is one line on standard error with code 2.
pub fn explain(error: &Error, command: &str) -> i32 {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            EXIT_OK
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            EXIT_USAGE
        }
        _ => complain(command, &esker_usage::summary(&error.to_string(), &format!("esker {command}")), EXIT_USAGE),
    }
}
