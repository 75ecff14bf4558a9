//! A process that writes to a real directory, killed again and again.
//!
//! Commit number i, the call behind it and the names and settings of the keyspaces at it are a
//! function of the seed and i alone (`kill9/commits.rs`), so the parent can tell the contents after
//! any number of commits without having heard more from the child than numbers. The child reports
//! each acknowledged commit by one write to a pipe, which outlives it. Meanwhile the parent follows
//! the database through all kills. At each moment it reads the contents after some number of
//! commits, never fewer than before, and after a kill those that the next open finds.
//!
//! Commits are batches with puts, deletes, merges, deletes of ranges and changes of expiries, one
//! keyspace is in another order; each eighth commit is a conditional write, another eighth are
//! transactions, which take a first pair now and then, and one of a hundred is a load.
//!
//! Behind some commits the child makes a call before it reports them: it drops a keyspace, clears
//! one, loads, pops, takes, touches and so on. For the last commit that is found, that call may
//! have been made or not. Behind each hundredth report a keyspace gets its other name, or another
//! one another time to live or operator. `kill9/history.rs` says what may be found when.
//!
//! Half of the databases keep their changes. After each kill the parent reads on in them: they have
//! every commit, call and setting once, whole and in order, up to the last that is found.

mod commits;
mod history;
mod present;
#[cfg(test)]
mod tests;
mod told;
mod totals;
mod writer;

use crate::Checked;
use crate::random::Random;
use crate::simulated::ScratchDirectory;
use crate::state::{State, check_gets, database_state, difference};
use commits::{RENAMED, keeps_changes, options};
use esker::{ChangeBatch, Db, Error, Follower};
use history::{Due, History};
use present::{Present, counter};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
pub use totals::Totals;
pub use writer::child;

/// Kills after which a fresh database is begun.
const KILLS_PER_DATABASE: u64 = 100;
/// The signal of [`std::process::Child::kill`].
const SIGKILL: i32 = 9;

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

/// A database, and what the parent knows of it.
struct Expected {
    history: History,
    path: PathBuf,
    seed: u64,
    /// None until there is a database.
    follower: Option<Follower>,
    /// Commits that the follower has.
    followed: u64,
    /// How often a living child was too fast for it.
    outrun: u64,
    /// The number to read on from in the changes.
    next_change: u64,
}

impl Expected {
    fn new(path: PathBuf, seed: u64) -> Expected {
        let history = History::new(seed);
        // The first there ever was: reading from the oldest one there is would not tell that others
        // are gone.
        Expected { history, path, seed, follower: None, followed: 0, outrun: 0, next_change: 1 }
    }

    /// Reads on in the changes, which must be those that are due.
    fn read_changes(&mut self, db: &Db, due: &Due, totals: &mut Totals) -> Checked<()> {
        let mut some_are_gone = false;
        let changes = match db.changes(self.next_change) {
            Err(Error::Gone { oldest }) => {
                some_are_gone = true;
                db.changes(oldest)
            }
            changes => changes,
        };
        let found: esker::Result<Vec<ChangeBatch>> = changes.and_then(|changes| changes.collect());
        let found = found.map_err(|error| format!("the changes cannot be read: {error}"))?;
        if let Some(last) = found.last() {
            self.next_change = last.next_sequence();
        }
        totals.gone += u64::from(some_are_gone);
        totals.told += found.len() as u64;
        told::compare(&due.events, due.may_lack_last, &found, some_are_gone)
    }

    /// Lets the follower catch up, beside a child or behind one; false as long as there is nothing
    /// to follow.
    fn catch_up(&mut self, is_alive: bool) -> Checked<bool> {
        let Some(follower) = &self.follower else {
            match Db::open_follower(&self.path, options(self.seed)) {
                Ok(follower) => self.follower = Some(follower),
                Err(error) if !is_alive && self.history.commits() > 0 => {
                    return Err(format!("the follower cannot be opened: {error}"));
                }
                // The database may just be created.
                Err(_) => {}
            }
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

    /// What the follower shows.
    fn followed_state(&self) -> Checked<Option<(Present, State)>> {
        let Some(follower) = &self.follower else { return Ok(None) };
        let present = Present::of(follower.db())?;
        Ok(Some((present, database_state(follower.db(), &present.names())?)))
    }
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
                let path = scratch.path().join(format!("db{database}"));
                expected = Some(Expected::new(path, self.seed.wrapping_add(database)));
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
        let before = expected.history.commits();
        let least = acknowledged.unwrap_or(before);
        let followed = if expected.catch_up(false)? { expected.followed_state()? } else { None };

        let db = Db::open(&expected.path, options(expected.seed)).map_err(|error| format!("open failed: {error}"))?;
        let count = counter(&db)?;
        if count < least || count > least + 1 {
            return Err(format!("{count} commits are there, {least} were acknowledged"));
        }
        let present = Present::of(&db)?;
        let names = present.names();
        let state = database_state(&db, &names)?;
        totals.renamed += u64::from(present.passing == Some(RENAMED));
        let newly_acknowledged = least - before.min(least);
        totals.acknowledged += newly_acknowledged;
        totals.unacknowledged += count - least;
        let due = expected.history.go_on((least, count), (present, &state), totals)?;
        if keeps_changes(expected.seed) {
            totals.with_changes += newly_acknowledged;
            expected.read_changes(&db, &due, totals)?;
        }
        // The keyspaces may not have been there yet.
        if let Some(followed) = followed.filter(|_| expected.followed > 0 || count > 0) {
            totals.followed += 1;
            let of = format!("the follower has {} of {count} commits", expected.followed);
            if followed.0 != present {
                return Err(format!("{of}: it has {:?}, expected {present:?}", followed.0));
            }
            if let Some(what) = difference(&state, &followed.1) {
                return Err(format!("{of}: {what}"));
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
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        let reports = read_along(child.stdout.take().ok_or("the child has no pipe")?);
        let printed = read_along(child.stderr.take().ok_or("the child has no pipe")?);
        let until = Instant::now() + life;
        let mut follows = Ok(true);
        while follows.is_ok() && Instant::now() < until {
            follows = expected.catch_up(true);
            std::thread::sleep(Duration::from_millis(1).min(until.saturating_duration_since(Instant::now())));
        }
        child.kill().map_err(|error| format!("cannot kill: {error}"))?;
        let status = child.wait().map_err(|error| error.to_string())?;
        let (reports, printed) = (all_read(reports)?, all_read(printed)?);
        follows?;
        check_end(status, &String::from_utf8_lossy(&printed))?;
        let last = reports.chunks_exact(8).last();
        Ok(last.and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes))
    }
}

type Reader = JoinHandle<std::io::Result<Vec<u8>>>;

/// Empties a pipe while the child lives, which would otherwise soon wait for us.
fn read_along(mut pipe: impl Read + Send + 'static) -> Reader {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).map(|_| bytes)
    })
}

fn all_read(reader: Reader) -> Checked<Vec<u8>> {
    reader.join().map_err(|_| "the reader panicked")?.map_err(|error| error.to_string())
}

/// Whether the child wrote until it was killed. It prints only what is wrong: one that fails or
/// panics may be killed before it ends.
fn check_end(status: ExitStatus, printed: &str) -> Checked<()> {
    match (status.signal(), printed) {
        (Some(SIGKILL), "") => Ok(()),
        (Some(SIGKILL), _) => Err(format!("the child failed, and was killed then: {printed}")),
        _ => Err(format!("the child ended by itself: {status}: {printed}")),
    }
}
