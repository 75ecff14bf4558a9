//! Many random runs over all option sets, until enough were made or the time is up.

use crate::Checked;
use crate::cast::{Features, Role};
use crate::counts::{Feature, FeatureCounts, is_about};
use crate::driver::{Driver, FeedCounts};
use crate::generator::{Generator, Operation};
use crate::operators::silence_panics_on_purpose;
use crate::option_sets::{OPTION_SETS, OptionSet};
use crate::random::Random;
use crate::settings::Settings;
use crate::shrink::{shrink, simplify};
use crate::simulated::{Place, ScratchDirectory};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What to run.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Seed and time.
    pub settings: Settings,
    /// No more runs than this.
    pub runs: u64,
    /// The number of the first run: to replay one.
    pub first_run: u64,
    /// Operations per run.
    pub operations: usize,
    /// No new run after this many operations in all.
    pub operations_total: u64,
    /// What the runs may use.
    pub features: Features,
    /// What half of the operations are to be about.
    pub mostly: Option<Feature>,
    /// Only option sets whose name contains this.
    pub only: String,
    /// Where databases on a real disk go.
    pub directory: PathBuf,
    /// Runs at the same time.
    pub workers: usize,
}

/// What was run.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Runs.
    pub runs: u64,
    /// Operations.
    pub operations: u64,
    /// The part of every option set.
    pub option_sets: Vec<SetTotals>,
}

/// What was run with one option set.
#[derive(Clone, Copy, Debug, Default)]
pub struct SetTotals {
    /// Its name.
    pub name: &'static str,
    /// Runs.
    pub runs: u64,
    /// Operations.
    pub operations: u64,
    /// What was read of changes.
    pub feed: FeedCounts,
    /// Operations by feature.
    pub features: FeatureCounts,
    /// Seconds of one worker.
    pub seconds: f64,
}

/// What one run came to.
#[derive(Clone, Copy, Debug)]
struct Made {
    operations: u64,
    feed: FeedCounts,
    features: FeatureCounts,
}

impl SetTotals {
    /// Adds a run that has ended just now.
    fn add(&mut self, made: Made, started: Instant) {
        self.runs += 1;
        self.operations += made.operations;
        self.feed += made.feed;
        self.features += made.features;
        self.seconds += started.elapsed().as_secs_f64();
    }
}

impl Totals {
    /// What was read of changes, with all option sets.
    pub fn feed(&self) -> FeedCounts {
        let mut sum = FeedCounts::default();
        self.option_sets.iter().for_each(|set| sum += set.feed);
        sum
    }

    /// Operations by feature, with all option sets.
    pub fn features(&self) -> FeatureCounts {
        let mut sum = FeatureCounts::default();
        self.option_sets.iter().for_each(|set| sum += set.features);
        sum
    }
}

impl std::fmt::Display for SetTotals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SetTotals { name, runs, operations, seconds, .. } = self;
        let rate = *operations as f64 / seconds.max(1e-9);
        write!(f, "{name}: {runs} runs, {operations} operations, {rate:.0} per second of a worker")
    }
}

/// A run that takes longer, shrinking included, hangs: the longest that does not takes some
/// seconds, and shrinking half a minute, on a machine that has nothing else to do.
const LONGEST_RUN: Duration = Duration::from_secs(1800);

/// The message of a caught panic.
pub fn panic_text(payload: Box<dyn std::any::Any + Send>) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default()
}

/// Runs the operations on engine and model, and yields what was read of changes. The error says how
/// many were right, and what the next one showed.
pub fn run_operations(
    set: OptionSet,
    place: Place,
    cast: &[Role],
    operations: &[Operation],
) -> Result<FeedCounts, (usize, String)> {
    let mut reached = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut driver = Driver::new(set, place, cast)?;
        for operation in operations {
            driver.apply(operation)?;
            reached += 1;
        }
        Ok(driver.feed_counts())
    }));
    match outcome {
        Ok(Ok(counts)) => Ok(counts),
        Ok(Err(what)) => Err((reached, what)),
        Err(payload) => Err((reached, format!("panic: {}", panic_text(payload)))),
    }
}

impl Campaign {
    /// A campaign with the usual figures.
    pub fn new(settings: Settings, directory: &Path) -> Campaign {
        Campaign {
            settings,
            runs: u64::MAX,
            first_run: 0,
            operations: 2000,
            operations_total: u64::MAX,
            features: Features::ALL,
            mostly: None,
            only: String::new(),
            directory: directory.to_path_buf(),
            workers: 2,
        }
    }

    /// Runs it; the error holds the seed, the command and the shortest failing list that was found.
    pub fn run(&self) -> Checked<Totals> {
        let sets: Vec<OptionSet> = OPTION_SETS.iter().copied().filter(|set| set.name.contains(&self.only)).collect();
        if sets.is_empty() {
            return Err(format!("no option set is called {:?}", self.only));
        }
        silence_panics_on_purpose();
        let schedule = schedule(&sets);
        let next = AtomicU64::new(0);
        let operations = AtomicU64::new(0);
        let totals = Mutex::new(sets.iter().map(|set| SetTotals { name: set.name, ..SetTotals::default() }).collect());
        let failure = Mutex::new(None);
        let workers = self.workers.max(1);
        let begun: Vec<Mutex<Option<(u64, Instant)>>> = (0..workers).map(|_| Mutex::new(None)).collect();
        let working = AtomicUsize::new(workers);
        let worker = |own: &Mutex<Option<(u64, Instant)>>| {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let enough = self.settings.over() || operations.load(Ordering::Relaxed) >= self.operations_total;
                // Every option set is run at least once, however little time there is.
                let due = number < self.runs && (number < sets.len() as u64 || !enough);
                if !due || failure.lock().is_ok_and(|failure| failure.is_some()) {
                    *own.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    working.fetch_sub(1, Ordering::Relaxed);
                    return;
                }
                let run = self.first_run + number;
                let index = schedule[(run % schedule.len() as u64) as usize];
                let started = Instant::now();
                *own.lock().unwrap_or_else(PoisonError::into_inner) = Some((run, started));
                match self.one_run(sets[index], run) {
                    Ok(made) => {
                        operations.fetch_add(made.operations, Ordering::Relaxed);
                        let mut totals: MutexGuard<'_, Vec<SetTotals>> =
                            totals.lock().unwrap_or_else(PoisonError::into_inner);
                        totals[index].add(made, started);
                    }
                    Err(what) => {
                        if let Ok(mut failure) = failure.lock() {
                            failure.get_or_insert(what);
                        }
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for own in &begun {
                scope.spawn(|| worker(own));
            }
            while working.load(Ordering::Relaxed) > 0 {
                std::thread::sleep(Duration::from_millis(20));
                for (run, started) in begun.iter().filter_map(|own| *own.lock().unwrap_or_else(PoisonError::into_inner))
                {
                    if started.elapsed() > LONGEST_RUN {
                        let name = sets[schedule[(run % schedule.len() as u64) as usize]].name;
                        // A thread that hangs cannot be stopped.
                        eprintln!("option set {name}, run {run}: it does not end\nrepeat with: {}", self.command(run));
                        std::process::exit(1);
                    }
                }
            }
        });
        match failure.into_inner() {
            Ok(None) => {}
            Ok(Some(what)) => return Err(what),
            Err(_) => return Err("a worker panicked".to_string()),
        }
        let option_sets: Vec<SetTotals> = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
        let runs = option_sets.iter().map(|set| set.runs).sum();
        Ok(Totals { runs, operations: operations.into_inner(), option_sets })
    }

    /// One run.
    fn one_run(&self, set: OptionSet, run: u64) -> Checked<Made> {
        let seed = Random::derived(self.settings.seed, &[run]).next();
        let count = self.operations * set.length_percent / 100;
        let mut generator = Generator::new(seed, self.features);
        let operations = match self.mostly {
            None => generator.operations(count),
            Some(feature) => {
                let cast = generator.cast().to_vec();
                generator.operations_mostly(count, &|operation| is_about(operation, feature, &cast))
            }
        };
        let cast = generator.cast();
        let attempt = |operations: &[Operation]| -> Result<FeedCounts, (usize, String)> {
            if !set.on_disk {
                return run_operations(set, Place::memory(), cast, operations);
            }
            let name = format!("model-{}-{run}", set.name);
            let scratch = ScratchDirectory::new(&self.directory, &name).map_err(|error| (0, error.to_string()))?;
            run_operations(set, Place::Disk(scratch.path().join("db")), cast, operations)
        };
        let (reached, what) = match attempt(&operations) {
            Ok(feed) => {
                let features = FeatureCounts::of(&operations, cast);
                return Ok(Made { operations: operations.len() as u64, feed, features });
            }
            Err(failed) => failed,
        };
        let failing = &operations[..(reached + 1).min(operations.len())];
        let shortest = shrink(failing, Duration::from_secs(20), |list| attempt(list).is_err());
        let fails = |list: &[Operation]| attempt(list).is_err();
        let shortest = simplify(&shortest, Duration::from_secs(10), Operation::simpler, fails);
        let last_words = attempt(&shortest).err().map_or("passes when repeated".to_string(), |(_, what)| what);
        Err(format!(
            "option set {}, operation {reached} of {}: {what}\nrepeat with: {}\n{}\n\
             shortest list found ({} operations; {last_words}):\n{}",
            set.name,
            operations.len(),
            self.command(run),
            shown_cast(cast),
            shortest.len(),
            trace(&shortest),
        ))
    }

    /// The command that repeats one run.
    pub fn command(&self, run: u64) -> String {
        format!(
            "cargo run -p esker-check -- model --seed {} --only {} --first-run {run} --runs 1 --operations {}{}{}",
            self.settings.seed,
            if self.only.is_empty() { "\"\"" } else { &self.only },
            self.operations,
            self.features.arguments(),
            self.mostly.map_or(String::new(), |feature| format!(" --mostly {}", name_of(feature))),
        )
    }
}

/// What the feature is called on the command line.
fn name_of(feature: Feature) -> String {
    clap::ValueEnum::to_possible_value(&feature).map_or(String::new(), |value| value.get_name().to_string())
}

/// Indexes of option sets in the order of the runs: each once, then again and again those that are
/// cheap, every fourth time those whose operations are dear, and no more in these rounds those of a
/// device that syncs. So no few of them take most of the time.
fn schedule(sets: &[OptionSet]) -> Vec<usize> {
    const ROUNDS: usize = 8;
    let rounds_between = |set: &OptionSet| match set {
        OptionSet { on_disk: true, .. } => ROUNDS,
        OptionSet { length_percent: ..100, .. } => 4,
        _ => 1,
    };
    let due = |round| (0..sets.len()).filter(move |&index| round % rounds_between(&sets[index]) == 0);
    (0..ROUNDS).flat_map(due).collect()
}

/// The keyspaces, numbered as the operations name them.
fn shown_cast(cast: &[Role]) -> String {
    let role = |(number, role): (usize, &Role)| {
        format!("{number}={} ({:?}, {:?}, style {})", role.name, role.operator, role.ttl, role.style)
    };
    format!("keyspaces: {}", cast.iter().enumerate().map(role).collect::<Vec<_>>().join(", "))
}

/// The operations, one a line, long ones cut.
fn trace(operations: &[Operation]) -> String {
    const SHOWN: usize = 300;
    let mut text = String::new();
    for (number, operation) in operations.iter().take(200).enumerate() {
        let mut line = format!("{operation:?}");
        if line.len() > SHOWN {
            line.truncate(SHOWN);
            line.push_str("...");
        }
        text.push_str(&format!("  {number}: {line}\n"));
    }
    text
}
