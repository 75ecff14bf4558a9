//! Other names for keyspaces.

use crate::common::{DIRECTORY, Machine, PLACES, all, keyspace, pairs, settle, simulated, text};
use esker::env::Env as _;
use esker::env::mem::{CrashMode, MemEnv};
use esker::merge::UInt64Add;
use esker::{ChangeOperation, ChangeRetention, CheckpointMode, Db, Error, Keyspace, KeyspaceOptions, Options};
use std::sync::Arc;

fn names_of(db: &Db) -> Vec<String> {
    db.keyspaces()
}

#[test]
fn handles_go_on_under_the_new_name_and_the_old_one_is_free() {
    for place in PLACES {
        let machine = Machine::new();
        let db = machine.open();
        let names = keyspace(&db, "names");
        let other = names.clone();
        names.put("ada", "1815").expect("put");
        settle(&db, place);
        let (snapshot, mut iterator) = (db.snapshot(), names.iter());
        let mut batch = db.batch();
        batch.put(&names, "bob", "1923").expect("add");
        let mut transaction = db.transaction();
        transaction.put(&names, "eve", "1990").expect("add");
        names.rename("people").expect("rename");
        assert_eq!((&*names.name(), &*other.name()), ("people", "people"));
        assert_eq!(names_of(&db), ["people"]);
        assert!(matches!(db.existing_keyspace("names"), Err(Error::NotFound { .. })));
        let new = keyspace(&db, "names");
        new.put("ada", "another").expect("put");
        batch.commit().expect("commit");
        transaction.commit().expect("commit");
        other.put("zoe", "2000").expect("put");
        assert_eq!(snapshot.get(&names, "ada").expect("get").as_deref(), Some(&b"1815"[..]));
        assert!(iterator.next().is_some_and(|pair| pair.is_ok()) && iterator.next().is_none());
        assert_eq!(pairs(&names).len(), 4);
        settle(&db, place);
        drop((names, other, new, snapshot, iterator, db));
        let db = machine.open();
        assert_eq!(names_of(&db), ["names", "people"]);
        assert_eq!(pairs(&keyspace(&db, "people")).len(), 4, "{place:?}");
        assert_eq!(pairs(&keyspace(&db, "names")), [("ada".to_owned(), "another".to_owned())]);
        db.verify().expect("verify");
    }
}

#[test]
fn names_can_be_exchanged_and_dropped_under_the_new_name() {
    let machine = Machine::new();
    let db = machine.open();
    let (a, b) = (keyspace(&db, "a"), keyspace(&db, "b"));
    a.put("k", "of a").expect("put");
    b.put("k", "of b").expect("put");
    assert!(matches!(a.rename("b"), Err(Error::AlreadyExists { what }) if what == "keyspace \"b\""));
    a.rename("a").expect("its own");
    a.rename("c").expect("rename");
    b.rename("a").expect("rename");
    a.rename("b").expect("rename");
    assert_eq!(
        (text(&keyspace(&db, "a"), "k").as_deref(), text(&keyspace(&db, "b"), "k").as_deref()),
        (Some("of b"), Some("of a"))
    );
    assert!(matches!(db.drop_keyspace("c"), Err(Error::NotFound { .. })));
    db.drop_keyspace("b").expect("drop");
    assert!(matches!(a.get("k"), Err(Error::KeyspaceDropped { keyspace }) if keyspace == "b"));
    b.rename("b").expect("the name is free");
    assert_eq!(names_of(&db), ["b"]);
}

#[test]
fn what_is_refused() {
    let machine = Machine::new();
    let db = machine.open();
    let names = keyspace(&db, "names");
    for bad in ["", "a\n", &"x".repeat(256)] {
        assert!(matches!(names.rename(bad), Err(Error::InvalidArgument { .. })), "{bad:?}");
    }
    names.rename(&"x".repeat(255)).expect("the longest");
    names.rename("names").expect("rename");
    let gone = keyspace(&db, "gone");
    db.drop_keyspace("gone").expect("drop");
    assert!(matches!(gone.rename("new"), Err(Error::KeyspaceDropped { .. })));
    db.close().expect("close");
    assert!(matches!(names.rename("new"), Err(Error::ReadOnly { .. })));
    drop((names, gone));
    let db = Db::open_read_only(DIRECTORY, machine.options()).expect("open");
    let names = db.existing_keyspace("names").expect("there");
    assert!(matches!(names.rename("new"), Err(Error::ReadOnly { .. })));
    assert_eq!(&*names.name(), "names");
}

#[test]
fn a_follower_takes_over_names_and_its_handles_go_on() {
    for keeps in [false, true] {
        let machine = Machine::new();
        let options = || {
            let options = machine.options();
            if keeps { options.keep_changes(ChangeRetention::Bytes(1 << 30)) } else { options }
        };
        let db = Db::open(DIRECTORY, options()).expect("open");
        let (a, b, gone) = (keyspace(&db, "a"), keyspace(&db, "b"), keyspace(&db, "gone"));
        a.put("k", "of a").expect("put");
        b.put("k", "of b").expect("put");
        gone.put("k", "of gone").expect("put");
        let follower = Db::open_follower(DIRECTORY, machine.options()).expect("follow");
        let followed = |name: &str| follower.db().existing_keyspace(name).expect("there");
        let (seen_a, seen_b) = (followed("a"), followed("b"));
        // The names are exchanged, and that of a keyspace that was dropped is used again.
        a.rename("c").expect("rename");
        b.rename("a").expect("rename");
        a.rename("b").expect("rename");
        db.drop_keyspace("gone").expect("drop");
        a.rename("gone").expect("rename");
        a.put("l", "later").expect("put");
        let new = keyspace(&db, "b");
        new.put("k", "of the new one").expect("put");
        follower.catch_up().expect("catch up");
        assert_eq!((&*seen_a.name(), &*seen_b.name()), ("gone", "a"), "{keeps}");
        assert_eq!(follower.db().keyspaces(), ["a", "b", "gone"]);
        assert_eq!(pairs(&seen_a), pairs(&a));
        assert_eq!(text(&followed("b"), "k").as_deref(), Some("of the new one"));
        db.flush().expect("flush");
        follower.catch_up().expect("catch up");
        for (name, mine) in [("a", &b), ("gone", &a), ("b", &new)] {
            assert_eq!(pairs(&followed(name)), pairs(mine), "{name}");
        }
    }
}

#[test]
fn a_checkpoint_has_the_name_of_its_moment() {
    for mode in [CheckpointMode::Link, CheckpointMode::Copy] {
        let machine = Machine::new();
        let db = machine.open();
        let names = keyspace(&db, "names");
        names.put("ada", "1815").expect("put");
        db.checkpoint_with("/before", mode).expect("checkpoint");
        names.rename("people").expect("rename");
        db.checkpoint_with("/after", mode).expect("checkpoint");
        for (directory, name) in [("/before", "names"), ("/after", "people")] {
            let copy = Db::open(directory, machine.options()).expect("open");
            assert_eq!(names_of(&copy), [name]);
            assert_eq!(text(&keyspace(&copy, name), "ada").as_deref(), Some("1815"));
        }
    }
}

#[test]
fn changes_carry_the_name_of_their_place() {
    let env = MemEnv::new();
    let options = || simulated(&env).keep_changes(ChangeRetention::Bytes(1 << 30));
    let db = Db::open(DIRECTORY, options()).expect("open");
    let names = keyspace(&db, "names");
    names.put("1", "").expect("put");
    names.rename("people").expect("rename");
    names.put("2", "").expect("put");
    names.set_merge_operator(UInt64Add).expect("set");
    names.rename("persons").expect("rename");
    let other = keyspace(&db, "people");
    other.put("3", "").expect("put");
    let seen = |db: &Db| {
        let show = |change: &esker::Change| match &change.operation {
            ChangeOperation::Put { key, .. } => format!("{} {}", change.keyspace, String::from_utf8_lossy(key)),
            ChangeOperation::AlterKeyspace { former_name, merge_operator, .. } => {
                format!("{former_name} > {} {merge_operator:?}", change.keyspace)
            }
            ChangeOperation::DropKeyspace => format!("drop {}", change.keyspace),
            other => panic!("{other:?}"),
        };
        let batches = db.changes(0).expect("changes").map(|batch| batch.expect("intact"));
        batches.flat_map(|batch| batch.changes.iter().map(show).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let expected = [
        "names 1",
        "names > people None",
        "people 2",
        "people > people Some(\"uint64add\")",
        "people > persons Some(\"uint64add\")",
        "people 3",
    ];
    assert_eq!(seen(&db), expected);
    let follower = Db::open_follower(DIRECTORY, options()).expect("follow");
    assert_eq!(seen(follower.db()), expected);
    // A dropped keyspace keeps its names, and so it does behind a flush and an open.
    db.drop_keyspace("persons").expect("drop");
    db.flush().expect("flush");
    drop((names, other, db));
    let db = Db::open(DIRECTORY, options()).expect("open");
    let mut later = expected.map(String::from).to_vec();
    later.push("drop persons".into());
    assert_eq!(seen(&db), later);
    follower.catch_up().expect("catch up");
    assert_eq!(seen(follower.db()), later);
    // What it was at each place.
    let changes = db.changes(0).expect("changes");
    let at = |sequence| changes.keyspace_settings(1, sequence).expect("read").expect("known");
    assert_eq!((&*at(1).name, at(1).merge_operator), ("names", None));
    assert_eq!((&*at(4).name, at(4).merge_operator.as_deref()), ("people", Some("uint64add")));
    assert_eq!(&*at(100).name, "persons");
    assert!(changes.keyspace_settings(7, 1).expect("read").is_none());
}

/// Renames in turn, up to the first error: how many were acknowledged.
fn work(env: &MemEnv, keeps: bool) -> (usize, esker::Result<()>) {
    let mut done = 0;
    let mut work = || {
        let options = simulated(env);
        let options = if keeps { options.keep_changes(ChangeRetention::Bytes(1 << 30)) } else { options };
        let db = Db::open(DIRECTORY, options)?;
        let names = db.keyspace("n0", KeyspaceOptions::default())?;
        names.put_with("0", "", &esker::WriteOptions::new().sync(true))?;
        for round in 1..4 {
            done += 1;
            names.rename(&format!("n{round}"))?;
            // The old name is free.
            let old = db.keyspace(&format!("n{}", round - 1), KeyspaceOptions::default())?;
            old.put("other", "")?;
            names.put_with(round.to_string(), "", &esker::WriteOptions::new().sync(true))?;
            if round == 2 {
                db.flush()?;
            }
            done += 1;
        }
        Ok::<(), Error>(())
    };
    let result = work();
    (done, result)
}

#[test]
fn a_power_failure_at_any_call_leaves_the_old_name_or_the_new() {
    let mut crashes = 0;
    for keeps in [false, true] {
        let whole = MemEnv::new();
        work(&whole, keeps).1.expect("a healthy machine");
        for at in 0..=whole.mutations() {
            for (seed, mode) in (0..).zip(CrashMode::FIXED.into_iter().chain([CrashMode::Random, CrashMode::Random])) {
                let env = MemEnv::new();
                env.crash_after(at);
                let (done, _) = work(&env, keeps);
                let image = env.crash(&mode, seed);
                crashes += 1;
                let db = Db::open(DIRECTORY, simulated(&image)).expect("open");
                let mut holders = Vec::new();
                for name in db.keyspaces() {
                    let found = all(&db.existing_keyspace(&name).expect("there"));
                    if found.contains_key(&b"0"[..]) {
                        holders.push((name, found.len()));
                    }
                }
                let context = format!("at {at}, {mode:?}, kept {keeps}, {done} done, {holders:?}");
                if done == 0 {
                    continue;
                }
                let [(name, entries)] = &holders[..] else { panic!("{context}") };
                let round: usize = name[1..].parse().expect("its number");
                // An odd count: the next rename was begun.
                assert!(round == done / 2 || done % 2 == 1 && round == done / 2 + 1, "{context}");
                assert!(*entries > done / 2, "{context}");
                db.verify().expect("verify");
            }
        }
    }
    println!("{crashes} crashes");
}

/// What is there after a repair of what a crash has left, without the manifest.
fn repaired_without_manifest(machine: &Machine) -> (esker::RepairReport, Db) {
    let image = machine.env.crash(&CrashMode::KeepAll, 1);
    for path in image.files() {
        if path.to_string_lossy().contains("MANIFEST") {
            image.remove(&path).expect("remove");
        }
    }
    let options = || Options::default().env(Arc::new(image.clone()));
    let report = Db::repair(DIRECTORY, options()).expect("repair");
    (report, Db::open(DIRECTORY, options()).expect("open"))
}

/// With a table of its own.
fn put_and_flush(db: &Db, keyspace: &Keyspace, key: &str) {
    keyspace.put(key, "").expect("put");
    db.flush().expect("flush");
}

#[test]
fn a_repair_without_a_manifest_takes_the_name_of_the_latest_table() {
    let machine = Machine::new();
    let db = machine.open();
    let names = keyspace(&db, "names");
    put_and_flush(&db, &names, "ada");
    names.rename("people").expect("rename");
    put_and_flush(&db, &names, "bob");
    let (report, db) = repaired_without_manifest(&machine);
    assert_eq!(names_of(&db), ["people"]);
    assert_eq!(pairs(&keyspace(&db, "people")).len(), 2);
    assert!(!report.warnings.iter().any(|warning| warning.contains("which operator")), "{report}");
}

#[test]
fn a_repair_without_a_manifest_gives_a_name_that_is_free_again_to_its_last_keyspace() {
    let machine = Machine::new();
    let db = machine.open();
    let first = keyspace(&db, "a");
    put_and_flush(&db, &first, "of the first");
    first.rename("old").expect("rename");
    let second = keyspace(&db, "a");
    put_and_flush(&db, &second, "of the second");
    let (_, repaired) = repaired_without_manifest(&machine);
    // No table says that the first one has another name.
    assert_eq!(names_of(&repaired), ["a", &format!("a-recovered-{}", first.id())]);
    assert_eq!(pairs(&keyspace(&repaired, "a"))[0].0, "of the second");
    drop(repaired);
    put_and_flush(&db, &first, "later");
    let (_, repaired) = repaired_without_manifest(&machine);
    assert_eq!(names_of(&repaired), ["a", "old"]);
    assert_eq!(pairs(&keyspace(&repaired, "a"))[0].0, "of the second");
    assert_eq!(pairs(&keyspace(&repaired, "old")).len(), 2);
    drop(repaired);
    // Exchanged.
    first.rename("b").expect("rename");
    second.rename("old").expect("rename");
    first.rename("a").expect("rename");
    put_and_flush(&db, &first, "last");
    put_and_flush(&db, &second, "last");
    let (_, repaired) = repaired_without_manifest(&machine);
    assert_eq!(names_of(&repaired), ["a", "old"]);
    assert_eq!(pairs(&keyspace(&repaired, "a")).len(), 3);
    assert_eq!(pairs(&keyspace(&repaired, "old")).len(), 2);
}

#[test]
fn a_repair_without_a_manifest_says_where_merges_may_have_had_another_operator() {
    let machine = Machine::new();
    let db = machine.open();
    let counts = db.keyspace("counts", KeyspaceOptions::default().merge_operator(UInt64Add)).expect("create");
    counts.put("k", 8u64.to_le_bytes()).expect("put");
    counts.merge("k", 2u64.to_le_bytes()).expect("merge");
    db.flush().expect("flush");
    let warns = |report: &esker::RepairReport| report.warnings.iter().any(|it| it.contains("which operator"));
    let (report, repaired) = repaired_without_manifest(&machine);
    assert!(!warns(&report), "{report}");
    drop(repaired);
    counts.merge("k", 3u64.to_le_bytes()).expect("merge");
    let (report, repaired) = repaired_without_manifest(&machine);
    assert!(warns(&report), "{report}");
    let value = repaired.existing_keyspace("counts").and_then(|counts| counts.get("k")).expect("get");
    assert_eq!(value.as_deref(), Some(&13u64.to_le_bytes()[..]));
}

/// Another thread opens, drops and writes under both names.
#[test]
fn a_rename_beside_other_calls_leaves_one_keyspace_of_a_name() {
    let machine = Machine::new();
    let db = machine.open();
    let names = keyspace(&db, "a");
    names.put("k", "mine").expect("put");
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = false;
            while !is_done.load(std::sync::atomic::Ordering::Acquire) {
                other = !other;
                let name = if other { "a" } else { "b" };
                if let Ok(found) = db.existing_keyspace(name) {
                    assert_eq!(text(&found, "k").as_deref(), Some("mine"));
                }
                assert!(db.keyspaces().len() == 1, "{:?}", db.keyspaces());
                names.put("l", "").expect("put");
            }
        });
        for round in 0..200 {
            names.rename(if round % 2 == 0 { "b" } else { "a" }).expect("rename");
        }
        is_done.store(true, std::sync::atomic::Ordering::Release);
    });
    assert_eq!(names_of(&db), ["a"]);
}
