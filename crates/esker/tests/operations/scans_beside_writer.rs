//! Scans while somebody writes: what they need put in order meanwhile must be neither missing nor
//! twice.

use esker::env::mem::MemEnv;
use esker::{Db, KeyspaceOptions, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const KEYS: u64 = 20_000;

/// Two keys for each number, far apart, of one length or of several.
fn keys(number: u64, uneven: bool) -> [String; 2] {
    if uneven {
        [format!("a{number}"), format!("b/{number}/")]
    } else {
        [format!("a{number:011}"), format!("b{number:011}")]
    }
}

#[test]
fn a_scan_beside_a_writer_sees_one_moment_in_order() {
    for (background, uneven) in [(1, false), (1, true), (0, false)] {
        let options =
            Options::default().env(Arc::new(MemEnv::new())).background_threads(background).write_buffer_bytes(4 << 20);
        let db = Db::open("/db", options).unwrap();
        let keyspace = db.keyspace("k", KeyspaceOptions::default()).unwrap();
        let rounds = 150_000;
        // Rounds that were acknowledged.
        let written = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=rounds {
                    let mut batch = db.batch();
                    for key in keys(round * 7919 % KEYS, uneven) {
                        batch.put(&keyspace, key, round.to_string()).unwrap();
                    }
                    batch.commit().unwrap();
                    written.store(round, SeqCst);
                }
            });
            for backward in [false, true] {
                let (keyspace, written) = (&keyspace, &written);
                scope.spawn(move || {
                    while written.load(SeqCst) < rounds {
                        check_one_moment(keyspace, written, backward, uneven);
                    }
                });
            }
        });
        check_one_moment(&keyspace, &written, false, uneven);
    }
}

/// The state that an iterator finds is that behind some round between those acknowledged before and
/// after it was made.
fn check_one_moment(keyspace: &esker::Keyspace, written: &AtomicU64, backward: bool, uneven: bool) {
    let before = written.load(SeqCst);
    let iter = keyspace.iter();
    let after = written.load(SeqCst) + 1;
    let mut pairs: Vec<(String, u64)> =
        if backward { iter.rev().map(text).collect() } else { iter.map(text).collect() };
    if backward {
        pairs.reverse();
    }
    assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0), "keys out of order, or twice");
    let moment = pairs.iter().map(|pair| pair.1).max().unwrap_or(0);
    assert!((before..=after).contains(&moment), "{moment} is not between {before} and {after}");
    let mut expected: Vec<(String, u64)> = Vec::new();
    // The last round of each number up to the moment.
    for round in (moment.saturating_sub(KEYS) + 1)..=moment {
        expected.extend(keys(round * 7919 % KEYS, uneven).map(|key| (key, round)));
    }
    expected.sort();
    assert_eq!(pairs.len(), expected.len(), "at round {moment}");
    assert!(pairs == expected, "wrong values at round {moment}");
}

fn text(pair: esker::Result<(esker::Slice, esker::Slice)>) -> (String, u64) {
    let (key, value) = pair.unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&key), text(&value).parse().unwrap())
}
