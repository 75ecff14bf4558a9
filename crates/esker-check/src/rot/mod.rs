//! Bits and sectors of stored files that change by themselves, writes that disks lose or put
//! elsewhere, files cut short or put back as they were: while a database is closed or open, every
//! answer is an error or a state that the contract allows, never a wrong value, and never a hole.
//!
//! A database is what a random script leaves: closed, dropped, killed at some call, or without
//! power there; a full sweep begins with fixed ones. Damage to its log may end what is replayed
//! behind the last place that the manifest or an intact record calls synced, and so may damage to a
//! blob file of the same age; damage to the last edit of the manifest in force may take what only
//! that edit made durable; any other leaves everything or an error. Scans that end with an error
//! must have been right as far as they came. Loads, compactions and copies of a damaged database
//! carry no wrong value on, and a repair shows none that its key never had.

mod fixed;
mod harm;
mod manifest;
mod specimen;
mod trial;
mod witness;

use crate::Checked;
use crate::campaign::panic_text;
use crate::random::Random;
use crate::settings::Settings;
use harm::{Harm, How};
use specimen::Specimen;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use trial::{Outcome, harm_closed, harm_open};

/// What was done, and what came of it.
#[derive(Debug, Default)]
pub struct Totals {
    /// Databases.
    pub databases: AtomicU64,
    /// Bits flipped while closed.
    pub closed: AtomicU64,
    /// Bits flipped while open.
    pub open: AtomicU64,
    /// Sectors that were lost, hold what they held before, or what another place should, closed or
    /// open.
    pub sectors: AtomicU64,
    /// Files that were cut, or put back as they were before, while closed.
    pub files: AtomicU64,
    /// Harms that were answered with an error somewhere.
    pub errors: AtomicU64,
    /// Harms after which every answer was that of an allowed state.
    pub allowed: AtomicU64,
    /// Harms with a wrong answer.
    pub wrong: AtomicU64,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let flips = count(&self.closed) + count(&self.open);
        let (open, sectors, databases) = (count(&self.open), count(&self.sectors), count(&self.databases));
        let files = count(&self.files);
        let (errors, allowed, wrong) = (count(&self.errors), count(&self.allowed), count(&self.wrong));
        write!(
            f,
            "{flips} flips ({open} while open), {sectors} wrong sectors and {files} wrong files of {databases} databases: {errors} errors, {allowed} allowed states, {wrong} \
             wrong answers"
        )
    }
}

/// A campaign of flipped bits.
#[derive(Clone, Debug)]
pub struct Rot {
    /// Seed and time.
    pub settings: Settings,
    /// The first database.
    pub first_run: u64,
    /// The most databases.
    pub runs: u64,
    /// Harms to each database, most of them flips, half of them while it is open.
    pub flips: u64,
    /// Every bit, sector and length of every file instead, while closed and while open; the first
    /// databases are then fixed ones.
    pub full: bool,
    /// Databases at the same time.
    pub threads: usize,
}

impl Rot {
    /// The usual figures.
    pub fn new(settings: Settings) -> Rot {
        Rot { settings, first_run: 0, runs: u64::MAX, flips: 400, full: false, threads: 2 }
    }

    /// Runs it; the error tells the first wrong answer and the command that repeats it.
    pub fn run(&self) -> Checked<Totals> {
        let totals = Totals::default();
        let next = AtomicU64::new(0);
        let failure: Mutex<Option<String>> = Mutex::new(None);
        let worker = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.runs || self.settings.over() {
                    return;
                }
                let whole = AssertUnwindSafe(|| self.one_database(self.first_run + number, &totals));
                let outcome = catch_unwind(whole).unwrap_or_else(|payload| Err(panic_text(payload)));
                if let (Err(what), Ok(mut failure)) = (outcome, failure.lock()) {
                    // The first of every database, as it comes; the last word has the first of all.
                    eprintln!("database {}: {what}", self.first_run + number);
                    let database = self.first_run + number;
                    let repeat = self.command(database);
                    failure.get_or_insert(format!("database {database}: {what}\nrepeat with: {repeat}"));
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
            Ok(Some(what)) => Err(format!("{what}\nin all: {totals}")),
            Err(_) => Err("a worker panicked".to_string()),
        }
    }

    /// The command that repeats one database.
    pub fn command(&self, number: u64) -> String {
        format!(
            "cargo run -p esker-check -- rot --seed {} --first-run {number} --runs 1 --flips {}{}",
            self.settings.seed,
            self.flips,
            if self.full { " --full" } else { "" }
        )
    }

    /// The first wrong answer of a database; the others are only counted.
    fn one_database(&self, number: u64, totals: &Totals) -> Checked<()> {
        let seed = Random::derived(self.settings.seed, &[number]).next();
        let (name, specimen) = match self.full && number < fixed::COUNT {
            true => fixed::fixed(number)?,
            false => ("random", Specimen::random(seed)?),
        };
        totals.databases.fetch_add(1, Ordering::Relaxed);
        let mut first = Ok(());
        let mut examine = |place: u64, harm: &Harm, open: bool| {
            let wrong = self.one_harm(&specimen, harm, open, &mut Random::derived(seed, &[4, place]), totals);
            if let Err(what) = wrong
                && first.is_ok()
            {
                let state = if open { "open" } else { "closed" };
                first = Err(format!("{name}, {:?}, {harm:?} while {state}: {what}", specimen.end));
            }
        };
        let files = Specimen::files(&specimen.image);
        if self.full {
            let all = every_harm(&specimen, &files, seed)?;
            let in_time = (0..).zip(&all).take_while(|_| !self.settings.over());
            in_time.for_each(|(place, (harm, open))| examine(place, harm, *open));
            return first;
        }
        let mut random = Random::derived(seed, &[3]);
        for flip in 0..self.flips {
            if files.is_empty() || self.settings.over() {
                break;
            }
            let open = flip % 2 == 1;
            examine(flip, &Harm::any(&files, specimen.older.len(), open, &mut random), open);
        }
        first
    }

    /// Counts what came of it; the error is a wrong answer.
    fn one_harm(
        &self,
        specimen: &Specimen,
        harm: &Harm,
        open: bool,
        random: &mut Random,
        totals: &Totals,
    ) -> Checked<()> {
        let work_percent = if self.full { 100 } else { 50 };
        let attempt = AssertUnwindSafe(|| match open {
            true => harm_open(specimen, harm, random),
            false => harm_closed(specimen, harm, work_percent, random),
        });
        let outcome = catch_unwind(attempt).unwrap_or_else(|payload| Err(format!("panic: {}", panic_text(payload))));
        let what = match outcome {
            Ok(Outcome::Nothing) => return Ok(()),
            Ok(Outcome::Error) => &totals.errors,
            Ok(Outcome::Allowed) => &totals.allowed,
            Err(_) => &totals.wrong,
        };
        let how = match harm.how {
            How::Flip(_) if open => &totals.open,
            How::Flip(_) => &totals.closed,
            How::Zero(_) | How::Stale(_) | How::Misdirected(..) => &totals.sectors,
            How::Cut | How::Older(_) => &totals.files,
        };
        [what, how].into_iter().for_each(|counter| _ = counter.fetch_add(1, Ordering::Relaxed));
        outcome.map(|_| ())
    }
}

/// Every harm to the files, while closed and while open, in an order by chance: a sweep cut short
/// has seen some of everything.
fn every_harm(specimen: &Specimen, files: &[(PathBuf, u64)], seed: u64) -> Checked<Vec<(Harm, bool)>> {
    // The opening has made files and removed others, the same every time.
    let env = specimen.image.kill();
    let db = specimen.open(&env).map_err(|error| format!("it does not open: {error}"))?;
    let opened = Specimen::files(&env);
    drop(db);
    let closed = files.iter().flat_map(|(path, bytes)| Harm::all(path, *bytes, specimen.older.len(), false));
    let open = opened.iter().flat_map(|(path, bytes)| Harm::all(path, *bytes, 0, true));
    let mut all: Vec<(Harm, bool)> = closed.map(|harm| (harm, false)).chain(open.map(|harm| (harm, true))).collect();
    Random::derived(seed, &[5]).shuffle(&mut all);
    Ok(all)
}
