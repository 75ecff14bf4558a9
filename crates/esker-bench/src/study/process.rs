//! The processes of a cell, as plans put them together: each has flags and steps of its own and finds the database that the one before left, or
//! starts with an empty one.

use super::grid::Cell;
use super::task::{Step, Task};
use crate::engine::device;
use crate::record::Host;
use std::collections::BTreeMap;

/// One process of a cell.
#[derive(Debug, Clone, Default)]
pub struct Process {
    flags: BTreeMap<String, String>,
    steps: Vec<Step>,
    continues: bool,
}

impl Process {
    /// A process that starts with an empty database.
    pub fn fresh(steps: Vec<Step>) -> Process {
        Process { steps, ..Process::default() }
    }

    /// A process that works on the database that the one before it left.
    pub fn continued(steps: Vec<Step>) -> Process {
        Process { steps, continues: true, ..Process::default() }
    }

    /// With a flag of `esker bench`, which replaces an earlier value of it.
    pub fn flag(mut self, name: &str, value: impl ToString) -> Process {
        self.flags.insert(name.into(), value.to_string());
        self
    }

    /// With several flags.
    pub fn flags(mut self, flags: &[(&str, String)]) -> Process {
        self.flags.extend(flags.iter().map(|(name, value)| (name.to_string(), value.clone())));
        self
    }
}

/// The tasks of these processes, one after another. A database stays for as long as the next process continues with it.
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
            libraries: BTreeMap::new(),
            memory: None,
            host: Host::default(),
            steps: process.steps,
            budget: None,
            keep,
            // Only at the end of a database: the look at everything warms caches. The bare device holds nothing to look at.
            verify: !keep && engine != device::NAME,
        }
    };
    processes.into_iter().zip(kept).map(task).collect()
}

/// A cell of these processes.
pub fn cell(
    experiment: &str,
    engine: &str,
    variant: &str,
    variables: &[(&str, String)],
    repetition: u32,
    processes: Vec<Process>,
) -> Cell {
    Cell {
        experiment: experiment.into(),
        engine: engine.into(),
        variant: variant.into(),
        variables: variables.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        repetition,
        tasks: tasks(engine, repetition, processes),
    }
}

/// A step whose row has its benchmark's name.
pub fn step(benchmark: &str) -> Step {
    Step::new(benchmark, Some(benchmark))
}

/// A step that is done for its effect and makes no row.
pub fn silent(benchmark: &str) -> Step {
    Step::new(benchmark, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_stays_for_the_next_process_only() {
        let processes = vec![
            Process::fresh(vec![step("fillseq")]).flag("num", 5).flag("num", 7),
            Process::continued(vec![step("readseq"), silent("compact")]),
            Process::fresh(vec![step("fillrandom")]),
        ];
        let tasks = tasks("esker", 2, processes);
        assert_eq!(tasks.iter().map(|task| task.keep).collect::<Vec<_>>(), [true, false, false]);
        let existing: Vec<&str> = tasks.iter().map(|task| task.flags["use_existing_db"].as_str()).collect();
        assert_eq!(existing, ["0", "1", "0"]);
        assert_eq!((tasks[0].flags["num"].as_str(), tasks[1].flags["benchmarks"].as_str()), ("7", "readseq,compact"));
        assert_eq!((tasks[1].steps[1].row.as_deref(), tasks[2].repetition), (None, 2));
    }
}
