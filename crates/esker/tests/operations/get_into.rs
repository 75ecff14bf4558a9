//! Reads into the caller's buffer.

use crate::common::{DIRECTORY, Machine};
use esker::internals::Random;
use esker::merge::StringAppend;
use esker::{Compression, Db, Error, Keyspace, KeyspaceOptions, Snapshot, Ttl};
use std::sync::Arc;
use std::time::Duration;

fn key(number: u64) -> Vec<u8> {
    format!("key{:0width$}", number, width = 1 + number as usize % 30).into_bytes()
}

/// Lengths around what a slice holds itself, and beyond what a table holds.
fn value(random: &mut Random) -> Vec<u8> {
    let length = [0, 1, 8, 30, 31, 100, 700, 3000][random.below(8) as usize];
    (0..length).map(|_| random.below(3) as u8).collect()
}

fn write(db: &Db, keyspace: &Keyspace, random: &mut Random, keys: u64) {
    let name = key(random.below(keys));
    let mut batch = db.batch();
    match random.below(40) {
        0..20 => batch.put(keyspace, &name, value(random)).unwrap(),
        20..25 => batch.delete(keyspace, &name).unwrap(),
        25..32 => batch.merge(keyspace, &name, value(random)).unwrap(),
        32 => {
            let (a, b) = (name, key(random.below(keys)));
            batch.delete_range(keyspace, a.clone().min(b.clone())..a.max(b)).unwrap();
        }
        _ => {
            let time = Duration::from_secs(1 + random.below(50));
            keyspace.put_with(&name, value(random), &esker::WriteOptions::new().ttl(time)).unwrap();
        }
    }
    batch.commit().unwrap();
}

/// Whatever `get` says, and whatever was in the buffer.
fn compare(keyspace: &Keyspace, snapshots: &[Snapshot], random: &mut Random, keys: u64, context: &str) {
    let mut buffer = vec![b'x'; random.below(2000) as usize];
    for number in 0..keys {
        let expected = keyspace.get(key(number)).unwrap();
        assert_eq!(keyspace.get_into(key(number), &mut buffer).unwrap(), expected.is_some(), "{context}: {number}");
        assert_eq!(buffer, expected.as_deref().unwrap_or_default(), "{context}: {number}");
    }
    for snapshot in snapshots {
        let name = key(random.below(keys));
        let expected = snapshot.get(keyspace, &name).unwrap();
        assert_eq!(snapshot.get_into(keyspace, &name, &mut buffer).unwrap(), expected.is_some(), "{context}");
        assert_eq!(buffer, expected.as_deref().unwrap_or_default(), "{context}");
    }
}

#[test]
fn the_buffer_holds_exactly_what_a_get_returns() {
    for seed in 1..=8 {
        const KEYS: u64 = 120;
        let context = format!("seed {seed}");
        let machine = Machine::new();
        let compression = if seed % 2 == 0 { Compression::Lz4 } else { Compression::None };
        let options = machine.options().min_blob_size(2000).compression(compression).block_cache_bytes(8 << 10);
        let db = Db::open(DIRECTORY, options).unwrap();
        let options =
            KeyspaceOptions::default().merge_operator(StringAppend::new(b",")).ttl(Ttl::Enabled { default: None });
        let keyspace = db.keyspace("k", options).unwrap();
        let mut random = Random::new(seed * 0x9E37_79B9);
        let mut snapshots = Vec::new();
        for _ in 0..1500 {
            match random.below(300) {
                0 => db.flush().unwrap(),
                1 => db.compact().unwrap(),
                2..6 => snapshots.push(db.snapshot()),
                6..9 => drop(snapshots.pop()),
                9..12 => machine.pass(Duration::from_secs(random.below(9))),
                12..20 => compare(&keyspace, &snapshots, &mut random, KEYS, &context),
                _ => write(&db, &keyspace, &mut random, KEYS),
            }
        }
        compare(&keyspace, &snapshots, &mut random, KEYS, &context);
    }
}

#[test]
fn an_error_leaves_the_buffer_empty() {
    let machine = Machine::new();
    let db = machine.open();
    let keyspace = db.keyspace("k", KeyspaceOptions::default().merge_operator(Named)).unwrap();
    keyspace.merge("key", "operand").unwrap();
    drop(keyspace);
    db.close().unwrap();
    let db = machine.open();
    let keyspace = db.keyspace("k", KeyspaceOptions::default()).unwrap();
    let mut buffer = b"before".to_vec();
    let result = keyspace.get_into("key", &mut buffer);
    assert!(matches!(result, Err(Error::MissingMergeOperator { .. })), "{result:?}");
    assert!(buffer.is_empty());
    let other = Machine::new();
    let elsewhere = other.open();
    buffer.push(1);
    assert!(elsewhere.snapshot().get_into(&keyspace, "key", &mut buffer).is_err());
    assert!(buffer.is_empty());
}

/// An operator that no database knows by its name.
#[derive(Debug)]
struct Named;

impl esker::MergeOperator for Named {
    fn name(&self) -> &str {
        "of this test"
    }

    fn full_merge(
        &self,
        _key: &[u8],
        _existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, esker::MergeError> {
        Ok(operands.last().map(|operand| operand.to_vec()))
    }

    fn partial_merge(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// Blocks go from the cache while others copy from them: places in memory that the cache remembers
/// are only hints.
#[test]
fn readers_in_a_cache_that_is_too_small_see_whole_values() {
    const KEYS: u64 = 2000;
    let machine = Machine::new();
    let options = machine.options().compression(Compression::Lz4).block_cache_bytes(6 << 10);
    let db = Db::open(DIRECTORY, options).unwrap();
    let keyspace = db.keyspace("k", KeyspaceOptions::default()).unwrap();
    let content = |number: u64| vec![number as u8; 40 + number as usize % 50];
    (0..KEYS).for_each(|number| keyspace.put(number.to_be_bytes(), content(number)).unwrap());
    db.compact().unwrap();
    let keyspace = Arc::new(keyspace);
    let before = db.stats();
    std::thread::scope(|scope| {
        for seed in 1..=3 {
            let keyspace = Arc::clone(&keyspace);
            scope.spawn(move || {
                let (mut random, mut buffer) = (Random::new(seed), Vec::new());
                for _ in 0..5000 {
                    let number = random.below(KEYS);
                    assert!(keyspace.get_into(number.to_be_bytes(), &mut buffer).unwrap());
                    assert_eq!(buffer, content(number), "seed {seed}");
                }
            });
        }
    });
    let after = db.stats();
    let (hits, misses) = (after.cache_hits - before.cache_hits, after.cache_misses - before.cache_misses);
    assert_eq!(hits + misses, 3 * 5000, "every read is counted once");
    assert!(misses > 1000, "{misses}");
}
