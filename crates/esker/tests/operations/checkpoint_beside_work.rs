//! A checkpoint that has to copy whole files holds up nobody meanwhile, and copies what was there
//! when it began.

use crate::common::*;
use crate::interrupting::Interrupting;
use esker::env::mem::MemEnv;
use esker::{Db, Error};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const COPY: &str = "copy";

/// An environment without links that is interrupted before the first table of the copy is written.
fn interrupting(env: &MemEnv) -> Interrupting {
    let is_table = |path: &Path| path.starts_with(COPY) && path.extension().is_some_and(|ending| ending == "table");
    Interrupting::new(env, is_table, Duration::from_secs(300)).without_links()
}

#[test]
fn writes_flushes_and_merges_go_on_while_it_copies() {
    let env = MemEnv::new();
    let interrupting = interrupting(&env);
    let options = || simulated(&env).min_blob_size(1000);
    let db = Db::open(DIRECTORY, options().env(Arc::new(interrupting.clone()))).unwrap();
    let names = keyspace(&db, "names");
    for round in 0..3u32 {
        for number in 0..200u32 {
            names.put(number.to_be_bytes(), (round * number).to_be_bytes()).unwrap();
        }
        names.put("large", vec![round as u8; 5000]).unwrap();
        db.flush().unwrap();
    }
    let expected = all(&names);
    let tables: Vec<String> = files(&env).into_keys().filter(|name| name.ends_with(".table")).collect();
    let (for_work, in_work) = (db.clone(), names.clone());
    interrupting.interrupt_with(move || {
        in_work.put("large", vec![9; 5000]).unwrap();
        in_work.delete_range(..).unwrap();
        for_work.compact().unwrap();
        in_work.put("after", "the checkpoint began").unwrap();
        for_work.flush().unwrap();
    });
    db.checkpoint(COPY).unwrap();
    assert!(interrupting.has_interrupted());
    // What it copied had gone by then.
    assert!(tables.iter().all(|name| !files(&env).contains_key(name)));
    let copy = Db::open(COPY, options()).unwrap();
    copy.verify().unwrap();
    assert_eq!(all(&keyspace(&copy, "names")), expected);
    assert_eq!(names.iter().count(), 1);
}

/// Seen: a checkpoint that has to copy succeeded over a damaged file, and the damage was found when
/// the copy was opened. Trigger: no hard links, and a flipped bit anywhere in what is copied. Cost:
/// a backup that is none.
#[test]
fn a_checkpoint_that_copies_refuses_what_has_rotted() {
    let env = MemEnv::new();
    let interrupting = interrupting(&env);
    let options = simulated(&env).min_blob_size(1000);
    let db = Db::open(DIRECTORY, options.clone().env(Arc::new(interrupting))).unwrap();
    let names = keyspace(&db, "names");
    for number in 0..50u32 {
        names.put(number.to_be_bytes(), number.to_string()).unwrap();
    }
    (0..3u8).for_each(|number| names.put([number], vec![number; 2000]).unwrap());
    db.flush().unwrap();
    let before = files(&env);
    let stored = before.iter().filter(|(name, _)| name.ends_with(".table") || name.ends_with(".blob"));
    let mut flips = 0;
    for (name, bytes) in stored {
        let path = Path::new(DIRECTORY).join(name);
        // In a blob file: a byte of each value, behind the header.
        let places: Vec<usize> =
            if name.ends_with(".table") { (0..bytes.len()).step_by(3).collect() } else { vec![41, 2100, 6000] };
        for at in places {
            assert!(env.flip_bit(&path, at as u64, (at % 8) as u8));
            match db.checkpoint(COPY) {
                Err(Error::Corruption { path: named, offset, .. }) => {
                    assert!(named == path && offset <= bytes.len() as u64)
                }
                other => panic!("byte {at} of {name}: {other:?}"),
            }
            let problem = db.health().problem.unwrap_or_default();
            assert!(problem.contains(name), "byte {at} of {name}: health says {problem:?}");
            assert!(!env.files().iter().any(|path| path.starts_with(COPY)), "{:?}", env.files());
            assert!(env.flip_bit(&path, at as u64, (at % 8) as u8));
            flips += 1;
            db.verify().unwrap();
            assert_eq!(db.health().problem, None);
        }
    }
    assert!(flips > 100, "{flips} flips");
    assert_eq!(files(&env), before, "the inputs are as they were");
    db.checkpoint(COPY).unwrap();
    assert_eq!(all(&keyspace(&Db::open(COPY, options).unwrap(), "names")), all(&names));
}
