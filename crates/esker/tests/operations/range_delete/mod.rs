//! Deletes of ranges.

mod files;
mod meaning;
mod random;
mod restart;

use esker::env::mem::MemEnv;
use esker::merge::UInt64Add;
use esker::{Compression, Db, Keyspace, KeyspaceOptions, Options};
use std::sync::Arc;

/// A database without threads whose every table holds one key.
fn tiny(env: &MemEnv) -> Options {
    let options = Options::default().env(Arc::new(env.clone())).background_threads(0).compression(Compression::None);
    options.wal_segment_bytes(1 << 16).write_buffer_bytes(1 << 20).target_file_bytes(1)
}

fn open(env: &MemEnv) -> (Db, Keyspace) {
    let db = Db::open("/db", tiny(env)).unwrap();
    let keyspace = counters(&db);
    (db, keyspace)
}

fn counters(db: &Db) -> Keyspace {
    db.keyspace("k", KeyspaceOptions::default().merge_operator(UInt64Add)).unwrap()
}

fn number(n: u64) -> [u8; 8] {
    n.to_le_bytes()
}

fn keys(keyspace: &Keyspace) -> Vec<String> {
    let forward: Vec<String> =
        keyspace.iter().map(|pair| String::from_utf8(pair.unwrap().0.to_vec()).unwrap()).collect();
    let mut backward: Vec<String> =
        keyspace.iter().rev().map(|pair| String::from_utf8(pair.unwrap().0.to_vec()).unwrap()).collect();
    backward.reverse();
    assert_eq!(forward, backward);
    for key in &forward {
        assert!(keyspace.get(key).unwrap().is_some());
    }
    forward
}

fn fill(keyspace: &Keyspace, value: u64) {
    for key in ["a", "b", "c", "d", "e"] {
        keyspace.put(key, number(value)).unwrap();
    }
}
