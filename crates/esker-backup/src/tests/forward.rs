//! A restore that goes on behind its backup fails, is cancelled or ends: at every call of the
//! store, and in states that the writing of its mark and the removal of its files go through.
//!
//! A target has no environment to choose for the databases that it makes: the calls that they make
//! are those of the system. So what the end of the process leaves there is put there by hand.

use super::store::{END, Plan};
use super::world::{is_planned, planned, quick};
use crate::forward::begin;
use crate::layout::{CURRENT, LOCK, UNFINISHED};
use crate::{Create, Error, Forward, Restored, Result, Target, Transfers};
use esker::merge::UInt64Add;
use esker::{ChangeRetention, Db, KeyspaceOptions, Options};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// The pairs of each keyspace.
type Pairs = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

fn pairs(db: &Db) -> Pairs {
    let mut all = Pairs::new();
    for name in db.keyspaces() {
        let keyspace = db.existing_keyspace(&name).unwrap();
        let pairs = keyspace.iter().map(|pair| pair.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec()));
        all.insert(name, pairs.collect());
    }
    all
}

/// How many batches there are between the backup and the write to restore to.
const BATCHES: u64 = 6;

/// Makes one of them. What is applied twice counts twice.
fn write(db: &Db, batch: u64) {
    let existing = |name: &str| db.existing_keyspace(name).unwrap();
    let (names, sums) = (existing("names"), existing("sums"));
    match batch {
        0 => sums.merge("all", 1_u64.to_le_bytes()).unwrap(),
        1 => names.put("bob", "1923").unwrap(),
        2 => names.delete("ada").unwrap(),
        3 => {
            let mut batch = db.batch();
            batch.merge(&sums, "all", 10_u64.to_le_bytes()).unwrap();
            batch.put(&names, "eve", "1990").unwrap();
            batch.commit().unwrap();
        }
        4 => db.keyspace("new", KeyspaceOptions::default()).unwrap().put("key", "value").unwrap(),
        _ => sums.merge("all", 100_u64.to_le_bytes()).unwrap(),
    }
}

fn target(store: Arc<dyn ObjectStore>, transfers: Transfers) -> Target {
    Target::new(store, "some/where").unwrap().with(transfers)
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Copies what is in a directory, where a database may be open.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for name in names_in(from) {
        if name == LOCK {
            // Nobody has the copy open.
            fs::write(to.join(name), "").unwrap();
            continue;
        }
        match fs::copy(from.join(&name), to.join(&name)) {
            // The engine removes files in the background.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            copied => _ = copied.unwrap(),
        }
    }
}

/// A database that keeps its changes, a backup of it, and what it held a few writes behind that.
struct Origin {
    /// Open all the time: it is read beside.
    _db: Db,
    objects: Arc<InMemory>,
    forward: Forward,
    sequence: u64,
    pairs: Pairs,
    /// With the database, and with what is restored.
    place: TempDir,
    /// For files that are put into the place later.
    elsewhere: TempDir,
}

impl Origin {
    fn new() -> Origin {
        let (place, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let data = place.path().join("data");
        let options = Options::default().wal_segment_bytes(64 << 10).keep_changes(ChangeRetention::Bytes(1 << 30));
        let db = Db::open(&data, options).unwrap();
        let names = db.keyspace("names", KeyspaceOptions::default()).unwrap();
        let sums = db.keyspace("sums", KeyspaceOptions::default().merge_operator(UInt64Add)).unwrap();
        names.put("ada", "1815").unwrap();
        sums.merge("all", 1000_u64.to_le_bytes()).unwrap();
        let objects = Arc::new(InMemory::new());
        target(objects.clone(), Transfers::default()).create(&db, &Create::default()).unwrap();
        (0..BATCHES).for_each(|batch| write(&db, batch));
        let (sequence, held) = (db.snapshot().sequence(), pairs(&db));
        // Behind the write to restore to.
        names.put("late", "").unwrap();
        sums.merge("all", 10_000_u64.to_le_bytes()).unwrap();
        let forward = Forward::new(data).to_sequence(sequence);
        Origin { _db: db, objects, forward, sequence, pairs: held, place, elsewhere }
    }

    /// Where it is restored to.
    fn directory(&self) -> PathBuf {
        self.place.path().join("restored")
    }

    /// Where the files are until it is done.
    fn unfinished(&self) -> PathBuf {
        self.place.path().join("restored.restore-forward")
    }

    /// The file that says so.
    fn mark(&self) -> PathBuf {
        self.place.path().join("restored.restore-forward.unfinished")
    }

    /// A target that nothing is wrong with.
    fn target(&self) -> Target {
        target(self.objects.clone(), quick())
    }

    /// `None` if it has ended as planned.
    fn call(&self, target: &Target) -> Option<Result<Restored>> {
        let restore = || target.restore_forward(None, self.directory(), &self.forward);
        match catch_unwind(AssertUnwindSafe(restore)) {
            Ok(outcome) => Some(outcome),
            Err(panic) if panic.downcast_ref::<&str>() == Some(&END) => None,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Makes the call, which ends at this call of the store.
    fn end_at(&self, call: u64) {
        let (store, _) = planned(&self.objects, Plan::EndAt(call));
        assert!(self.call(&target(Arc::new(store), quick())).is_none(), "it ends before call {call}");
        assert!(self.mark().exists() && !self.directory().exists());
    }

    /// How many calls of the store it makes.
    fn calls(&self) -> u64 {
        let (store, _) = planned(&self.objects, Plan::Fine);
        let restored = self.call(&target(Arc::new(store.clone()), quick())).unwrap().unwrap();
        self.check(&restored, "nothing goes wrong");
        store.calls()
    }

    /// Copies these files to where an unfinished restore has its own, with the mark beside them.
    fn leave(&self, files: &Path) {
        self.end_at(0);
        copy(files, &self.unfinished());
    }

    /// Checks that what was restored is there and whole, and nothing else, and takes it away.
    fn check(&self, restored: &Restored, what: &str) {
        assert_eq!(restored.sequence, self.sequence, "{what}");
        assert_eq!(names_in(self.place.path()), ["data", "restored"], "{what}");
        self.check_database(what);
        fs::remove_dir_all(self.directory()).unwrap();
    }

    fn check_database(&self, what: &str) {
        let db = Db::open_read_only(self.directory(), Options::default()).unwrap();
        db.verify().unwrap();
        assert_eq!(pairs(&db), self.pairs, "{what}");
    }

    /// Makes the call with the same arguments again, which succeeds whatever was left.
    fn again(&self, what: &str) {
        assert!(!self.directory().exists(), "{what}: something is there that is not done");
        let restored = self.target().restore_forward(None, self.directory(), &self.forward);
        self.check(&restored.unwrap_or_else(|error| panic!("{what}: {error}")), what);
    }

    /// The database as it is before it is renamed.
    fn whole(&self) -> PathBuf {
        let whole = self.elsewhere.path().join("whole");
        self.target().restore_forward(None, &whole, &self.forward).unwrap();
        whole
    }

    /// What is left if the process ends before the last file is written.
    fn half(&self) -> PathBuf {
        let half = self.elsewhere.path().join("half");
        self.end_at(self.calls() - 1);
        copy(&self.unfinished(), &half);
        self.again("the last file was not written");
        half
    }
}

/// Half a backup is no database, neither for one who reads nor for one who writes.
fn check_refused(directory: &Path, what: &str) {
    assert!(Db::open_read_only(directory, Options::default()).is_err(), "{what}: it opens");
    if directory.exists() {
        assert!(Db::open(directory, Options::default()).is_err(), "{what}: it opens, to be written to");
    }
}

#[test]
fn one_that_fails_or_ends_at_any_call_of_the_store_is_made_again() {
    let origin = Origin::new();
    let mut at = 0;
    loop {
        let mut is_beyond = true;
        for plan in [Plan::FailFrom(at), Plan::HangFrom(at), Plan::EndAt(at)] {
            let what = format!("{plan:?}");
            let (store, cancel) = planned(&origin.objects, plan);
            let outcome = origin.call(&target(Arc::new(store.clone()), quick().cancel(&cancel)));
            let is_reached = store.calls() > at;
            is_beyond &= !is_reached;
            match outcome {
                Some(Ok(restored)) => {
                    assert!(!is_reached, "{what}: it succeeds without that call");
                    origin.check(&restored, &what);
                }
                Some(Err(error)) => {
                    assert!(is_planned(&error), "{what}: {error}");
                    assert_eq!(names_in(origin.place.path()), ["data"], "{what}: something is left");
                }
                None => {
                    assert!(origin.mark().exists(), "{what}: nothing says what is left");
                    check_refused(&origin.unfinished(), &what);
                }
            }
            origin.again(&what);
        }
        if is_beyond {
            break;
        }
        at += 1;
    }
    assert!(at > 4, "it makes more calls than {at}");
}

/// What a kill leaves is the log of a database that nobody has closed, up to any of the changes.
#[test]
fn one_that_ends_while_changes_are_applied_is_made_again() {
    let origin = Origin::new();
    let files = origin.elsewhere.path().join("files");
    origin.target().restore(None, &files).unwrap();
    let db = Db::open(&files, Options::default()).unwrap();
    for batch in 0..BATCHES {
        origin.leave(&files);
        origin.again(&format!("{batch} batches were applied"));
        write(&db, batch);
    }
    origin.leave(&files);
    origin.again("all batches were applied");
    db.flush().unwrap();
    origin.leave(&files);
    origin.again("all was flushed");
    db.close().unwrap();
    origin.leave(&files);
    origin.again("all was closed");
}

/// In what order the files of a database go, and those of half a backup: the first is the one that
/// makes it a database, the last ones say what it is and lock it.
fn order_of_removal(directory: &Path) -> Vec<String> {
    let mut names = names_in(directory);
    names.sort_by_key(|name| (name == LOCK, name == UNFINISHED, name != CURRENT));
    names
}

#[test]
fn one_whose_removal_ends_at_any_file_is_made_again() {
    let origin = Origin::new();
    let (whole, half) = (origin.whole(), origin.half());
    assert!(half.join(UNFINISHED).exists() && !half.join(CURRENT).exists(), "{:?}", names_in(&half));
    // The backup is a database, and not yet unmarked.
    let both = origin.elsewhere.path().join("both");
    copy(&whole, &both);
    fs::copy(half.join(UNFINISHED), both.join(UNFINISHED)).unwrap();
    for files in [whole, half, both] {
        let order = order_of_removal(&files);
        assert!(order.len() > 3, "{order:?}");
        for removed in 0..=order.len() {
            origin.leave(&files);
            for name in &order[..removed] {
                fs::remove_file(origin.unfinished().join(name)).unwrap();
            }
            let what = format!("of {order:?}, {removed} are removed");
            if removed > 0 {
                let opened = Db::open_read_only(origin.unfinished(), Options::default());
                assert!(opened.is_err(), "{what}: it opens");
            }
            origin.again(&what);
        }
    }
}

#[test]
fn one_that_ends_while_it_marks_a_directory_is_made_again() {
    let origin = Origin::new();
    let half = origin.half();
    origin.end_at(0);
    let text = fs::read(origin.mark()).unwrap();
    for length in [0, 1, text.len() - 1, text.len()] {
        for has_directory in [false, true] {
            fs::write(origin.mark(), &text[..length]).unwrap();
            if has_directory {
                fs::create_dir(origin.unfinished()).unwrap();
            }
            origin.again(&format!("{length} bytes of the mark, with a directory: {has_directory}"));
        }
    }
    // The mark within, before there is anything else.
    let text = fs::read(half.join(UNFINISHED)).unwrap();
    for length in [0, 1, text.len() - 1, text.len()] {
        origin.end_at(0);
        fs::create_dir(origin.unfinished()).unwrap();
        fs::write(origin.unfinished().join(UNFINISHED), &text[..length]).unwrap();
        check_refused(&origin.unfinished(), &format!("{length} bytes of the mark within"));
        origin.again(&format!("{length} bytes of the mark within"));
    }
}

/// Seen: the mark was made empty before it was written again, so that the end of the process in
/// that left files that no restore said were its own. The next call refused them.
#[test]
fn a_mark_that_is_there_is_never_shorter_than_it_was() {
    let origin = Origin::new();
    origin.end_at(origin.calls() - 1);
    let text = fs::read(origin.mark()).unwrap();
    // As a process sees it that reads it all the time.
    let file = File::open(origin.mark()).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut least = u64::MAX;
            while !is_done.load(Ordering::Relaxed) {
                least = least.min(file.metadata().unwrap().len());
            }
            least
        });
        for _ in 0..200 {
            begin(&origin.directory(), &origin.unfinished()).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(reader.join().unwrap(), text.len() as u64);
    });
    assert_eq!(fs::read(origin.mark()).unwrap(), text);
    origin.again("it was begun again and again");
}

/// Only the mark is left over then, which is of a directory that is not there.
#[test]
fn one_that_ends_behind_its_renaming_is_done() {
    let origin = Origin::new();
    let whole = origin.whole();
    origin.end_at(0);
    copy(&whole, &origin.directory());
    let outcome = origin.call(&origin.target());
    assert!(
        matches!(&outcome, Some(Err(Error::InvalidArgument { what })) if what.contains("is not empty")),
        "{outcome:?}"
    );
    origin.check_database("it was renamed");
    fs::remove_dir_all(origin.directory()).unwrap();
    assert!(origin.mark().exists());
    origin.again("only the mark was left");
}
