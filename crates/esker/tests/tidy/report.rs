//! What a rule finds.

use std::fmt;

/// A place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The path of the file from the root of the workspace.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// Which rule, and how.
    pub what: String,
}

impl Violation {
    /// A violation at a place.
    pub fn new(file: &str, line: usize, what: impl Into<String>) -> Violation {
        Violation { file: file.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}
