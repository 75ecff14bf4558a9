//! Time to live: every trap that an engine with it has fallen into, on versions in memory, in upper
//! runs and in the last one.

use crate::common::{DIRECTORY, Machine, PLACES, Place, START_MS, at, pairs, settle, text};
use esker::{Clock as _, Db, Error, Expiry, Keyspace, KeyspaceOptions, Ttl, WriteOptions};
use std::time::{Duration, SystemTime};

const SECOND: Duration = Duration::from_secs(1);

fn seconds(count: u64) -> Duration {
    SECOND * count as u32
}

fn for_seconds(count: u64) -> WriteOptions {
    WriteOptions::new().ttl(seconds(count))
}

fn open_sessions(db: &Db) -> Keyspace {
    db.keyspace("sessions", KeyspaceOptions::default().ttl(Ttl::Enabled { default: None })).expect("keyspace")
}

/// A database whose last run has keys on both sides of those that tests use.
fn with_ballast(machine: &Machine) -> (Db, Keyspace) {
    let db = machine.open();
    let sessions = open_sessions(&db);
    sessions.put("a", "first").expect("put");
    sessions.put("z", "last").expect("put");
    db.compact().expect("compact");
    (db, sessions)
}

#[test]
fn visible_before_its_expiry_and_not_at_it() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, sessions) = with_ballast(&machine);
        sessions.put_with("k", "v", &for_seconds(20)).expect("put");
        settle(&db, place);
        machine.pass(seconds(20) - Duration::from_millis(1));
        assert_eq!(text(&sessions, "k").as_deref(), Some("v"), "{place:?}");
        assert_eq!(pairs(&sessions).len(), 3);
        machine.pass(Duration::from_millis(1));
        assert_eq!(text(&sessions, "k"), None, "{place:?}");
        assert_eq!(sessions.expires_at("k").expect("get"), None);
        assert_eq!(pairs(&sessions).len(), 2, "iterators hide expired entries too");
        let mut cursor = sessions.cursor().expect("cursor");
        cursor.seek("k").expect("seek");
        assert_eq!(cursor.key(), b"z");
        cursor.prev().expect("prev");
        assert_eq!(cursor.key(), b"a");
    }
}

#[test]
fn a_plain_put_never_expires_and_its_bytes_come_back_whatever_they_look_like() {
    // What the forks took for a time: eight bytes at either end, or a text.
    let small = 5u64.to_le_bytes();
    let values: [&[u8]; 6] = [b"", b"abc", &small, &[&b"value"[..], &small].concat(), b"v_ts_123", &[0xff; 40]];
    for place in PLACES {
        let machine = Machine::new();
        let (db, sessions) = with_ballast(&machine);
        for (number, value) in values.iter().enumerate() {
            sessions.put(format!("plain{number}"), value).expect("put");
            sessions.put_with(format!("timed{number}"), value, &for_seconds(1000)).expect("put");
        }
        settle(&db, place);
        machine.pass(seconds(999));
        for (number, value) in values.iter().enumerate() {
            for kind in ["plain", "timed"] {
                let found = sessions.get(format!("{kind}{number}")).expect("get");
                assert_eq!(found.as_deref(), Some(*value), "{place:?}");
            }
            assert_eq!(sessions.expires_at(format!("plain{number}")).expect("get"), Some(Expiry::Never));
        }
        machine.pass(Duration::from_secs(1_000_000_000));
        assert_eq!(pairs(&sessions).len(), values.len() + 2);
    }
}

#[test]
fn an_expired_entry_hides_older_versions_that_live_longer() {
    for older in PLACES {
        for newer in PLACES {
            let machine = Machine::new();
            let (db, sessions) = with_ballast(&machine);
            sessions.put("forever", "old").expect("put");
            sessions.put_with("longer", "old", &for_seconds(1000)).expect("put");
            settle(&db, older);
            sessions.put_with("forever", "new", &for_seconds(10)).expect("put");
            sessions.put_with("longer", "new", &for_seconds(10)).expect("put");
            settle(&db, newer);
            machine.pass(seconds(10));
            for step in 0..3 {
                assert_eq!(text(&sessions, "forever"), None, "{older:?} {newer:?} {step}");
                assert_eq!(text(&sessions, "longer"), None, "{older:?} {newer:?} {step}");
                assert_eq!(pairs(&sessions).len(), 2);
                if step == 0 { db.flush().expect("flush") } else { db.compact().expect("compact") }
            }
        }
    }
}

#[test]
fn a_snapshot_keeps_its_own_time_through_flush_and_compaction() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, sessions) = with_ballast(&machine);
        sessions.put_with("k", "v", &for_seconds(10)).expect("put");
        settle(&db, place);
        let snapshot = db.snapshot();
        let mut iterator = sessions.iter();
        machine.pass(seconds(100));
        assert_eq!(text(&sessions, "k"), None);
        for _ in 0..2 {
            assert_eq!(snapshot.get(&sessions, "k").expect("get").as_deref(), Some(&b"v"[..]), "{place:?}");
            assert_eq!(snapshot.iter(&sessions).count(), 3);
            assert_eq!(snapshot.expires_at(&sessions, "k").expect("get"), Some(Expiry::At(at(10))));
            db.compact().expect("compact");
        }
        let late = db.snapshot();
        assert_eq!(late.get(&sessions, "k").expect("get"), None);
        assert_eq!(iterator.by_ref().count(), 3);
        drop((snapshot, iterator));
        db.compact().expect("compact");
        assert_eq!(db.stats().keyspaces[0].entries, 2, "nobody sees it any more");
    }
}

#[test]
fn overwriting_clears_or_restarts_the_expiry_and_delete_wins() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, sessions) = with_ballast(&machine);
        for key in ["cleared", "restarted", "deleted"] {
            sessions.put_with(key, "v", &for_seconds(10)).expect("put");
        }
        settle(&db, place);
        machine.pass(seconds(5));
        sessions.put("cleared", "w").expect("put");
        sessions.put_with("restarted", "w", &for_seconds(10)).expect("put");
        sessions.delete("deleted").expect("delete");
        settle(&db, place);
        machine.pass(seconds(9));
        assert_eq!(text(&sessions, "cleared").as_deref(), Some("w"));
        assert_eq!(text(&sessions, "restarted").as_deref(), Some("w"));
        assert_eq!(text(&sessions, "deleted"), None);
        assert_eq!(sessions.expires_at("restarted").expect("get"), Some(Expiry::At(at(15))));
        machine.pass(seconds(1));
        assert_eq!(text(&sessions, "restarted"), None);
        assert_eq!(text(&sessions, "cleared").as_deref(), Some("w"));
    }
}

#[test]
fn expiry_is_absolute_through_reopen_replay_and_checkpoint() {
    let machine = Machine::new();
    let db = machine.open();
    let sessions = open_sessions(&db);
    sessions.put_with("k", "v", &for_seconds(10)).expect("put");
    db.checkpoint("/copy").expect("checkpoint");
    sessions.put_with("logged", "v", &for_seconds(10).sync(true)).expect("put");
    drop((sessions, db));
    machine.pass(seconds(5));
    for directory in [DIRECTORY, "/copy"] {
        let db = Db::open(directory, machine.options()).expect("open");
        let sessions = open_sessions(&db);
        assert_eq!(sessions.expires_at("k").expect("get"), Some(Expiry::At(at(10))), "not counted from the reopen");
        db.close().expect("close");
    }
    machine.pass(seconds(5));
    for directory in [DIRECTORY, "/copy"] {
        let db = Db::open(directory, machine.options()).expect("open");
        let sessions = db.existing_keyspace("sessions").expect("it is there");
        assert_eq!(pairs(&sessions), []);
        db.close().expect("close");
    }
}

#[test]
fn the_default_applies_to_plain_writes_and_an_own_time_overrides_it() {
    let machine = Machine::new();
    let db = machine.open();
    let ttl = Ttl::Enabled { default: Some(seconds(10)) };
    let cache = db.keyspace("cache", KeyspaceOptions::default().ttl(ttl)).expect("keyspace");
    cache.put("default", "v").expect("put");
    cache.put_with("own", "v", &for_seconds(20)).expect("put");
    cache.put_until("until", "v", at(30)).expect("put");
    let mut batch = db.batch();
    batch.put(&cache, "batched", "v").expect("add");
    batch.put_with_ttl(&cache, "batched own", "v", seconds(40)).expect("add");
    batch.put_until(&cache, "batched until", "v", at(50)).expect("add");
    machine.pass(seconds(3));
    batch.commit().expect("commit");
    let expiry = |key: &str| cache.expires_at(key).expect("get");
    assert_eq!(expiry("default"), Some(Expiry::At(at(10))));
    assert_eq!(expiry("own"), Some(Expiry::At(at(20))));
    assert_eq!(expiry("until"), Some(Expiry::At(at(30))));
    assert_eq!(expiry("batched"), Some(Expiry::At(at(13))), "a batch's times count from its commit");
    assert_eq!(expiry("batched own"), Some(Expiry::At(at(43))));
    assert_eq!(expiry("batched until"), Some(Expiry::At(at(50))));
    machine.pass(seconds(40));
    assert_eq!(pairs(&cache).len(), 1);
}

#[test]
fn the_setting_is_stored_and_another_one_is_refused_with_both_names() {
    let machine = Machine::new();
    let db = machine.open();
    let ttl = Ttl::Enabled { default: Some(seconds(10)) };
    db.keyspace("cache", KeyspaceOptions::default().ttl(ttl)).expect("keyspace");
    db.keyspace("plain", KeyspaceOptions::default()).expect("keyspace");
    db.close().expect("close");
    let db = machine.open();
    let other = Ttl::Enabled { default: Some(seconds(11)) };
    for (name, given) in [("cache", other), ("cache", Ttl::Disabled), ("plain", ttl)] {
        match db.keyspace(name, KeyspaceOptions::default().ttl(given)) {
            Err(Error::InvalidArgument { what }) => {
                assert!(what.contains(&format!("{given:?}")) && what.contains("created with"), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
    let cache = db.keyspace("cache", KeyspaceOptions::default()).expect("without a setting the stored one holds");
    cache.put("k", "v").expect("put");
    assert_eq!(cache.expires_at("k").expect("get"), Some(Expiry::At(at(10))));
}

#[test]
fn impossible_times_are_refused_and_nothing_is_written() {
    let machine = Machine::new();
    let db = machine.open();
    let sessions = open_sessions(&db);
    let plain = db.keyspace("plain", Default::default()).expect("keyspace");
    let refused =
        |result: esker::Result<()>| assert!(matches!(result, Err(Error::InvalidArgument { .. })), "{result:?}");
    refused(sessions.put_with("k", "v", &WriteOptions::new().ttl(Duration::ZERO)));
    refused(sessions.delete_with("k", &for_seconds(1)));
    refused(plain.put_with("k", "v", &for_seconds(1)));
    refused(plain.put_until("k", "v", at(1)));
    let mut batch = db.batch();
    refused(batch.put_with_ttl(&plain, "k", "v", SECOND));
    refused(batch.put_with_ttl(&sessions, "k", "v", Duration::ZERO));
    refused(batch.put_until(&plain, "k", "v", at(1)));
    batch.put(&sessions, "k", "v").expect("add");
    refused(batch.commit_with(&for_seconds(1)));
    let zero = Ttl::Enabled { default: Some(Duration::ZERO) };
    assert!(db.keyspace("zero", KeyspaceOptions::default().ttl(zero)).is_err());
    assert_eq!(db.stats().last_sequence, 0);
    assert_eq!(db.keyspaces(), ["plain", "sessions"]);
}

#[test]
fn far_and_past_times_saturate() {
    let machine = Machine::new();
    let (_db, sessions) = with_ballast(&machine);
    sessions.put_with("far", "v", &WriteOptions::new().ttl(Duration::MAX)).expect("put");
    sessions.put_until("past", "v", SystemTime::UNIX_EPOCH).expect("put");
    sessions.put_until("before", "v", SystemTime::UNIX_EPOCH - SECOND).expect("put");
    sessions.put_until("now", "v", at(0)).expect("put");
    machine.clock.set(u64::MAX - 1);
    assert_eq!(text(&sessions, "far").as_deref(), Some("v"));
    for key in ["past", "before", "now"] {
        assert_eq!(text(&sessions, key), None, "{key}");
    }
    machine.clock.set(0);
    assert_eq!(text(&sessions, "past").as_deref(), Some("v"), "the clock stepped back to the first moment there is");
}

#[test]
fn a_clock_that_steps_back_brings_nothing_back_that_was_removed() {
    for place in PLACES {
        let machine = Machine::new();
        let (db, sessions) = with_ballast(&machine);
        sessions.put_with("k", "v", &for_seconds(10)).expect("put");
        settle(&db, place);
        machine.pass(seconds(10));
        db.compact().expect("compact");
        machine.clock.set(START_MS);
        assert_eq!(text(&sessions, "k"), None);
        assert_eq!(pairs(&sessions).len(), 2);
        sessions.put_with("k", "w", &for_seconds(10)).expect("put");
        assert_eq!(text(&sessions, "k").as_deref(), Some("w"));
    }
}

#[test]
fn compaction_drops_exactly_what_expired_and_the_bytes_go() {
    let machine = Machine::new();
    let db = machine.open();
    let sessions = open_sessions(&db);
    let value = [7u8; 512];
    for number in 0..2000 {
        let key = format!("{number:05}");
        match number % 4 {
            0 => sessions.put(&key, value).expect("put"),
            life => sessions.put_with(&key, value, &for_seconds(life * 10)).expect("put"),
        }
    }
    db.compact().expect("compact");
    let full = db.stats().table_bytes;
    for (step, left) in [(0, 2000), (1, 1500), (2, 1000), (3, 500)] {
        assert_eq!(db.stats().keyspaces[0].entries, left, "after {step} steps");
        assert_eq!(sessions.iter().count() as u64, left);
        machine.pass(seconds(10));
        db.compact().expect("compact");
    }
    assert!(db.stats().table_bytes < full / 3, "{} of {full}", db.stats().table_bytes);
    db.verify().expect("verify");
}

#[test]
fn after_everything_expired_the_tables_are_gone() {
    let machine = Machine::new();
    let empty_bytes = {
        let other = Machine::new();
        let db = other.open();
        open_sessions(&db);
        db.close().expect("close");
        other.env.files().iter().filter_map(|path| other.env.file_bytes(path)).map(|bytes| bytes.len()).sum::<usize>()
    };
    let db = machine.open();
    let sessions = open_sessions(&db);
    for number in 0..2000 {
        sessions.put_with(format!("{number:05}"), [7u8; 512], &for_seconds(20)).expect("put");
    }
    assert_eq!(sessions.iter().count(), 2000);
    machine.pass(seconds(20));
    assert_eq!(sessions.iter().count(), 0);
    db.compact().expect("compact");
    assert_eq!((db.stats().table_files, db.stats().table_bytes), (0, 0));
    db.close().expect("close");
    let db = machine.open();
    assert_eq!(open_sessions(&db).iter().count(), 0);
    db.close().expect("close");
    let files = machine.env.files();
    assert!(!files.iter().any(|path| path.extension().is_some_and(|kind| kind == "table")), "{files:?}");
    let bytes: usize = files.iter().filter_map(|path| machine.env.file_bytes(path)).map(|bytes| bytes.len()).sum();
    assert!(bytes <= 2 * empty_bytes + (256 << 10), "{bytes} bytes are left, an empty database has {empty_bytes}");
}

#[test]
fn an_idle_database_reclaims_by_itself() {
    let machine = Machine::new();
    let db = machine.open();
    let sessions = open_sessions(&db);
    for number in 0..500 {
        sessions.put_with(format!("{number:05}"), [7u8; 512], &for_seconds(20)).expect("put");
    }
    db.flush().expect("flush");
    db.wait_idle().expect("idle");
    assert!(db.stats().table_bytes > 0);
    machine.pass(seconds(21));
    db.wait_idle().expect("idle");
    assert_eq!(db.stats().table_files, 0, "no write by the user was needed");
}

#[test]
fn expired_entries_under_a_snapshot_survive_an_idle_compaction() {
    let machine = Machine::new();
    let (db, sessions) = with_ballast(&machine);
    sessions.put_with("k", "v", &for_seconds(5)).expect("put");
    db.flush().expect("flush");
    let snapshot = db.snapshot();
    machine.pass(seconds(50));
    db.wait_idle().expect("idle");
    assert_eq!(snapshot.get(&sessions, "k").expect("get").as_deref(), Some(&b"v"[..]));
    drop(snapshot);
    assert!(machine.clock.now_ms() > START_MS);
    db.compact().expect("compact");
    assert_eq!(db.stats().keyspaces[0].entries, 2);
}

#[test]
fn mixed_times_in_one_table_and_multi_get() {
    let machine = Machine::new();
    let (db, sessions) = with_ballast(&machine);
    for number in 1..=9u64 {
        sessions.put_with(format!("k{number}"), "v", &for_seconds(number)).expect("put");
    }
    settle(&db, Place::LastRun);
    for passed in 0..10usize {
        let values = sessions.multi_get((1..=9).map(|number| format!("k{number}")));
        let alive = values.iter().filter(|value| matches!(value, Ok(Some(_)))).count();
        assert_eq!((alive, pairs(&sessions).len()), (9 - passed, 11 - passed));
        machine.pass(SECOND);
    }
}

#[test]
fn readers_older_than_the_first_keyspace_with_expiry_have_a_time_where_they_need_one() {
    let machine = Machine::new();
    let db = machine.open();
    let names = db.keyspace("names", KeyspaceOptions::default()).expect("keyspace");
    names.put("a", "1").expect("put");
    let (snapshot, iterator) = (db.snapshot(), names.iter());
    let mut transaction = db.transaction();
    let sessions = open_sessions(&db);
    transaction.put_with_ttl(&sessions, "k", "v", seconds(5)).expect("put");
    assert_eq!(transaction.get(&sessions, "k").expect("get").as_deref(), Some(&b"v"[..]), "its own write lives");
    transaction.put_until(&sessions, "past", "v", at(0) - SECOND).expect("put");
    assert_eq!(transaction.get(&sessions, "past").expect("get"), None, "its time had passed");
    sessions.put_with("k", "other", &for_seconds(5)).expect("put");
    assert_eq!(snapshot.get(&sessions, "k").expect("get"), None, "it is older than the keyspace");
    assert_eq!(snapshot.get(&names, "a").expect("get").as_deref(), Some(&b"1"[..]));
    assert_eq!(iterator.count(), 1);
}
