//! A checkpoint that failed, or was cut short, must not stand in the way of the next attempt, nor
//! pass for a database.

use crate::common::*;
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{CheckpointMode, Db, Error};
use std::path::Path;
use std::sync::Arc;

const COPY: &str = "copy";

const MODES: [CheckpointMode; 2] = [CheckpointMode::Link, CheckpointMode::Copy];

fn filled(env: &MemEnv, options: esker::Options) -> Db {
    let db = Db::open(DIRECTORY, options).unwrap();
    let a = keyspace(&db, "a");
    for number in 0..200u32 {
        a.put(number.to_be_bytes(), [1; 40]).unwrap();
    }
    a.put("large", vec![2; 40 << 10]).unwrap();
    assert!(!env.is_dead());
    db
}

fn check_copy(env: &MemEnv, what: &str) {
    let db = Db::open(COPY, simulated(env)).unwrap_or_else(|error| panic!("{what}: {error}"));
    db.verify().unwrap();
    let all = all(&keyspace(&db, "a"));
    assert_eq!((all.len(), &all[&b"large"[..]]), (201, &vec![2; 40 << 10]), "{what}");
    drop(db);
    assert!(!env.exists(&Path::new(COPY).join("CHECKPOINT")).unwrap(), "{what}");
}

/// `nth` of the class fails.
fn fail_and_retry(mode: CheckpointMode, class: Class, nth: u64) -> bool {
    let env = MemEnv::default();
    let faulty = FaultEnv::new(Arc::new(env.clone()));
    let db = filled(&env, simulated(&env).env(Arc::new(faulty.clone())));
    db.flush().unwrap();
    faulty.add(Rule::new(class, nth, Action::Fail(std::io::ErrorKind::StorageFull)));
    let result = db.checkpoint_with(COPY, mode);
    let what = format!("{mode:?}, {class:?} {nth} failed: {result:?}");
    let fired = faulty.fired() > 0;
    faulty.clear();
    match result {
        // Links that fail are replaced by copies.
        Ok(()) => check_copy(&env, &what),
        Err(_) => {
            assert!(Db::open(COPY, simulated(&env).create_if_missing(false)).is_err(), "{what}");
            db.checkpoint_with(COPY, mode).unwrap_or_else(|error| panic!("{what}: {error}"));
            check_copy(&env, &what);
        }
    }
    fired
}

#[test]
fn after_a_failure_at_any_call_a_retry_works() {
    for mode in MODES {
        for class in [Class::AnyMutating, Class::Look, Class::Open, Class::Read] {
            let calls = (0..).take_while(|nth| fail_and_retry(mode, class, *nth)).count();
            match (class, mode) {
                (Class::AnyMutating, _) => assert!(calls > 8),
                (Class::Open | Class::Read, CheckpointMode::Copy) => assert!(calls > 1, "{class:?}"),
                _ => {}
            }
        }
    }
}

fn lose_power_after(count: u64, mode: CheckpointMode) -> bool {
    let env = MemEnv::default();
    let db = filled(&env, simulated(&env));
    db.flush().unwrap();
    env.crash_after(env.mutations() + count);
    let done = db.checkpoint_with(COPY, mode).is_ok();
    drop(db);
    for crash in [CrashMode::LoseAll, CrashMode::Random] {
        let after = env.crash(&crash, count);
        let what = format!("{mode:?} after {count}, {crash:?}");
        let is_whole = after.exists(&Path::new(COPY).join("CURRENT")).unwrap();
        assert!(is_whole || !done, "{what}");
        if !is_whole {
            let has_files = after.list(Path::new(COPY)).is_ok_and(|names| !names.is_empty());
            if has_files {
                assert!(matches!(Db::open(COPY, simulated(&after)), Err(Error::InvalidArgument { .. })), "{what}");
                assert!(Db::repair(COPY, simulated(&after)).is_err(), "{what}");
            }
            open(&after).checkpoint_with(COPY, mode).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        check_copy(&after, &what);
    }
    done
}

#[test]
fn after_a_power_loss_the_copy_is_whole_or_refused_and_a_retry_works() {
    for mode in MODES {
        let calls = (0..).take_while(|count| !lose_power_after(*count, mode)).count();
        assert!(calls > 8, "{mode:?}: {calls}");
    }
}

#[test]
fn a_directory_with_other_files_is_left_alone() {
    let env = MemEnv::default();
    let db = filled(&env, simulated(&env));
    env.set_file_bytes(&Path::new(COPY).join("precious"), b"data".to_vec());
    assert!(matches!(db.checkpoint(COPY), Err(Error::InvalidArgument { .. })));
    assert_eq!(env.file_bytes(&Path::new(COPY).join("precious")), Some(b"data".to_vec()));
    db.checkpoint("elsewhere").unwrap();
    assert!(matches!(db.checkpoint("elsewhere"), Err(Error::InvalidArgument { .. })));
}

#[test]
fn a_copy_into_the_directory_of_the_database_is_refused_before_anything_is_written() {
    let env = MemEnv::default();
    let db = filled(&env, simulated(&env));
    let before = env.files();
    for target in [DIRECTORY.to_owned(), format!("{DIRECTORY}/copy"), format!("{DIRECTORY}/../{DIRECTORY}/a/b")] {
        for mode in MODES {
            let result = db.checkpoint_with(&target, mode);
            assert!(matches!(&result, Err(Error::InvalidArgument { what }) if what.contains(&target)), "{result:?}");
            assert_eq!(env.files(), before);
        }
    }
    db.checkpoint(format!("{DIRECTORY}-copy")).unwrap();

    // On a real disk the same directory may have other names.
    let scratch = Scratch::new();
    let db = Db::open(scratch.path().join("db"), esker::Options::default()).unwrap();
    let names = || std::fs::read_dir(scratch.path().join("db")).unwrap().count();
    let before = names();
    let result = db.checkpoint(scratch.path().join("x/../db/copy"));
    assert!(matches!(result, Err(Error::InvalidArgument { .. })), "{result:?}");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(scratch.path().join("db"), scratch.path().join("link")).unwrap();
        let result = db.checkpoint(scratch.path().join("link/copy"));
        assert!(matches!(result, Err(Error::InvalidArgument { .. })), "{result:?}");
    }
    assert_eq!(names(), before);
}
