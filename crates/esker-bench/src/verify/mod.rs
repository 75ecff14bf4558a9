//! Whether a database holds what it must hold: exactly, where that can be computed from the random numbers that made it, and otherwise by
//! a hash that is the same for every engine that holds the same entries.

pub mod content;
pub mod counters;
pub mod differences;
pub mod history;
pub mod parts;
pub mod scan;
pub mod updates;

use crate::engine::{Engine, Result};
use crate::interrupt::Interrupt;
use crate::keys::KeyBuffer;
use crate::values::ValuePool;
use crate::workload::Check;
use differences::Checked;
use history::Written;
use serde::{Deserialize, Serialize};

/// What a look at a whole database, after a run and outside its times, has shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verification {
    /// Entries that a scan has seen.
    pub entries: u64,
    /// A hash of all of them, in whatever order: 32 hexadecimal digits. Two databases with the same entries have the same.
    pub content_hash: String,
    /// Entries that were looked up again, one by one.
    pub sampled: u64,
    /// Those of them that a lookup did not find, or found with another value.
    pub mismatches: u64,
}

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

impl Checking<'_> {
    /// Compares the database with what was written; `None` if interrupted.
    pub fn run(&self, check: Check) -> Result<Option<Checked>> {
        match check {
            Check::Merges => counters::check(self),
            Check::Updates => updates::check(self),
        }
    }
}
