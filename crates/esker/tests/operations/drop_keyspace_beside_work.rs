//! A keyspace that is dropped and created again beside everything else, and while calls of the
//! environment fail.

use crate::callbacks::FOR_EVER;
use crate::common::{DIRECTORY, all, keyspace, pairs, simulated, text, wait_until};
use crate::interrupting::Interrupting;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::internals::waiting_threads;
use esker::merge::StringAppend;
use esker::{CheckpointMode, CompactionStyle, Db, Error, Keyspace, KeyspaceOptions, Result, WriteOptions};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

const WRITERS: usize = 2;
const ROUNDS: u64 = 150;
const INGESTED: usize = 40;

fn is_dropped<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::KeyspaceDropped { .. }))
}

/// None if the keyspace was dropped; every other error is a failure.
fn unless_dropped<T>(result: Result<T>) -> Option<T> {
    match result {
        Err(Error::KeyspaceDropped { .. }) => None,
        result => Some(result.expect("no other error")),
    }
}

fn number(keyspace: &Keyspace, key: &str) -> Result<u64> {
    Ok(keyspace.get(key)?.map_or(0, |bytes| String::from_utf8_lossy(&bytes).parse().expect("a number")))
}

/// What the threads share.
struct World {
    db: Db,
    kept: Keyspace,
    /// The keyspace that comes and goes, as it was created last.
    old: Mutex<Keyspace>,
    /// The number that the last one of them was given, which is in it.
    born: AtomicU64,
    ended: AtomicBool,
    checkpoints: AtomicU64,
    refused: AtomicU64,
}

impl World {
    fn old(&self) -> Keyspace {
        self.old.lock().unwrap().clone()
    }

    fn goes_on(&self) -> bool {
        !self.ended.load(Ordering::Acquire)
    }

    /// Writes the same number to both, in one batch.
    fn write(&self, writer: usize) {
        let key = format!("writer{writer}");
        for count in 1.. {
            if !self.goes_on() {
                return;
            }
            // Some of them in blob files.
            let filler = "f".repeat(if count % 7 == 0 { 900 } else { 30 });
            let commit = || {
                let old = self.old();
                let mut batch = self.db.batch();
                batch.put(&self.kept, &key, format!("{count}"))?;
                batch.put(&old, format!("filler{}", count % 50), &filler)?;
                batch.put(&old, &key, format!("{count}"))?;
                batch.commit()
            };
            while unless_dropped(commit()).is_none() {
                assert_eq!(number(&self.kept, &key).expect("get"), count - 1, "a part of a refused batch is there");
                self.refused.fetch_add(1, Ordering::Relaxed);
                if !self.goes_on() {
                    return;
                }
            }
        }
    }

    fn drop_and_create(&self) {
        for round in 1..=ROUNDS {
            self.kept.put("generation", format!("{round}")).expect("put");
            let old = self.old();
            self.db.drop_keyspace("old").expect("drop");
            assert!(is_dropped(old.get("born")) && is_dropped(old.put("born", "0")));
            let options = KeyspaceOptions::default();
            let options = if round % 2 == 0 { options } else { options.merge_operator(StringAppend::new(",")) };
            let new = loop {
                match self.db.keyspace("old", options.clone()) {
                    // By the thread that opens it with another style.
                    Err(Error::InvalidArgument { .. }) => self.db.drop_keyspace("old").expect("drop"),
                    result => break result.expect("create"),
                }
            };
            assert_eq!(new.first().expect("first"), None);
            new.put("born", format!("{}", round + 1)).expect("put");
            *self.old.lock().unwrap() = new;
            self.born.store(round + 1, Ordering::Release);
            (0..round % 5 * 100).for_each(|_| std::thread::yield_now());
        }
        self.ended.store(true, Ordering::Release);
    }

    /// Snapshots that are held over drops.
    fn read(&self) {
        while self.goes_on() {
            let old = self.old();
            let snapshot = self.db.snapshot();
            let mut first = None;
            for _ in 0..3 {
                let found = unless_dropped(snapshot.iter(&old).collect::<Result<Vec<_>>>());
                match (&first, found) {
                    (Some(first), found) => assert_eq!(*first, found, "a snapshot sees another keyspace than before"),
                    (None, found) => first = Some(found),
                }
                for writer in 0..WRITERS {
                    let key = format!("writer{writer}");
                    let Some(in_old) = unless_dropped(snapshot.get(&old, &key)) else { continue };
                    let in_kept = snapshot.get(&self.kept, &key).expect("get");
                    assert!(in_old.is_none() || in_old == in_kept, "half a batch: {in_old:?} {in_kept:?}");
                }
                std::thread::yield_now();
            }
            let ingested = first.flatten().map(|pairs| pairs.iter().filter(|(key, _)| key[..1] == *b"i").count());
            assert!(matches!(ingested, None | Some(0 | INGESTED)), "half a load: {ingested:?}");
        }
    }

    fn ingest(&self) {
        for round in 0.. {
            if !self.goes_on() {
                return;
            }
            let pairs = (0..INGESTED).map(|number| (format!("i{number:03}"), format!("{round}")));
            unless_dropped(self.old().ingest(pairs));
            std::thread::yield_now();
        }
    }

    fn maintain(&self, env: &MemEnv) {
        let style = [CompactionStyle::Leveled, CompactionStyle::Tiered];
        for round in 0.. {
            if !self.goes_on() {
                return;
            }
            match round % 5 {
                0 => self.db.flush().expect("flush"),
                1 => _ = unless_dropped(self.old().compact()),
                2 => self.db.compact().expect("compact"),
                3 => {
                    // Another style, if it is there.
                    let options = KeyspaceOptions::default().compaction_style(style[round % 2]);
                    unless_dropped(self.db.keyspace("old", options));
                }
                _ => {
                    let path = format!("/copy-{round}");
                    let mode = [CheckpointMode::Link, CheckpointMode::Copy][round % 2];
                    let born = self.born.load(Ordering::Acquire);
                    self.db.checkpoint_with(&path, mode).expect("checkpoint");
                    check_copy(env, &path, born);
                    self.checkpoints.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

/// A copy is the state at one moment, after the creation of keyspace number `born`.
fn check_copy(env: &MemEnv, path: &str, born: u64) {
    let db = Db::open(path, simulated(env)).expect("the copy opens");
    db.verify().expect("whole");
    let kept = db.existing_keyspace("kept").expect("kept");
    let generation = number(&kept, "generation").expect("get");
    let found = db.existing_keyspace("old").ok().map(|old| (number(&old, "born").expect("get"), old));
    match &found {
        Some((found, _)) if *found == born => assert!(generation == born || generation + 1 == born, "{generation}"),
        _ => assert!(
            generation >= born,
            "keyspace {born} is gone, and what was written before, {generation}, is not there"
        ),
    }
    let Some((found, old)) = found else { return };
    assert!(found == 0 || found == generation || found == generation + 1, "{found} beside {generation}");
    for writer in 0..WRITERS {
        let key = format!("writer{writer}");
        let (in_old, in_kept) = (text(&old, &key), text(&kept, &key));
        assert!(in_old.is_none() || in_old == in_kept, "half a batch in a copy: {in_old:?} {in_kept:?}");
    }
}

#[test]
fn everything_at_once() {
    let env = MemEnv::new();
    let options = || simulated(&env).background_threads(1).write_buffer_bytes(8 << 10).min_blob_size(500);
    let db = Db::open(DIRECTORY, options()).expect("open");
    let (kept, old) = (keyspace(&db, "kept"), keyspace(&db, "old"));
    old.put("born", "1").expect("put");
    let world = World {
        db,
        kept,
        old: Mutex::new(old),
        born: AtomicU64::new(1),
        ended: AtomicBool::new(false),
        checkpoints: AtomicU64::new(0),
        refused: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        let world = &world;
        let ends = |work: &dyn Fn()| {
            let _end = EndsAll(&world.ended);
            work();
        };
        for writer in 0..WRITERS {
            scope.spawn(move || ends(&|| world.write(writer)));
        }
        scope.spawn(move || ends(&|| world.drop_and_create()));
        scope.spawn(move || ends(&|| world.read()));
        scope.spawn(move || ends(&|| world.ingest()));
        let env = &env;
        scope.spawn(move || ends(&|| world.maintain(env)));
    });
    let World { db, kept, old, checkpoints, refused, .. } = world;
    assert!(checkpoints.load(Ordering::Relaxed) > 0);
    println!(
        "{} checkpoints, {} batches refused",
        checkpoints.load(Ordering::Relaxed),
        refused.load(Ordering::Relaxed)
    );
    db.verify().expect("whole");
    db.drop_keyspace("old").expect("drop");
    drop(old);
    // The log and the files are given back.
    kept.delete_prefix("").and_then(|()| db.flush()).and_then(|()| db.compact()).expect("work");
    let left = |extension: &str| {
        let is_own = |path: &&std::path::PathBuf| path.parent() == Some(Path::new(DIRECTORY));
        let files = env.files();
        let named = files.iter().filter(is_own).filter(|path| path.extension().is_some_and(|it| it == extension));
        named.count()
    };
    wait_until("its files are gone", || {
        db.wait_idle().expect("idle");
        left("table") == 0 && left("blob") == 0
    });
    assert!(db.stats().wal_segments <= 2, "{} segments of the log", db.stats().wal_segments);
    drop((kept, db));
    let db = Db::open(DIRECTORY, options()).expect("open");
    assert_eq!(db.keyspaces(), ["kept"]);
}

/// When one of the threads ends, however that is, all end.
struct EndsAll<'a>(&'a AtomicBool);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A thread begins that while `interrupting` is interrupted. What is interrupted goes on when the
/// thread has ended, or `has_met` it: then the thread may wait for it.
fn begin_inside<T: Send + 'static>(
    interrupting: &Interrupting,
    db: &Db,
    work: impl FnOnce(&Db) -> T + Send + 'static,
    has_met: fn(&Db) -> bool,
) -> Receiver<JoinHandle<T>> {
    let (began, begun) = channel();
    let (db, its_own) = (db.clone(), db.clone());
    interrupting.interrupt_with(move || {
        let thread = std::thread::spawn(move || work(&its_own));
        wait_until("the two meet", || has_met(&db) || thread.is_finished());
        began.send(thread).expect("it is waited for");
    });
    begun
}

/// What became of it.
fn outcome<T>(interrupting: &Interrupting, begun: &Receiver<JoinHandle<T>>) -> T {
    assert!(interrupting.has_interrupted(), "there was nothing to interrupt");
    begun.recv_timeout(FOR_EVER).expect("they have met").join().expect("no panic")
}

fn is_waited(db: &Db) -> bool {
    waiting_threads(db) > 0
}

/// Whether the file belongs to the database itself, and its name contains that.
fn is_own(path: &Path, part: &str) -> bool {
    path.parent() == Some(Path::new(DIRECTORY)) && path.to_string_lossy().contains(part)
}

/// What was moved to another keyspace before the drop is in one of the two.
#[test]
fn a_checkpoint_is_one_moment_before_the_drop_or_after_it() {
    let env = MemEnv::new();
    let interrupting = Interrupting::new(&env, |path| is_own(path, ".table"), FOR_EVER);
    let db = Db::open(DIRECTORY, simulated(&env).env(Arc::new(interrupting.clone()))).expect("open");
    let (old, kept) = (keyspace(&db, "old"), keyspace(&db, "kept"));
    old.put("a", "1").and_then(|()| kept.put("b", "1")).expect("put");
    let moving = move |db: &Db| {
        kept.put("a", "1").expect("put");
        db.drop_keyspace("old").expect("drop");
    };
    let begun = begin_inside(&interrupting, &db, moving, is_waited);
    db.checkpoint("/copy").expect("checkpoint");
    outcome(&interrupting, &begun);
    let copy = Db::open("/copy", simulated(&env)).expect("open");
    let in_kept = all(&copy.existing_keyspace("kept").expect("kept"));
    let in_old = copy.existing_keyspace("old").map(|old| all(&old)).unwrap_or_default();
    assert!(in_kept.contains_key(&b"a"[..]) || in_old.contains_key(&b"a"[..]), "it is in neither");
}

/// What they have made of the keyspace is given up, and the database goes on.
#[test]
fn a_flush_or_a_compaction_that_meets_the_drop_does_no_harm() {
    for compacts in [false, true] {
        let env = MemEnv::new();
        let interrupting = Interrupting::new(&env, |path| is_own(path, ".table"), FOR_EVER);
        let options = simulated(&env).env(Arc::new(interrupting.clone())).background_threads(0);
        let db = Db::open(DIRECTORY, options).expect("open");
        // The manifest has a keyspace without the dropped one, too.
        let (old, kept) = (keyspace(&db, "old"), keyspace(&db, "kept"));
        if compacts {
            for value in ["1", "2"] {
                old.put("a", value).and_then(|()| db.flush()).expect("a table");
            }
        } else {
            old.put("a", "1").expect("put");
        }
        // The drop does not wait for them. What is due behind it may.
        let is_gone = |db: &Db| db.keyspaces() == ["kept"];
        let begun = begin_inside(&interrupting, &db, |db| db.drop_keyspace("old").expect("drop"), is_gone);
        if compacts { db.compact() } else { db.flush() }.expect("another keyspace may be there");
        outcome(&interrupting, &begun);
        assert!(is_dropped(old.get("a")), "compacts: {compacts}");
        assert!(db.health().writable && db.health().problem.is_none(), "compacts: {compacts}: {:?}", db.health());
        kept.put("b", "1").and_then(|()| db.flush()).expect("the database takes writes");
        drop((old, kept, db));
        let db = Db::open(DIRECTORY, simulated(&env)).expect("open");
        assert_eq!(db.keyspaces(), ["kept"], "compacts: {compacts}");
        db.verify().expect("whole");
    }
}

/// The one is told that the keyspace was dropped, or not; no other keyspace suffers for it.
#[test]
fn another_compaction_style_beside_the_drop_does_no_harm() {
    let env = MemEnv::new();
    let interrupting = Interrupting::new(&env, |path| is_own(path, "MANIFEST"), FOR_EVER);
    let db = Db::open(DIRECTORY, simulated(&env).env(Arc::new(interrupting.clone()))).expect("open");
    let (old, kept) = (keyspace(&db, "old"), keyspace(&db, "kept"));
    old.put("a", "1").expect("put");
    let opening = |db: &Db| {
        let leveled = KeyspaceOptions::default().compaction_style(CompactionStyle::Leveled);
        db.keyspace("old", leveled).and_then(|old| old.get("a"))
    };
    let begun = begin_inside(&interrupting, &db, opening, is_waited);
    db.drop_keyspace("old").expect("drop");
    assert!(is_dropped(outcome(&interrupting, &begun)));
    kept.put("a", "1").expect("the database takes writes");
    assert!(db.health().writable && db.health().problem.is_none(), "{:?}", db.health());
}

/// A thousand names are kept for this; the answer is the same without.
#[test]
fn a_handle_of_long_ago_says_so_too() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, simulated(&env)).expect("open");
    let (first, kept) = (keyspace(&db, "first"), keyspace(&db, "kept"));
    let mut batch = db.batch();
    batch.put(&first, "a", "1").and_then(|()| batch.put(&kept, "a", "1")).expect("put");
    db.drop_keyspace("first").expect("drop");
    for _ in 0..1001 {
        keyspace(&db, "passing");
        db.drop_keyspace("passing").expect("drop");
    }
    assert!(is_dropped(first.get("a")) && is_dropped(first.put("a", "1")) && is_dropped(batch.commit()));
    assert_eq!(pairs(&kept), []);
}

/// The database with something of "old" in a table, in the log, and in neither.
fn prepared(faults: &FaultEnv) -> (Db, Keyspace, Keyspace) {
    let options = simulated(&MemEnv::new()).env(Arc::new(faults.clone())).min_blob_size(500);
    let db = Db::open(DIRECTORY, options).expect("open");
    let (old, kept) = (keyspace(&db, "old"), keyspace(&db, "kept"));
    old.put("table", "t".repeat(600)).and_then(|()| db.flush()).expect("put");
    let mut batch = db.batch();
    batch.put(&old, "log", "l".repeat(600)).and_then(|()| batch.put(&kept, "log", "1")).expect("put");
    batch.commit().expect("commit");
    old.put_with("nowhere", "1", &WriteOptions::new().disable_wal(true)).expect("put");
    (db, old, kept)
}

fn keys(keyspace: &Keyspace) -> Vec<String> {
    pairs(keyspace).into_iter().map(|(key, _)| key).collect()
}

/// A handle that takes writes goes on with a keyspace that is whole.
fn goes_on(db: &Db, old: &Keyspace, kept: &Keyspace) {
    old.put("more", "1").and_then(|()| kept.put("more", "1")).expect("writes go on");
    db.flush().and_then(|()| db.compact()).and_then(|()| db.verify().map(drop)).expect("work goes on");
    assert_eq!(keys(old), ["log", "more", "nowhere", "table"]);
    assert_eq!(db.keyspaces(), ["kept", "old"]);
}

/// One failing call; whether there was one so late.
fn a_failing_call(nth: u64, action: Action) -> bool {
    let (memory, context) = (MemEnv::new(), format!("{action:?} of call {nth}"));
    let faults = FaultEnv::new(Arc::new(memory.clone()));
    let (db, old, kept) = prepared(&faults);
    let snapshot = db.snapshot();
    let before = faults.fired();
    faults.add(Rule::new(Class::AnyMutating, nth, action));
    let result = db.drop_keyspace("old");
    let hit = faults.fired() > before;
    faults.clear();
    // Whatever became of it, who began before reads on.
    assert_eq!(snapshot.count(&old, ..).expect("scan"), 3, "{context}");
    drop(snapshot);
    let writable = db.health().writable;
    match &result {
        Ok(()) => {
            assert!(is_dropped(old.get("log")) && db.keyspaces() == ["kept"], "{context}");
            assert!(writable, "{context}: it was dropped, and the handle takes no writes");
            kept.put("more", "1").and_then(|()| db.flush()).expect("writes go on");
        }
        Err(error) => {
            assert!(!matches!(error, Error::KeyspaceDropped { .. }), "{context}: {error}");
            assert_eq!(keys(&old), ["log", "nowhere", "table"], "{context}");
            if writable {
                assert!(error.is_disk_full(), "{context}: {error}, and the handle takes writes");
                goes_on(&db, &old, &kept);
            } else {
                assert!(matches!(kept.put("more", "1"), Err(Error::ReadOnly { .. })), "{context}");
                assert!(matches!(db.drop_keyspace("old"), Err(Error::ReadOnly { .. })), "{context}");
            }
        }
    }
    drop((db, old, kept));
    let db = Db::open(DIRECTORY, simulated(&memory)).unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = db.existing_keyspace("old").ok().map(|old| keys(&old));
    match (&result, writable) {
        (Ok(()), _) => assert_eq!(found, None, "{context}"),
        (Err(_), true) => assert_eq!(found.expect("it is there").len(), 4, "{context}"),
        // Whole, but for what is in no log, or gone.
        (Err(_), false) => {
            assert!(found.is_none_or(|found| found.starts_with(&["log".into()]) && found.len() >= 2), "{context}")
        }
    }
    let kept = keys(&db.existing_keyspace("kept").expect("kept"));
    assert_eq!(kept.contains(&"more".to_owned()), writable, "{context}");
    assert!(kept.contains(&"log".to_owned()), "{context}: what was written before the drop is missing");
    db.verify().expect("whole");
    hit
}

#[test]
fn whatever_call_fails_it_is_there_or_gone() {
    for action in [Action::Fail, Action::FailAfter] {
        for kind in [ErrorKind::Other, ErrorKind::StorageFull] {
            let calls = (0..).take_while(|&nth| a_failing_call(nth, action(kind))).count();
            assert!(calls > 6, "only {calls} calls failed");
        }
    }
}

/// As long as the disk is full, again and again.
#[test]
fn a_full_disk_for_a_while() {
    let memory = MemEnv::new();
    let faults = FaultEnv::new(Arc::new(memory.clone()));
    let (db, old, kept) = prepared(&faults);
    faults.add(
        Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with("MANIFEST").from_then_on(),
    );
    for round in 0..20 {
        assert!(db.drop_keyspace("old").is_err_and(|error| error.is_disk_full()), "{round}");
        old.put(format!("round{round}"), "1").and_then(|()| kept.put("round", "1")).expect("writes go on");
    }
    assert_eq!(old.count("round".."rounds").expect("count"), 20);
    faults.clear();
    db.drop_keyspace("old").expect("there is space again");
    drop((db, old, kept));
    assert_eq!(Db::open(DIRECTORY, simulated(&memory)).expect("open").keyspaces(), ["kept"]);
}
