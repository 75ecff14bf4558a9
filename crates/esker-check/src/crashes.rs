//! Random scripts over the whole interface, with power or process lost at random calls of them,
//! also inside a store.

mod found;
mod harm;

use crate::Checked;
use crate::campaign::panic_text;
use crate::faults::{self, Course};
use crate::feed::{ALL_BYTES, KEPT_TIME, LEAST_KEPT_BYTES};
use crate::powerloss::generated::{Limits, generated, simpler};
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{Script, Step};
use crate::powerloss::session::{Ground, run};
use crate::powerloss::{Examination, Totals, option_variants};
use crate::random::Random;
use crate::settings::Settings;
use crate::shrink::{shrink, simplify};
use esker::env::mem::MemEnv;
use esker::{ChangeRetention, Compression, Options, ReadMode};
use harm::{Death, Harm, How, of_one_death};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Failing calls of each run, beside a full disk.
const FAILING_CALLS: usize = 2;

/// Recoveries that die in turn, in percent of the images.
const NESTED_PERCENT: usize = 30;

/// The options under which the scripts run: those of the written ones, and others.
fn variants() -> Vec<(&'static str, Options)> {
    let mut variants = option_variants();
    let (_, base) = variants[0].clone();
    variants.extend([
        ("uncached", base.clone().read_mode(ReadMode::Pread).block_cache_bytes(0).filter_bits_per_key(0)),
        ("at-rest", base.clone().min_blob_size(60).compression(Compression::Lz4).upper_compression(Compression::Lz4)),
        ("small-buffer", base.clone().write_buffer_bytes(2 << 10)),
        ("background", base.clone().write_buffer_bytes(2 << 10).background_threads(1)),
        ("changes", base.clone().keep_changes(ChangeRetention::Bytes(ALL_BYTES))),
        (
            "changes-given-up",
            base.clone()
                .wal_segment_bytes(2 << 10)
                .min_blob_size(60)
                .keep_changes(ChangeRetention::Bytes(LEAST_KEPT_BYTES)),
        ),
        ("changes-by-time", base.clone().wal_segment_bytes(2 << 10).keep_changes(ChangeRetention::Time(KEPT_TIME))),
        // The least that is taken.
        ("little-memory", base.clone().memory_budget_bytes(1 << 20)),
        // As by default, space is held back for opens on a full disk.
        ("held-back", base.clone().wal_segment_bytes(512 << 10)),
    ]);
    if Compression::Zstd.is_available() {
        let zstd = base.min_blob_size(60).write_buffer_bytes(2 << 10).compression(Compression::Zstd);
        variants.push(("zstd", zstd.upper_compression(Compression::Zstd)));
    }
    variants
}

/// A campaign of random scripts.
#[derive(Clone, Debug)]
pub struct Crashes {
    /// Seed and time.
    pub settings: Settings,
    /// The first run.
    pub first_run: u64,
    /// The most runs.
    pub runs: u64,
    /// Moments of each run at which something dies.
    pub points: usize,
    /// What the scripts may do.
    pub limits: Limits,
    /// Only under options whose name contains this.
    pub only: String,
    /// Runs at the same time.
    pub threads: usize,
}

/// A step in words, a long one cut.
fn line(step: &Step) -> String {
    let words = format!("  {step:?}");
    // All of it is ASCII, as bytes are shown as numbers.
    words.get(..600).map_or(words.clone(), |beginning| format!("{beginning}..."))
}

/// What was checked.
#[derive(Debug, Default)]
pub struct Done {
    /// Runs, each from a seed of its own.
    pub runs: AtomicU64,
    /// Operations that the model made.
    pub operations: AtomicU64,
    /// Moments and images.
    pub totals: Totals,
    /// Runs with a failing call.
    pub faults: faults::Totals,
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(f, "{} seeds, {} model operations, {}", count(&self.runs), count(&self.operations), self.totals)?;
        write!(f, "; a failing call in {} runs, {} hit", count(&self.faults.runs), count(&self.faults.hit))
    }
}

impl Crashes {
    /// The usual figures.
    pub fn new(settings: Settings) -> Crashes {
        Crashes {
            settings,
            first_run: 0,
            runs: u64::MAX,
            points: 6,
            limits: Limits::USUAL,
            only: String::new(),
            threads: 2,
        }
    }

    /// Runs it; the error holds the command that repeats the failure and the shortest script that
    /// was found.
    pub fn run(&self) -> Checked<Done> {
        let variants: Vec<_> = variants().into_iter().filter(|(name, _)| name.contains(&self.only)).collect();
        if variants.is_empty() {
            return Err(format!("no options are called {:?}", self.only));
        }
        let done = Done::default();
        let next = AtomicU64::new(0);
        let failure = Mutex::new(None);
        let worker = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let stopped =
                    failure.lock().is_ok_and(|failure: std::sync::MutexGuard<'_, Option<String>>| failure.is_some());
                if number >= self.runs || self.settings.enough(number) || stopped {
                    return;
                }
                let checked = self.one_run(self.first_run + number, &variants, &done);
                done.runs.fetch_add(1, Ordering::Relaxed);
                if let (Err(what), Ok(mut failure)) = (checked, failure.lock()) {
                    failure.get_or_insert(what);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(worker);
            }
        });
        match failure.into_inner() {
            Ok(None) => Ok(done),
            Ok(Some(what)) => Err(format!("{what}\nchecked before: {done}")),
            Err(_) => Err("a worker panicked".to_string()),
        }
    }

    fn one_run(&self, number: u64, variants: &[(&str, Options)], done: &Done) -> Checked<()> {
        let seed = Random::derived(self.settings.seed, &[number]).next();
        let (name, options) = &variants[(number % variants.len() as u64) as usize];
        let limits = Limits { unlogged: self.limits.unlogged && seed.is_multiple_of(2), ..self.limits };
        let Script { steps, .. } = generated(seed, limits);
        let threaded = *name == "background";
        let course = Course { steps: &steps, options, threaded };
        let Err(Failure { what, harm }) = self.check(course, seed, done) else { return Ok(()) };
        let (shortest, last_words) = shortest(course, harm, again(course, harm));
        let lines: Vec<String> = shortest.iter().map(line).collect();
        Err(format!(
            "run {number}, options {name}: {what}\nrepeat with: cargo run -p esker-check -- crashes --seed {} --first-run \
             {number} --runs 1 --points {} --only {:?}{}\nshortest script found ({} of {} steps; {last_words}):\n{}",
            self.settings.seed,
            self.points,
            self.only,
            if self.limits.repair { "" } else { " --without repair" },
            shortest.len(),
            steps.len(),
            lines.join("\n")
        ))
    }

    /// The script undisturbed, then with deaths, then with failures.
    fn check(&self, course: Course<'_>, seed: u64, done: &Done) -> Result<(), Failure> {
        let mut random = Random::derived(seed, &[1]);
        let undisturbed = Harm::new(How::Undisturbed, &mut random);
        let moments = guarded(undisturbed, || Moments::of(course, done))?;
        let calls = moments.calls;
        let every = calls <= self.points as u64;
        let points = if every { calls + 1 } else { self.points as u64 };
        for number in 0..points {
            let calls = if every { number } else { moments.one(&mut random) };
            self.check_point(course, calls, &mut random, done)?;
            done.totals.points.fetch_add(1, Ordering::Relaxed);
        }
        done.totals.points_due.fetch_add(points, Ordering::Relaxed);
        for failing in guarded(undisturbed, || course.some(FAILING_CALLS, &mut random))? {
            let harm = Harm::new(How::Failing(failing), &mut random);
            let hit = guarded(harm, || harm.check(course, NESTED_PERCENT, &done.totals))?;
            done.faults.runs.fetch_add(1, Ordering::Relaxed);
            done.faults.hit.fetch_add(u64::from(hit), Ordering::Relaxed);
        }
        Ok(())
    }

    /// One death, and everything that may be found after it.
    fn check_point(&self, course: Course<'_>, calls: u64, random: &mut Random, done: &Done) -> Result<(), Failure> {
        let mapped = random.percent(50);
        let inside = if random.percent(40) { Some(random.next()) } else { None };
        let death = Death { calls, inside, mapped };
        let harms = of_one_death(death, random);
        let (env, progress) = guarded(harms[0], || death.run(course))?;
        done.operations.fetch_add(progress.operations(), Ordering::Relaxed);
        let check = Examination { options: course.options, totals: &done.totals, nested_percent: NESTED_PERCENT };
        for harm in harms {
            guarded(harm, || {
                let checked = harm.examine((&env, &progress), course, &check);
                checked.map_err(|what| format!("after {calls} calls: {what}"))
            })?;
        }
        Ok(())
    }
}

/// The moments of a script at which something can die.
struct Moments {
    /// Its calls.
    calls: u64,
    /// The calls that had been made when a step had just promised that more is durable.
    promises: Vec<u64>,
}

impl Moments {
    /// Those of a run that nothing disturbs.
    fn of(course: Course<'_>, done: &Done) -> Checked<Moments> {
        let env = MemEnv::new();
        let mut progress = Progress::default();
        let (mut promised, mut promises) = (0, Vec::new());
        run(course.steps, &Ground::new(course.options, env.clone()), &mut progress, &mut |progress| {
            if progress.synced > promised {
                promises.push(env.mutations());
            }
            promised = progress.synced;
        })
        .map_err(|error| format!("the script fails by itself: {error}"))?;
        done.operations.fetch_add(progress.operations(), Ordering::Relaxed);
        Ok(Moments { calls: env.mutations(), promises })
    }

    /// One of them. A third are those behind a promise: one that is not kept shows until something
    /// else makes the same things durable, which often is the next step.
    fn one(&self, random: &mut Random) -> u64 {
        if !self.promises.is_empty() && random.percent(33) {
            return self.promises[random.below(self.promises.len())];
        }
        random.below(self.calls as usize) as u64
    }
}

/// A check that failed, and the harm that it failed with.
struct Failure {
    what: String,
    harm: Harm,
}

/// The check; a panic is a failure too.
fn guarded<T>(harm: Harm, check: impl FnOnce() -> Checked<T>) -> Result<T, Failure> {
    let checked = catch_unwind(AssertUnwindSafe(check));
    let checked = checked.unwrap_or_else(|payload| Err(format!("panic: {}", panic_text(payload))));
    checked.map_err(|what| Failure { what, harm })
}

/// The same check again, of shorter scripts. Recoveries that die in turn are many: they are left
/// out unless the failure needs them.
fn again(course: Course<'_>, harm: Harm) -> impl Fn(Course<'_>, Harm) -> Checked<()> {
    let check = |course: Course<'_>, harm: Harm, nested_percent| {
        harm.check(course, nested_percent, &Totals::default()).map(|_| ())
    };
    let nested_percent = if guarded(harm, || check(course, harm, 0)).is_err() { 0 } else { NESTED_PERCENT };
    move |course: Course<'_>, harm: Harm| check(course, harm, nested_percent)
}

/// The shortest script found that fails with the same harm, at whatever moment, and what the last
/// failure said.
fn shortest(course: Course<'_>, harm: Harm, check: impl Fn(Course<'_>, Harm) -> Checked<()>) -> (Vec<Step>, String) {
    // The harm to the last script that failed: most likely the next one fails at the like moment.
    let last = Cell::new(harm);
    let words = RefCell::new("passes when repeated".to_string());
    let fails = |steps: &[Step]| {
        let course = Course { steps, ..course };
        let once = |harm: Harm| guarded(harm, || check(course, harm)).err();
        let Some(Failure { what, harm }) = last.get().elsewhere(course).into_iter().find_map(once) else {
            return false;
        };
        last.set(harm);
        words.replace(what);
        true
    };
    let budget = Duration::from_secs(30);
    let shorter = shrink(course.steps, budget, fails);
    let simplest = simplify(&shorter, budget, simpler, fails);
    (simplest, words.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Ttl;
    use crate::powerloss::{Loss, put};
    use crate::state::Durability;
    use found::Found;

    /// The planted mistake: a batch is lost by a process that dies in one of its calls. Six random
    /// moments of a shorter script seldom meet one.
    fn misses_the_batch(course: Course<'_>, harm: Harm) -> Checked<()> {
        let How::Death(death, _) = harm.how else { return Ok(()) };
        let (_, progress) = death.run(course)?;
        let place = (0, b"planted".to_vec());
        let [before, after] = [&progress.states[progress.acknowledged], progress.newest()];
        if after.contains_key(&place) && !before.contains_key(&place) { Err("missed".to_string()) } else { Ok(()) }
    }

    #[test]
    fn a_failure_of_few_moments_shrinks_to_the_step_it_needs() {
        let (_, options) = &variants()[0];
        for seed in 0..4 {
            let limits = Limits { repair: false, ..Limits::USUAL };
            let mut steps = generated(seed, limits).steps;
            steps.insert(steps.len() / 2, Step::Batch(vec![put("planted", "1"), put("more", "2")], Durability::Sync));
            let course = Course { steps: &steps, options, threaded: false };
            let at = |calls| {
                let how = How::Death(Death { calls, inside: None, mapped: false }, Found::Lost(Loss::Process));
                Harm { how, seed: 0 }
            };
            let harm = (0..).map(at).find(|&harm| misses_the_batch(course, harm).is_err()).unwrap();
            let (shortest, words) = shortest(course, harm, misses_the_batch);
            assert_eq!(words, "missed");
            assert_eq!(shortest, [Step::Batch(vec![put("planted", "")], Durability::Sync)], "seed {seed}");
        }
    }

    /// Seen: a recovery that found a change of settings that only the process had outlived, and
    /// died, was to find it again after a power loss, in what readers of changes are told.
    #[test]
    fn a_change_that_was_not_acknowledged_may_go_after_it_was_found_once() {
        let all = variants();
        let (_, options) = all.iter().find(|(name, _)| *name == "changes-given-up").unwrap();
        let calls_of = |steps: &[Step]| {
            let env = MemEnv::new();
            run(steps, &Ground::new(options, env.clone()), &mut Progress::default(), &mut |_| {}).unwrap();
            env.mutations()
        };
        let steps = [Step::Ttl(1, Ttl::On(Some(3_600_000)))];
        let course = Course { steps: &steps, options, threaded: false };
        // Without the change a session closes earlier.
        for calls in calls_of(&[])..=calls_of(&steps) {
            for seed in 0..40 {
                let death = Death { calls, inside: None, mapped: false };
                let harm = Harm { how: How::Death(death, Found::Lost(Loss::Process)), seed };
                harm.check(course, 100, &Totals::default()).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
            }
        }
    }
}
