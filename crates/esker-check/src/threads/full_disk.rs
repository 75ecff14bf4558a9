//! A disk that is full for a while beside threads.
//!
//! Each round has a database and a disk of its own. Every commit of a writer puts its number into
//! two keyspaces, and a value of that number into a slot of a third one; a reader looks at
//! snapshots; another thread flushes, compacts, and makes and drops a keyspace. What the disk has
//! no room for is refused, says so, and is not there; reads go on. Once there is room, everything
//! goes on: in the same handle or, where the manifest has met the full disk, in the next one. In
//! the end there are no files but those that are needed, and when everything is deleted the space
//! is there again.

use super::stored::number;
use super::together::{join, start};
use crate::Checked;
use crate::random::Random;
use crate::settings::Settings;
use crate::simulated::MEMORY_PATH;
use crate::state::shown;
use esker::env::mem::MemEnv;
use esker::{Db, Error, Keyspace, KeyspaceOptions, Options, Snapshot};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const WRITERS: usize = 3;
/// Keys that the values of a writer go to in turn.
const SLOTS: u64 = 200;
const LONGEST_VALUE: usize = 600;
const SEGMENT_BYTES: u64 = 16 << 10;
/// The disk is full when the database has grown to this.
const GROWN_BYTES: u64 = 128 << 10;
/// How long it stays full at most behind the first write that is refused: longer than background
/// work waits before it tries again.
const LONGEST_FULL_MS: usize = 700;
/// Commits of each writer that must succeed once there is room.
const COMMITS_AFTER: u64 = 50;
/// What is to happen is waited for so long before its absence is a finding.
const PATIENCE: Duration = Duration::from_secs(300);
/// The streams of the seed for the rounds.
const ROUNDS: u64 = 1000;
/// The keyspace that is made and dropped.
const PASSING: &str = "passing";

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    /// Disks that were full.
    pub full: u64,
    /// Commits and other calls that were refused.
    pub refused: u64,
    /// Handles that took no more writes.
    pub read_only: u64,
}

/// One round at least, and more in a quarter of the time.
pub(super) fn run(settings: &Settings) -> Checked<Rounds> {
    let mut rounds = Rounds::default();
    while rounds.full == 0 || settings.elapsed_seconds() * 4.0 < settings.budget.as_secs_f64() {
        let random = Random::derived(settings.seed, &[ROUNDS, rounds.full]);
        round(random, &mut rounds).map_err(|what| format!("a full disk, round {}: {what}", rounds.full))?;
        rounds.full += 1;
    }
    Ok(rounds)
}

fn options(env: &MemEnv, threads: usize) -> Options {
    Options::default()
        .env(Arc::new(env.clone()))
        .write_buffer_bytes(16 << 10)
        .block_bytes(512)
        .target_file_bytes(8 << 10)
        .wal_segment_bytes(SEGMENT_BYTES)
        .min_blob_size(300)
        .background_threads(threads)
}

fn round(mut random: Random, rounds: &mut Rounds) -> Checked<()> {
    let env = MemEnv::new();
    let options = options(&env, random.between(1, 3));
    let open = || Handles::open(&options).map_err(|error| format!("open failed: {error}"));
    let (handles, disk) = (open()?, Disk { is_quiet: random.percent(50), ..Disk::default() });
    disk.run(&handles, &env, random)?;
    rounds.refused += disk.refused.load(Ordering::Acquire);
    // A job that the full disk has met may have yet to say so.
    let _ = handles.db.wait_idle();
    let is_writable = handles.db.health().writable;
    let handles = if is_writable {
        handles
    } else {
        rounds.read_only += 1;
        drop(handles);
        open()?
    };
    let last = handles.last_numbers(&disk.acknowledged, is_writable)?;
    handles.settle(&env, last)
}

/// The lengths of the files whose name ends so.
fn lengths(env: &MemEnv, end: &str) -> Vec<u64> {
    let is_one = |path: &PathBuf| {
        path.parent() == Some(Path::new(MEMORY_PATH)) && path.extension().is_some_and(|extension| extension == end)
    };
    let own = env.files().into_iter().filter(is_one);
    own.filter_map(|path| env.file_bytes(&path)).map(|bytes| bytes.len() as u64).collect()
}

/// The bytes of all files.
fn used(env: &MemEnv) -> u64 {
    let files = env.files().into_iter().filter_map(|path| env.file_bytes(&path));
    files.map(|bytes| bytes.len() as u64).sum()
}

/// Whether the error says that the disk is full, also where an earlier one did: for which only the
/// manifest ends writing.
fn says_so(error: &Error) -> bool {
    match error {
        Error::ReadOnly { why } => {
            why.contains("free some disk space") && (why.contains("MANIFEST-") || why.contains("CURRENT"))
        }
        other => other.is_disk_full(),
    }
}

/// The key of a writer's number.
fn key(writer: usize) -> String {
    format!("writer{writer}")
}

/// The key of the value that goes with a number.
fn slot(writer: usize, number: u64) -> String {
    format!("value{writer}-{:03}", number % SLOTS)
}

fn value(writer: usize, number: u64) -> Vec<u8> {
    let mut random = Random::derived(number, &[writer as u64]);
    let length = random.below(LONGEST_VALUE);
    [&number.to_le_bytes()[..], &random.bytes(length)].concat()
}

struct Handles {
    db: Db,
    numbers: Keyspace,
    copies: Keyspace,
    values: Keyspace,
}

impl Handles {
    fn open(options: &Options) -> esker::Result<Handles> {
        let db = Db::open(MEMORY_PATH, options.clone())?;
        let keyspace = |name: &str| db.keyspace(name, KeyspaceOptions::default());
        let (numbers, copies, values) = (keyspace("numbers")?, keyspace("copies")?, keyspace("values")?);
        Ok(Handles { db, numbers, copies, values })
    }

    fn commit(&self, writer: usize, number: u64) -> esker::Result<()> {
        let mut batch = self.db.batch();
        batch.put(&self.numbers, key(writer), number.to_le_bytes())?;
        batch.put(&self.values, slot(writer, number), value(writer, number))?;
        batch.put(&self.copies, key(writer), number.to_le_bytes())?;
        batch.commit()
    }

    /// The number of a writer in a snapshot, which shows one moment.
    fn check_one(&self, snapshot: &Snapshot, writer: usize) -> Checked<u64> {
        let [found, copy] = [&self.numbers, &self.copies].map(|keyspace| number(snapshot.get(keyspace, key(writer))));
        let (found, copy) = (found?, copy?);
        if found != copy {
            return Err(format!("half a batch is visible: writer {writer} is at {found} and at {copy}"));
        }
        if found > 0 {
            self.check_value(snapshot, writer, found)?;
        }
        Ok(found)
    }

    fn check_value(&self, snapshot: &Snapshot, writer: usize, number: u64) -> Checked<()> {
        let found = snapshot.get(&self.values, slot(writer, number));
        let found = found.map_err(|error| format!("value {number} of writer {writer} cannot be read: {error}"))?;
        if found.as_deref() == Some(&value(writer, number)[..]) {
            return Ok(());
        }
        let found = found.as_deref().map(shown);
        Err(format!("value {number} of writer {writer} is {found:?}"))
    }

    /// The numbers of the writers, which are what was acknowledged; for the next handle a commit
    /// that failed may have happened, too.
    fn last_numbers(&self, acknowledged: &[AtomicU64; WRITERS], is_same: bool) -> Checked<[u64; WRITERS]> {
        let (snapshot, mut last) = (self.db.snapshot(), [0; WRITERS]);
        for (writer, last) in last.iter_mut().enumerate() {
            let least = acknowledged[writer].load(Ordering::Acquire);
            *last = self.check_one(&snapshot, writer)?;
            if *last != least && (is_same || *last != least + 1) {
                return Err(format!("writer {writer} is at {last}, {least} was acknowledged"));
            }
        }
        Ok(last)
    }

    /// There is room, and nobody else: everything works, everything is there, and no file is left.
    fn settle(&self, env: &MemEnv, mut last: [u64; WRITERS]) -> Checked<()> {
        for (writer, last) in last.iter_mut().enumerate() {
            for _ in 0..COMMITS_AFTER {
                with_room("a commit", || self.commit(writer, *last + 1))?;
                *last += 1;
            }
        }
        self.drop_passing()?;
        self.put_in_order()?;
        let snapshot = self.db.snapshot();
        for (writer, &last) in last.iter().enumerate() {
            if self.check_one(&snapshot, writer)? != last {
                return Err(format!("writer {writer} is not at {last}"));
            }
            (last.saturating_sub(SLOTS - 1).max(1)..=last)
                .try_for_each(|number| self.check_value(&snapshot, writer, number))?;
        }
        drop(snapshot);
        self.db.verify().map_err(|error| format!("verification failed: {error}"))?;
        let is_needed = || {
            let stats = self.db.stats();
            let left = ["table", "blob"].map(|end| lengths(env, end).len() as u64);
            if left == [stats.table_files, stats.blob_files] { Ok(()) } else { Err(format!("{left:?} files: {stats}")) }
        };
        eventually("only files that are needed are left", is_needed)?;
        for keyspace in [&self.numbers, &self.copies, &self.values] {
            keyspace.clear().map_err(|error| format!("{} cannot be cleared: {error}", keyspace.name()))?;
        }
        self.put_in_order()?;
        let is_empty = || {
            let [tables, blobs, log] = ["table", "blob", "wal"].map(|end| lengths(env, end));
            // "No more space than those of a new one".
            let is_new = tables.is_empty() && blobs.is_empty() && log.iter().sum::<u64>() <= SEGMENT_BYTES;
            if is_new { Ok(()) } else { Err(format!("tables {tables:?}, blob files {blobs:?}, log {log:?}")) }
        };
        eventually("the space is there again", is_empty)
    }

    /// The other thread may have been stopped, or refused, before it was dropped.
    fn drop_passing(&self) -> Checked<()> {
        with_room("a drop", || match self.db.drop_keyspace(PASSING) {
            Err(Error::NotFound { .. }) => Ok(()),
            outcome => outcome,
        })
    }

    fn put_in_order(&self) -> Checked<()> {
        with_room("a flush", || self.db.flush())?;
        with_room("a compaction", || self.db.compact())?;
        with_room("the rest", || self.db.wait_idle())?;
        eventually("all is well", || match self.db.health() {
            health if health.problem.is_none() && health.writable => Ok(()),
            health => Err(format!("{health:?}")),
        })
    }
}

/// Tries until it succeeds.
fn eventually(what: &str, mut attempt: impl FnMut() -> Checked<()>) -> Checked<()> {
    let started = Instant::now();
    while let Err(last) = attempt() {
        if started.elapsed() > PATIENCE {
            return Err(format!("waited {PATIENCE:?} until {what}: {last}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Makes a call that must succeed once the database has noticed that there is room: until then it
/// may say that there is none, and nothing else.
fn with_room(call: &str, mut attempt: impl FnMut() -> esker::Result<()>) -> Checked<()> {
    let mut other = None;
    let outcome = eventually(&format!("{call} succeeds, as there is room"), || match attempt() {
        Err(error) if error.is_disk_full() => Err(error.to_string()),
        outcome => {
            other = outcome.err();
            Ok(())
        }
    });
    outcome.and_then(|()| other.map_or(Ok(()), |error| Err(format!("{call} failed: {error}"))))
}

/// The disk of a round, and what the threads know of each other.
#[derive(Default)]
struct Disk {
    /// Whether nobody flushes and compacts while it is full, so that the manifest seldom meets it.
    is_quiet: bool,
    acknowledged: [AtomicU64; WRITERS],
    /// Commits of each writer that began when there was room again, and succeeded.
    after: [AtomicU64; WRITERS],
    /// Whether it is, or was, full.
    was_full: AtomicBool,
    is_freed: AtomicBool,
    refused: AtomicU64,
    stop: AtomicBool,
}

impl Disk {
    /// Runs all threads until the disk was full and has room again.
    fn run(&self, handles: &Handles, env: &MemEnv, mut random: Random) -> Checked<()> {
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for writer in 0..WRITERS {
                threads.push(start(scope, &self.stop, move || self.write(handles, writer)));
            }
            threads.push(start(scope, &self.stop, move || self.read(handles)));
            let maintaining = Random::new(random.next());
            threads.push(start(scope, &self.stop, move || self.maintain(handles, maintaining)));
            threads.push(start(scope, &self.stop, move || self.fill_and_free(handles, env, random)));
            join(threads)
        })
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Waits for something, but not beyond the end of the others.
    fn wait_until(&self, what: &str, mut condition: impl FnMut() -> bool) -> Checked<()> {
        eventually(what, || if self.stops() || condition() { Ok(()) } else { Err("it is not so".to_string()) })
    }

    /// Notes that a call was refused, which must be for want of room. Whether the handle takes no
    /// more writes.
    fn excuse(&self, call: &str, error: &Error) -> Checked<bool> {
        if !self.was_full.load(Ordering::Acquire) || !says_so(error) {
            return Err(format!("{call} failed: {error}"));
        }
        self.refused.fetch_add(1, Ordering::AcqRel);
        Ok(matches!(error, Error::ReadOnly { .. }))
    }

    fn write(&self, handles: &Handles, writer: usize) -> Checked<()> {
        let mut next = 1;
        while !self.stops() {
            let is_freed = self.is_freed.load(Ordering::Acquire);
            let Err(error) = handles.commit(writer, next) else {
                self.acknowledged[writer].store(next, Ordering::Release);
                self.after[writer].fetch_add(u64::from(is_freed), Ordering::AcqRel);
                next += 1;
                continue;
            };
            let is_read_only = self.excuse("a commit", &error)?;
            let found = number(handles.numbers.get(key(writer)))?;
            if found + 1 != next {
                return Err(format!("commit {next} of writer {writer} was refused ({error}), which is at {found}"));
            }
            if is_read_only {
                return self.wait_until("the others end", || false);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn read(&self, handles: &Handles) -> Checked<()> {
        while !self.stops() {
            let least: [u64; WRITERS] = std::array::from_fn(|writer| self.acknowledged[writer].load(Ordering::Acquire));
            let snapshot = handles.db.snapshot();
            for (writer, least) in least.into_iter().enumerate() {
                let found = handles.check_one(&snapshot, writer)?;
                if found < least {
                    return Err(format!("writer {writer} is at {found}, {least} was acknowledged"));
                }
            }
            std::thread::sleep(Duration::from_micros(300));
        }
        Ok(())
    }

    fn maintain(&self, handles: &Handles, mut random: Random) -> Checked<()> {
        let db = &handles.db;
        while !self.stops() {
            std::thread::sleep(Duration::from_millis(random.below(10) as u64));
            let is_full = self.was_full.load(Ordering::Acquire) && !self.is_freed.load(Ordering::Acquire);
            if self.is_quiet && is_full {
                continue;
            }
            let (call, outcome) = match random.below(5) {
                0 => ("a compaction", db.compact()),
                1 => ("wait_idle", db.wait_idle()),
                2 => ("a creation", db.keyspace(PASSING, KeyspaceOptions::default()).map(drop)),
                3 => match db.drop_keyspace(PASSING) {
                    Err(Error::NotFound { .. }) => continue,
                    outcome => ("a drop", outcome),
                },
                _ => ("a flush", db.flush()),
            };
            if let Err(error) = outcome
                && self.excuse(call, &error)?
            {
                return self.wait_until("the others end", || false);
            }
        }
        Ok(())
    }

    /// Lets others take all room, and what the database gives back, until it has been refused some
    /// for a while; then all of it is free.
    fn fill_and_free(&self, handles: &Handles, env: &MemEnv, mut random: Random) -> Checked<()> {
        self.wait_until("the database has grown", || used(env) >= GROWN_BYTES)?;
        let room = [0, random.below(4 << 10) as u64, random.below(32 << 10) as u64][random.below(3)];
        let longer = Duration::from_millis(random.below(LONGEST_FULL_MS) as u64);
        self.was_full.store(true, Ordering::Release);
        let (mut capacity, mut refused) = (u64::MAX, None);
        self.wait_until("something is refused", || {
            capacity = capacity.min(used(env) + room);
            env.set_capacity(Some(capacity));
            if self.refused.load(Ordering::Acquire) > 0 {
                refused.get_or_insert_with(Instant::now);
            }
            refused.is_some_and(|refused| refused.elapsed() >= longer)
        })?;
        env.set_capacity(None);
        self.is_freed.store(true, Ordering::Release);
        self.wait_until("writes go on, as there is room", || {
            let goes_on = |after: &AtomicU64| after.load(Ordering::Acquire) >= COMMITS_AFTER;
            !handles.db.health().writable || self.after.iter().all(goes_on)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    fn opened() -> Handles {
        Handles::open(&options(&MemEnv::new(), 1)).unwrap()
    }

    #[test]
    fn half_a_commit_and_a_value_of_another_one_are_noticed() {
        let handles = opened();
        let check = || handles.check_one(&handles.db.snapshot(), 0);
        (1..=2).for_each(|number| handles.commit(0, number).unwrap());
        assert_eq!(check(), Ok(2));
        handles.copies.put(key(0), 1u64.to_le_bytes()).unwrap();
        assert!(check().is_err(), "half a commit");
        handles.copies.put(key(0), 2u64.to_le_bytes()).unwrap();
        handles.values.put(slot(0, 2), value(0, 1)).unwrap();
        assert!(check().is_err(), "another value");
    }

    #[test]
    fn what_was_acknowledged_is_there_and_no_more_than_a_commit_that_failed() {
        let handles = opened();
        (1..=2).for_each(|number| handles.commit(0, number).unwrap());
        let fits = |acknowledged: u64, is_same: bool| {
            let acknowledged = [acknowledged, 0, 0].map(AtomicU64::new);
            handles.last_numbers(&acknowledged, is_same).is_ok()
        };
        assert!(fits(2, true) && fits(2, false) && fits(1, false));
        assert!(!fits(1, true), "it failed, and is there");
        assert!(!fits(3, true) && !fits(3, false) && !fits(0, false));
    }

    #[test]
    fn only_a_disk_that_was_full_excuses_an_error_and_only_one_that_says_so() {
        let disk = Disk::default();
        let full = || Error::io("append to", "7.table", ErrorKind::StorageFull.into());
        assert!(disk.excuse("a commit", &full()).is_err());
        disk.was_full.store(true, Ordering::Release);
        assert_eq!(disk.excuse("a commit", &full()), Ok(false));
        assert!(disk.excuse("a commit", &Error::io("append to", "7.table", ErrorKind::Other.into())).is_err());
        let read_only = |path: &str| Error::ReadOnly {
            why: Error::io("append to", path, ErrorKind::StorageFull.into()).to_string(),
        };
        assert_eq!(disk.excuse("a commit", &read_only("MANIFEST-000003")), Ok(true));
        assert!(disk.excuse("a commit", &read_only("7.table")).is_err());
        assert!(disk.excuse("a commit", &Error::ReadOnly { why: "it was closed".into() }).is_err());
        assert_eq!(disk.refused.into_inner(), 2);
    }

    #[test]
    fn only_the_want_of_room_is_waited_for() {
        let mut errors = vec![ErrorKind::Other, ErrorKind::StorageFull, ErrorKind::StorageFull];
        let mut attempt = || errors.pop().map_or(Ok(()), |kind| Err(Error::io("flush to", "7.table", kind.into())));
        assert!(with_room("a flush", &mut attempt).is_err());
        assert!(with_room("a flush", &mut attempt).is_ok());
    }
}
