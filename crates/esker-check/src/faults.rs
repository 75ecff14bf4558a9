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
use crate::powerloss::{
    self, Examination, Sweep, add, more_scripts, number_of, put, runs_under, scripts, written_variants,
};
use crate::random::Random;
use crate::settings::Settings;
use crate::state::Durability;
use esker::Options;
use esker::env::fault::Class;
use exactly::{disk, run_exactly};
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

/// Each commit that fails doubles the states in which a program that goes on may find the database.
const MOST_STEPS: usize = 20;

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

/// A fault, and where it is to happen.
struct Case<'a> {
    script: &'a Script,
    variant: &'a (&'static str, Options),
    /// Whether tables are read through a mapping.
    mapped: bool,
    fault: Fault,
}

struct Job {
    /// The index of the case.
    case: usize,
    nth: u64,
}

impl Faults {
    /// Every call of every script, in every way. All of it takes long, mostly for the checks of
    /// mappings; a run that ends early has tried some calls of every kind.
    pub fn every_call(&self) -> Checked<Totals> {
        let all = scripts().into_iter().chain(more_scripts()).chain([held_readers()]);
        let scripts: Vec<Script> = all.filter(|script| script.name.contains(&self.only)).collect();
        let variants = written_variants();
        let (cases, jobs) = self.plan(&scripts, &variants)?;
        self.work(&cases, &jobs)
    }

    fn plan<'a>(
        &self,
        scripts: &'a [Script],
        variants: &'a [(&'static str, Options)],
    ) -> Checked<(Vec<Case<'a>>, Vec<Job>)> {
        let (mut cases, mut sweep) = (Vec::new(), Sweep::new());
        for script in scripts {
            for variant in variants.iter().filter(|(variant, _)| runs_under(&script.name, variant)) {
                let mut random = Random::derived(self.settings.seed, &[number_of(&script.name), number_of(variant.0)]);
                for (found, calls) in cases_of(script, variant)? {
                    let case = cases.len();
                    cases.push(found);
                    sweep.add(calls, &mut random, |nth| Job { case, nth });
                }
            }
        }
        Ok((cases, sweep.shuffled(&mut Random::derived(self.settings.seed, &[1]))))
    }

    fn work(&self, cases: &[Case<'_>], jobs: &[Job]) -> Checked<Totals> {
        let totals = Totals::default();
        totals.runs_due.store(jobs.len() as u64, Ordering::Relaxed);
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let worker = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(&Job { case, nth }) = jobs.get(number) else { return };
                if self.settings.enough(number as u64) || failure.lock().is_ok_and(|failure| failure.is_some()) {
                    return;
                }
                let case = &cases[case];
                let run = AssertUnwindSafe(|| case.run(nth, self.settings.seed, &totals));
                let checked =
                    catch_unwind(run).unwrap_or_else(|payload| Err(format!("panic: {}", panic_text(payload))));
                totals.runs.fetch_add(1, Ordering::Relaxed);
                if let (Err(what), Ok(mut failure)) = (checked, failure.lock()) {
                    let Case { script, variant, mapped, fault } = case;
                    failure.get_or_insert(format!(
                        "script {}, options {}, tables mapped: {mapped}, {fault:?} at call {nth} of its kind: \
                         {what}\nsteps: {:?}\nrepeat with: cargo run -p esker-check -- faults --seed {} --only {}",
                        script.name, variant.0, script.steps, self.settings.seed, script.name
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

/// Every fault that can hit a run of the script, and how many calls it may do so at.
fn cases_of<'a>(script: &'a Script, variant: &'a (&'static str, Options)) -> Checked<Vec<(Case<'a>, u64)>> {
    let mut cases = Vec::new();
    for mapped in [true, false] {
        let counted = course_of(script, &variant.1).counted(disk(mapped));
        let counted = counted.map_err(|what| format!("script {} under {}: {what}", script.name, variant.0))?;
        for fault in Fault::all() {
            // Only what reads can tell whether a table is mapped.
            if mapped || fault.class() == Class::Read {
                cases.push((Case { script, variant, mapped, fault }, counted.calls(fault.class())));
            }
        }
    }
    Ok(cases)
}

fn course_of<'a>(script: &'a Script, options: &'a Options) -> Course<'a> {
    Course { steps: &script.steps, options, threaded: false }
}

impl Case<'_> {
    fn run(&self, nth: u64, seed: u64, totals: &Totals) -> Checked<()> {
        let (course, memory) = (course_of(self.script, &self.variant.1), disk(self.mapped));
        if course.is_exact() && course.steps.len() <= MOST_STEPS {
            let program = run_exactly(course.steps, course.options, memory, (self.fault, nth))?;
            totals.hit.fetch_add(u64::from(program.hits() > 0), Ordering::Relaxed);
            totals.became_read_only.fetch_add(u64::from(program.refused_ever()), Ordering::Relaxed);
            return Ok(());
        }
        // Of writes without log no program that goes on keeps an account, nor of so many that may
        // have failed: this one stops.
        let images = powerloss::Totals::default();
        let examination = Examination { options: course.options, totals: &images, nested_percent: 0 };
        let mut random = Random::derived(seed, &[number_of(&self.script.name), number_of(self.variant.0), nth]);
        let failing = Failing::Call(self.fault, nth);
        let hit = course.stop_at_the_error(memory, failing, &examination, &mut random)?;
        totals.hit.fetch_add(u64::from(hit), Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::powerloss::option_variants;
    use std::collections::BTreeSet;
    use std::time::Duration;

    /// A load of one table, and a put.
    const SCRIPT: &str = "ingest-first";

    #[test]
    fn every_call_of_every_fault_is_due_once_also_those_of_the_scripts_added_last() {
        let campaign = Faults { settings: Settings::new(1, Duration::ZERO), only: SCRIPT.to_string(), threads: 1 };
        let scripts: Vec<Script> = more_scripts().into_iter().filter(|script| script.name == SCRIPT).collect();
        let variants = option_variants();
        let (cases, jobs) = campaign.plan(&scripts, &variants).unwrap();
        let due: BTreeSet<(usize, u64)> = jobs.iter().map(|job| (job.case, job.nth)).collect();
        assert_eq!(due.len(), jobs.len());
        let cases_under = |variant| cases_of(&scripts[0], variant).unwrap();
        let whole: u64 = variants.iter().flat_map(cases_under).map(|(_, calls)| calls).sum();
        assert_eq!(jobs.len() as u64, whole);
        assert!(cases.iter().any(|case| case.mapped) && cases.iter().any(|case| !case.mapped));
        assert_eq!(campaign.every_call().unwrap().runs_due.into_inner(), whole);
    }

    #[test]
    fn reads_of_mapped_tables_can_fail() {
        let (scripts, variants) = (more_scripts(), option_variants());
        let script = scripts.iter().find(|script| script.name == SCRIPT).unwrap();
        for (name, options) in &variants {
            let [mapped, plain] = [true, false]
                .map(|mapped| course_of(script, options).counted(disk(mapped)).unwrap().calls(Class::Read));
            assert!(mapped > plain, "{name}: {mapped} calls that read with mappings, {plain} without");
        }
    }
}
