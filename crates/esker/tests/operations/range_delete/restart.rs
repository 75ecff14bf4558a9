//! Range deletes across reopening, crashes and copies.

use super::{counters, fill, keys, number, open, tiny};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, WriteOptions};

#[test]
fn a_synced_range_delete_survives_power_loss_at_every_call_after_it() {
    let sync = WriteOptions::new().sync(true);
    for calls in 0.. {
        let env = MemEnv::default();
        let (db, k) = open(&env);
        fill(&k, 1);
        db.flush().unwrap();
        fill(&k, 2);
        k.delete_range_with("b".."d", &sync).unwrap();
        k.put_with("c", number(3), &sync).unwrap();
        env.crash_after(calls);
        let finished = db.flush().is_ok() && db.compact().is_ok();
        drop((k, db));
        for mode in [CrashMode::LoseAll, CrashMode::Random] {
            let (db, k) = open(&env.crash(&mode, calls));
            assert_eq!(keys(&k), ["a", "c", "d", "e"], "{calls} calls");
            db.compact().unwrap();
            assert_eq!(keys(&k), ["a", "c", "d", "e"], "{calls} calls");
            assert_eq!(k.get("c").unwrap().as_deref(), Some(&number(3)[..]));
        }
        if finished {
            return;
        }
    }
}

#[test]
fn a_checkpoint_has_the_tombstones() {
    let env = MemEnv::default();
    let (db, k) = open(&env);
    fill(&k, 1);
    db.flush().unwrap();
    let held = db.snapshot();
    k.delete_range("b"..="d").unwrap();
    db.checkpoint("/copy").unwrap();
    k.put("b", number(1)).unwrap();
    let copy = Db::open("/copy", tiny(&env)).unwrap();
    assert_eq!(keys(&counters(&copy)), ["a", "e"]);
    assert_eq!(held.iter(&k).count(), 5);
    let read_only = Db::open_read_only("/db", tiny(&env)).unwrap();
    assert_eq!(keys(&counters(&read_only)), ["a", "b", "e"]);
}

/// A memtable with nothing but a range delete is flushed like any other, and a log with nothing
/// else is replayed.
#[test]
fn a_range_delete_alone_is_not_nothing() {
    let env = MemEnv::default();
    let (db, k) = open(&env);
    fill(&k, 1);
    db.flush().unwrap();
    k.delete_range("c"..).unwrap();
    drop((k, db));
    let (db, k) = open(&env.kill());
    assert_eq!(keys(&k), ["a", "b"]);
    drop((k, db));
    let (db, k) = open(&env);
    k.delete_range(.."b").unwrap();
    db.flush().unwrap();
    drop((k, db));
    let (_db, k) = open(&env.kill());
    assert_eq!(keys(&k), ["b"]);
}
