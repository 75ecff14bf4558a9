//! Clap's own messages, brought into the form of all others: one line, what is wrong and what to do.

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
        _ => Failure::Usage(summary(&error.to_string(), command_name(arguments))).report(),
    }
}

/// The first argument if it looks like the name of a command.
fn command_name(arguments: &[OsString]) -> Option<&str> {
    const COMMANDS: [&str; 12] = [
        "put",
        "get",
        "delete",
        "merge",
        "scan",
        "load",
        "dump",
        "stats",
        "compact",
        "verify",
        "checkpoint",
        "keyspaces",
    ];
    arguments.get(1).and_then(|name| name.to_str()).filter(|name| COMMANDS.contains(name))
}

/// Joins the paragraphs before "Usage:": the error itself, then clap's tips.
fn summary(rendered: &str, command: Option<&str>) -> String {
    let mut text = String::new();
    for line in rendered.lines() {
        let line = line.trim();
        if line.starts_with("Usage:") || line.starts_with("For more information") {
            break;
        }
        if line.is_empty() {
            continue;
        }
        if let Some(tip) = line.strip_prefix("tip:") {
            text.push_str("; ");
            text.push_str(tip.trim());
        } else {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(line.strip_prefix("error:").unwrap_or(line).trim());
        }
    }
    match command {
        Some(name) => format!("{text}; see `esker {name} --help`"),
        None => format!("{text}; see `esker --help`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_tips_become_one_line() {
        let rendered =
            "error: unexpected argument '--fron' found\n\n  tip: a similar argument exists: '--from'\n\nUsage: x\n";
        assert_eq!(
            summary(rendered, Some("scan")),
            "unexpected argument '--fron' found; a similar argument exists: '--from'; see `esker scan --help`"
        );
    }
}
