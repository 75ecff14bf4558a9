//! Readers of changes that stand in the log while reads fail, or while another process recovers.

use crate::calling_env::Telling;
use crate::changes::keeping;
use crate::common::{DIRECTORY, keyspace, simulated};
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv, SyncFailure};
use esker::{ChangeOperation, Changes, Db, Error, Follower, Keyspace, WriteOptions};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The large value, of which there is one, is lost with the power; the name of its file is not.
fn lose_large_value(env: &MemEnv) {
    let large = env.files().into_iter().find(|path| path.extension().is_some_and(|it| it == "blob")).unwrap();
    env.set_file_bytes(&large, Vec::new());
}

/// The keys of the next batches, up to where there is no more or an error.
fn read_on(changes: &mut Changes, numbers: &mut Vec<u64>) -> bool {
    for batch in changes {
        match batch {
            Ok(batch) => numbers.extend(batch.changes.iter().map(|change| change.sequence)),
            Err(_) => return false,
        }
    }
    true
}

fn fill(db: &Db, puts: usize) {
    let k = keyspace(db, "k");
    (0..puts).for_each(|number| k.put(format!("key {number}"), [7; 90]).unwrap());
}

/// Every change once and in order, although the read `nth` fails. Whether one has.
fn is_read_in_spite_of_a_failure(changes: &mut Changes, faulty: &FaultEnv, nth: u64, what: &str) -> bool {
    let fired_before = faulty.fired();
    faulty.add(Rule::new(Class::Read, nth, Action::Fail(std::io::ErrorKind::Other)));
    let mut numbers = Vec::new();
    let was_whole = read_on(changes, &mut numbers);
    let fired = faulty.fired() > fired_before;
    faulty.clear();
    assert!(fired || was_whole, "{what}");
    assert!(read_on(changes, &mut numbers), "{what}: read {nth} had failed");
    assert_eq!(numbers, (1..=150).collect::<Vec<_>>(), "{what}: read {nth} had failed");
    fired
}

/// Trap: a header that cannot be read is taken for that of no segment, and the log for its end.
#[test]
fn a_read_that_fails_skips_no_change() {
    let env = MemEnv::new();
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let db = Db::open(DIRECTORY, keeping(&env).env(Arc::new(faulty.clone()))).unwrap();
    fill(&db, 150);
    for nth in 0.. {
        let mut changes = db.changes(0).unwrap();
        if !is_read_in_spite_of_a_failure(&mut changes, &faulty, nth, "the writer") {
            assert!(nth > 10);
            break;
        }
    }
}

#[test]
fn a_read_that_fails_skips_no_change_of_a_follower() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    fill(&db, 150);
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let follower = Db::open_follower(DIRECTORY, keeping(&env).env(Arc::new(faulty.clone()))).unwrap();
    for nth in 0.. {
        let mut changes = follower.db().changes(0).unwrap();
        if !is_read_in_spite_of_a_failure(&mut changes, &faulty, nth, "a follower") {
            assert!(nth > 10);
            break;
        }
    }
}

/// Writes "a", "b" as a large value, and `puts` others; the process dies, and the large value is
/// lost with the power. A follower's reader takes "a" before the next process opens and writes "c".
fn with_a_lost_value(a: &str, b: &str, puts: usize) {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    k.put(a, "1").unwrap();
    k.put(b, [7; 200]).unwrap();
    fill(&db, puts);
    drop((k, db));
    lose_large_value(&env);
    let follower: Follower = Db::open_follower(DIRECTORY, keeping(&env)).unwrap();
    let mut changes = follower.db().changes(0).unwrap();
    let mut numbers = Vec::new();
    assert!(read_on(&mut changes, &mut numbers));
    assert_eq!(numbers, [1]);
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    keyspace(&db, "k").put("c", "1").unwrap();
    follower.catch_up().unwrap();
    let next = changes.next().unwrap().unwrap_or_else(|error| panic!("{puts} puts: {error}"));
    assert!(format!("{:?}", next.changes[0].operation).contains("Put"), "{next:?}");
    assert_eq!((next.changes.len(), changes.next().is_none()), (1, true));
}

/// Trap: the reader knows a segment that the recovery gives up, and where the one before it ended.
#[test]
fn a_recovery_that_gives_a_segment_up_ends_no_reader() {
    with_a_lost_value("a", "b", 60);
}

/// Trap: the reader stands in the segment that the recovery gives up.
#[test]
fn a_recovery_that_gives_up_where_a_reader_stands_ends_it_not() {
    with_a_lost_value(&"a".repeat(3000), &"b".repeat(2000), 0);
}

#[test]
fn a_sync_ends_a_wait_for_what_is_durable() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    let mut changes = db.changes(0).unwrap().only_durable();
    assert!(changes.wait(Duration::MAX).unwrap());
    k.put("a", "1").unwrap();
    assert!(changes.wait(Duration::MAX).unwrap());
    assert!(changes.next().is_none());
    db.sync().unwrap();
    assert!(changes.wait(Duration::MAX).unwrap());
    assert_eq!(changes.next().unwrap().unwrap().changes[0].sequence, 1);
    // One thread waits, the other one writes.
    let reader = std::thread::spawn(move || {
        while changes.next().is_none() {
            changes.wait(Duration::MAX).unwrap();
        }
    });
    k.put_with("b", "1", &WriteOptions::new().sync(true)).unwrap();
    reader.join().unwrap();
}

/// Trap: a drop, a load or another name is durable when its call returns, though the write behind
/// it is not.
#[test]
fn what_the_manifest_lists_is_durable_before_the_write_behind_it() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let (k, old) = (keyspace(&db, "k"), keyspace(&db, "old"));
    let mut changes = db.changes(0).unwrap().only_durable();
    k.ingest([("a", "1")]).unwrap();
    k.rename("named").unwrap();
    db.drop_keyspace(&old.name()).unwrap();
    k.put("b", "1").unwrap();
    let told: Vec<String> =
        changes.by_ref().map(|batch| format!("{:?}", batch.unwrap().changes[0].operation)).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0] == "Load" && told[1].starts_with("AlterKeyspace") && told[2] == "DropKeyspace", "{told:?}");
    assert!(changes.next().is_none(), "the put is not durable");
    db.sync().unwrap();
    assert!(
        matches!(&changes.next().unwrap().unwrap().changes[0].operation, ChangeOperation::Put { key, .. } if key == "b")
    );
}

/// A follower with a reader of durable changes that looks before calls of the writer's environment.
struct Looking {
    env: MemEnv,
    follower: Follower,
    changes: Changes,
    told: usize,
    /// Before which call, from where the reader would go on, and what a power loss would leave.
    left: Vec<(&'static str, u64, MemEnv)>,
}

impl Looking {
    fn new(env: &MemEnv) -> Looking {
        let follower = Db::open_follower(DIRECTORY, keeping(env)).unwrap();
        let changes = follower.db().changes(0).unwrap().only_durable();
        Looking { env: env.clone(), follower, changes, told: 0, left: Vec::new() }
    }

    /// The same with a reader of all changes.
    fn plain(env: &MemEnv) -> Looking {
        let durable = Looking::new(env);
        Looking { changes: durable.follower.db().changes(0).unwrap(), ..durable }
    }

    fn look(&mut self, before: &'static str) {
        self.follower.catch_up().unwrap();
        while self.changes.wait(Duration::ZERO).unwrap() {
            self.told += self.changes.by_ref().map(Result::unwrap).count();
        }
        self.left.push((before, self.changes.position(), self.env.crash(&CrashMode::LoseAll, 0)));
    }

    /// Where the reader would miss a write behind the power loss.
    fn misses(&self) -> Vec<String> {
        let missed = |(before, position, left): &(&str, u64, MemEnv)| {
            let last = Db::open(DIRECTORY, keeping(left)).unwrap().snapshot().sequence();
            (*position > last + 1).then(|| format!("before {before}: from {position} on, and {last} is the last"))
        };
        self.left.iter().filter_map(missed).collect()
    }
}

/// Between these calls there may be something new to see, which is not synced.
const LOOKED_BEFORE: [&str; 6] =
    ["WriteFile::append", "WriteFile::sync", "WriteFile::flush", "Env::rename", "Env::sync_dir", "Env::remove"];

type Write = fn(&Db, &Keyspace);

/// What only the manifest has, and how many changes that is.
const LISTED: [(&str, usize, Write); 4] = [
    ("a load", 1, |_, k| assert!(k.ingest([("b", "1")]).is_ok())),
    ("another name", 1, |_, k| k.rename("named").unwrap()),
    ("a drop", 1, |db, _| db.drop_keyspace("old").unwrap()),
    ("a write without log", 0, |db, k| {
        k.put_with("b", "1", &WriteOptions::new().disable_wal(true)).unwrap();
        db.flush().unwrap();
    }),
];

/// Seen: a follower told of a load, a drop or another name as durable that was written to the
/// manifest and not synced, or before `CURRENT` was durable. Cost: behind a power loss, a write got
/// the number, and the reader missed it.
#[test]
fn a_follower_yields_as_durable_only_what_a_power_loss_leaves() {
    for (what, changes, write) in LISTED {
        let env = MemEnv::new();
        let (looking, telling) = looked_at(&env);
        let db = Db::open(DIRECTORY, keeping(&env).env(telling)).unwrap();
        let k = keyspace(&db, "k");
        keyspace(&db, "old");
        k.put("a", "1").unwrap();
        *looking.lock().unwrap() = Some(Looking::new(&env));
        write(&db, &k);
        let mut looked = looking.lock().unwrap().take().unwrap();
        looked.look("nothing more");
        assert_eq!(looked.misses(), Vec::<String>::new(), "{what}");
        // Nothing is withheld, and the reader was woken.
        assert_eq!((looked.told, looked.changes.position()), (1 + changes, db.snapshot().sequence() + 1), "{what}");
        assert!(looked.left.len() > 4, "{what}: {} calls", looked.left.len());
    }
}

/// The environment of a writer beside which a follower looks, once there is one.
fn looked_at(env: &MemEnv) -> (Arc<Mutex<Option<Looking>>>, Arc<dyn Env>) {
    let looking = Arc::new(Mutex::new(None::<Looking>));
    let (looks, called): (_, Arc<dyn Env>) = (Arc::clone(&looking), Arc::new(env.clone()));
    let told = move |call: &'static str| {
        if LOOKED_BEFORE.contains(&call)
            && let Some(looking) = &mut *looks.lock().unwrap()
        {
            looking.look(call);
        }
    };
    (looking, Arc::new(Telling { told: Arc::new(told), called }))
}

/// Trap: a plain reader passes numbers in an edit that is not synced, and that no change has.
#[test]
fn no_reader_of_a_follower_passes_unlogged_writes_that_a_power_loss_takes() {
    let env = MemEnv::new();
    let (looking, telling) = looked_at(&env);
    let db = Db::open(DIRECTORY, keeping(&env).env(telling)).unwrap();
    let k = keyspace(&db, "k");
    k.put_with("a", "1", &WriteOptions::new().sync(true)).unwrap();
    *looking.lock().unwrap() = Some(Looking::plain(&env));
    k.put_with("b", "1", &WriteOptions::new().disable_wal(true)).unwrap();
    db.flush().unwrap();
    let looked = looking.lock().unwrap().take().unwrap();
    assert!(looked.left.len() > 4);
    assert_eq!(looked.misses(), Vec::<String>::new());
}

/// Trap: what is in tables is passed as soon as it is read ahead, and a reader that forgets that
/// goes on behind it.
#[test]
fn a_reader_that_forgets_what_it_has_read_ahead_goes_on_from_there() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    ["a", "b", "c"].iter().for_each(|key| k.put(key, "1").unwrap());
    db.flush().unwrap();
    let mut changes = db.changes(0).unwrap();
    let first = changes.next().unwrap().unwrap();
    let mut changes = changes.only_durable();
    assert_eq!(changes.position(), first.next_sequence());
    let (second, behind) = (changes.next().unwrap().unwrap(), changes.position());
    assert_eq!((second.changes[0].sequence, behind), (first.next_sequence(), second.next_sequence()));
    assert_eq!(db.changes(behind).unwrap().count(), 1);
}

/// Trap: an open that begins to keep changes has replayed writes that a failed sync had lost, and a
/// follower takes the number behind them for the place to go on from before `CURRENT` is durable.
#[test]
fn a_follower_begins_where_a_power_loss_leaves_the_changes() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, simulated(&env)).unwrap();
    keyspace(&db, "k").put("a", "1").unwrap();
    env.fail_sync(0, SyncFailure::DropPending);
    assert!(db.sync().is_err());
    drop(db);
    let begun = Arc::new(Mutex::new(Vec::new()));
    let (left, beside, called): (_, _, Arc<dyn Env>) = (Arc::clone(&begun), env.clone(), Arc::new(env.clone()));
    let told = move |call: &'static str| {
        if LOOKED_BEFORE.contains(&call)
            && let Ok(follower) = Db::open_follower(DIRECTORY, keeping(&beside))
            && let Ok(changes) = follower.db().changes(0)
        {
            let position = changes.only_durable().position();
            left.lock().unwrap().push((call, position, beside.crash(&CrashMode::LoseAll, 0)));
        }
    };
    let db = Db::open(DIRECTORY, keeping(&env).env(Arc::new(Telling { told: Arc::new(told), called }))).unwrap();
    let begun = std::mem::take(&mut *begun.lock().unwrap());
    assert!(begun.iter().any(|(call, ..)| *call == "Env::sync_dir"), "CURRENT was visible before it was durable");
    for (call, position, left) in begun {
        let last = Db::open(DIRECTORY, keeping(&left)).unwrap().snapshot().sequence();
        assert!(position <= last + 1, "before {call}: from {position} on, and {last} is the last");
    }
    // And then it is known, though there is no change yet.
    let follower = Db::open_follower(DIRECTORY, keeping(&env)).unwrap();
    let mut changes = follower.db().changes(0).unwrap().only_durable();
    assert!(changes.next().is_none());
    assert_eq!(changes.position(), db.snapshot().sequence() + 1);
}

/// Trap: a manifest that cannot be removed stays until the next open, and all that time the switch
/// to each later one counts as not durable.
#[test]
fn a_manifest_that_stays_withholds_what_is_durable_from_no_follower_for_ever() {
    let env = MemEnv::new();
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let db = Db::open(DIRECTORY, keeping(&env).env(Arc::new(faulty.clone()))).unwrap();
    let k = keyspace(&db, "k");
    let follower = Db::open_follower(DIRECTORY, keeping(&env)).unwrap();
    let mut changes = follower.db().changes(0).unwrap().only_durable();
    faulty.add(Rule::new(Class::Remove, 0, Action::Fail(std::io::ErrorKind::Other)).on_names_with("MANIFEST"));
    k.rename("other").unwrap();
    assert_eq!(faulty.fired(), 1);
    k.rename("another").unwrap();
    follower.catch_up().unwrap();
    assert_eq!(changes.by_ref().map(Result::unwrap).count(), 2);
}

/// Trap: what was read ahead before is yielded as durable.
#[test]
fn a_reader_that_becomes_one_of_what_is_durable_forgets_what_it_has_read_ahead() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    k.put("a", "1").unwrap();
    k.put("b", "2").unwrap();
    let mut changes = db.changes(0).unwrap();
    assert!(changes.next().is_some());
    let mut changes = changes.only_durable();
    assert!(changes.next().is_none());
    db.sync().unwrap();
    assert_eq!((changes.by_ref().count(), changes.next().is_none()), (1, true));
}

/// Trap: a record whose large value was lost is no part of the log, and has a higher number than
/// the first one of the next process: what came before it was in no log.
#[test]
fn a_record_that_recovery_has_left_out_hides_no_later_change() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    k.put("a", "1").unwrap();
    k.put_with("b", "1", &WriteOptions::new().disable_wal(true)).unwrap();
    k.put("c", vec![7; 200]).unwrap();
    drop((k, db));
    lose_large_value(&env);
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    let mut batch = db.batch();
    ["d", "e", "f"].iter().for_each(|key| batch.put(&k, key, "1").unwrap());
    batch.commit().unwrap();
    let told: Vec<usize> = db.changes(0).unwrap().map(|batch| batch.unwrap().changes.len()).collect();
    assert_eq!(told, [1, 3]);
}

/// As above, where nothing but the manifest has the next change.
#[test]
fn a_record_that_recovery_has_left_out_does_not_end_the_changes() {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    let k = keyspace(&db, "k");
    k.put("a", "1").unwrap();
    k.put("b", vec![7; 200]).unwrap();
    drop((k, db));
    lose_large_value(&env);
    let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
    keyspace(&db, "k").ingest([("c", "1")]).unwrap();
    let follower = Db::open_follower(DIRECTORY, keeping(&env)).unwrap();
    for db in [&db, follower.db()] {
        let mut told = db.changes(0).unwrap();
        let first = told.next().unwrap().unwrap();
        assert!(matches!(first.changes[0].operation, ChangeOperation::Put { .. }), "{first:?}");
        let second = told.next().unwrap().unwrap();
        assert!(matches!(second.changes[0].operation, ChangeOperation::Load), "{second:?}");
        assert!(told.next().is_none());
        // The number of what was left out is before that of the load.
        let load = db.changes(first.next_sequence() + 1).unwrap().next().unwrap().unwrap();
        assert_eq!(load, second);
    }
}

#[test]
fn a_read_that_fails_in_an_open_gives_up_no_changes() {
    let env = MemEnv::new();
    for number in 0..3 {
        let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
        keyspace(&db, "k").put("a", number.to_string()).unwrap();
        db.flush().unwrap();
    }
    for nth in 0.. {
        let env = env.kill();
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        faulty.add(Rule::new(Class::Read, nth, Action::Fail(std::io::ErrorKind::Other)));
        let _ = Db::open(DIRECTORY, keeping(&env).env(Arc::new(faulty.clone()))).map(drop);
        let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
        let changes = db.changes(1).unwrap_or_else(|error| panic!("read {nth} had failed: {error}"));
        assert_eq!(changes.map(Result::unwrap).count(), 3, "read {nth} had failed");
        if faulty.fired() == 0 {
            assert!(nth > 10);
            break;
        }
    }
}

/// The changes from there on, as text, and why there are no more.
fn all_changes(db: &Db, from: u64) -> (Vec<String>, Option<Error>) {
    let mut found = Vec::new();
    let changes = match db.changes(from) {
        Ok(changes) => changes,
        Err(error) => return (found, Some(error)),
    };
    for batch in changes {
        match batch {
            Ok(batch) => found.push(format!("{batch:?}")),
            Err(error) => return (found, Some(error)),
        }
    }
    (found, None)
}

/// After a failed sync the system shows bytes that the device will never get, and takes them for
/// written. What a recovery has put into tables is there after a power loss, but the log
/// that readers of changes need may not be: then they are told so, and where to go on.
#[test]
fn changes_that_recovery_showed_are_there_or_gone_after_a_failed_sync_and_a_power_loss() {
    let mut gone = 0;
    for (failure, puts, begins_synced, kills) in [
        (SyncFailure::DropPending, 3, false, 0),
        (SyncFailure::DropPending, 3, false, 1),
        (SyncFailure::DropPending, 60, true, 2),
        (SyncFailure::KeepSome(1), 300, true, 0),
        (SyncFailure::KeepSome(1), 300, true, 1),
    ] {
        let fails = |successes| {
            let env = MemEnv::new();
            let db = Db::open(DIRECTORY, keeping(&env)).unwrap();
            let k = keyspace(&db, "k");
            k.put("first", [1; 200]).unwrap();
            if begins_synced {
                db.sync().unwrap();
            }
            fill(&db, puts);
            k.put("large", [2; 200]).unwrap();
            env.fail_sync(successes, failure);
            db.sync().is_err().then_some(env)
        };
        let failing: Vec<MemEnv> = (0..).map_while(fails).collect();
        assert!(!failing.is_empty());
        for env in failing {
            let mut db = Db::open(DIRECTORY, keeping(&env)).unwrap();
            let seen = all_changes(&db, 0).0;
            assert_eq!(seen.len(), puts + 2);
            for _ in 0..kills {
                drop(db);
                db = Db::open(DIRECTORY, keeping(&env)).unwrap();
            }
            // The load is in no log: the manifest alone has it.
            let k = keyspace(&db, "k");
            k.ingest([("a", "1")]).unwrap();
            k.put_with("later", "x", &WriteOptions::new().sync(true)).unwrap();
            let last = all_changes(&db, 0).0.split_off(puts + 2);
            assert_eq!(last.len(), 2);
            drop((k, db));
            for mode in [CrashMode::LoseAll, CrashMode::OnlyMetadata, CrashMode::OnlyData, CrashMode::KeepAll] {
                let db = Db::open(DIRECTORY, keeping(&env.crash(&mode, 0))).unwrap();
                assert!(keyspace(&db, "k").get("large").unwrap().is_some());
                let (found, end) = all_changes(&db, 1);
                let note = format!("{failure:?}, {mode:?}, {puts} puts: {} found, {end:?}", found.len());
                assert!(seen.starts_with(&found[..found.len().min(seen.len())]), "{note}");
                let Some(error) = end else {
                    assert!(found[seen.len()..] == last, "{note}");
                    continue;
                };
                let Error::Gone { oldest } = error else { panic!("{note}") };
                assert!(all_changes(&db, oldest).0 == last, "{note}");
                gone += 1;
            }
        }
    }
    assert!(gone > 3, "none was lost");
}
