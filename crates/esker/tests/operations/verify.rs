//! A check goes on behind damage, and what is no damage is not called so.

use crate::common::*;
use esker::env::mem::MemEnv;
use esker::{Compression, Db, Error, Options, VerifyEvent};
use std::collections::BTreeSet;
use std::path::Path;

/// Two tables of several blocks.
fn specimen() -> MemEnv {
    let env = MemEnv::new();
    let db = Db::open(DIRECTORY, simulated(&env).compression(Compression::None)).unwrap();
    for name in ["a", "b"] {
        let keyspace = keyspace(&db, name);
        for number in 0..100u32 {
            keyspace.put(number.to_be_bytes(), [number as u8; 20]).unwrap();
        }
        keyspace.put("large", vec![7; 40 << 10]).unwrap();
        db.flush().unwrap();
    }
    db.close().unwrap();
    env
}

fn files_ending(env: &MemEnv, end: &str) -> Vec<String> {
    files(env).into_keys().filter(|name| name.ends_with(end)).collect()
}

#[test]
fn all_damage_is_found_and_the_first_is_the_error() {
    let env = specimen();
    let tables = files_ending(&env, ".table");
    let blobs = files_ending(&env, ".blob");
    let flip = |name: &str, offset| assert!(env.flip_bit(&Path::new(DIRECTORY).join(name), offset, 0));
    // Blocks have some 256 bytes: these are in different ones.
    for table in &tables {
        flip(table, 20);
        flip(table, 1500);
    }
    flip(&blobs[0], 100);
    let db = Db::open_read_only(DIRECTORY, simulated(&env)).unwrap();
    let (mut found, mut last) = (Vec::new(), (0, 1));
    let result = db.verify_with(&mut |event| match event {
        VerifyEvent::Progress { done, total } => {
            assert!(done >= last.0 && done <= total, "{done} of {total}");
            last = (done, total);
        }
        VerifyEvent::Damage(Error::Corruption { path, offset, .. }) => found.push((path.clone(), *offset)),
        other => panic!("{other:?}"),
    });
    let names: Vec<String> = found.iter().map(|(path, _)| path.file_name().unwrap().to_string_lossy().into()).collect();
    for table in &tables {
        assert_eq!(names.iter().filter(|name| *name == table).count(), 2, "{found:?}");
    }
    assert_eq!(names.iter().filter(|name| **name == blobs[0]).count(), 1, "{found:?}");
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len(), "{found:?}");
    let Err(Error::Corruption { path, offset, .. }) = result else { panic!("{result:?}") };
    assert_eq!((path, offset), found[0]);
    assert!(db.verify().is_err());
}

#[test]
fn a_handle_that_was_opened_read_only_or_closed_has_no_problem() {
    let env = specimen();
    let db = Db::open_read_only(DIRECTORY, simulated(&env)).unwrap();
    assert_eq!((db.health().writable, db.health().problem), (false, None));
    assert!(matches!(keyspace(&db, "a").put("k", "v"), Err(Error::ReadOnly { why }) if why.contains("read-only")));
    let db = open(&env);
    let other = db.clone();
    db.close().unwrap();
    assert_eq!((other.health().writable, other.health().problem), (false, None));
}

#[test]
fn options_that_cannot_work_are_known_without_a_database() {
    let refused = Options::default().memory_budget_bytes(10).validate();
    assert!(matches!(refused, Err(Error::InvalidArgument { what }) if what.contains("1048576")));
    Options::default().validate().unwrap();
}

/// Seen: two lines of `esker stats` with different figures for memtables and block cache.
#[test]
fn statistics_as_text_give_each_figure_once() {
    let env = MemEnv::new();
    let db = open(&env);
    let keyspace = keyspace(&db, "a");
    for number in 0..1000u32 {
        keyspace.put(number.to_be_bytes(), [1; 100]).unwrap();
    }
    let text = db.stats().to_string();
    for part in ["memtables ", "block cache ", "indexes ", "filters "] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
}
