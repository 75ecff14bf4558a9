//! Random scripts over the whole interface, with power or process lost at random calls of them, also inside a store.

use crate::Checked;
use crate::campaign::panic_text;
use crate::faults;
use crate::powerloss::generated::{Limits, generated, simpler};
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{NAMES, Script, Step};
use crate::powerloss::session::{Ground, Session, run};
use crate::powerloss::{Examination, Loss, Totals, option_variants};
use crate::random::Random;
use crate::settings::Settings;
use crate::shrink::{shrink, simplify};
use crate::state::{Durability, read_gets, read_state};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Compression, Error, Options, ReadMode};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The options under which the scripts run: those of the written ones, and others.
fn variants() -> Vec<(&'static str, Options)> {
    let mut variants = option_variants();
    let (_, base) = variants[0].clone();
    variants.extend([
        ("uncached", base.clone().read_mode(ReadMode::Pread).block_cache_bytes(0).filter_bits_per_key(0)),
        (
            "at-rest",
            base.clone().large_value_bytes(60).compression(Compression::Lz4).upper_compression(Compression::Lz4),
        ),
        ("small-buffer", base.clone().write_buffer_bytes(2 << 10)),
        ("background", base.write_buffer_bytes(2 << 10).background_threads(1)),
    ]);
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

    /// Runs it; the error holds the command that repeats the failure and the shortest script that was found.
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
                if number >= self.runs || self.settings.over() || stopped {
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
        let attempt = |steps: &[Step], totals: &Done| {
            let all = AssertUnwindSafe(|| self.check(steps, options, seed, *name == "background", totals));
            catch_unwind(all).unwrap_or_else(|payload| Err(format!("panic: {}", panic_text(payload))))
        };
        let Err(what) = attempt(&steps, done) else { return Ok(()) };
        let fails = |steps: &[Step]| attempt(steps, &Done::default()).is_err();
        let shortest = shrink(&steps, Duration::from_secs(20), fails);
        let shortest = simplify(&shortest, Duration::from_secs(20), simpler, fails);
        let last_words = attempt(&shortest, &Done::default()).err().unwrap_or("passes when repeated".to_string());
        let lines: Vec<String> = shortest.iter().map(line).collect();
        Err(format!(
            "run {number}, options {name}: {what}\nrepeat with: cargo run -p esker-check -- crashes --seed {} --first-run \
             {number} --runs 1 --points {} --only {:?}{}\nshortest script found ({} steps; {last_words}):\n{}",
            self.settings.seed,
            self.points,
            self.only,
            if self.limits.repair { "" } else { " --without repair" },
            shortest.len(),
            lines.join("\n")
        ))
    }

    /// The script undisturbed, then with deaths.
    fn check(&self, steps: &[Step], options: &Options, seed: u64, threaded: bool, done: &Done) -> Checked<()> {
        let env = MemEnv::new();
        let mut progress = Progress::default();
        run(steps, &Ground::new(options, env.clone()), &mut progress, &mut |_| {})
            .map_err(|error| format!("the script fails by itself: {error}"))?;
        done.operations.fetch_add(progress.operations(), Ordering::Relaxed);
        let calls = env.mutations();
        let mut random = Random::derived(seed, &[1]);
        let every = calls <= self.points as u64;
        let points = if every { calls + 1 } else { self.points as u64 };
        for number in 0..points {
            let point = if every { number } else { random.below(calls as usize) as u64 };
            self.check_point(steps, options, point, &mut random, done)
                .map_err(|what| format!("after {point} calls: {what}"))?;
            done.totals.points.fetch_add(1, Ordering::Relaxed);
        }
        done.totals.points_due.fetch_add(points, Ordering::Relaxed);
        // Faults are told apart by the numbers of their calls, which threads would shift; and what is lost without log is not kept account of there.
        let unlogged = steps.iter().any(|step| {
            let (Step::Batch(_, how) | Step::Transaction(_, how) | Step::Single(_, how)) = step else { return false };
            *how == Durability::Unlogged
        });
        if !unlogged && !threaded {
            faults::any_call_fails(steps, options, &mut random, &done.faults)?;
        }
        Ok(())
    }

    /// Such a disk may take the last synced records ("Where it tears a sector, the last synced record can go with it", durability.md), or leave a database
    /// that says that it is damaged. What the manifest says was synced is not among them.
    fn check_torn(&self, image: &MemEnv, options: &Options, progress: &Progress, totals: &Totals) -> Checked<()> {
        let told = |error: Error| match error {
            Error::Corruption { .. } => Ok(()),
            other => Err(format!("it neither opens nor says that it is damaged: {other}")),
        };
        let session = match Session::open(&Ground::new(options, image.clone()), &mut progress.clone()) {
            Ok(session) => session,
            Err(error) => return told(error),
        };
        totals.power_images.fetch_add(1, Ordering::Relaxed);
        let state = match read_state(session.db(), &NAMES)? {
            Ok(state) => state,
            Err(error) => return told(error),
        };
        if let Err(error) = read_gets(session.db(), &NAMES, &state, &progress.places())? {
            return told(error);
        }
        // A repair of that promises nothing exact.
        if !progress.damaged {
            progress.find(&state, progress.listed)?;
        }
        Ok(())
    }

    fn check_point(
        &self,
        steps: &[Step],
        options: &Options,
        point: u64,
        random: &mut Random,
        done: &Done,
    ) -> Checked<()> {
        let env = MemEnv::new();
        if random.percent(50) {
            env.map_files();
        }
        if random.percent(40) {
            env.crash_inside(point, random.next());
        } else {
            env.crash_after(point);
        }
        let mut progress = Progress::default();
        if let Err(error) = run(steps, &Ground::new(options, env.clone()), &mut progress, &mut |_| {})
            && !env.is_dead()
        {
            return Err(format!("the script fails by itself: {error}"));
        }
        done.operations.fetch_add(progress.operations(), Ordering::Relaxed);
        let mut losses = vec![Loss::Process, Loss::Machine(CrashMode::LoseAll, 0)];
        losses.extend((0..4).map(|_| Loss::random(random)));
        let unit = [512, 4096][random.below(2)];
        self.check_torn(&env.crash(&CrashMode::TornNeighbours(unit), random.next()), options, &progress, &done.totals)
            .map_err(|what| format!("units of {unit} bytes torn: {what}"))?;
        let check = Examination { options, totals: &done.totals, nested_percent: 30 };
        for loss in losses {
            check.examine(&loss.image(&env), loss, &progress, random, 2)?;
        }
        Ok(())
    }
}
