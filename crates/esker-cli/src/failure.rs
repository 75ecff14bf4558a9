//! What can go wrong in a command, as the one line and the exit code that the user gets.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Why a command ended without doing what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// The command line asks for something impossible. Exit code 2.
    Usage(String),
    /// The operation failed, or damage was found. Exit code 1.
    Operation(String),
    /// The node of a cluster has another state than the others, and is not to be started again.
    /// Exit code 3.
    #[cfg(feature = "serve")]
    Diverged(String),
    /// The key is not there; holds its escaped form. Exit code 1.
    Absent(String),
    /// The reader of our output has gone: not a failure of ours. Exit code 0, no message.
    ClosedPipe,
}

impl Failure {
    /// An input or output failure outside the database.
    pub fn io(what: &str, source: &io::Error) -> Failure {
        let remedy = match source.kind() {
            io::ErrorKind::NotFound => "check the path",
            io::ErrorKind::PermissionDenied => "check the permissions",
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some disk space",
            io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable => "check what else listens there",
            _ => "check the file and the device",
        };
        Failure::Operation(format!("{what}: {source}; {remedy}"))
    }

    /// Prints the line and returns the exit code. Never fails itself: a closed standard error is
    /// ignored.
    pub fn report(self) -> ExitCode {
        let (text, code) = match self {
            Failure::Usage(text) => (text, 2),
            Failure::Operation(text) => (text, 1),
            #[cfg(feature = "serve")]
            Failure::Diverged(text) => (text, 3),
            Failure::Absent(key) => (format!("not found: {key}"), 1),
            Failure::ClosedPipe => return ExitCode::SUCCESS,
        };
        let _ = writeln!(io::stderr(), "esker: {}", one_line(&text));
        ExitCode::from(code)
    }
}

impl From<esker::Error> for Failure {
    fn from(error: esker::Error) -> Failure {
        Failure::of(&error)
    }
}

impl Failure {
    /// A failure of the engine.
    pub fn of(error: &esker::Error) -> Failure {
        let mut text = match error {
            // That of the engine names the call of a program.
            esker::Error::MissingComparator { keyspace, comparator } => format!(
                "keyspace {keyspace:?} has the comparator {comparator:?}, which is not built in; \
                 only programs that bring it can open the database"
            ),
            error => error.to_string(),
        };
        // The engine's message often names the remedy already.
        if !text.contains("; ") {
            text.push_str("; ");
            text.push_str(remedy(error));
        }
        Failure::Operation(text)
    }
}

fn remedy(error: &esker::Error) -> &'static str {
    match error {
        esker::Error::Io { source, .. } => match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                "check the path given with --db"
            }
            _ => "check the directory and the device, then run the command again",
        },
        esker::Error::InvalidArgument { .. } => "nothing was changed",
        esker::Error::MergeFailed { .. } => "put a value that the operator can take, or delete the key",
        esker::Error::NotFound { .. } => "check --db and --keyspace; `esker keyspaces` lists what is there",
        _ => "see `esker --help`",
    }
}

/// The text with control characters escaped, so that one message is one line whatever a key or path
/// contains.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            let _ = write!(line, "\\x{:02x}", u32::from(character));
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(one_line("a\nb\tc\u{1b}[1m"), "a\\x0ab\\x09c\\x1b[1m");
    }

    #[test]
    fn every_engine_error_names_a_remedy() {
        for error in [
            esker::Error::invalid("no"),
            esker::Error::io("open", "x", io::Error::from(io::ErrorKind::NotADirectory)),
            esker::Error::NotFound { what: "keyspace".into() },
            esker::Error::Locked { path: "LOCK".into(), holder: Some(1) },
        ] {
            let Failure::Operation(text) = Failure::from(error) else { panic!("not an operation failure") };
            assert!(text.contains("; "), "{text}");
        }
    }
}
