//! Transactions: what they see, what they conflict with, and that committed ones have the effect of
//! some order.

mod anomalies;
mod commits;
mod own_writes;
mod serial;
mod threads;

use esker::env::mem::MemEnv;
use esker::merge::{StringAppend, UInt64Add};
use esker::{Db, Error, Keyspace, KeyspaceOptions, Options, Result, Slice, Transaction};
use std::sync::Arc;

/// A database in a simulated environment, with background work inside the calls that need it.
fn database() -> Db {
    Db::open("/db", simulated()).unwrap()
}

fn simulated() -> Options {
    let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(0);
    options.wal_segment_bytes(1 << 16).write_buffer_bytes(1 << 20)
}

fn plain(db: &Db, name: &str) -> Keyspace {
    db.keyspace(name, KeyspaceOptions::default()).unwrap()
}

fn joining(db: &Db, name: &str) -> Keyspace {
    db.keyspace(name, KeyspaceOptions::default().merge_operator(StringAppend::new(","))).unwrap()
}

fn counters(db: &Db, name: &str) -> Keyspace {
    db.keyspace(name, KeyspaceOptions::default().merge_operator(UInt64Add)).unwrap()
}

/// A keyspace of plain values with these keys, each with the value "old".
fn with_keys(db: &Db, keys: &[&str]) -> Keyspace {
    let keyspace = plain(db, "k");
    keys.iter().for_each(|key| keyspace.put(key, "old").unwrap());
    keyspace
}

fn text(value: Option<Slice>) -> Option<String> {
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// The value of a key, as text.
fn get(transaction: &mut Transaction, keyspace: &Keyspace, key: &str) -> Option<String> {
    text(transaction.get(keyspace, key).unwrap())
}

/// The pairs of a scan, as text: `key=value`.
fn pairs(scan: impl Iterator<Item = Result<(Slice, Slice)>>) -> String {
    let pairs = scan.map(|pair| {
        let (key, value) = pair.unwrap();
        format!("{}={}", key.escape_ascii(), value.escape_ascii())
    });
    pairs.collect::<Vec<_>>().join(" ")
}

/// The key that a commit met a conflict at.
fn conflict(result: Result<()>) -> Option<String> {
    match result {
        Ok(()) => None,
        Err(error @ Error::Conflict { .. }) => {
            assert!(error.is_retryable());
            assert!(error.to_string().contains("run the transaction again"), "{error}");
            let Error::Conflict { key, .. } = error else { unreachable!() };
            Some(key)
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_transaction_can_go_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    let db = database();
    is_send(&db.transaction());
}
