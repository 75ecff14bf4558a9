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
//! carry no wrong value on, and a repair shows none that its key never had. Where changes are kept,
//! their readers are told those of the same state, in order and without a hole, or of an error.

mod changes;
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
    /// Those that were due; 0 if that is as many as there is time for.
    pub databases_due: AtomicU64,
    /// Those whose readers of changes are asked too.
    pub with_changes: AtomicU64,
    /// Harms, also those that change nothing.
    pub harms: AtomicU64,
    /// Those that were due to the databases.
    pub harms_due: AtomicU64,
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
    /// Those of them that are flips.
    pub wrong_flips: AtomicU64,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (harms, harms_due) = (count(&self.harms), count(&self.harms_due));
        let flips = count(&self.closed) + count(&self.open);
        let (open, sectors, files) = (count(&self.open), count(&self.sectors), count(&self.files));
        let (databases, databases_due) = (count(&self.databases), count(&self.databases_due));
        let of_due = if databases_due > 0 { format!(" of {databases_due}") } else { String::new() };
        let with_changes = count(&self.with_changes);
        let (errors, allowed) = (count(&self.errors), count(&self.allowed));
        let (wrong, wrong_flips) = (count(&self.wrong), count(&self.wrong_flips));
        write!(
            f,
            "{harms} of {harms_due} harms: {flips} flips ({open} while open), {sectors} wrong sectors and {files} \
             wrong files of {databases}{of_due} databases ({with_changes} with their changes): {errors} errors, \
             {allowed} allowed states, {wrong} wrong answers ({wrong_flips} of flips)"
        )?;
        if harms < harms_due || databases < databases_due {
            write!(f, "; the time was up before the rest of what was due")?;
        }
        Ok(())
    }
}

/// How many fixed databases a full sweep begins with.
pub const FIXED_DATABASES: u64 = fixed::COUNT;

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
        if self.runs < u64::MAX {
            totals.databases_due.store(self.runs, Ordering::Relaxed);
        }
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
        totals.databases.fetch_add(1, Ordering::Relaxed);
        let (name, specimen) = match self.full && number < fixed::COUNT {
            true => fixed::fixed(number)?,
            false => ("random", Specimen::random(seed)?),
        };
        totals.with_changes.fetch_add(u64::from(specimen.keeps_changes()), Ordering::Relaxed);
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
            totals.harms_due.fetch_add(all.len() as u64, Ordering::Relaxed);
            let in_time = (0..).zip(&all).take_while(|_| !self.settings.over());
            in_time.for_each(|(place, (harm, open))| examine(place, harm, *open));
            return first;
        }
        let due = if files.is_empty() { 0 } else { self.flips };
        totals.harms_due.fetch_add(due, Ordering::Relaxed);
        let mut random = Random::derived(seed, &[3]);
        for flip in 0..due {
            if self.settings.over() {
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
        totals.harms.fetch_add(1, Ordering::Relaxed);
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
            Err(_) => {
                totals.wrong_flips.fetch_add(u64::from(harm.is_flip()), Ordering::Relaxed);
                &totals.wrong
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const CUT_SHORT: &str = "; the time was up before the rest of what was due";

    /// If the report did not say how much was due, a sweep that was cut short would look like a
    /// whole one.
    #[test]
    fn a_sweep_that_its_time_cuts_short_says_how_much_was_due() {
        let rot = Rot { runs: 1, full: true, ..Rot::new(Settings::new(1, Duration::ZERO)) };
        let totals = Totals::default();
        rot.one_database(0, &totals).expect("the time is up before the first harm");
        let due = totals.harms_due.load(Ordering::Relaxed);
        assert!(due > 1000, "{totals}");
        let report = totals.to_string();
        assert!(report.starts_with(&format!("0 of {due} harms: ")) && report.ends_with(CUT_SHORT), "{report}");
        let report = rot.run().expect("the time is up before the first database").to_string();
        assert!(report.contains(" of 0 of 1 databases ") && report.ends_with(CUT_SHORT), "{report}");
    }

    /// If harms that change nothing were not counted, or the time were always said to be up, this
    /// would fail.
    #[test]
    fn a_run_that_ends_by_itself_has_done_all_that_was_due() {
        let rot = Rot { runs: 2, flips: 20, ..Rot::new(Settings::new(1, Duration::MAX)) };
        let report = rot.run().unwrap_or_else(|what| panic!("{what}")).to_string();
        assert!(report.starts_with("40 of 40 harms: ") && report.contains(" of 2 of 2 databases "), "{report}");
        assert!(report.ends_with(" 0 wrong answers (0 of flips)"), "{report}");
    }

    /// If all wrong answers were counted as those of flips, or none, this would fail.
    #[test]
    fn wrong_answers_of_flips_are_counted_apart() {
        let (_, mut specimen) = fixed::fixed(1).expect("it is made");
        // None of the states that are allowed now is the one that it has.
        specimen.count -= 1;
        let table = |(path, _): &(PathBuf, u64)| path.extension().is_some_and(|it| it == "table");
        let files = Specimen::files(&specimen.image);
        let (path, _) = files.into_iter().find(table).expect("it has been flushed");
        let (rot, totals) = (Rot::new(Settings::new(1, Duration::MAX)), Totals::default());
        let is_wrong = |how: How, seed: u64| {
            let harm = Harm { path: path.clone(), at: 0, how };
            rot.one_harm(&specimen, &harm, true, &mut Random::new(seed), &totals).is_err()
        };
        let flips = (0..10).filter(|&seed| is_wrong(How::Flip(0), seed)).count() as u64;
        let sectors = (0..5).filter(|&seed| is_wrong(How::Zero(512), seed)).count() as u64;
        assert!(flips > 0 && sectors > 0, "{flips} flips, {sectors} sectors");
        assert_eq!(totals.wrong.load(Ordering::Relaxed), flips + sectors);
        assert_eq!(totals.wrong_flips.load(Ordering::Relaxed), flips);
        let report = totals.to_string();
        assert!(report.contains(&format!(" {} wrong answers ({flips} of flips)", flips + sectors)), "{report}");
    }
}
