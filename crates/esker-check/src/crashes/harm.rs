//! The ways in which a run is harmed, each of which can be tried again at other moments of a
//! shorter script.

use super::found::Found;
use crate::Checked;
use crate::faults::{Course, Failing};
use crate::powerloss::progress::Progress;
use crate::powerloss::session::{Ground, run};
use crate::powerloss::{Examination, Loss, Totals};
use crate::random::Random;
use crate::shrink::nearby;
use esker::env::mem::{CrashMode, MemEnv};

/// The moment at which something dies.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    /// After so many calls.
    pub calls: u64,
    /// In the middle of the last of them, as this number says.
    pub inside: Option<u64>,
    /// With files that are mapped.
    pub mapped: bool,
}

impl Death {
    /// Runs the steps until it; what is left, and what was promised.
    pub fn run(self, course: Course<'_>) -> Checked<(MemEnv, Progress)> {
        let env = MemEnv::new();
        if self.mapped {
            env.map_files();
        }
        match self.inside {
            Some(seed) => env.crash_inside(self.calls, seed),
            None => env.crash_after(self.calls),
        }
        let mut progress = Progress::default();
        let outcome = run(course.steps, &Ground::new(course.options, env.clone()), &mut progress, &mut |_| {});
        match outcome {
            Err(error) if !env.is_dead() => Err(format!("the script fails by itself: {error}")),
            _ => Ok((env, progress)),
        }
    }
}

/// What happens in a run.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// Nothing; the script does it by itself.
    Undisturbed,
    /// Something dies, and what is found is looked at in one way.
    Death(Death, Found),
    /// A call fails, or the disk is full.
    Failing(Failing),
}

/// One way, with a seed for everything else in it.
#[derive(Clone, Copy, Debug)]
pub struct Harm {
    pub how: How,
    pub seed: u64,
}

/// How often a shorter script is tried at most.
const MOMENTS: u64 = 200;

impl Harm {
    pub fn new(how: How, random: &mut Random) -> Harm {
        Harm { how, seed: random.next() }
    }

    /// Runs the steps with it; whether something failed.
    pub fn check(self, course: Course<'_>, nested_percent: usize, totals: &Totals) -> Checked<bool> {
        let examination = Examination { options: course.options, totals, nested_percent };
        match self.how {
            How::Undisturbed => {
                run(course.steps, &Ground::new(course.options, MemEnv::new()), &mut Progress::default(), &mut |_| {})
                    .map(|()| false)
                    .map_err(|error| format!("the script fails by itself: {error}"))
            }
            How::Death(death, _) => {
                let (env, progress) = death.run(course)?;
                self.examine((&env, &progress), course, &examination)
                    .map(|()| false)
                    .map_err(|what| format!("after {} calls: {what}", death.calls))
            }
            How::Failing(failing) => course.check(failing, &examination, &mut Random::new(self.seed)),
        }
    }

    /// What a death has left, looked at in that way; of other harms there is nothing to look at.
    pub fn examine(self, left: (&MemEnv, &Progress), course: Course<'_>, examination: &Examination<'_>) -> Checked<()> {
        let How::Death(_, found) = self.how else { return Ok(()) };
        found.examine(left, course, examination, &mut Random::new(self.seed))
    }

    /// The same at every moment of these steps, or at many of them; those that are most like it
    /// first.
    pub fn elsewhere(self, course: Course<'_>) -> Vec<Harm> {
        let how: Vec<How> = match self.how {
            How::Undisturbed => vec![self.how],
            How::Death(death, found) => {
                let env = MemEnv::new();
                // One that fails by itself is another failure.
                if run(course.steps, &Ground::new(course.options, env.clone()), &mut Progress::default(), &mut |_| {})
                    .is_err()
                {
                    return Vec::new();
                }
                let moments = nearby(death.calls, env.mutations() + 1, MOMENTS);
                moments.into_iter().map(|calls| How::Death(Death { calls, ..death }, found)).collect()
            }
            How::Failing(failing) => {
                let others = course.elsewhere(failing, MOMENTS).unwrap_or_default();
                others.into_iter().map(How::Failing).collect()
            }
        };
        how.into_iter().flat_map(|how| self.like(how)).collect()
    }

    /// What a random loss takes depends on all that is pending: another seed may do to a shorter
    /// script what this one did to the whole.
    fn like(self, how: How) -> Vec<Harm> {
        let seeds: Vec<u64> = match how {
            How::Death(_, found) if found.is_random() => (0..3).collect(),
            _ => vec![0],
        };
        let varied = |more: u64| {
            let how = match how {
                How::Death(death, found) => How::Death(death, found.varied(more)),
                other => other,
            };
            Harm { how, seed: self.seed.wrapping_add(more) }
        };
        seeds.into_iter().map(varied).collect()
    }
}

/// The harms of a point at which something dies.
pub fn of_one_death(death: Death, random: &mut Random) -> Vec<Harm> {
    let mut all = Vec::new();
    let unit = [512, 4096][random.below(2)];
    all.push(Found::Torn(unit, random.next()));
    let mut losses = vec![Loss::Process, Loss::Machine(CrashMode::LoseAll, 0)];
    losses.extend((0..4).map(|_| Loss::random(random)));
    all.extend(losses.iter().map(|&loss| Found::Lost(loss)));
    // One of each of the rarer ones, of any of the losses.
    let mut some = || losses[random.below(losses.len())];
    all.extend([Found::ReadOnly(some()), Found::RecoveryFails(some())]);
    let hours = some();
    let milliseconds = [1, 400, 40_000_000][random.below(3)] * [1, -1][random.below(2)];
    all.push(Found::OtherClock(hours, milliseconds));
    all.into_iter().map(|found| Harm::new(How::Death(death, found), random)).collect()
}
