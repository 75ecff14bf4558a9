//! A process that writes to a real directory, killed again and again.
//!
//! Commit number i is a function of the seed and i alone, so the parent can tell the contents after
//! any number of commits without having heard more from the child than numbers. The child reports
//! each acknowledged commit by one write to a pipe, which outlives it. Meanwhile the parent follows
//! the database through all kills. At each moment it reads the contents after some number of
//! commits, never fewer than before, and after a kill those that the next open finds.
//!
//! Commits are batches with puts, deletes, merges, deletes of ranges and changes of expiries, one
//! keyspace is in another order; each eighth commit is a conditional write.
//!
//! After some commits the child drops a keyspace before it reports them. For the last commit that
//! is found, that drop may be done or not. Now and then it gives that keyspace its other name.
//!
//! Half of the databases keep their changes. After each kill the parent reads on in them: they have
//! every commit once, whole and in order, up to the last one that is found.

use crate::Checked;
use crate::model::{Change, Life, Model, Operator, Ttl, Write};
use crate::orders::{in_order, order_of};
use crate::random::Random;
use crate::simulated::ScratchDirectory;
use crate::state::{Durability, check_gets, database_state, difference, keyspace_options, model_state, write_batch};
use esker::{
    ChangeBatch, ChangeOperation, ChangeRetention, CompareAndSwap, Db, Error, Follower, Keyspace, Options, Slice,
    WalMode,
};
use std::fs::File;
use std::io::{Read, Write as _};
use std::ops::Bound;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const KEYSPACES: [(&str, Operator, Ttl); 5] = [
    ("values", Operator::None, Ttl::Off),
    ("counters", Operator::UInt64Add, Ttl::Off),
    ("passing", Operator::UInt64Add, Ttl::Off),
    ("latest", Operator::None, Ttl::Off),
    ("rates", Operator::UInt64Add, Ttl::On(None)),
];
const NAMES: [&str; 5] = [KEYSPACES[0].0, KEYSPACES[1].0, KEYSPACES[2].0, KEYSPACES[3].0, KEYSPACES[4].0];
const VALUES: usize = 0;
/// The keyspace that is dropped now and then.
const PASSING: usize = 2;
/// Its other name.
const RENAMED: &str = "passed";
/// The one in reverse order.
const LATEST: usize = 3;
/// The one whose entries can expire.
const RATES: usize = 4;
/// When the first of them do, in milliseconds since the Unix epoch: in no run.
const FAR: u64 = 4_000_000_000_000;
const COUNTER: &[u8] = b"~commits";

/// Mostly more than a child writes in its life.
const KEPT_BYTES: u64 = 4 << 20;

/// Kills after which a fresh database is begun.
const KILLS_PER_DATABASE: u64 = 100;

/// How the parent runs children and what it counts.
#[derive(Clone, Debug)]
pub struct KillLoop {
    /// The program to run as child: `esker-check` itself.
    pub program: PathBuf,
    /// Where the databases go.
    pub directory: PathBuf,
    /// How many kills.
    pub rounds: u64,
    /// Where all randomness comes from, but for the moment at which a signal meets the child.
    pub seed: u64,
    /// The longest time a child lives, in milliseconds.
    pub longest_life: usize,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Kills.
    pub kills: u64,
    /// Kills before the child had acknowledged anything: while starting or recovering.
    pub early_kills: u64,
    /// Acknowledged commits, all found again.
    pub acknowledged: u64,
    /// Commits found that had not been acknowledged yet.
    pub unacknowledged: u64,
    /// Databases.
    pub databases: u64,
    /// How often a follower caught up.
    pub followed: u64,
    /// How often a living child was too fast for one.
    pub outrun: u64,
    /// Keyspaces dropped.
    pub drops: u64,
    /// Kills behind which a keyspace had its other name.
    pub renamed: u64,
    /// Commits found in the changes.
    pub told: u64,
}

/// The options of both sides: small, so that everything happens often.
fn options(seed: u64) -> Options {
    let options = Options::default()
        .write_buffer_bytes(48 << 10)
        .target_file_bytes(64 << 10)
        .block_bytes(1 << 10)
        .wal_segment_bytes(64 << 10)
        .background_threads(1);
    let options = if seed % 2 == 1 { options.wal_mode(WalMode::Plain) } else { options };
    if keeps_changes(seed) { options.keep_changes(ChangeRetention::Bytes(KEPT_BYTES)) } else { options }
}

/// Whether the database of that seed keeps its changes.
fn keeps_changes(seed: u64) -> bool {
    seed % 4 >= 2
}

/// The writes of commit `number`, counting from 1.
fn commit_of(seed: u64, number: u64) -> (Vec<Write>, Durability) {
    let mut random = Random::derived(seed, &[number]);
    let writes = if is_swap(number) { 0 } else { random.between(1, 6) };
    let mut writes: Vec<Write> = (0..writes).map(|_| write_of(&mut random)).collect();
    let number = Change::Put(number.to_le_bytes().to_vec());
    writes.push(Write::new(VALUES, COUNTER, number));
    (writes, if random.percent(3) { Durability::Sync } else { Durability::Async })
}

/// Whether a commit is of its number alone, which takes the place of the one before.
fn is_swap(number: u64) -> bool {
    number.is_multiple_of(8)
}

fn write_of(random: &mut Random) -> Write {
    let keyspace = random.below(KEYSPACES.len());
    let first = random.below(1500);
    let key = format!("key{first:04}").into_bytes();
    let change = match (keyspace, random.below(40)) {
        (_, 0) => {
            let last = format!("key{:04}", first + random.below(12)).into_bytes();
            let (low, high) = if keyspace == LATEST { (last, key.clone()) } else { (key.clone(), last) };
            return Write::delete_range(keyspace, Bound::Included(low), Bound::Included(high));
        }
        (_, 1) => return Write::new(keyspace, [], Change::DeletePrefix(key[..6].to_vec())),
        (_, 2..=7) => Change::Delete,
        (VALUES | LATEST, _) => {
            let length = if random.percent(2) { random.between(1000, 12_000) } else { random.between(0, 120) };
            Change::Put(random.bytes(length))
        }
        (RATES, 8..=13) => Change::Expire,
        (_, 14..=21) => Change::Put(random.next().to_le_bytes().to_vec()),
        _ => Change::Merge((random.below(1000) as u64).to_le_bytes().to_vec()),
    };
    let lives = keyspace == RATES && matches!(change, Change::Put(_) | Change::Expire) && random.percent(70);
    let life = if lives { Life::Until(FAR + 1000 * random.below(1000) as u64) } else { Life::Usual };
    Write::new(keyspace, key, change).living(life)
}

/// Makes the commit, one of the number alone as a conditional write.
fn perform(db: &Db, keyspaces: &[Keyspace], seed: u64, number: u64) -> esker::Result<()> {
    let (writes, durability) = commit_of(seed, number);
    if !is_swap(number) {
        return write_batch(db, keyspaces, &writes, durability.options());
    }
    let (before, after) = ((number - 1).to_le_bytes(), number.to_le_bytes());
    let options = durability.options();
    match keyspaces[VALUES].compare_and_swap_with(COUNTER, Some(&before[..]), Some(&after[..]), &options)? {
        CompareAndSwap::Swapped => Ok(()),
        CompareAndSwap::Unequal { current: found } => Err(Error::invalid(format!("commit {number} finds {found:?}"))),
    }
}

/// Whether the keyspace that comes and goes is dropped after the commit of that number.
fn is_dropped_after(seed: u64, number: u64) -> bool {
    Random::derived(seed, &[number, 1]).below(60) == 0
}

fn counter(db: &Db) -> Checked<u64> {
    let Ok(keyspace) = db.existing_keyspace(NAMES[0]) else { return Ok(0) };
    match keyspace.get(COUNTER).map_err(|error| format!("the counter cannot be read: {error}"))? {
        None => Ok(0),
        Some(bytes) => bytes[..].try_into().map(u64::from_le_bytes).map_err(|_| "the counter is damaged".to_string()),
    }
}

/// The names that the keyspaces have.
fn names_in(db: &Db) -> [&'static str; 5] {
    let mut names = NAMES;
    if db.existing_keyspace(RENAMED).is_ok() {
        names[PASSING] = RENAMED;
    }
    names
}

fn open(path: &Path, seed: u64) -> esker::Result<(Db, Vec<Keyspace>)> {
    let db = Db::open(path, options(seed))?;
    let keyspaces = KEYSPACES.iter().zip(names_in(&db)).map(|(&(usual, operator, ttl), name)| {
        db.keyspace(name, in_order(keyspace_options(operator, ttl), order_of(usual)))
    });
    let keyspaces = keyspaces.collect::<esker::Result<Vec<_>>>()?;
    Ok((db, keyspaces))
}

/// The child: writes until killed, and reports on standard output. `salt` varies what is not a
/// commit.
pub fn child(path: &Path, seed: u64, salt: u64) -> Checked<()> {
    let failed = |error: esker::Error| format!("the child failed: {error}");
    // Not through `Stdout`, which buffers: every report must be with the system before the next
    // commit begins.
    let output = std::io::stdout().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
    let mut output = File::from(output);
    let mut report =
        |number: u64| output.write_all(&number.to_le_bytes()).map_err(|error| format!("no reader: {error}"));
    let mut random = Random::derived(seed, &[u64::MAX, salt]);
    let (mut db, mut keyspaces) = open(path, seed).map_err(failed)?;
    let mut number = counter(&db)?;
    loop {
        number += 1;
        perform(&db, &keyspaces, seed, number).map_err(failed)?;
        if is_dropped_after(seed, number) {
            let (name, (_, operator, ttl)) = (keyspaces[PASSING].name(), KEYSPACES[PASSING]);
            db.drop_keyspace(&name).map_err(failed)?;
            keyspaces[PASSING] = db.keyspace(&name, keyspace_options(operator, ttl)).map_err(failed)?;
        }
        report(number)?;
        match random.below(400) {
            0 => db.flush().map_err(failed)?,
            1 if random.percent(30) => db.compact().map_err(failed)?,
            2 => {
                drop(keyspaces);
                if random.percent(70) {
                    db.close().map_err(failed)?;
                } else {
                    drop(db);
                }
                (db, keyspaces) = open(path, seed).map_err(failed)?;
            }
            3 if random.percent(10) => {
                let passing = &keyspaces[PASSING];
                let other = if *passing.name() == *RENAMED { NAMES[PASSING] } else { RENAMED };
                passing.rename(other).map_err(failed)?;
            }
            _ => {}
        }
    }
}

fn empty_model() -> Model {
    let mut model = Model::with_ttl(&KEYSPACES.map(|(_, operator, ttl)| (operator, ttl)));
    NAMES.iter().enumerate().for_each(|(keyspace, name)| model.set_order(keyspace, order_of(name)));
    model
}

/// What the parent knows of the database.
struct Expected {
    model: Model,
    commits: u64,
    path: PathBuf,
    seed: u64,
    /// None until there is a database.
    follower: Option<Follower>,
    /// Commits that the follower has.
    followed: u64,
    /// How often a living child was too fast for it.
    outrun: u64,
    /// Commits that the changes have told of, and the number to read on from.
    told: u64,
    next_change: u64,
}

impl Expected {
    /// Reads on in the changes, up to the commit of that number. How many commits there were.
    fn read_changes(&mut self, db: &Db, count: u64) -> Checked<u64> {
        let failed = |error: Error| format!("the changes cannot be read: {error}");
        let (mut some_are_gone, mut read) = (false, 0);
        let changes = match db.changes(self.next_change) {
            Err(Error::Gone { oldest }) => {
                some_are_gone = true;
                db.changes(oldest)
            }
            changes => changes,
        };
        for batch in changes.map_err(failed)? {
            let batch = batch.map_err(failed)?;
            self.next_change = batch.next_sequence();
            let Some(number) = commit_in(&batch)? else { continue };
            let skips = std::mem::take(&mut some_are_gone) && number > self.told;
            if number != self.told + 1 && !skips {
                return Err(format!("the changes go on with commit {number} behind {}", self.told));
            }
            self.told = number;
            read += 1;
            let (writes, _) = commit_of(self.seed, number);
            // A change of an expiry is one only where there is something.
            let most = writes.len();
            let least = writes.iter().filter(|write| write.change != Change::Expire).count();
            if !(least..=most).contains(&batch.changes.len()) {
                return Err(format!("the changes have {} of {most} writes of commit {number}", batch.changes.len()));
            }
        }
        if self.told != count {
            return Err(format!("the changes end with commit {} of {count}", self.told));
        }
        Ok(read)
    }

    /// Lets the follower catch up, beside a child or behind one; false as long as there is nothing
    /// to follow.
    fn catch_up(&mut self, is_alive: bool) -> Checked<bool> {
        let Some(follower) = &self.follower else {
            // It may just be created.
            self.follower = Db::open_follower(&self.path, options(self.seed)).ok();
            return Ok(false);
        };
        match follower.catch_up() {
            // Segments this small last less than a millisecond where a sync costs nothing.
            Err(Error::Stalled { .. }) if is_alive => self.outrun += 1,
            caught_up => drop(caught_up.map_err(|error| format!("the follower failed: {error}"))?),
        }
        let count = counter(follower.db())?;
        if count < self.followed {
            return Err(format!("the follower has {count} commits, and had {}", self.followed));
        }
        self.followed = count;
        Ok(true)
    }
}

/// The number of the commit that these changes are; none if they are no commit's.
fn commit_in(batch: &ChangeBatch) -> Checked<Option<u64>> {
    let counter = batch.changes.iter().find_map(|change| match &change.operation {
        ChangeOperation::Put { key, value, .. } if *change.keyspace == *NAMES[VALUES] && **key == *COUNTER => {
            Some(value)
        }
        _ => None,
    });
    let number =
        |value: &Slice| value[..].try_into().map(u64::from_le_bytes).map_err(|_| format!("a counter {value:?}"));
    counter.map(number).transpose()
}

impl KillLoop {
    /// Kills until the rounds are done or the time is up.
    pub fn run(&self, budget: Duration) -> Checked<Totals> {
        let started = Instant::now();
        let mut scratch = ScratchDirectory::new(&self.directory, &format!("kill9-{}", self.seed))
            .map_err(|error| format!("no scratch directory: {error}"))?;
        let mut totals = Totals::default();
        let mut expected = None;
        while totals.kills < self.rounds && started.elapsed() < budget {
            let database = totals.kills / KILLS_PER_DATABASE;
            if totals.kills.is_multiple_of(KILLS_PER_DATABASE) {
                expected = Some(Expected {
                    model: empty_model(),
                    commits: 0,
                    path: scratch.path().join(format!("db{database}")),
                    seed: self.seed.wrapping_add(database),
                    follower: None,
                    followed: 0,
                    outrun: 0,
                    told: 0,
                    // The first there ever was: reading from the oldest one there is would not
                    // tell that others are gone.
                    next_change: 1,
                });
                totals.databases += 1;
            }
            let Some(expected) = &mut expected else { break };
            if let Err(what) = self.round(expected, &mut totals) {
                scratch.keep();
                return Err(format!(
                    "kill {}: {what}\nthe database is left in {}\nrepeat with: cargo run -p esker-check -- kill9 --seed {} \
                     --rounds {} --longest-life {}",
                    totals.kills,
                    expected.path.display(),
                    self.seed,
                    self.rounds,
                    self.longest_life
                ));
            }
        }
        Ok(totals)
    }

    fn round(&self, expected: &mut Expected, totals: &mut Totals) -> Checked<()> {
        let mut random = Random::derived(self.seed, &[0, totals.kills]);
        // Now and then so early that the child is still opening.
        let life = if random.percent(15) {
            Duration::from_micros(random.below(8000) as u64)
        } else {
            Duration::from_millis(random.between(1, self.longest_life) as u64)
        };
        let acknowledged = self.one_life(expected, totals.kills, life)?;
        totals.kills += 1;
        totals.early_kills += u64::from(acknowledged.is_none());
        totals.outrun += std::mem::take(&mut expected.outrun);
        let least = acknowledged.unwrap_or(expected.commits);
        let followed = match expected.catch_up(false)? {
            true => {
                let state = |follower: &Follower| database_state(follower.db(), &names_in(follower.db()));
                expected.follower.as_ref().map(state).transpose()?
            }
            false => None,
        };

        let db = Db::open(&expected.path, options(expected.seed)).map_err(|error| format!("open failed: {error}"))?;
        let count = counter(&db)?;
        if count < least || count > least + 1 {
            return Err(format!("{count} commits are there, {least} were acknowledged"));
        }
        let names = names_in(&db);
        totals.renamed += u64::from(names != NAMES);
        if keeps_changes(expected.seed) {
            totals.told += expected.read_changes(&db, count)?;
        }
        let mut whole = None;
        for number in expected.commits + 1..=count {
            expected.model.commit(&commit_of(expected.seed, number).0);
            if is_dropped_after(expected.seed, number) {
                // Of the last one nobody has heard.
                whole = (number > least).then(|| expected.model.clone());
                expected.model.drop_keyspace(PASSING, expected.model.settings(PASSING));
                expected.model.forget_dropped();
                totals.drops += 1;
            }
        }
        totals.acknowledged += least - expected.commits.min(least);
        totals.unacknowledged += count - least;
        expected.commits = count;
        let state = database_state(&db, &names)?;
        if let Some(whole) = whole.filter(|whole| model_state(whole, whole.present()) == state) {
            expected.model = whole;
        }
        let contents = model_state(&expected.model, expected.model.present());
        if let Some(what) = difference(&contents, &state) {
            return Err(format!("after {count} commits: {what}"));
        }
        // The keyspaces may not have been there yet.
        if let Some(followed) = followed.filter(|_| expected.followed > 0 || count > 0) {
            totals.followed += 1;
            if let Some(what) = difference(&contents, &followed) {
                return Err(format!("the follower has {} of {count} commits: {what}", expected.followed));
            }
        }
        if random.percent(25) {
            check_gets(&db, &names, &state)?;
        }
        db.verify().map_err(|error| format!("verification failed: {error}"))?;
        if random.percent(50) {
            db.close().map_err(|error| format!("close failed: {error}"))?;
        }
        Ok(())
    }

    /// Runs a child for that long; the number of the last commit it reported.
    fn one_life(&self, expected: &mut Expected, salt: u64, life: Duration) -> Checked<Option<u64>> {
        let mut child = Command::new(&self.program)
            .arg("kill9-child")
            .arg(&expected.path)
            .args([expected.seed.to_string(), salt.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        let mut pipe = child.stdout.take().ok_or("the child has no pipe")?;
        // The pipe must be emptied while the child lives, or it would soon wait for us.
        let reader = std::thread::spawn(move || {
            let mut reports = Vec::new();
            pipe.read_to_end(&mut reports).map(|_| reports)
        });
        let until = Instant::now() + life;
        let mut follows = Ok(true);
        while follows.is_ok() && Instant::now() < until {
            follows = expected.catch_up(true);
            std::thread::sleep(Duration::from_millis(1).min(until.saturating_duration_since(Instant::now())));
        }
        let ended = child.try_wait().map_err(|error| error.to_string())?;
        child.kill().map_err(|error| format!("cannot kill: {error}"))?;
        child.wait().map_err(|error| error.to_string())?;
        let reports = reader.join().map_err(|_| "the reader panicked")?.map_err(|error| error.to_string())?;
        follows?;
        if let Some(status) = ended {
            return Err(format!("the child ended by itself: {status}"));
        }
        let last = reports.chunks_exact(8).last();
        Ok(last.and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes))
    }
}
