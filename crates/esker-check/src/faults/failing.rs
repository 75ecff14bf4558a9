//! One failing call, or a full disk, in a run of any steps.

use super::exactly::{disk, run_exactly, undisturbed};
use super::fault::{Armed, Fault, FullDisk};
use crate::Checked;
use crate::powerloss::progress::Progress;
use crate::powerloss::script::Step;
use crate::powerloss::session::{Ground, Session, run};
use crate::powerloss::{Examination, Loss};
use crate::random::Random;
use crate::state::Durability;
use esker::Options;
use esker::env::fault::{Class, FaultEnv};
use esker::env::mem::{CrashMode, MemEnv, SyncFailure};
use std::sync::Arc;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failing {
    /// A call, by its number among those of its class.
    Call(Fault, u64),
    /// The disk is full for some steps.
    FullDisk(FullDisk),
}

/// How the steps are run.
#[derive(Clone, Copy, Debug)]
pub struct Course<'a> {
    pub steps: &'a [Step],
    pub options: &'a Options,
    /// Whether threads make some of the calls, so that a number does not stand for the same call in
    /// every run.
    pub threaded: bool,
}

impl Course<'_> {
    /// Whether every answer after the failure can be foretold: not where threads fail beside the
    /// steps. A program that goes on keeps no account of what is lost without log, nor of other
    /// settings, nor of a database that is removed, nor of what transactions meet, nor of merges
    /// that fail, of what compaction takes and of clocks that go back.
    pub(super) fn is_exact(self) -> bool {
        let is_hard = |step: &Step| {
            step.durability() == Some(Durability::Unlogged)
                || step.is_alteration()
                || step.is_contended()
                || step.is_open_ended()
                || *step == Step::Destroy
        };
        !self.threaded && !self.steps.iter().any(is_hard)
    }

    /// The environment of a run on that disk without failure, which knows how many calls there
    /// were.
    pub(super) fn counted(self, memory: MemEnv) -> Checked<FaultEnv> {
        if self.is_exact() {
            return undisturbed(self.steps, self.options, memory);
        }
        let faulty = FaultEnv::new(Arc::new(memory));
        let ground = Ground::new(self.options, faulty.clone());
        run(self.steps, &ground, &mut Progress::default(), &mut |_| {})
            .map_err(|error| format!("the script fails by itself: {error}"))?;
        Ok(faulty)
    }

    /// So many failing calls, and a full disk.
    pub fn some(self, calls: usize, random: &mut Random) -> Checked<Vec<Failing>> {
        let counted = self.counted(disk(true))?;
        let mut some: Vec<Failing> = (0..calls).map(|_| some_call(&counted, random)).collect();
        some.push(Failing::FullDisk(FullDisk::some(self.steps.len(), random)));
        Ok(some)
    }

    /// The same failure at other moments, at most so many, those that are most like it first.
    pub fn elsewhere(self, failing: Failing, most: u64) -> Checked<Vec<Failing>> {
        Ok(match failing {
            Failing::Call(fault, nth) => {
                let calls = self.counted(disk(true))?.calls(fault.class());
                crate::shrink::nearby(nth, calls, most).into_iter().map(|nth| Failing::Call(fault, nth)).collect()
            }
            Failing::FullDisk(disk) => disk.elsewhere(self.steps.len()).into_iter().map(Failing::FullDisk).collect(),
        })
    }

    /// Runs the steps with it; whether it happened.
    pub fn check(self, failing: Failing, examination: &Examination<'_>, random: &mut Random) -> Checked<bool> {
        let memory = disk(true);
        let checked = if self.is_exact() {
            let failing = (failing.fault(), failing.nth());
            run_exactly(self.steps, self.options, memory, failing).map(|program| program.hits() > 0)
        } else {
            self.stop_at_the_error(memory, failing, examination, random)
        };
        checked.map_err(|what| format!("{failing:?}: {what}"))
    }

    /// The program ends with the first error. The next one finds an allowed state.
    pub(super) fn stop_at_the_error(
        self,
        memory: MemEnv,
        failing: Failing,
        examination: &Examination<'_>,
        random: &mut Random,
    ) -> Checked<bool> {
        let faulty = FaultEnv::new(Arc::new(memory.clone()));
        let armed = Armed::new(failing.fault(), failing.nth(), &faulty, &memory);
        let mut progress = Progress::default();
        let mut step = 0;
        let outcome = run(self.steps, &Ground::new(self.options, faulty), &mut progress, &mut |_| {
            step += 1;
            armed.begin_step(step);
        });
        memory.set_capacity(None);
        let hit = armed.hits() > 0;
        if let (false, Err(error)) = (hit, outcome) {
            return Err(format!("the script fails by itself: {error}"));
        }
        // "What a `destroy` has removed whose sync of the directory failed can be back after a
        // power loss, also where another one has succeeded since" (durability.md).
        progress.sync_failed = hit && failing.is_sync();
        let gave_removals_up = hit && progress.destroying && failing.gives_names_up();
        let depth = if gave_removals_up { 0 } else { 1 };
        for loss in [Loss::Process, Loss::Machine(CrashMode::LoseAll, 0), Loss::random(random)] {
            examination.examine(&loss.image(&memory), loss, &progress, random, depth)?;
        }
        Ok(hit)
    }
}

impl Failing {
    fn fault(self) -> Fault {
        match self {
            Failing::Call(fault, _) => fault,
            Failing::FullDisk(disk) => Fault::Full(disk),
        }
    }

    /// Whether the disk may never have the names of a directory whose sync fails so, though a later
    /// sync of it succeeds.
    fn gives_names_up(self) -> bool {
        matches!(self.fault(), Fault::SyncDir(SyncFailure::DropPending | SyncFailure::KeepSome(_)))
    }

    /// Whether a sync fails.
    fn is_sync(self) -> bool {
        matches!(self.fault().class(), Class::Sync | Class::SyncDir)
    }

    fn nth(self) -> u64 {
        match self {
            Failing::Call(_, nth) => nth,
            Failing::FullDisk(_) => 0,
        }
    }
}

/// A fault at a call that there was.
fn some_call(counted: &FaultEnv, random: &mut Random) -> Failing {
    let possible: Vec<Fault> = Fault::all().into_iter().filter(|fault| counted.calls(fault.class()) > 0).collect();
    let fault = possible[random.below(possible.len())];
    Failing::Call(fault, random.below(counted.calls(fault.class()) as usize) as u64)
}

/// Recovers what a loss has left while a call fails, then without: what is found then is allowed,
/// whatever the failed attempt did.
pub fn recovery_fails(
    image: &MemEnv,
    loss: Loss,
    progress: &Progress,
    examination: &Examination<'_>,
    random: &mut Random,
) -> Checked<()> {
    let counted = FaultEnv::new(Arc::new(image.kill()));
    let ground = |env: &FaultEnv| Ground::new(examination.options, env.clone()).keeping(progress.kept);
    let opened = Session::open(&ground(&counted), &mut progress.clone());
    opened.map_err(|error| format!("the image does not open: {error}"))?;
    if counted.calls(Class::Any) == 0 {
        return Ok(());
    }
    let failing = some_call(&counted, random);
    let memory = image.kill();
    let faulty = FaultEnv::new(Arc::new(memory.clone()));
    let armed = Armed::new(failing.fault(), failing.nth(), &faulty, &memory);
    let mut after = progress.clone();
    let opened = Session::open(&ground(&faulty), &mut after);
    let told = opened.as_ref().err().map(ToString::to_string);
    drop(opened);
    if let (0, Some(error)) = (armed.hits(), told) {
        return Err(format!("the recovery fails by itself: {error}"));
    }
    // What was left of a database that was being removed is gone, or it still is.
    let progress = if progress.destroying { &after } else { progress };
    // Whatever the first loss left was on the disk, if it was one of the machine; so the second
    // takes nothing more.
    let (mode, seed) = (CrashMode::Random, random.next());
    for (again, env) in [(loss, memory.kill()), (Loss::Machine(mode, seed), memory.crash(&mode, seed))] {
        examination
            .examine(&env, again, progress, random, 0)
            .map_err(|what| format!("{loss:?}, recovered with {failing:?}, then: {what}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_given_up_by_a_failed_sync_of_a_directory_that_drops_them_and_by_nothing_else() {
        let faults = Fault::all().into_iter().filter(|&fault| Failing::Call(fault, 0).gives_names_up());
        let dropping = [SyncFailure::DropPending, SyncFailure::KeepSome(1), SyncFailure::KeepSome(2)];
        assert_eq!(faults.collect::<Vec<_>>(), dropping.map(Fault::SyncDir));
    }
}
