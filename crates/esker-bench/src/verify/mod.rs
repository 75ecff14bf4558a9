//! Whether a database holds what it must hold: exactly, where that can be computed from the random
//! numbers that made it, and otherwise by a hash that is the same for every engine that holds the
//! same entries.

pub mod content;
mod counters;
pub(crate) mod differences;
pub(crate) mod history;
mod parts;
mod scan;
mod updates;

use crate::workload::Check;
use differences::{Checked, Checking};
use esker_engines::Result;

impl Checking<'_> {
    /// Compares the database with what was written; `None` if interrupted.
    pub fn run(&self, check: Check) -> Result<Option<Checked>> {
        match check {
            Check::Merges => counters::check(self),
            Check::Updates => updates::check(self),
        }
    }
}
