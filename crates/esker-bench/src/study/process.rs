//! The processes of a cell, as plans put them together: each has flags and steps of its own and
//! finds the database that the one before left, or starts with an empty one.

use super::task::{Step, Task};
use crate::engine::device;
use std::collections::BTreeMap;

/// One process of a cell.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Flags of `esker bench`.
    pub flags: BTreeMap<String, String>,
    /// What it does.
    pub steps: Vec<Step>,
    /// Whether it works on the database that the one before it left.
    pub continues: bool,
}

/// The tasks of these processes, one after another. A database stays for as long as the next
/// process continues with it.
pub fn tasks(engine: &str, repetition: u32, processes: Vec<Process>) -> Vec<Task> {
    let kept: Vec<bool> = processes.iter().skip(1).map(|next| next.continues).chain([false]).collect();
    let task = |(process, keep): (Process, bool)| {
        let names: Vec<&str> = process.steps.iter().map(|step| step.benchmark.as_str()).collect();
        let mut flags = process.flags;
        flags.insert("benchmarks".into(), names.join(","));
        flags.insert("use_existing_db".into(), u8::from(process.continues).to_string());
        Task {
            engine: engine.into(),
            repetition,
            flags,
            steps: process.steps,
            keep,
            // Only at the end of a database: the look at everything warms caches. The bare device
            // holds nothing to look at.
            verify: !keep && engine != device::NAME,
            ..Task::default()
        }
    };
    processes.into_iter().zip(kept).map(task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_stays_for_the_next_process_only() {
        let process = |continues: bool, benchmarks: &[&str]| {
            let steps = benchmarks.iter().map(|name| Step::new(name, Some(name))).collect();
            Process { flags: [("num".to_string(), "7".to_string())].into(), steps, continues }
        };
        let processes =
            vec![process(false, &["fillseq"]), process(true, &["readseq", "compact"]), process(false, &["fillrandom"])];
        let tasks = tasks("esker", 2, processes);
        assert_eq!(tasks.iter().map(|task| task.keep).collect::<Vec<_>>(), [true, false, false]);
        let existing: Vec<&str> = tasks.iter().map(|task| task.flags["use_existing_db"].as_str()).collect();
        assert_eq!(existing, ["0", "1", "0"]);
        assert_eq!((tasks[0].flags["num"].as_str(), tasks[1].flags["benchmarks"].as_str()), ("7", "readseq,compact"));
        assert_eq!(tasks[2].repetition, 2);
    }
}
