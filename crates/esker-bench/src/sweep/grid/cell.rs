//! What a grid is made of, before and after it is done.

use crate::record::{Host, Record};
use crate::sweep::task::Task;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::hash::Hasher;
use twox_hash::XxHash64;

/// The version of the files of a run directory; raised when a field changes its meaning, or one is
/// added to what [`Cell::hash`] covers: cells of older runs would not be found again.
pub const SCHEMA: u32 = 1;

/// One cell of a grid: what one engine does from an empty directory on, in one process after
/// another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Which of the study's questions it belongs to: `grid`, `why`, `baseline`.
    pub experiment: String,
    /// The engine.
    pub engine: String,
    /// Which configuration of the engine, where a study has several (`rowid`, `without rowid`);
    /// empty otherwise.
    pub variant: String,
    /// What varies over the grid, by name: `write_buffer_mib` is `2`.
    pub variables: BTreeMap<String, String>,
    /// 1, 2, ...
    pub repetition: u32,
    /// Tasks, each in a process of its own, on the same directory: one that says `keep` leaves its
    /// database to the next, whose flags then say `use_existing_db`. Directory, libraries and
    /// machine are filled in when they are done.
    pub tasks: Vec<Task>,
}

impl Cell {
    /// The cell in one line, for people.
    pub fn name(&self) -> String {
        let mut name = format!("{}: {}", self.experiment, self.engine);
        if !self.variant.is_empty() {
            name.push_str(&format!(" ({})", self.variant));
        }
        for (variable, value) in &self.variables {
            name.push_str(&format!(", {variable} {value}"));
        }
        if self.repetition > 1 {
            name.push_str(&format!(", repetition {}", self.repetition));
        }
        name
    }

    /// 16 hexadecimal digits of all that is to be done, by which a run directory knows whether it
    /// was: the same in every process and on every machine.
    pub fn hash(&self) -> String {
        let mut hasher = XxHash64::with_seed(u64::from(SCHEMA));
        // Every field is text, a number, or an ordered map or list of such: the text of equal cells
        // is equal, and it cannot fail.
        hasher.write(serde_json::to_string(self).unwrap_or_default().as_bytes());
        format!("{:016x}", hasher.finish())
    }
}

/// A whole study or sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Which study: `rmw`, `memtable`, `leveldb-2011`, `workloads`, `sweep`.
    pub study: String,
    /// The title of its report.
    pub title: String,
    /// The cells, in the order in which they are done.
    pub cells: Vec<Cell>,
}

/// What became of a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// See [`SCHEMA`].
    pub schema: u32,
    /// What was to be done.
    pub cell: Cell,
    /// The rows it made.
    pub records: Vec<Record>,
    /// Why it ended before its last step, in one line, if it did: it is done again when the run is
    /// resumed.
    pub failure: Option<String>,
    /// Seconds it took, opening and closing included.
    pub seconds: f64,
    /// The machine.
    pub host: Host,
    /// When it ended, seconds since the Unix epoch.
    pub finished_unix_s: u64,
}

/// A kept run, as judgement and reports read it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StudyRun {
    /// Which study; empty where the records belong to none.
    pub study: String,
    /// The title of its report.
    pub title: String,
    /// Every cell that was done, in the plan's order.
    pub finished: Vec<Finished>,
    /// Cells of the plan that were not done yet.
    pub missing: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell() -> Cell {
        Cell {
            experiment: "grid".into(),
            engine: "leveldb".into(),
            variables: [("write_buffer_mib".to_string(), "2".to_string())].into(),
            repetition: 1,
            ..Cell::default()
        }
    }

    #[test]
    fn the_hash_is_of_the_content() {
        let one = cell();
        assert_eq!(one.hash(), cell().hash());
        assert_eq!(one.hash().len(), 16);
        let mut other = cell();
        other.variables.insert("write_buffer_mib".into(), "4".into());
        assert_ne!(one.hash(), other.hash());
        let mut again = cell();
        again.repetition = 2;
        assert_ne!(one.hash(), again.hash());
    }

    #[test]
    fn the_name_tells_cells_apart() {
        let mut cell = cell();
        assert_eq!(cell.name(), "grid: leveldb, write_buffer_mib 2");
        (cell.variant, cell.repetition) = ("tuned".into(), 3);
        assert_eq!(cell.name(), "grid: leveldb (tuned), write_buffer_mib 2, repetition 3");
    }
}
