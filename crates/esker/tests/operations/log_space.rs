//! What the log takes on disk while nobody writes, and that giving it back costs nothing that anybody needs.

use crate::common::keyspace;
use crate::compaction_support::Scratch;
use esker::{Db, Keyspace, Options};
use std::time::{Duration, Instant};

/// The smallest size of a segment.
const SMALLEST: u64 = 1 << 20;
const ENTRIES: u32 = 40_000;

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
    let deadline = Instant::now() + Duration::from_secs(60);
    while scratch.bytes_ending(".wal") > SMALLEST {
        assert!(Instant::now() < deadline, "{} bytes of log are kept", scratch.bytes_ending(".wal"));
        std::thread::sleep(Duration::from_millis(50));
    }
    check(&keyspace(&db, "k"), 1);
}
