#![allow(clippy::unwrap_used)]

use super::*;
use crate::env::mem::{CrashMode, MemEnv};
use crate::{Compression, Db, Keyspace, KeyspaceOptions, Options};

const EIO: Action = Action::Fail(ErrorKind::Other);

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn wrapped() -> (MemEnv, FaultEnv) {
    let inner = MemEnv::new();
    (inner.clone(), FaultEnv::new(Arc::new(inner)))
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    match result {
        Err(Error::Io { source, .. }) => source.kind(),
        other => panic!("{other:?}"),
    }
}

/// Makes one call of every class, two of some.
fn script(env: &dyn Env) -> Result<()> {
    env.create_dir_all(path("/d"))?;
    let _lock = env.lock(path("/d/LOCK"))?;
    let mut file = env.create(path("/d/tmp"))?;
    file.append(b"12")?;
    file.sync()?;
    env.rename(path("/d/tmp"), path("/d/f"))?;
    env.hard_link(path("/d/f"), path("/d/g"))?;
    env.remove(path("/d/g"))?;
    env.sync_dir(path("/d"))?;
    let log = env.open_log(path("/d/log"), Some(100), true)?;
    log.store(0, b"34")?;
    log.write(2, b"56")?;
    log.sync()?;
    log.read_at(0, &mut [0; 4])?;
    env.open_log(path("/d/log"), None, true)?;
    let file = env.open(path("/d/f"))?;
    assert!(file.mapping().is_none());
    file.read_at(0, &mut [0; 2])?;
    env.list(path("/d"))?;
    env.exists(path("/d"))?;
    Ok(())
}

#[test]
fn every_call_is_counted_under_its_class() {
    let (_, env) = wrapped();
    script(&env).unwrap();
    let expected = [
        (Class::Look, 2),
        (Class::Open, 2),
        (Class::Read, 2),
        (Class::Create, 3),
        (Class::Append, 1),
        (Class::Sync, 2),
        (Class::SyncDir, 1),
        (Class::Rename, 1),
        (Class::Remove, 1),
        (Class::Link, 1),
        (Class::LogWrite, 1),
        (Class::LogStore, 1),
        (Class::Lock, 1),
        (Class::AnyMutating, 13),
        (Class::Any, 19),
    ];
    for (class, count) in expected {
        assert_eq!(env.calls(class), count, "{class:?}");
    }
    for (index, class) in SINGLE_CLASSES.into_iter().enumerate() {
        assert_eq!(class as usize, index);
    }
}

#[test]
fn each_call_can_be_the_one_that_fails() {
    for class in SINGLE_CLASSES.into_iter().chain([Class::AnyMutating, Class::Any]) {
        let mut nth = 0;
        loop {
            let (_, env) = wrapped();
            env.add(Rule::new(class, nth, Action::Fail(ErrorKind::PermissionDenied)));
            let result = script(&env);
            if env.fired() == 0 {
                result.unwrap();
                assert_eq!(nth, env.calls(class));
                break;
            }
            assert_eq!(kind(result), ErrorKind::PermissionDenied);
            nth += 1;
        }
    }
}

#[test]
fn a_rule_fires_once_or_from_then_on_and_only_on_its_names() {
    let (_, env) = wrapped();
    env.add(Rule::new(Class::Create, 1, EIO).on_names_with("tab"));
    env.create(path("log")).unwrap();
    env.create(path("1.table")).unwrap();
    env.create(path("log2")).unwrap();
    assert_eq!(kind(env.create(path("2.table"))), ErrorKind::Other);
    env.create(path("2.table")).unwrap();
    env.add(Rule::new(Class::Any, 1, EIO).from_then_on());
    assert!(env.exists(path("log")).unwrap());
    assert!(env.exists(path("log")).is_err() && env.list(path("")).is_err() && env.remove(path("log")).is_err());
    assert_eq!(env.fired(), 4);
    env.clear();
    env.remove(path("log")).unwrap();
    env.add(Rule::new(Class::Rename, 0, EIO).on_names_with("CURRENT"));
    assert!(env.rename(path("1.table"), path("CURRENT")).is_err());
}

#[test]
fn a_full_disk_takes_a_part() {
    let (inner, env) = wrapped();
    let partial = Action::Partial { kind: ErrorKind::StorageFull, bytes: 3 };
    let mut file = env.create(path("f")).unwrap();
    let log = env.open_log(path("log"), Some(8), true).unwrap();
    for class in [Class::Append, Class::LogStore, Class::LogWrite, Class::Remove, Class::Create] {
        env.add(Rule::new(class, 0, partial));
    }
    assert!(file.append(b"01234").unwrap_err().is_disk_full());
    assert_eq!((inner.file_bytes(path("f")).unwrap(), file.len()), (b"012".to_vec(), 3));
    assert!(log.store(0, b"ab").unwrap_err().is_disk_full());
    assert!(log.write(4, b"wxyz").unwrap_err().is_disk_full());
    assert_eq!(inner.file_bytes(path("log")).unwrap(), b"ab\0\0wxy\0");
    assert!(env.remove(path("f")).is_err() && env.create(path("g")).is_err());
    assert_eq!(inner.files(), [path("f"), path("log")]);
}

#[test]
fn an_effect_may_come_with_an_error_or_be_missing_without_one() {
    let (inner, env) = wrapped();
    let mut file = env.create(path("f")).unwrap();
    file.append(b"12").unwrap();
    env.add(Rule::new(Class::Sync, 0, Action::FailAfter(ErrorKind::Other)));
    env.add(Rule::new(Class::SyncDir, 0, Action::Ignore));
    env.add(Rule::new(Class::Create, 0, Action::FailAfter(ErrorKind::Other)));
    assert!(file.sync().is_err());
    env.sync_dir(path("")).unwrap();
    assert!(inner.crash(&CrashMode::LoseAll, 0).files().is_empty());
    env.sync_dir(path("")).unwrap();
    assert_eq!(inner.crash(&CrashMode::LoseAll, 0).file_bytes(path("f")), Some(b"12".to_vec()));
    assert!(env.create(path("g")).is_err());
    assert!(inner.exists(path("g")).unwrap());
}

#[test]
fn a_slow_call_is_made_when_its_time_has_come_or_the_rules_are_gone() {
    let (_, env) = wrapped();
    env.add(Rule::new(Class::Create, 0, Action::Delay(Duration::from_millis(1))));
    env.create(path("soon")).unwrap();
    for most in [Duration::from_secs(3600), Duration::MAX] {
        env.add(Rule::new(Class::Create, 0, Action::Delay(most)));
        let fired = env.fired();
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| env.create(path("late")).map(drop));
            while env.fired() == fired {
                std::thread::yield_now();
            }
            assert!(!slow.is_finished(), "it did not wait");
            env.create(path("other")).unwrap();
            env.clear();
            slow.join().unwrap().unwrap();
        });
    }
    assert!(env.exists(path("late")).unwrap());
}

#[test]
fn a_mapping_is_passed_on_and_once_a_check_of_it_has_failed_every_one_does() {
    let (inner, env) = wrapped();
    inner.map_files();
    inner.set_file_bytes(path("f"), b"ada".to_vec());
    let file = env.open(path("f")).unwrap();
    file.check_mapping().unwrap();
    assert_eq!(env.calls(Class::Read), 0, "nothing was mapped");
    assert_eq!(file.mapping(), Some(&b"ada"[..]));
    env.add(Rule::new(Class::Read, 1, Action::Fail(ErrorKind::PermissionDenied)));
    file.check_mapping().unwrap();
    for _ in 0..2 {
        assert_eq!(kind(file.check_mapping()), ErrorKind::PermissionDenied);
    }
    assert_eq!((env.calls(Class::Read), env.fired()), (3, 1));
    file.read_at(0, &mut [0; 3]).unwrap();
    let other = env.open(path("f")).unwrap();
    assert!(other.mapping().is_some());
    other.check_mapping().unwrap();
}

const KEYS: [&str; 3] = ["ada", "bob", "cyd"];

/// Three keys in a table that is mapped, and was read once.
fn mapped_table() -> (FaultEnv, Db, Keyspace) {
    let (inner, env) = wrapped();
    inner.map_files();
    let options = Options::default().env(Arc::new(env.clone())).background_threads(0).compression(Compression::None);
    let db = Db::open("data", options).unwrap();
    let names = db.keyspace("names", KeyspaceOptions::default()).unwrap();
    KEYS.iter().for_each(|key| names.put(key, "1815").unwrap());
    db.flush().unwrap();
    assert_eq!(names.get("ada").unwrap().as_deref(), Some(&b"1815"[..]));
    (env, db, names)
}

#[test]
fn a_get_through_a_mapping_fails_with_the_check_behind_it_and_the_next_one_reads_the_file() {
    let (env, _db, names) = mapped_table();
    let before = env.calls(Class::Read);
    names.get("ada").unwrap();
    let checks = env.calls(Class::Read) - before;
    assert!(checks > 0, "it was not read through a mapping");
    let mut failed = Vec::new();
    for nth in 0..checks {
        let (env, _db, names) = mapped_table();
        env.add(Rule::new(Class::Read, nth, EIO));
        match names.get("ada") {
            // A check before the read, which then was one of the file.
            Ok(value) => assert_eq!(value.as_deref(), Some(&b"1815"[..]), "check {nth}"),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::Other => failed.push(nth),
            Err(other) => panic!("check {nth}: {other}"),
        }
        assert_eq!(env.fired(), 1);
        assert_eq!(names.get("ada").unwrap().as_deref(), Some(&b"1815"[..]), "after check {nth}");
    }
    assert_eq!(failed.last(), Some(&(checks - 1)), "the last check is the one behind the read: {failed:?}");
}

#[test]
fn a_scan_through_a_mapping_is_whole_or_an_error_whichever_check_fails() {
    let mut failed = 0;
    for nth in 0.. {
        let (env, _db, names) = mapped_table();
        env.add(Rule::new(Class::Read, nth, EIO));
        let scan = || names.iter().map(|pair| pair.map(|(key, _)| key.to_vec())).collect::<Result<Vec<_>>>();
        let found = scan();
        let is_done = env.fired() == 0;
        env.clear();
        match found {
            Ok(keys) => assert_eq!(keys, KEYS.map(|key| key.as_bytes().to_vec()), "check {nth}"),
            Err(Error::Io { .. }) => failed += 1,
            Err(other) => panic!("check {nth}: {other}"),
        }
        assert_eq!(scan().unwrap().len(), KEYS.len(), "after check {nth}");
        if is_done {
            break;
        }
    }
    assert!(failed > 0);
}
