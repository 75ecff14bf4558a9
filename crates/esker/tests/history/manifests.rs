//! Manifests that cannot be written, and what goes on from there.

use crate::common::{count, keyspace, simulated, synced};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, Error};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

fn count_in(env: &MemEnv) -> usize {
    count(&keyspace(&Db::open("/db", simulated(env.clone())).unwrap(), "k"))
}

/// Another engine went on appending behind half a record that had found the disk full; the edits
/// behind it were lost. Here the handle writes no more, and the next open begins another manifest.
#[test]
fn behind_an_edit_that_found_the_disk_full_comes_another_manifest() {
    let current = |env: &MemEnv| env.file_bytes(Path::new("/db/CURRENT")).unwrap();
    for bytes in [0, 1, 4, 8, 9, 20] {
        let env = MemEnv::new();
        let fault = FaultEnv::new(Arc::new(env.clone()));
        let db = Db::open("/db", simulated(fault.clone())).unwrap();
        let k = keyspace(&db, "k");
        k.put_with("a", "1", &synced()).unwrap();
        db.flush().unwrap();
        k.put_with("b", "1", &synced()).unwrap();
        let full = Action::Partial { kind: ErrorKind::StorageFull, bytes };
        fault.add(Rule::new(Class::Append, 0, full).on_names_with("MANIFEST"));
        assert!(db.flush().unwrap_err().is_disk_full());
        assert_eq!(fault.fired(), 1);
        for refused in [k.put("c", "1"), db.flush(), db.compact()] {
            assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{refused:?}");
        }
        assert!(k.get("a").unwrap().is_some() && k.get("b").unwrap().is_some());
        let before = current(&env);
        drop((k, db));
        for (round, image) in [env.kill(), env.crash(&CrashMode::LoseAll, 0), env].into_iter().enumerate() {
            assert_eq!(count_in(&image), 2, "{bytes} bytes, image {round}");
            assert_ne!(current(&image), before, "{bytes} bytes, image {round}");
            let db = Db::open("/db", simulated(image.clone())).unwrap();
            keyspace(&db, "k").put("c", "1").unwrap();
            db.flush().unwrap();
            drop(db);
            assert_eq!(count_in(&image.kill()), 3, "{bytes} bytes, image {round}");
        }
    }
}

/// Writes a key and flushes it into a manifest whose sync fails: with the record on its way to the
/// device, or not.
fn fail_to_flush(env: &MemEnv, key: u8, action: Action) {
    let fault = FaultEnv::new(Arc::new(env.clone()));
    let db = Db::open("/db", simulated(fault.clone())).unwrap();
    let k = keyspace(&db, "k");
    k.put_with([key], vec![key; 100], &synced()).unwrap();
    fault.add(Rule::new(Class::Sync, 0, action).on_names_with("MANIFEST"));
    assert!(db.flush().is_err());
    // A merge of everything would use file numbers that the edit has given out.
    assert!(matches!(db.compact(), Err(Error::ReadOnly { .. })));
}

/// Other engines have removed the tables of an edit whose sync had failed, and given their numbers
/// out again, while the device had the edit. Here over two such failures in a row, with every way
/// that the power may go after each.
#[test]
fn an_edit_whose_sync_failed_may_be_found_later() {
    let actions = [Action::Fail(ErrorKind::Other), Action::FailAfter(ErrorKind::Other)];
    let images = |env: &MemEnv| {
        let fixed = CrashMode::FIXED.map(|mode| env.crash(&mode, 0));
        let random = (0..6).map(|seed| env.crash(&CrashMode::Random, seed));
        std::iter::once(env.kill()).chain(fixed).chain(random).collect::<Vec<_>>()
    };
    for (first, second) in actions.iter().flat_map(|&a| actions.iter().map(move |&b| (a, b))) {
        let env = MemEnv::new();
        let db = Db::open("/db", simulated(env.clone())).unwrap();
        keyspace(&db, "k").put_with([0], vec![0; 100], &synced()).unwrap();
        db.close().unwrap();
        fail_to_flush(&env, 1, first);
        for image in images(&env) {
            fail_to_flush(&image, 2, second);
            for image in images(&image) {
                let db = Db::open("/db", simulated(image.clone())).unwrap();
                let k = keyspace(&db, "k");
                for round in 0..2 {
                    for key in 0..3u8 {
                        assert_eq!(
                            k.get([key]).unwrap().as_deref(),
                            Some(&[key; 100][..]),
                            "{first:?}, {second:?}, {round}"
                        );
                    }
                    db.verify().unwrap();
                    db.compact().unwrap();
                }
            }
        }
    }
}
