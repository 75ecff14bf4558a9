//! Does the cells of a plan that are not kept yet.

use super::cell::{Cell, Finished, Plan, SCHEMA};
use super::directory::RunDirectory;
use crate::directory::BenchDirectory;
use crate::flags::config::default_directory;
use crate::host;
use crate::interrupt::Interrupt;
use crate::progress::Display;
use crate::record::{Host, Record};
use crate::sweep::child::Place;
use crate::sweep::task::{Ended, Surroundings, collect};
use esker_engines::EngineKind;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// What a plan is executed with.
pub struct Execution<'a> {
    /// The engines of this build.
    pub kinds: &'a [EngineKind],
    /// Shared libraries by engine.
    pub libraries: BTreeMap<String, PathBuf>,
    /// Directory for the databases.
    pub db: PathBuf,
    /// Ends the execution early.
    pub interrupt: Interrupt,
    /// How progress within a benchmark is shown.
    pub display: Display,
    /// Where tasks are done.
    pub place: Place,
}

impl<'a> Execution<'a> {
    /// As the program does it: each task in a process of its own, until a signal comes.
    pub fn of_program(kinds: &'a [EngineKind]) -> Execution<'a> {
        let (display, place) = (Display::detect(), Place::children());
        Execution { display, place, ..Execution::here(kinds, Interrupt::from_signals()) }
    }

    /// All in this process, without progress.
    pub fn here(kinds: &'a [EngineKind], interrupt: Interrupt) -> Execution<'a> {
        let (display, place) = (Display::Hidden, Place::Here);
        Execution { kinds, libraries: BTreeMap::new(), db: default_directory(), interrupt, display, place }
    }
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ending {
    /// Cells that were done now.
    pub done: usize,
    /// Cells that were kept already.
    pub kept: usize,
    /// Cells that failed, and why.
    pub failed: Vec<String>,
    /// Cells of these that another build or machine has done.
    pub kept_of_others: usize,
    /// Whether it was interrupted: the remaining cells are done when the run is resumed.
    pub interrupted: bool,
}

/// Does every cell of `plan` that `directory` does not keep yet or keeps as failed, in the plan's
/// order, and keeps each as it finishes. An engine that fails ends its cell, not the run. The
/// error, one line, is about the directory or the machine, and ends the run.
pub fn execute(plan: &Plan, directory: &RunDirectory, execution: &Execution<'_>) -> Result<Ending, String> {
    let mut ending = Ending::default();
    let mut estimate = Estimate::default();
    let host = host::describe(&execution.db);
    let kept = kept_cells(plan, directory, &host)?;
    for finished in kept.iter().flatten() {
        estimate.learn(finished);
        ending.kept += 1;
        ending.kept_of_others += usize::from(is_of_others(finished, &host));
    }
    let todo: Vec<&Cell> =
        plan.cells.iter().zip(&kept).filter(|(_, kept)| kept.is_none()).map(|(cell, _)| cell).collect();
    for (index, cell) in todo.iter().enumerate() {
        let left = estimate.remaining(&todo[index..]).map_or(String::new(), |left| format!(", {left}"));
        eprintln!("[{}/{}{left}] {}", ending.kept + index + 1, plan.cells.len(), cell.name());
        let Performed { finished, interrupted } = perform(cell, execution, &host)?;
        if interrupted {
            ending.interrupted = true;
            break;
        }
        directory.keep(&finished)?;
        estimate.learn(&finished);
        match &finished.failure {
            None => ending.done += 1,
            Some(problem) => {
                eprintln!("{}: {problem}", cell.name());
                ending.failed.push(format!("{}: {problem}", cell.name()));
            }
        }
    }
    Ok(ending)
}

/// Which cells of `plan` are kept as done, in its order; says how many, and whether they compare
/// with what this build does on `host`. The error is one line.
pub fn kept_cells(plan: &Plan, directory: &RunDirectory, host: &Host) -> Result<Vec<Option<Finished>>, String> {
    let done = |finished: &Finished| finished.failure.is_none();
    let find = |cell: &Cell| Ok(directory.find(&cell.hash())?.filter(done));
    let kept = plan.cells.iter().map(find).collect::<Result<Vec<Option<Finished>>, String>>()?;
    let count = kept.iter().flatten().count();
    if count > 0 {
        eprintln!("{count} of {} cells are kept in {}", kept.len(), directory.path().display());
    }
    let of_others = kept.iter().flatten().filter(|finished| is_of_others(finished, host)).count();
    if of_others > 0 {
        eprintln!(
            "{of_others} of these were done by another build or on another machine, with which the rest will not compare: to begin again, give another --run"
        );
    }
    Ok(kept)
}

fn is_of_others(finished: &Finished, host: &Host) -> bool {
    (&finished.host.esker_build, &finished.host.cpu) != (&host.esker_build, &host.cpu)
}

/// What became of a cell.
pub struct Performed {
    /// As it is kept, also if it ended early.
    pub finished: Finished,
    /// Whether it was interrupted: then nothing of it is kept.
    pub interrupted: bool,
}

/// Does one cell. However it ends, its database is removed: the next process that would have done
/// so may never come.
pub fn perform(cell: &Cell, execution: &Execution<'_>, host: &Host) -> Result<Performed, String> {
    let start = Instant::now();
    let done = perform_tasks(cell, execution, host);
    let (seconds, is_asked_to_end) = (start.elapsed().as_secs_f64(), execution.interrupt.is_requested());
    let emptied = BenchDirectory::empty_if_marked(&execution.db.join(&cell.engine));
    let (records, ended) = done?;
    emptied?;
    let interrupted = is_asked_to_end || ended == Some(Ended::Interrupted);
    let failure = match ended {
        Some(Ended::Failed(problem)) => Some(problem),
        Some(Ended::Interrupted) | None => None,
    };
    let finished = Finished {
        schema: SCHEMA,
        cell: cell.clone(),
        records,
        failure,
        seconds,
        host: host.clone(),
        finished_unix_s: host::unix_seconds(),
    };
    Ok(Performed { finished, interrupted })
}

/// The rows of all tasks, or of those up to one that ended early.
fn perform_tasks(cell: &Cell, execution: &Execution<'_>, host: &Host) -> Result<(Vec<Record>, Option<Ended>), String> {
    let kind = execution.kinds.iter().find(|kind| kind.name == cell.engine);
    let kind = kind.ok_or_else(|| format!("this build does not have the engine {}", cell.engine))?;
    let around = Surroundings { kind, display: execution.display, interrupt: &execution.interrupt };
    let (mut records, mut ended) = (Vec::new(), None);
    for task in &cell.tasks {
        let mut task = task.clone();
        task.engine.clone_from(&cell.engine);
        task.repetition = cell.repetition;
        task.flags.insert("db".into(), execution.db.display().to_string());
        task.libraries = execution.libraries.clone();
        task.host = host.clone();
        execution.place.perform(&task, &around, &mut |event| {
            ended = ended.take().or(collect(event, &mut records));
            Ok(())
        })?;
        if ended.is_some() {
            break;
        }
    }
    Ok((records, ended))
}

/// How long cells take, learned from those that were done: of the same experiment and engine, if
/// there were any.
#[derive(Default)]
struct Estimate {
    /// Cells and their seconds, by experiment and engine.
    known: BTreeMap<(String, String), (u32, f64)>,
}

impl Estimate {
    fn learn(&mut self, finished: &Finished) {
        if finished.failure.is_some() {
            return;
        }
        let key = (finished.cell.experiment.clone(), finished.cell.engine.clone());
        let (count, seconds) = self.known.entry(key).or_default();
        *count += 1;
        *seconds += finished.seconds;
    }

    /// `about 12 min left`, once anything is known.
    fn remaining(&self, cells: &[&Cell]) -> Option<String> {
        let (count, seconds) = self.known.values().fold((0, 0.0), |sum, known| (sum.0 + known.0, sum.1 + known.1));
        if count == 0 {
            return None;
        }
        let mean = seconds / f64::from(count);
        let of = |cell: &&Cell| {
            let known = self.known.get(&(cell.experiment.clone(), cell.engine.clone()));
            known.map_or(mean, |(count, seconds)| seconds / f64::from(*count))
        };
        Some(readable(cells.iter().map(of).sum()))
    }
}

fn readable(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("about {s:.0} s left"),
        s if s < 5400.0 => format!("about {:.0} min left", s / 60.0),
        s => format!("about {:.1} h left", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_knows_slow_engines() {
        let cell = |engine: &str| Cell { engine: engine.into(), ..Cell::default() };
        let finished = |engine: &str, seconds: f64| Finished { cell: cell(engine), seconds, ..Finished::default() };
        let mut estimate = Estimate::default();
        assert_eq!(estimate.remaining(&[&cell("a")]), None);
        estimate.learn(&finished("a", 10.0));
        estimate.learn(&finished("b", 1000.0));
        assert_eq!(estimate.remaining(&[&cell("a"), &cell("a")]).as_deref(), Some("about 20 s left"));
        assert_eq!(estimate.remaining(&[&cell("b")]).as_deref(), Some("about 17 min left"));
        assert_eq!(estimate.remaining(&[&cell("c"), &cell("b")]).as_deref(), Some("about 25 min left"));
    }
}
