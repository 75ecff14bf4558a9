//! Clap's own messages, brought into the form of all others: one line, what is wrong and what to
//! do.

use crate::failure::Failure;
use clap::error::{Error, ErrorKind};
use std::ffi::OsString;
use std::process::ExitCode;

/// Prints help and version as they are, everything else as one line with exit code 2.
pub fn report(error: &Error, arguments: &[OsString]) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(2)
        }
        _ => {
            let command = command_name(arguments).map_or("esker".into(), |name| format!("esker {name}"));
            Failure::Usage(esker_usage::summary(&error.to_string(), &command)).report()
        }
    }
}

/// The first argument if it looks like the name of a command.
fn command_name(arguments: &[OsString]) -> Option<&str> {
    const COMMANDS: [&str; 17] = [
        "put",
        "get",
        "delete",
        "merge",
        "scan",
        "load",
        "dump",
        "import",
        "shell",
        "stats",
        "compact",
        "verify",
        "repair",
        "checkpoint",
        "backup",
        "keyspaces",
        "explain",
    ];
    arguments.get(1).and_then(|name| name.to_str()).filter(|name| COMMANDS.contains(name))
}
