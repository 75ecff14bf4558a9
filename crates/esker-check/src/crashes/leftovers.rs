//! Runs that nothing disturbs, and the files that refused loads leave in them: "nothing is loaded
//! then, and no file is left".
//!
//! A table goes with the call. A blob file goes when blob files are looked over the next time, at
//! the latest in a compaction of everything.

use crate::Checked;
use crate::faults::Course;
use crate::powerloss::progress::Progress;
use crate::powerloss::script::Step;
use crate::powerloss::session::{Ground, observed, run};
use crate::simulated::MEMORY_PATH;
use esker::env::mem::MemEnv;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Runs the steps, and calls `observe` as [`run`] does, with the step that is over; none at the
/// end.
pub fn undisturbed(
    course: Course<'_>,
    env: &MemEnv,
    progress: &mut Progress,
    observe: &mut dyn FnMut(Option<&Step>, &Progress),
) -> Checked<()> {
    let (mut steps, mut leftovers, mut looked) = (observed(course.steps), Leftovers::default(), Ok(()));
    run(course.steps, &Ground::new(course.options, env.clone()), progress, &mut |progress| {
        let step = steps.next();
        // Beside threads any file may be that of a job.
        if looked.is_ok() && !course.threaded {
            looked = leftovers.look(step, files(env));
        }
        observe(step, progress);
    })
    .map_err(|error| format!("the script fails by itself: {error}"))?;
    looked
}

/// The tables and blob files of the database.
fn files(env: &MemEnv) -> BTreeSet<PathBuf> {
    let is_one = |path: &PathBuf| {
        let is_own = path.parent() == Some(Path::new(MEMORY_PATH));
        is_own && path.extension().is_some_and(|extension| extension == "table" || extension == "blob")
    };
    env.files().into_iter().filter(is_one).collect()
}

/// What there was before a step, and what is to go.
#[derive(Default)]
struct Leftovers {
    before: BTreeSet<PathBuf>,
    blobs: BTreeSet<PathBuf>,
}

impl Leftovers {
    /// Looks what a step has left.
    fn look(&mut self, step: Option<&Step>, now: BTreeSet<PathBuf>) -> Checked<()> {
        let is_blob = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "blob");
        let wrong: BTreeSet<PathBuf> = match step {
            Some(Step::RefusedIngest(..)) => {
                let new = now.difference(&self.before).cloned();
                let (blobs, tables): (BTreeSet<PathBuf>, BTreeSet<PathBuf>) = new.partition(is_blob);
                self.blobs.extend(blobs);
                tables
            }
            Some(Step::Compact) => std::mem::take(&mut self.blobs).intersection(&now).cloned().collect(),
            // An open removes what no manifest names; then their numbers may be used again.
            Some(step) if step.opens() => {
                self.blobs.clear();
                BTreeSet::new()
            }
            _ => BTreeSet::new(),
        };
        self.before = now;
        if wrong.is_empty() { Ok(()) } else { Err(format!("a load that was refused has left {wrong:?}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::powerloss::script::Refusal;

    /// What is said of these files, each behind a step.
    fn looks(seen: &[(Step, &[&str])]) -> Vec<bool> {
        let mut leftovers = Leftovers::default();
        let look = |(step, names): &(Step, &[&str])| {
            leftovers.look(Some(step), names.iter().map(PathBuf::from).collect()).is_ok()
        };
        seen.iter().map(look).collect()
    }

    fn refused() -> Step {
        Step::RefusedIngest(0, Vec::new(), Refusal::Panic)
    }

    #[test]
    fn a_table_that_a_refused_load_leaves_is_noticed() {
        let seen: [(Step, &[&str]); 3] =
            [(Step::Flush, &["1.table"]), (refused(), &["1.table"]), (refused(), &["1.table", "2.table"])];
        assert_eq!(looks(&seen), [true, true, false]);
    }

    #[test]
    fn a_blob_file_of_a_refused_load_may_stay_until_everything_is_compacted() {
        let seen: [(Step, &[&str]); 4] = [
            (Step::Flush, &["1.blob"]),
            (refused(), &["1.blob", "2.blob"]),
            (Step::Flush, &["1.blob", "2.blob"]),
            (Step::Compact, &["1.blob", "2.blob"]),
        ];
        assert_eq!(looks(&seen), [true, true, true, false]);
        let seen: [(Step, &[&str]); 3] =
            [(refused(), &["2.blob"]), (Step::Compact, &["3.blob"]), (Step::Compact, &["3.blob"])];
        assert_eq!(looks(&seen), [true, true, true]);
        let seen: [(Step, &[&str]); 3] =
            [(refused(), &["2.blob"]), (Step::Reopen, &["2.blob"]), (Step::Compact, &["2.blob"])];
        assert_eq!(looks(&seen), [true, true, true], "it may be another one");
    }
}
