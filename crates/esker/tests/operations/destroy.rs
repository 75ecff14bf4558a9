//! A database is removed, and nothing else.

use crate::common::*;
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::{Db, Error, Options};
use std::path::Path;
use std::sync::Arc;

fn options(env: Arc<dyn Env>) -> Options {
    Options::default().env(env).background_threads(0).min_blob_size(1 << 10)
}

/// A database with tables, a blob file and a log.
fn fill(env: &MemEnv) {
    let db = Db::open("/db", options(Arc::new(env.clone()))).unwrap();
    let k = keyspace(&db, "k");
    k.put("large", vec![7; 4 << 10]).unwrap();
    k.put("small", "1").unwrap();
    db.flush().unwrap();
    k.put("in the log", "2").unwrap();
}

fn names(env: &MemEnv) -> Vec<String> {
    env.list(Path::new("/db")).unwrap()
}

#[test]
fn every_file_of_a_database_goes_and_no_other() {
    let env = MemEnv::default();
    fill(&env);
    assert!(names(&env).len() > 4, "{:?}", names(&env));
    env.create(Path::new("/db/notes")).unwrap();
    Db::destroy("/db", options(Arc::new(env.clone()))).unwrap();
    assert_eq!(names(&env), ["notes"]);
    env.remove(Path::new("/db/notes")).unwrap();
    // Again, and where there never was one: nothing to do.
    Db::destroy("/db", options(Arc::new(env.clone()))).unwrap();
    Db::destroy("/elsewhere", options(Arc::new(env.clone()))).unwrap();
    assert!(!env.exists(Path::new("/elsewhere")).unwrap());
    // The directory takes a new database, which has nothing of the old one.
    let db = Db::open("/db", options(Arc::new(env.clone()))).unwrap();
    assert!(db.keyspaces().is_empty());
}

#[test]
fn an_open_database_is_not_removed() {
    let env = MemEnv::default();
    fill(&env);
    let db = Db::open("/db", options(Arc::new(env.clone()))).unwrap();
    let before = names(&env);
    let refused = Db::destroy("/db", options(Arc::new(env.clone())));
    assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
    assert_eq!(names(&env), before);
    assert!(keyspace(&db, "k").get("small").unwrap().is_some());
}

/// Cut short at any of its calls, it leaves the whole database, or none that opens; the next
/// attempt ends it.
#[test]
fn one_that_is_cut_short_can_be_made_again() {
    for nth in 0.. {
        let env = MemEnv::default();
        fill(&env);
        let failing = FaultEnv::new(Arc::new(env.clone()));
        failing.add(Rule::new(Class::Remove, nth, Action::Fail(std::io::ErrorKind::Other)));
        let cut_short = Db::destroy("/db", options(Arc::new(failing))).is_err();
        if !cut_short {
            assert!(nth > 4, "only {nth} files were removed");
            break;
        }
        let opened = Db::open("/db", options(Arc::new(env.clone())).create_if_missing(false));
        match opened {
            Ok(db) => assert_eq!((nth, keyspace(&db, "k").count(..).unwrap()), (0, 3)),
            Err(error) => assert!(matches!(error, Error::NotFound { .. }), "{error}"),
        }
        Db::destroy("/db", options(Arc::new(env.clone()))).unwrap();
        assert!(names(&env).is_empty(), "{:?}", names(&env));
    }
}
