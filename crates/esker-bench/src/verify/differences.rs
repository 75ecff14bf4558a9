//! What a comparison of a database with what it must hold is given, and what it has shown.

use super::history::Written;
use crate::interrupt::Interrupt;
use crate::keys::KeyBuffer;
use crate::values::ValuePool;
use esker_engines::Engine;

/// What a check needs.
#[derive(Clone, Copy)]
pub struct Checking<'a> {
    /// The open engine.
    pub engine: &'a dyn Engine,
    /// The benchmarks that wrote what it holds.
    pub written: &'a [Written],
    /// Where their values came from.
    pub pool: &'a ValuePool,
    /// The form of their keys.
    pub keys: &'a KeyBuffer,
    /// Ends the check early.
    pub interrupt: &'a Interrupt,
}

/// Entries that are not as they must be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Differences {
    /// Keys that are not there.
    pub missing: u64,
    /// Keys that nobody wrote, or that came twice.
    pub unexpected: u64,
    /// Keys with a value that cannot be.
    pub wrong: u64,
    first: Option<String>,
}

impl Differences {
    /// A key that is not there.
    pub fn missing(&mut self, number: u64) {
        self.missing += 1;
        self.note(|| format!("key {number} is missing"));
    }

    /// A key that nobody wrote.
    pub fn unexpected(&mut self, key: &[u8]) {
        self.unexpected += 1;
        self.note(|| format!("key {} was never written, or came twice", key.escape_ascii()));
    }

    /// A key with a wrong value, and what is wrong with it.
    pub fn wrong(&mut self, number: u64, what: impl FnOnce() -> String) {
        self.wrong += 1;
        self.note(|| format!("key {number} {}", what()));
    }

    fn note(&mut self, what: impl FnOnce() -> String) {
        if self.first.is_none() {
            self.first = Some(what());
        }
    }
}

/// What was compared, and how it differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// `counters` or `values`.
    pub noun: &'static str,
    /// Keys that must be there.
    pub expected: u64,
    /// Operations that were recomputed.
    pub ops: u64,
    /// How the database differs.
    pub differences: Differences,
}

impl Checked {
    /// What is wrong, in one line; `None` if nothing is.
    pub fn problem(&self) -> Option<String> {
        let Differences { missing, unexpected, wrong, first } = &self.differences;
        let first = first.as_ref()?;
        let (expected, noun) = (self.expected, self.noun);
        Some(format!(
            "{missing} missing, {unexpected} unexpected and {wrong} wrong of {expected} {noun}; first: {first}"
        ))
    }

    /// What was found right, for the message of a row.
    pub fn message(&self) -> String {
        format!("({} {} exact after {} operations)", self.expected, self.noun, self.ops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_told() {
        let mut checked = Checked { noun: "counters", expected: 5, ops: 9, differences: Differences::default() };
        assert_eq!(checked.problem(), None);
        assert_eq!(checked.message(), "(5 counters exact after 9 operations)");
        checked.differences.wrong(7, || "is 1 instead of 2".into());
        checked.differences.missing(3);
        checked.differences.unexpected(b"x\n");
        let problem = checked.problem().unwrap();
        assert_eq!(problem, "1 missing, 1 unexpected and 1 wrong of 5 counters; first: key 7 is 1 instead of 2");
    }
}
