//! The room of values that nobody can read any more comes back, and that of values that somebody
//! can read does not.

use super::{Scratch, blob_files, keyspace, simulated, value};
use crate::common::wait_until;
use esker::env::mem::MemEnv;
use esker::{Db, Options};

fn bytes_on_disk(mem: &MemEnv) -> usize {
    blob_files(mem, "/db").iter().map(|path| mem.file_bytes(path).unwrap().len()).sum()
}

#[test]
fn overwriting_leaves_one_generation_on_disk() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = keyspace(&db);
    // In each generation one key is left alone, so that no file is wholly garbage.
    for generation in 0..10u64 {
        for i in 0..20u64 {
            k.put(format!("{i:02}"), value(generation * 100 + i, 2000)).unwrap();
        }
        k.put(format!("left {generation}"), value(generation, 2000)).unwrap();
        db.flush().unwrap();
    }
    assert!(bytes_on_disk(&mem) > 10 * 20 * 2000);
    db.compact().unwrap();
    let live = 30 * 2008;
    assert!(bytes_on_disk(&mem) < 2 * live + (1 << 14), "{} bytes for {live}", bytes_on_disk(&mem));
    let stats = db.stats();
    assert_eq!((stats.live_blob_bytes, stats.blob_bytes as usize), (live as u64, bytes_on_disk(&mem)));
    for i in 0..20u64 {
        assert_eq!(k.get(format!("{i:02}")).unwrap().as_deref(), Some(&value(900 + i, 2000)[..]));
    }
    for generation in 0..10u64 {
        assert_eq!(k.get(format!("left {generation}")).unwrap().as_deref(), Some(&value(generation, 2000)[..]));
    }
    assert_eq!(db.verify().unwrap().large_values, 30);
    for i in 0..20u64 {
        k.delete(format!("{i:02}")).unwrap();
    }
    for generation in 0..10u64 {
        k.delete(format!("left {generation}")).unwrap();
    }
    db.compact().unwrap();
    assert_eq!(blob_files(&mem, "/db").len(), 0, "deleted is deleted");
    let db = Db::open("/db", simulated(mem.kill())).unwrap();
    assert_eq!(keyspace(&db).iter().count(), 0);
}

/// In the background, without being asked, beyond what is tolerated.
#[test]
fn garbage_is_collected_without_being_asked() {
    let scratch = Scratch::new("background-garbage");
    let db = Db::open(scratch.path(), Options::default().target_file_bytes(1 << 20)).unwrap();
    let k = keyspace(&db);
    for generation in 0..20u64 {
        for i in 0..20u64 {
            k.put(format!("{i:02}"), value(generation * 100 + i, 100_000)).unwrap();
        }
        k.put(format!("left {generation}"), value(generation, 100_000)).unwrap();
        db.flush().unwrap();
    }
    wait_until("most of the garbage is gone", || {
        db.wait_idle().unwrap();
        db.stats().blob_bytes <= 24 << 20
    });
    for i in 0..20u64 {
        assert!(k.get(format!("{i:02}")).unwrap().as_deref() == Some(&value(1900 + i, 100_000)[..]));
        assert!(k.get(format!("left {i}")).unwrap().as_deref() == Some(&value(i, 100_000)[..]));
    }
}

#[test]
fn a_snapshot_and_an_iterator_keep_what_they_see() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = keyspace(&db);
    let write = |seed: u64| (0..20u64).for_each(|i| k.put(format!("{i:02}"), value(seed + i, 3000)).unwrap());
    write(100);
    // One iterator in memory that is flushed under it, one in tables that are merged under it.
    let mut in_memory = k.iter();
    in_memory.next().unwrap().unwrap();
    let snapshot = db.snapshot();
    db.flush().unwrap();
    let mut in_tables = k.iter();
    in_tables.next().unwrap().unwrap();
    write(200);
    db.compact().unwrap();
    write(300);
    db.compact().unwrap();
    let sees = |seed: u64, i: u64| value(seed + i, 3000);
    for i in 0..20u64 {
        assert_eq!(snapshot.get(&k, format!("{i:02}")).unwrap().as_deref(), Some(&sees(100, i)[..]));
    }
    drop(snapshot);
    db.compact().unwrap();
    for i in 1..20u64 {
        assert_eq!(in_memory.next().unwrap().unwrap().1.to_vec(), sees(100, i));
        assert_eq!(in_tables.next().unwrap().unwrap().1.to_vec(), sees(100, i));
    }
    drop((in_memory, in_tables));
    db.compact().unwrap();
    assert!(bytes_on_disk(&mem) < 20 * 3008 + (1 << 14), "{}", bytes_on_disk(&mem));
    for i in 0..20u64 {
        assert_eq!(k.get(format!("{i:02}")).unwrap().as_deref(), Some(&sees(300, i)[..]));
    }
}

#[test]
fn abandoned_batches_leave_nothing_behind() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone())).unwrap();
    let k = keyspace(&db);
    for i in 0..100u64 {
        let mut batch = db.batch();
        batch.put(&k, "key", value(i, 3000)).unwrap();
        drop(batch);
    }
    k.put("key", "small").unwrap();
    db.compact().unwrap();
    assert_eq!(blob_files(&mem, "/db").len(), 0);
}

/// Seen: a compaction without end. Trigger: a blob file of one value shorter than the file's
/// header, which was taken for garbage, copied, and found to be garbage again.
#[test]
fn files_of_one_short_value_are_left_alone() {
    let mem = MemEnv::default();
    let db = Db::open("/db", simulated(mem.clone()).min_blob_size(1)).unwrap();
    let k = keyspace(&db);
    for i in 0..5u64 {
        k.put(format!("{i}"), "x").unwrap();
        db.compact().unwrap();
    }
    assert_eq!(k.iter().count(), 5);
}
