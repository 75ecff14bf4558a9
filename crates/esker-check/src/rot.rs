//! Bits and sectors of stored files that change by themselves, while a database is closed or open: every answer is an error or a state that the
//! contract allows, never a wrong value, and never a hole.
//!
//! A database is what a random script leaves: closed, dropped, killed at some call, or without power there. A flip in its log may end
//! what is replayed behind the last place that the manifest or an intact record calls synced, and so may one in a blob file of the same
//! age; any other flip leaves everything or an
//! error. Scans that end with an error must have been right as far as they came.

use crate::Checked;
use crate::campaign::panic_text;
use crate::model::Operator;
use crate::powerloss::generated::{Limits, generated};
use crate::powerloss::option_variants;
use crate::powerloss::progress::Progress;
use crate::powerloss::script::{KEYSPACES, NAMES};
use crate::powerloss::session::{Ground, Session, run, with_operators};
use crate::random::Random;
use crate::settings::Settings;
use crate::simulated::MEMORY_PATH;
use crate::state::{Place, State, database_state, shown};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Compression, Db, Error, Options, ReadMode};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a database came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Dropped,
    /// Killed at some call: while it loads, flushes, merges, opens.
    Killed,
    PowerLost,
}

const ENDS: [End; 4] = [End::Closed, End::Dropped, End::Killed, End::PowerLost];

/// A database at rest and what it may hold.
struct Specimen {
    image: MemEnv,
    options: Options,
    /// Reads may miss what changes in a block that they have checked.
    checked_once: bool,
    end: End,
    progress: Progress,
    /// The commits that it holds as it is.
    count: usize,
    /// Every key that it ever held.
    places: BTreeSet<Place>,
}

/// How tables are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tables {
    FromFiles,
    Mapped,
    /// And every block is checked at every read.
    MappedChecked,
}

fn variants() -> Vec<(Options, Tables)> {
    let from_files = |(_, options)| (options, Tables::FromFiles);
    let mut variants: Vec<_> = option_variants().into_iter().map(from_files).collect();
    let base = variants[0].0.clone().write_buffer_bytes(4 << 10);
    variants.extend([
        (base.clone(), Tables::Mapped),
        (base.clone().compression(Compression::None), Tables::Mapped),
        (base.clone().read_mode(ReadMode::Pread).block_cache_bytes(0), Tables::FromFiles),
        (base.clone().large_value_bytes(100).upper_compression(Compression::Lz4), Tables::FromFiles),
        (base.clone().read_mode(ReadMode::MmapChecked), Tables::MappedChecked),
        (base.read_mode(ReadMode::MmapChecked).compression(Compression::None), Tables::MappedChecked),
    ]);
    variants
}

impl Specimen {
    fn new(seed: u64) -> Checked<Specimen> {
        let mut random = Random::derived(seed, &[2]);
        let variants = variants();
        let (options, tables) = variants[random.below(variants.len())].clone();
        let end = ENDS[random.below(ENDS.len())];
        let steps = generated(seed, Limits { steps: 14, batch: 100, value: 1000, unlogged: false, repair: true }).steps;
        let attempt = |calls: Option<u64>| {
            let env = MemEnv::new();
            if let Some(calls) = calls {
                env.crash_after(calls);
            }
            let mut progress = Progress::default();
            let mut seen = vec![(env.kill(), progress.clone())];
            let mut observe = |progress: &Progress| {
                if calls.is_none() {
                    seen.push((env.kill(), progress.clone()));
                }
            };
            let outcome = run(&steps, &Ground::new(&options, env.clone()), &mut progress, &mut observe);
            (env, progress, seen, outcome)
        };
        let (whole, progress, mut seen, outcome) = attempt(None);
        outcome.map_err(|error| format!("the script fails by itself: {error}"))?;
        let (image, progress) = match end {
            End::Closed => (whole.kill(), progress),
            End::Dropped => {
                // The last was taken after the close.
                seen.pop();
                seen.pop().unwrap_or((whole.kill(), progress))
            }
            End::Killed | End::PowerLost => {
                let (env, progress, ..) = attempt(Some(random.below(whole.mutations() as usize) as u64));
                let image = if end == End::Killed { env.kill() } else { env.crash(&CrashMode::Random, random.next()) };
                (image, progress)
            }
        };
        if tables != Tables::FromFiles {
            image.map_files();
        }
        let checked_once = tables == Tables::Mapped;
        let mut specimen =
            Specimen { places: progress.places(), image, options, checked_once, end, progress, count: 0 };
        specimen.settle()?;
        Ok(specimen)
    }

    /// What it holds if nothing is flipped. One whose manifest was lost by its script is repaired first.
    fn settle(&mut self) -> Checked<()> {
        let ground = Ground::new(&self.options, self.image.clone());
        let least = if self.end == End::PowerLost { self.progress.synced } else { self.progress.acknowledged };
        if self.progress.damaged {
            let session = Session::open(&ground, &mut self.progress).map_err(|error| format!("no repair: {error}"))?;
            session.close().map_err(|error| format!("no close after a repair: {error}"))?;
            self.image = self.image.kill();
            self.end = End::Closed;
        }
        let db = self.open(&self.image.kill()).map_err(|error| format!("it does not open: {error}"))?;
        self.count = self.progress.find(&database_state(&db, &NAMES)?, least)?;
        Ok(())
    }

    fn open(&self, env: &MemEnv) -> esker::Result<Db> {
        let options = Ground::new(&self.options, env.clone()).options_at(self.progress.now);
        Db::open(MEMORY_PATH, options).and_then(with_operators)
    }

    fn files(env: &MemEnv) -> Vec<(PathBuf, u64)> {
        let own = env.files().into_iter().filter(|path| path.starts_with(MEMORY_PATH));
        own.map(|path| {
            let bytes = env.file_bytes(&path).unwrap_or_default();
            // A log is allocated ahead; of what was never written a little is enough.
            let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            (path, bytes.len().min(used + 16) as u64)
        })
        .filter(|(_, bytes)| *bytes > 0)
        .collect()
    }

    /// The states that may be found after damage while the database is closed.
    fn allowed(&self, harm: &Harm) -> Vec<&State> {
        let is = |part: &str| harm.path.to_string_lossy().contains(part);
        // A sector can hold both a record and the later one that says that it was synced.
        let vouched = if matches!(harm.how, How::Flip(_)) { self.progress.vouched } else { self.progress.listed };
        let logged = is(".wal") || is(".blob");
        let least = match self.end {
            End::Closed => self.count,
            // The edit that is lost with its log, as the second exception says.
            End::PowerLost if is("MANIFEST") => 0,
            End::PowerLost if logged => self.progress.listed,
            End::Dropped | End::Killed if logged => vouched,
            // The edit of an ingest that was cut off before a manifest of its own held it, and so before it was reported as done.
            End::Killed if is("MANIFEST") => self.progress.acknowledged,
            _ => self.count,
        };
        self.progress.states[least.min(self.count)..=self.count].iter().rev().collect()
    }
}

/// The states that agree with all answers so far.
struct Witness<'a> {
    candidates: Vec<&'a State>,
    errors: u64,
}

impl Witness<'_> {
    /// Asks for everything: scans in both directions, and gets of what is or was there.
    fn question(&mut self, db: &Db, places: &BTreeSet<Place>) -> Checked<()> {
        for (index, name) in NAMES.iter().enumerate() {
            let keyspace = match db.existing_keyspace(name) {
                Ok(keyspace) => Some(keyspace),
                Err(Error::NotFound { .. }) => None,
                Err(_) => {
                    self.errors += 1;
                    continue;
                }
            };
            for reversed in [false, true] {
                let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
                let mut whole = true;
                let entries: Box<dyn Iterator<Item = _>> = match (&keyspace, reversed) {
                    (None, _) => Box::new(std::iter::empty()),
                    (Some(keyspace), false) => Box::new(keyspace.iter()),
                    (Some(keyspace), true) => Box::new(keyspace.iter().rev()),
                };
                for entry in entries {
                    match entry {
                        Ok((key, value)) => found.push((key.to_vec(), value.to_vec())),
                        Err(_) => {
                            self.errors += 1;
                            whole = false;
                            break;
                        }
                    }
                }
                let agrees = |state: &&State| {
                    let own = state.range((index, Vec::new())..(index + 1, Vec::new()));
                    let expected: Vec<_> = own.map(|((_, key), held)| (key, &held.value)).collect();
                    let of_expected = |place: usize| if reversed { expected.len() - 1 - place } else { place };
                    found.len() <= expected.len()
                        && (!whole || found.len() == expected.len())
                        && found
                            .iter()
                            .enumerate()
                            .all(|(place, (key, value))| (key, value) == expected[of_expected(place)])
                };
                self.keep(agrees, || {
                    format!("a scan of {name} (reversed: {reversed}) yields {} entries", found.len())
                })?;
            }
            for place in places.range((index, Vec::new())..(index + 1, Vec::new())) {
                let value = match keyspace.as_ref().map(|keyspace| keyspace.get(&place.1)).transpose() {
                    Ok(value) => value.flatten(),
                    Err(_) => {
                        self.errors += 1;
                        continue;
                    }
                };
                let agrees = |state: &&State| state.get(place).map(|held| &held.value[..]) == value.as_deref();
                self.keep(agrees, || {
                    format!("get {name}/{} yields {:?}", shown(&place.1), value.as_deref().map(shown))
                })?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, agrees: impl Fn(&&State) -> bool, what: impl Fn() -> String) -> Checked<()> {
        self.candidates.retain(agrees);
        if self.candidates.is_empty() { Err(format!("no allowed state agrees: {}", what())) } else { Ok(()) }
    }
}

/// What was done, and what came of it.
#[derive(Debug, Default)]
pub struct Totals {
    /// Databases.
    pub databases: AtomicU64,
    /// Bits flipped while closed.
    pub closed: AtomicU64,
    /// Bits flipped while open.
    pub open: AtomicU64,
    /// Sectors that were lost or hold what another place should, closed or open.
    pub sectors: AtomicU64,
    /// Flips that were answered with an error somewhere.
    pub errors: AtomicU64,
    /// Flips after which every answer was that of an allowed state.
    pub allowed: AtomicU64,
    /// Flips with a wrong answer.
    pub wrong: AtomicU64,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let flips = count(&self.closed) + count(&self.open);
        let (open, sectors, databases) = (count(&self.open), count(&self.sectors), count(&self.databases));
        let (errors, allowed, wrong) = (count(&self.errors), count(&self.allowed), count(&self.wrong));
        write!(
            f,
            "{flips} flips ({open} while open) and {sectors} wrong sectors of {databases} databases: {errors} errors, {allowed} allowed states, {wrong} \
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
    /// Flips of each database, half of them while it is open.
    pub flips: u64,
    /// Every bit of every file, while closed, instead.
    pub full: bool,
    /// Databases at the same time.
    pub threads: usize,
}

/// Damage to a file.
#[derive(Clone, Debug)]
struct Harm {
    path: PathBuf,
    at: u64,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    /// One bit is inverted.
    Flip(u8),
    /// A sector of that length reads as zeroes.
    Zero(u64),
    /// A sector of that length holds what another place of this file or another holds.
    Misdirected(PathBuf, u64, u64),
}

impl Harm {
    /// Every file is as likely as every other, because the small ones matter most.
    fn any(files: &[(PathBuf, u64)], random: &mut Random) -> Harm {
        let mut place = || {
            let (path, bytes) = &files[random.below(files.len())];
            (path.clone(), random.below(*bytes as usize) as u64)
        };
        let ((path, at), (other, from)) = (place(), place());
        let sector = [512, 4096][random.below(2)];
        let begin = |at: u64| at / sector * sector;
        match random.below(10) {
            0 => Harm { path, at: begin(at), how: How::Zero(sector) },
            1 => Harm { path, at: begin(at), how: How::Misdirected(other, begin(from), sector) },
            _ => Harm { path, at, how: How::Flip(random.below(8) as u8) },
        }
    }

    fn apply(&self, env: &MemEnv) {
        match &self.how {
            How::Flip(bit) => _ = env.flip_bit(&self.path, self.at, *bit),
            How::Zero(bytes) => env.misdirect(&self.path, self.at, &vec![0; *bytes as usize]),
            How::Misdirected(from, at, bytes) => {
                let source = env.file_bytes(from).unwrap_or_default();
                let sector: Vec<u8> = source.into_iter().skip(*at as usize).take(*bytes as usize).collect();
                env.misdirect(&self.path, self.at, &sector);
            }
        }
    }
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
                    failure.get_or_insert(format!(
                        "database {}: {what}\nrepeat with: cargo run -p esker-check -- rot --seed {} --first-run {} --runs 1 \
                         --flips {}{}",
                        self.first_run + number,
                        self.settings.seed,
                        self.first_run + number,
                        self.flips,
                        if self.full { " --full yes" } else { "" }
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
            Ok(Some(what)) => Err(format!("{what}\nin all: {totals}")),
            Err(_) => Err("a worker panicked".to_string()),
        }
    }

    /// The first wrong answer of a database; the others are only counted.
    fn one_database(&self, number: u64, totals: &Totals) -> Checked<()> {
        let seed = Random::derived(self.settings.seed, &[number]).next();
        let specimen = Specimen::new(seed)?;
        let mut random = Random::derived(seed, &[3]);
        totals.databases.fetch_add(1, Ordering::Relaxed);
        let mut first = Ok(());
        let files = Specimen::files(&specimen.image);
        let mut examine = |harm: &Harm, open: bool, random: &mut Random| {
            let attempt = AssertUnwindSafe(|| {
                if open { harm_open(&specimen, harm, random) } else { harm_closed(&specimen, harm, random) }
            });
            let outcome =
                catch_unwind(attempt).unwrap_or_else(|payload| Err(format!("panic: {}", panic_text(payload))));
            let counter = match harm.how {
                How::Flip(_) if open => &totals.open,
                How::Flip(_) => &totals.closed,
                How::Zero(_) | How::Misdirected(..) => &totals.sectors,
            };
            counter.fetch_add(1, Ordering::Relaxed);
            match outcome {
                Ok(true) => totals.errors.fetch_add(1, Ordering::Relaxed),
                Ok(false) => totals.allowed.fetch_add(1, Ordering::Relaxed),
                Err(what) => {
                    if first.is_ok() {
                        let state = if open { "open" } else { "closed" };
                        first = Err(format!("{:?}, {harm:?} while {state}: {what}", specimen.end));
                    }
                    totals.wrong.fetch_add(1, Ordering::Relaxed)
                }
            };
        };
        if self.full {
            for (path, bytes) in &files {
                for at in 0..bytes * 8 {
                    if self.settings.over() {
                        return first;
                    }
                    let harm = Harm { path: path.clone(), at: at / 8, how: How::Flip((at % 8) as u8) };
                    examine(&harm, false, &mut random);
                }
            }
            return first;
        }
        for flip in 0..self.flips {
            if files.is_empty() || self.settings.over() {
                break;
            }
            examine(&Harm::any(&files, &mut random), flip % 2 == 1, &mut random);
        }
        first
    }
}

/// Harms, then opens and asks, does some work, and asks again. Whether there was an error.
fn harm_closed(specimen: &Specimen, harm: &Harm, random: &mut Random) -> Checked<bool> {
    let env = specimen.image.kill();
    harm.apply(&env);
    let mut witness = Witness { candidates: specimen.allowed(harm), errors: 0 };
    let Ok(db) = specimen.open(&env) else { return Ok(true) };
    if !(specimen.end == End::PowerLost && harm.path.to_string_lossy().contains("MANIFEST")) {
        witness.question(&db, &specimen.places)?;
        if random.percent(30) {
            work_on(db, specimen, &env, &mut witness, random)?;
        }
    }
    Ok(witness.errors > 0)
}

/// Opens, reads a little, harms, then works and asks.
fn harm_open(specimen: &Specimen, harm: &Harm, random: &mut Random) -> Checked<bool> {
    let env = specimen.image.kill();
    let db = specimen.open(&env).map_err(|error| format!("it does not open: {error}"))?;
    let mut witness = Witness { candidates: vec![&specimen.progress.states[specimen.count]], errors: 0 };
    if random.percent(70) {
        witness.question(&db, &specimen.places)?;
    }
    // The opening has made files and removed others.
    let files = Specimen::files(&env);
    let still = files.iter().any(|(path, _)| *path == harm.path);
    let harm = if still { harm.clone() } else { Harm::any(&files, random) };
    harm.apply(&env);
    // A mapped block that was checked before may be read as it is now: the third exception. What jobs make of it may not.
    if !specimen.checked_once {
        witness.question(&db, &specimen.places)?;
    }
    work_on(db, specimen, &env, &mut witness, random)?;
    Ok(witness.errors > 0)
}

/// A few calls that read or write everything, then an opening; asked again at the end.
fn work_on(db: Db, specimen: &Specimen, env: &MemEnv, witness: &mut Witness<'_>, random: &mut Random) -> Checked<()> {
    let mut failed = 0;
    for _ in 0..random.between(1, 3) {
        let outcome = match random.below(6) {
            0..=1 => db.compact(),
            2 => db.flush(),
            3 => db.wait_idle(),
            4 => db.verify(&mut |_, _| {}).map(|_| ()),
            _ => KEYSPACES
                .iter()
                .filter(|(_, operator, _)| *operator != Operator::Longest)
                .filter_map(|(name, ..)| db.existing_keyspace(name).ok())
                .try_for_each(|keyspace| keyspace.compact()),
        };
        failed += u64::from(outcome.is_err());
    }
    if !specimen.checked_once {
        witness.question(&db, &specimen.places)?;
    }
    if random.percent(50) {
        failed += u64::from(db.close().is_err());
    } else {
        drop(db);
    }
    witness.errors += failed;
    match specimen.open(&env.kill()) {
        Ok(db) => witness.question(&db, &specimen.places),
        Err(_) => {
            witness.errors += 1;
            Ok(())
        }
    }
}
