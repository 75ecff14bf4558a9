//! What range deletes do to tables.

use super::{fill, keys, number, open, tiny};
use esker::env::mem::MemEnv;
use esker::{Db, Keyspace};

/// Cut at many tables of one key each, a tombstone must neither overlap the next table nor lose a
/// piece between two.
#[test]
fn a_tombstone_clipped_at_many_tables_has_no_holes() {
    let (db, k) = open(&MemEnv::default());
    fill(&k, 1);
    k.put("bb", number(1)).unwrap();
    k.put("cc", number(1)).unwrap();
    db.compact().unwrap();
    let held = db.snapshot();
    k.delete_range("aa".."dd").unwrap();
    k.put("b", number(2)).unwrap();
    k.put("c", number(2)).unwrap();
    k.put("z", number(2)).unwrap();
    db.flush().unwrap();
    db.verify().unwrap();
    assert_eq!(keys(&k), ["a", "b", "c", "e", "z"]);
    assert_eq!(held.iter(&k).count(), 7);
    k.delete_range("c"..).unwrap();
    db.compact().unwrap();
    db.verify().unwrap();
    assert_eq!(keys(&k), ["a", "b"]);
    assert_eq!(held.iter(&k).count(), 7);
}

fn numbered(k: &Keyspace, from: u32, to: u32) {
    for i in from..to {
        k.put(format!("{i:06}"), [7u8; 100]).unwrap();
    }
}

/// Tables wholly covered go without being read, once no snapshot needs them.
#[test]
fn covered_tables_go_unread() {
    let env = MemEnv::default();
    let db = Db::open("/db", tiny(&env).target_file_bytes(20_000)).unwrap();
    let k = super::counters(&db);
    numbered(&k, 0, 2000);
    db.compact().unwrap();
    let before = db.stats();
    assert!(before.table_files > 8);
    let held = db.snapshot();
    k.delete_range("000100".."001900").unwrap();
    db.flush().unwrap();
    assert_eq!(held.iter(&k).count(), 2000);
    drop(held);
    // Before anything is merged: two more tables are needed for that, and neither is covered.
    db.wait_idle().unwrap();
    let after = db.stats();
    assert_eq!(k.iter().count(), 200);
    assert!(after.table_bytes < before.table_bytes / 5);
    let read = after.compaction_read_bytes - before.compaction_read_bytes;
    assert!(read < before.table_bytes / 4, "{read} of {} bytes were read", before.table_bytes);
    k.delete_range(..).unwrap();
    let read = db.stats().compaction_read_bytes;
    db.compact().unwrap();
    assert_eq!((db.stats().table_files, db.stats().compaction_read_bytes), (0, read), "nothing is left or was read");
    assert_eq!(env.files().iter().filter(|path| path.extension().is_some_and(|e| e == "table")).count(), 0);
}

/// A scan passes a covered part of an older run in a few seeks: it loads next to none of its
/// blocks.
#[test]
fn a_scan_over_a_covered_run_does_not_step_through_it() {
    let options = tiny(&MemEnv::default()).target_file_bytes(1 << 20).read_mode(esker::ReadMode::Pread);
    let db = Db::open("/db", options).unwrap();
    let k = super::counters(&db);
    numbered(&k, 0, 20_000);
    db.compact().unwrap();
    k.delete_range("000010".."019990").unwrap();
    let before = db.stats();
    assert_eq!(k.iter().count(), 20);
    assert_eq!(k.iter().rev().count(), 20);
    let after = db.stats();
    let blocks = (after.cache_hits + after.cache_misses) - (before.cache_hits + before.cache_misses);
    assert!(blocks < 20, "{blocks} blocks were loaded");
}
