//! A checkpoint that failed, or was cut short, must not stand in the way of the next attempt, nor pass for a database.

use crate::common::*;
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, Error};
use std::path::Path;
use std::sync::Arc;

const COPY: &str = "copy";

fn filled(env: &MemEnv, options: esker::Options) -> Db {
    let db = Db::open(DIRECTORY, options).unwrap();
    let a = keyspace(&db, "a");
    for number in 0..200u32 {
        a.put(number.to_be_bytes(), [1; 40]).unwrap();
    }
    assert!(!env.is_dead());
    db
}

fn check_copy(env: &MemEnv, what: &str) {
    let db = Db::open(COPY, simulated(env)).unwrap_or_else(|error| panic!("{what}: {error}"));
    db.verify(&mut |_, _| {}).unwrap();
    assert_eq!(all(&keyspace(&db, "a")).len(), 200, "{what}");
    drop(db);
    assert!(!env.exists(&Path::new(COPY).join("CHECKPOINT")).unwrap(), "{what}");
}

#[test]
fn after_a_failure_at_any_call_a_retry_works() {
    for nth in 0.. {
        let env = MemEnv::default();
        let faulty = FaultEnv::new(Arc::new(env.clone()));
        let db = filled(&env, simulated(&env).env(Arc::new(faulty.clone())));
        db.flush().unwrap();
        faulty.add(Rule::new(Class::AnyMutating, nth, Action::Fail(std::io::ErrorKind::StorageFull)));
        let result = db.checkpoint(COPY);
        let what = format!("call {nth} failed: {result:?}");
        let fired = faulty.fired() > 0;
        faulty.clear();
        match result {
            // Links that fail are replaced by copies.
            Ok(()) => check_copy(&env, &what),
            Err(_) => {
                assert!(Db::open(COPY, simulated(&env).create_if_missing(false)).is_err(), "{what}");
                db.checkpoint(COPY).unwrap_or_else(|error| panic!("{what}: {error}"));
                check_copy(&env, &what);
            }
        }
        if !fired {
            assert!(nth > 8);
            break;
        }
    }
}

#[test]
fn after_a_power_loss_the_copy_is_whole_or_refused_and_a_retry_works() {
    for count in 0.. {
        let env = MemEnv::default();
        let db = filled(&env, simulated(&env));
        db.flush().unwrap();
        env.crash_after(env.mutations() + count);
        let done = db.checkpoint(COPY).is_ok();
        drop(db);
        for mode in [CrashMode::LoseAll, CrashMode::Random] {
            let after = env.crash(&mode, count);
            let what = format!("after {count}, {mode:?}");
            let is_whole = after.exists(&Path::new(COPY).join("CURRENT")).unwrap();
            assert!(is_whole || !done, "{what}");
            if !is_whole {
                let has_files = after.list(Path::new(COPY)).is_ok_and(|names| !names.is_empty());
                if has_files {
                    assert!(matches!(Db::open(COPY, simulated(&after)), Err(Error::InvalidArgument { .. })), "{what}");
                    assert!(Db::repair(COPY, simulated(&after)).is_err(), "{what}");
                }
                open(&after).checkpoint(COPY).unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            check_copy(&after, &what);
        }
        if done {
            break;
        }
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
