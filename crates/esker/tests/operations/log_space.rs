//! What the log takes on disk while nobody writes, and that giving it back costs nothing that
//! anybody needs.

use crate::common::{keyspace, wait_until};
use crate::compaction_support::Scratch;
use esker::internals::background_round;
use esker::{Db, Keyspace, Options};
use std::time::Duration;

/// The smallest size of a segment.
const SMALLEST: u64 = 1 << 20;
/// A log of up to this size is left to an idle database.
const SMALL: u64 = 4 << 20;
const ENTRIES: u32 = 40_000;
/// Nobody writes for so long.
const PAUSE: Duration = Duration::from_secs(10);

fn options() -> Options {
    Options::default().write_buffer_bytes(2 << 20).wal_segment_bytes(4 << 20)
}

fn load(keyspace: &Keyspace, round: u8) {
    for number in 0..ENTRIES {
        keyspace.put(number.to_be_bytes(), [round; 200]).unwrap();
    }
}

fn check(keyspace: &Keyspace, round: u8) {
    let mut count = 0;
    for pair in keyspace.iter() {
        assert_eq!(pair.unwrap().1[..], [round; 200]);
        count += 1;
    }
    assert_eq!(count, ENTRIES);
}

#[test]
fn a_settled_database_has_the_log_of_an_empty_one() {
    let scratch = Scratch::new("settled-log");
    let db = Db::open(scratch.path(), options()).unwrap();
    for round in 1..=3 {
        load(&keyspace(&db, "k"), round);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(scratch.bytes_ending(".wal"), SMALLEST, "round {round}");
        check(&keyspace(&db, "k"), round);
    }
    drop(db);
    let db = Db::open(scratch.path(), options()).unwrap();
    check(&keyspace(&db, "k"), 3);
}

/// What is in memory only keeps its log; files for more of it go.
#[test]
fn an_idle_database_keeps_the_log_of_what_is_in_no_table() {
    let scratch = Scratch::new("idle-log");
    let db = Db::open(scratch.path(), options().background_threads(0)).unwrap();
    let k = keyspace(&db, "k");
    load(&k, 1);
    db.flush().unwrap();
    let loaded = scratch.bytes_ending(".wal");
    load(&k, 2);
    db.wait_idle().unwrap();
    let idle = scratch.bytes_ending(".wal");
    assert!(SMALLEST < idle && idle < loaded, "{loaded} {idle}");
    // As a kill does: neither is closed.
    std::mem::forget((k, db));
    let copy = Scratch::new("idle-log-copy");
    std::fs::create_dir_all(copy.path()).unwrap();
    for entry in std::fs::read_dir(scratch.path()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    let db = Db::open(copy.path(), options()).unwrap();
    check(&keyspace(&db, "k"), 2);
}

#[test]
fn a_pause_is_enough() {
    let scratch = Scratch::new("pausing-log");
    let db = Db::open(scratch.path(), options()).unwrap();
    load(&keyspace(&db, "k"), 1);
    db.flush().unwrap();
    wait_until("the log gives its space back", || scratch.bytes_ending(".wal") <= SMALLEST);
    check(&keyspace(&db, "k"), 1);
}

/// With a write buffer of 64 MiB nothing of it would be written to a table. Merging would write all
/// tables again, so there must be something to gain.
#[test]
fn a_memtable_that_keeps_much_of_the_log_is_flushed_once_writes_pause() {
    let scratch = Scratch::new("held-log");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    load(&keyspace(&db, "k"), 1);
    load(&keyspace(&db, "k"), 2);
    wait_until("the log gives its space back", || scratch.bytes_ending(".wal") <= SMALLEST);
    let flushes = db.stats().flushes;
    assert!(flushes >= 1);
    check(&keyspace(&db, "k"), 2);
    // Little: that has to wait for more, but not if somebody asks.
    for number in 0..ENTRIES / 2 {
        keyspace(&db, "k").put(number.to_be_bytes(), [2; 200]).unwrap();
    }
    for _ in 0..3 {
        background_round(&db, PAUSE);
    }
    assert_eq!(db.stats().flushes, flushes);
    assert!(scratch.bytes_ending(".wal") > SMALL);
    db.wait_idle().unwrap();
    assert_eq!(db.stats().flushes, flushes + 1);
    assert_eq!(scratch.bytes_ending(".wal"), SMALLEST);
    // As much as the first time: such a pause is enough for it.
    load(&keyspace(&db, "k"), 1);
    load(&keyspace(&db, "k"), 2);
    background_round(&db, PAUSE);
    assert!(db.stats().flushes > flushes + 1);
    drop(db);
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    check(&keyspace(&db, "k"), 2);
}

/// Small bursts with pauses between them must not each bring a table, and a merge of everything.
#[test]
fn waiting_for_little_flushes_nothing() {
    let scratch = Scratch::new("little-log");
    let db = Db::open(scratch.path(), Options::default().background_threads(0)).unwrap();
    let k = keyspace(&db, "k");
    for round in 0..20u8 {
        k.put([round], [round; 100]).unwrap();
        db.wait_idle().unwrap();
    }
    assert_eq!(db.stats().flushes, 0);
    assert_eq!(scratch.bytes_ending(".wal"), SMALLEST);
}

/// Bytes of log segments that this process has in memory.
#[cfg(target_os = "linux")]
fn resident_log_bytes(directory: &std::path::Path) -> u64 {
    let directory = std::fs::canonicalize(directory).unwrap();
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut bytes, mut ours) = (0, false);
    for line in maps.lines() {
        if let Some(rest) = line.strip_prefix("Rss:") {
            let kibibytes: u64 = rest.trim().trim_end_matches(" kB").parse().unwrap();
            bytes += if ours { kibibytes << 10 } else { 0 };
        } else if line.contains(" r") && line.contains('-') {
            ours = line.contains(".wal") && line.contains(directory.to_str().unwrap());
        }
    }
    bytes
}

/// Mapped pages count as memory of the process. A log of many times as many bytes takes only those
/// around the writer.
#[test]
#[cfg(target_os = "linux")]
fn only_pages_around_the_writer_are_in_memory() {
    const MOST: u64 = 24 << 20;
    let scratch = Scratch::new("resident-log");
    for threads in [0, 1] {
        let options = Options::default().write_buffer_bytes(256 << 20).background_threads(threads);
        let db = Db::open(scratch.path().join(threads.to_string()), options).unwrap();
        let k = keyspace(&db, "k");
        for round in 1..=10 {
            load(&k, round);
            // The background thread may not have done it yet.
            wait_until("the log leaves memory", || resident_log_bytes(scratch.path()) <= MOST);
        }
        assert!(db.stats().flushes == 0 && resident_log_bytes(scratch.path()) > 0);
        check(&k, 10);
    }
}
