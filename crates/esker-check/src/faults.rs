//! One failing call, or all calls from some point on, at every index of small scripts.
//!
//! The program under test goes on after an error, as programs do. A commit that returned an error
//! may have happened or not, so a set of possible states is kept; every read must yield an error or
//! belong to one of them. Afterwards the database is opened without faults: what was acknowledged
//! must be there.

mod exactly;
mod failing;
mod fault;
mod held;
mod possible;
mod program;

use crate::Checked;
use crate::campaign::panic_text;
use crate::powerloss::script::{Script, Step};
use crate::powerloss::{add, option_variants, put, scripts};
use crate::random::Random;
use crate::settings::Settings;
use crate::state::Durability;
use esker::Options;
use exactly::{run_exactly, undisturbed};
pub(crate) use failing::{Course, Failing, recovery_fails};
use fault::Fault;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What was checked.
#[derive(Debug, Default)]
pub struct Totals {
    /// Runs with a fault.
    pub runs: AtomicU64,
    /// Runs that were due.
    pub runs_due: AtomicU64,
    /// Runs in which the fault happened.
    pub hit: AtomicU64,
    /// Runs in which a write was refused because the handle had become read-only.
    pub became_read_only: AtomicU64,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (runs, due) = (count(&self.runs), count(&self.runs_due));
        let (hit, refused) = (count(&self.hit), count(&self.became_read_only));
        write!(f, "{runs} of {due} runs, {hit} of them hit by their fault, {refused} then refused writes")
    }
}

/// A campaign of failing calls.
#[derive(Clone, Debug)]
pub struct Faults {
    /// Seed and time.
    pub settings: Settings,
    /// Only scripts whose name contains this.
    pub only: String,
    /// Runs at the same time.
    pub threads: usize,
}

struct Job {
    script: usize,
    variant: usize,
    fault: Fault,
    nth: u64,
}

impl Faults {
    /// Every call of every script, in every way.
    pub fn every_call(&self) -> Checked<Totals> {
        let all = scripts().into_iter().chain([held_readers()]);
        let scripts: Vec<Script> = all.filter(|script| script.name.contains(&self.only)).collect();
        let variants = option_variants();
        let mut jobs = Vec::new();
        for (script, Script { steps, .. }) in scripts.iter().enumerate() {
            for (variant, (_, options)) in variants.iter().enumerate() {
                let faulty = undisturbed(steps, options)?;
                for fault in Fault::all() {
                    let calls = faulty.calls(fault.class());
                    jobs.extend((0..calls).map(|nth| Job { script, variant, fault, nth }));
                }
            }
        }
        Random::derived(self.settings.seed, &[1]).shuffle(&mut jobs);
        self.work(&scripts, &variants, &jobs)
    }

    fn work(&self, scripts: &[Script], variants: &[(&str, Options)], jobs: &[Job]) -> Checked<Totals> {
        let totals = Totals::default();
        totals.runs_due.store(jobs.len() as u64, Ordering::Relaxed);
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let worker = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = jobs.get(number) else { return };
                if self.settings.enough(number as u64) || failure.lock().is_ok_and(|failure| failure.is_some()) {
                    return;
                }
                let (script, variant) = (&scripts[job.script], &variants[job.variant]);
                let run = AssertUnwindSafe(|| run_job(job, &script.steps, &variant.1, &totals));
                let checked =
                    catch_unwind(run).unwrap_or_else(|payload| Err(format!("panic: {}", panic_text(payload))));
                totals.runs.fetch_add(1, Ordering::Relaxed);
                if let (Err(what), Ok(mut failure)) = (checked, failure.lock()) {
                    failure.get_or_insert(format!(
                        "script {}, options {}, {:?} at call {} of its kind: {what}\nsteps: {:?}\nrepeat with: cargo run \
                         -p esker-check -- faults --seed {} --only {}",
                        script.name, variant.0, job.fault, job.nth, script.steps, self.settings.seed, script.name
                    ));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(worker);
            }
        });
        match failure.into_inner() {
            Ok(None) => Ok(totals),
            Ok(Some(what)) => Err(format!("{what}\nchecked before: {totals}")),
            Err(_) => Err("a worker panicked".to_string()),
        }
    }
}

/// Readers that are held over writes, a flush and a merge, and readers beside the writer.
fn held_readers() -> Script {
    let batch = |number: usize| {
        let writes = (0..6).map(|key| put(&format!("key-{key}"), &format!("value {number} of some length")));
        Step::Batch(writes.chain([add("sum", 1)]).collect(), Durability::Sync)
    };
    let steps = vec![
        batch(0),
        Step::Flush,
        batch(1),
        Step::Hold(0, 0),
        Step::Look(0, 2),
        batch(2),
        Step::Flush,
        Step::ReadBeside,
        Step::Look(0, 2),
        Step::Hold(1, 1),
        Step::Single(put("key-1", "alone"), Durability::Async),
        Step::Compact,
        Step::Look(0, 20),
        Step::Look(1, 20),
        Step::ReadBeside,
        Step::DropAndReopen,
        Step::Hold(0, 0),
        Step::Look(0, 20),
    ];
    Script { name: "held-readers".to_string(), steps }
}

fn run_job(job: &Job, steps: &[Step], options: &Options, totals: &Totals) -> Checked<()> {
    let program = run_exactly(steps, options, job.fault, job.nth)?;
    totals.hit.fetch_add(u64::from(program.hits() > 0), Ordering::Relaxed);
    totals.became_read_only.fetch_add(u64::from(program.refused_ever()), Ordering::Relaxed);
    Ok(())
}
