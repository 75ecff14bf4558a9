//! Parts of the formats that random databases do not come to.

use crate::bytes::checksum;
use crate::compare::{answers, assert_same};
use crate::directory::{Database, Left};
use crate::features::Features;
use crate::machine::{DIRECTORY, Machine};
use crate::merge::CONCATENATION;
use esker::{Clock, Compression, Db, KeyspaceOptions, MergeError, MergeOperator, Ttl};
use std::time::Duration;

/// Decodes what the machine has, compares it with what the engine says, and tells what it has.
fn compared(machine: &Machine) -> Features {
    let database = Database::read(&machine.files(), Left::InOrder).unwrap();
    let contents = database.contents(machine.clock.now_ms()).unwrap();
    let db = Db::open_read_only(DIRECTORY, machine.options()).unwrap();
    for name in db.keyspaces() {
        // Supplies the operator, where it needs one.
        let keyspace = db.existing_keyspace(&name).unwrap();
        if keyspace.merge_operator().as_deref() == Some(CONCATENATION) {
            db.keyspace(&name, KeyspaceOptions::default().merge_operator(Concatenation)).unwrap();
        }
    }
    assert_same(&contents, &answers(&db));
    let mut features = Features::new();
    database.add_features(&mut features);
    features
}

fn assert_has(features: &Features, expected: &[&str]) {
    for feature in expected {
        assert!(features.contains(*feature), "no {feature}: {features:#?}");
    }
}

struct Concatenation;

impl MergeOperator for Concatenation {
    fn name(&self) -> &str {
        CONCATENATION
    }

    fn full_merge(
        &self,
        _key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError> {
        Ok(Some([&[existing.unwrap_or_default()], operands].concat().concat()))
    }

    fn partial_merge(&self, _key: &[u8], _older: &[u8], _newer: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn the_checksums_of_the_page_are_right() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../doc/format/directory.md");
    let page = std::fs::read_to_string(path).unwrap();
    let examples = page.lines().filter_map(|line| line.trim().strip_prefix("checksum(\""));
    let mut seen = 0;
    for example in examples {
        let (bytes, rest) = example.split_once("\", ").unwrap();
        let (place, rest) = rest.split_once(')').unwrap();
        let (file, offset) = place.split_once(", ").unwrap();
        let sum = checksum(bytes.as_bytes(), file.parse().unwrap(), offset.parse().unwrap());
        assert!(rest.contains(&format!("0x{sum:08x}")), "{example}: {sum:08x}");
        seen += 1;
    }
    assert_eq!(seen, 2);
}

#[test]
fn operands_without_their_operator_are_kept_one_by_one() {
    let machine = Machine::new(1);
    let db = machine.open().unwrap();
    for (name, ttl) in [("plain", Ttl::Disabled), ("expiring", Ttl::Enabled { default: None })] {
        let options = KeyspaceOptions::default().merge_operator(Concatenation).ttl(ttl);
        let keyspace = db.keyspace(name, options).unwrap();
        for part in ["a", "b"] {
            keyspace.merge("nothing", part).unwrap();
            keyspace.put("value", "x").unwrap();
            keyspace.merge("value", part).unwrap();
            keyspace.delete("deleted").unwrap();
            keyspace.merge("deleted", part).unwrap();
            keyspace.put("large", vec![1; 40_000]).unwrap();
            keyspace.merge("large", part).unwrap();
        }
        if ttl != Ttl::Disabled {
            let mut batch = db.batch();
            batch.put_with_ttl(&keyspace, "short", "x", Duration::from_secs(5)).unwrap();
            batch.merge(&keyspace, "short", "y").unwrap();
            batch.put_with_ttl(&keyspace, "longer", "x", Duration::from_secs(5)).unwrap();
            batch.merge_with_ttl(&keyspace, "longer", "y", Duration::from_secs(50)).unwrap();
            batch.merge_with_ttl(&keyspace, "first", "y", Duration::from_secs(5)).unwrap();
            batch.commit().unwrap();
        }
    }
    drop(db);
    let log = ["MergeOntoNothing in the log", "MergeOntoNothing in the log, expiring", "Merge in the log, expiring"];
    assert_has(&compared(&machine), &log);

    let db = machine.open().unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let tables = ["MergeOntoNothing in a table", "MergeOntoNothing in a table, expiring", "Merge in a table, expiring"];
    assert_has(&compared(&machine), &tables);
    machine.clock.advance(Duration::from_secs(10));
    compared(&machine);
    let db = machine.open().unwrap();
    db.compact().unwrap();
    db.close().unwrap();
    compared(&machine);
}

#[test]
fn numbers_far_apart_and_long_strings_have_wider_columns() {
    let machine = Machine::new(2);
    let options = || machine.options().block_bytes(1 << 20).compression(Compression::None).min_blob_size(1 << 20);
    let db = Db::open(DIRECTORY, options()).unwrap();
    let keyspace = db.keyspace("k", KeyspaceOptions::default()).unwrap();
    keyspace.put("first", "1").unwrap();
    keyspace.put(vec![7; 100_000], "long key").unwrap();
    keyspace.put("long value", vec![8; 100_000]).unwrap();
    let before = db.snapshot();
    // Each load leaves a gap in the numbers.
    while db.stats().last_sequence >> 33 == 0 {
        keyspace.ingest([("last", "2")]).unwrap();
    }
    let after = db.snapshot();
    db.compact().unwrap();
    drop((before, after, keyspace));
    db.close().unwrap();
    assert_has(&compared(&machine), &["flag 4", "flag 16"]);
}
