//! Many random runs over all option sets, until enough were made or the time is up.

use crate::Checked;
use crate::driver::Driver;
use crate::generator::{Generator, Operation};
use crate::option_sets::{OPTION_SETS, OptionSet};
use crate::random::Random;
use crate::settings::Settings;
use crate::shrink::{shrink, simplify};
use crate::simulated::{Place, ScratchDirectory};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
    /// Only option sets whose name contains this.
    pub only: String,
    /// Where databases on a real disk go.
    pub directory: PathBuf,
    /// Runs at the same time.
    pub threads: usize,
}

/// What was run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Runs.
    pub runs: u64,
    /// Operations.
    pub operations: u64,
    /// Option sets.
    pub option_sets: usize,
}

/// The message of a caught panic.
pub fn panic_text(payload: Box<dyn std::any::Any + Send>) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default()
}

fn run_operations(set: OptionSet, place: Place, operations: &[Operation]) -> Result<(), (usize, String)> {
    let mut reached = 0;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut driver = Driver::new(set, place)?;
        for operation in operations {
            driver.apply(operation)?;
            reached += 1;
        }
        Ok(())
    }));
    match outcome {
        Ok(Ok(())) => Ok(()),
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
            only: String::new(),
            directory: directory.to_path_buf(),
            threads: 2,
        }
    }

    /// Runs it; the error holds the seed, the command and the shortest failing list that was found.
    pub fn run(&self) -> Checked<Totals> {
        let sets: Vec<OptionSet> = OPTION_SETS.iter().copied().filter(|set| set.name.contains(&self.only)).collect();
        if sets.is_empty() {
            return Err(format!("no option set is called {:?}", self.only));
        }
        let next = AtomicU64::new(0);
        let operations = AtomicU64::new(0);
        let failure = std::sync::Mutex::new(None);
        let worker = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                // Every option set is run at least once, however little time there is.
                let due = number < self.runs && (number < sets.len() as u64 || !self.settings.over());
                if !due || failure.lock().is_ok_and(|failure| failure.is_some()) {
                    next.fetch_sub(1, Ordering::Relaxed);
                    return;
                }
                let run = self.first_run + number;
                match self.one_run(sets[(run % sets.len() as u64) as usize], run) {
                    Ok(count) => _ = operations.fetch_add(count, Ordering::Relaxed),
                    Err(what) => {
                        if let Ok(mut failure) = failure.lock() {
                            failure.get_or_insert(what);
                        }
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(worker);
            }
        });
        match failure.into_inner() {
            Ok(None) => {
                Ok(Totals { runs: next.into_inner(), operations: operations.into_inner(), option_sets: sets.len() })
            }
            Ok(Some(what)) => Err(what),
            Err(_) => Err("a worker panicked".to_string()),
        }
    }

    /// One run; the number of operations made.
    fn one_run(&self, set: OptionSet, run: u64) -> Checked<u64> {
        let seed = Random::derived(self.settings.seed, &[run]).next();
        let count = self.operations * set.length_percent / 100;
        let operations = Generator::new(seed).operations(count);
        let attempt = |operations: &[Operation]| -> Result<(), (usize, String)> {
            if !set.on_disk {
                return run_operations(set, Place::memory(), operations);
            }
            let name = format!("model-{}-{run}", set.name);
            let scratch = ScratchDirectory::new(&self.directory, &name).map_err(|error| (0, error.to_string()))?;
            run_operations(set, Place::Disk(scratch.path().join("db")), operations)
        };
        let Err((reached, what)) = attempt(&operations) else { return Ok(operations.len() as u64) };
        let failing = &operations[..(reached + 1).min(operations.len())];
        let shortest = shrink(failing, Duration::from_secs(20), |list| attempt(list).is_err());
        let fails = |list: &[Operation]| attempt(list).is_err();
        let shortest = simplify(&shortest, Duration::from_secs(10), Operation::simpler, fails);
        let last_words = attempt(&shortest).err().map_or("passes when repeated".to_string(), |(_, what)| what);
        Err(format!(
            "option set {}, operation {reached} of {}: {what}\nrepeat with: cargo run -p esker-check -- model --seed {} \
             --only {} --first-run {run} --runs 1 --operations {}\nshortest list found ({} operations; {last_words}):\n{}",
            set.name,
            operations.len(),
            self.settings.seed,
            if self.only.is_empty() { "\"\"" } else { &self.only },
            self.operations,
            shortest.len(),
            trace(&shortest),
        ))
    }
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
