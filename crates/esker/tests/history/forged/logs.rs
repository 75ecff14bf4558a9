//! Logs.

use super::counting::CountingEnv;
use super::trying::{Outcomes, options, outcomes};
use super::writing::{
    BATCH, BEHIND_LINK, Files, KEYSPACE, LARGE, LINK, SEGMENT_BYTES, blob, checksum, counted, first_edit, manifest,
    put, reference, segment, segment_of, varint, varints,
};
use esker::env::mem::MemEnv;
use esker::{Db, Options};
use std::path::Path;
use std::sync::Arc;

type Record = (u64, u64, Vec<u8>);

/// A database without tables and with these segments.
fn tried(name: &str, segments: Vec<Vec<u8>>) -> Outcomes {
    let mut files: Files = manifest(&[first_edit(&[])]);
    for (at, bytes) in segments.into_iter().enumerate() {
        files.insert(format!("{:06}.wal", at + 1), bytes);
    }
    outcomes(&format!("log-{name}"), &files)
}

fn assert_refused(name: &str, segments: Vec<Vec<u8>>) {
    let found = tried(name, segments);
    for what in ["read", "open"] {
        assert!(found[what].starts_with("Corruption"), "{name}, {what}: {found:#?}");
    }
    // What can be made of it is a database.
    assert!(found["repair"] == "ok" && found["after repair"] == "ok", "{name}: {found:#?}");
}

fn assert_harmless(name: &str, segments: Vec<Vec<u8>>) {
    let found = tried(name, segments);
    assert!(found.values().all(|outcome| outcome == "ok"), "{name}: {found:#?}");
}

fn batch(sequence: u64, keys: &[&str]) -> Record {
    (BATCH, sequence, keys.iter().flat_map(|key| put(KEYSPACE, key.as_bytes())).collect())
}

/// What the forger writes is what the engine reads.
#[test]
fn a_log_that_was_forged_without_a_lie_is_replayed() {
    let end = BEHIND_LINK + 24 + batch(1001, &["a"]).2.len().next_multiple_of(8) as u64;
    assert_harmless(
        "sound",
        vec![segment(1, [0, 0, 0], &[batch(1001, &["a"])]), segment(2, [1, end, 64], &[batch(1002, &["b", "c"])])],
    );
}

/// Links that lead in a circle, to themselves, to later segments, to none.
#[test]
fn links_that_form_a_cycle_end() {
    let with = |link: [u64; 3], number| segment(number, link, &[batch(1000 + number, &["a"])]);
    assert_refused("above-the-floor", vec![with([0, 0, 0], 1), with([3, 0, 64], 2), with([2, 0, 64], 3)]);
    assert_refused("to-itself-above-the-floor", vec![with([0, 0, 0], 1), with([2, 0, 64], 2)]);
    // The floor is where links end, wherever that one leads.
    let end = BEHIND_LINK + 24 + batch(1001, &["a"]).2.len().next_multiple_of(8) as u64;
    assert_harmless("to-itself", vec![with([1, BEHIND_LINK, 64], 1)]);
    assert_harmless("two", vec![with([2, end, 64], 1), with([1, end, 64], 2)]);
    assert_harmless("three", vec![with([3, end, 64], 1), with([1, end, 64], 2), with([2, end, 64], 3)]);
    for word in 0..3 {
        let mut link = [1, 0, 0];
        link[word] = u64::MAX;
        let found = tried(&format!("link-{word}-at-its-largest"), vec![with([0, 0, 0], 1), with(link, 2)]);
        assert!(found["repair"] == "ok" && found["after repair"] == "ok", "{found:#?}");
    }
    // A copy of a segment, as somebody might have made: of the two the longer one counts.
    let copy = segment(1, [0, 0, 0], &[batch(1001, &["a"]), batch(1002, &["b"])]);
    assert_refused("one-number-twice", vec![with([0, 0, 0], 1), copy]);
    let found = tried("first-link-leads-on", vec![with([7, 200, 100], 1)]);
    assert!(found["after repair"] == "ok", "{found:#?}");
}

/// Headers that claim lengths and numbers that no file has.
#[test]
fn segments_that_are_longer_than_their_files_are_refused() {
    let records = [batch(1001, &["a"])];
    for (name, claimed) in [("8-gib", 8 << 30), ("longest", u64::MAX), ("nothing", 0), ("shorter", 200)] {
        assert_refused(name, vec![segment_of(1, claimed, SEGMENT_BYTES as usize, [0, 0, 0], &records)]);
    }
    for (name, number) in [("number-at-its-largest", u64::MAX), ("number-beyond-all", 1 << 56)] {
        assert_refused(name, vec![segment(1, [0, 0, 0], &records), segment(number, [1, 0, 0], &records)]);
    }
    // The largest that is possible: the log cannot go on behind it.
    let found = tried(
        "last-number",
        vec![segment(1, [0, 0, 0], &records), segment((1 << 56) - 1, [1, 0, 0], &[batch(1002, &["b"])])],
    );
    let typed = |outcome: &String| outcome == "ok" || outcome.starts_with("Corruption");
    assert!(found.values().all(typed), "{found:#?}");
}

/// Batches with operations that are not there, of keyspaces that are not there, under numbers that
/// there are not.
#[test]
fn batches_that_claim_too_much_are_refused() {
    let operation = |head: &[u8], rest: Vec<u8>| [head.to_vec(), rest].concat();
    let payloads = [
        ("key-of-16-eib", operation(&[1, 1], varint(u64::MAX))),
        ("key-of-4-gib", operation(&[1, 1], varint(u64::from(u32::MAX)))),
        ("value-of-16-eib", operation(&[1, 1], [counted(b"a"), varint(u64::MAX)].concat())),
        ("varint-without-end", operation(&[1], vec![255; 30])),
        ("unknown-kind", operation(&[3, 1], counted(b"a"))),
        ("range-that-ends-before-it-starts", operation(&[5, 1], [counted(b"b"), counted(b"a")].concat())),
        ("key-longer-than-any", operation(&[0, 1], counted(&[7; 66_000]))),
        ("keyspace-at-its-largest", put(u64::MAX, b"a")),
        ("keyspace-that-is-not-there", put(2, b"a")),
        ("reference-that-is-none", operation(&[4, 1], [counted(b"a"), counted(b"short")].concat())),
        ("half-an-operation", put(KEYSPACE, b"a")[..9].to_vec()),
    ];
    for (name, payload) in payloads {
        // A record behind it vouches for it, so that it is no torn end.
        let found = tried(name, vec![segment(1, [0, 0, 0], &[(BATCH, 1001, payload), batch(1002, &["b"])])]);
        assert!(
            found.values().all(|outcome| outcome == "ok" || outcome.starts_with("Corruption")),
            "{name}: {found:#?}"
        );
        assert!(found["repair"] == "ok" && found["after repair"] == "ok", "{name}: {found:#?}");
    }
    assert_harmless(
        "link-in-the-middle",
        vec![segment(1, [0, 0, 0], &[batch(1001, &["a"]), (LINK, 1002, vec![0; 24])])],
    );
}

/// Sequence numbers at the end of all numbers, again, and backwards.
#[test]
fn sequence_numbers_at_their_largest_do_not_wrap() {
    let largest = (1 << 56) - 1;
    for (name, first, second) in [
        ("at-the-end", 1001, largest),
        ("a-batch-beyond-the-end", 1001, largest - 1),
        ("again", 1001, 1001),
        ("backwards", 1005, 1001),
    ] {
        let segments = vec![segment(1, [0, 0, 0], &[batch(first, &["a"]), batch(second, &["b", "c", "d"])])];
        let found = tried(&format!("sequence-{name}"), segments);
        assert!(found.contains_key("open") && found.contains_key("repair"), "{found:#?}");
    }
}

/// As many operations as fit, of the fewest bytes: memory stays in proportion to the file. Ranges
/// inside of ranges, whose pieces are not each with all of the others.
#[test]
fn the_smallest_operations_take_memory_in_proportion() {
    let deletes: Vec<u8> = (0..300_000).flat_map(|_| [0, 1, 0]).collect();
    let segment_bytes = 1 << 20;
    let records = [(BATCH, 1001, deletes)];
    let found = tried("deletes", vec![segment_of(1, segment_bytes, segment_bytes as usize, [0, 0, 0], &records)]);
    assert!(found["open"] == "ok", "{found:#?}");
    let ranges: Vec<u8> = (0..30_000u32)
        .flat_map(|at| {
            let bound = |number: u32| counted(&number.to_be_bytes());
            [varints(&[5, KEYSPACE]), bound(at), bound(u32::MAX - at)].concat()
        })
        .collect();
    let records = [(BATCH, 1001, ranges)];
    let found = tried("ranges", vec![segment_of(1, segment_bytes, segment_bytes as usize, [0, 0, 0], &records)]);
    assert!(found["open"] == "ok", "{found:#?}");
}

const DIRECTORY: &str = "/db";
/// How often a log refers to one large value.
const REFERENCES: u32 = 20_000;
const REFERENCES_OF_RECORD: u32 = 1000;
const LARGE_BYTES: usize = 64 << 10;
/// The replay checks the value, and where it ends in tables, each memtable that 256 MiB of such
/// values have filled copies it once more.
const MOST_READS_OF_VALUE: u64 = 16;

/// Where the log ends behind these records.
fn end_of(records: &[Record]) -> u64 {
    BEHIND_LINK + records.iter().map(|(.., payload)| (24 + payload.len()).next_multiple_of(8) as u64).sum::<u64>()
}

/// A database without tables, whose log refers to one large value again and again: the n-th time
/// under the key `key_of(n)`. With `closed` the manifest says where the log was closed.
fn referring(key_of: fn(u32) -> u32, closed: bool) -> CountingEnv {
    const BLOB: u64 = 21;
    const CLOSE: u64 = 3;
    const BYTES: u64 = 1 << 20;
    let value = [7u8; LARGE_BYTES];
    let large = reference(BLOB, 40, LARGE_BYTES as u32, checksum(BLOB, 40, &value));
    let operation = |number: u32| {
        [varints(&[LARGE.into(), KEYSPACE]), counted(&key_of(number).to_be_bytes()), counted(&large)].concat()
    };
    let record = |first: u32| -> Record {
        let numbers = first..first + REFERENCES_OF_RECORD;
        (BATCH, 1001 + u64::from(first), numbers.flat_map(&operation).collect())
    };
    let mut records: Vec<Record> = (0..REFERENCES).step_by(REFERENCES_OF_RECORD as usize).map(record).collect();
    let mut edits = Vec::new();
    if closed {
        records.push((CLOSE, 0, Vec::new()));
        edits.push(varints(&[8, 1, end_of(&records)]));
    }
    let mut files = manifest(&[first_edit(&edits)]);
    files.insert(format!("{BLOB:06}.blob"), blob(BLOB, 1, &value, false));
    files.insert("000001.wal".into(), segment_of(1, BYTES, BYTES as usize, [0, 0, 0], &records));
    let env = MemEnv::new();
    for (name, bytes) in files {
        env.set_file_bytes(&Path::new(DIRECTORY).join(name), bytes);
    }
    CountingEnv::new(&env)
}

/// One large value, and references to it without end: a log of some hundred KiB that would have an
/// open read more than a GiB. (An open that writes tables copies the value for each key that has
/// it, so that there it is one key.)
#[test]
fn a_large_value_is_not_read_for_each_reference_in_the_log() {
    type Open = fn(&'static str, Options) -> esker::Result<Db>;
    let each_key_once: fn(u32) -> u32 = |number| number;
    let one_key: fn(u32) -> u32 = |_| REFERENCES - 1;
    let ways: [(&str, Open, CountingEnv); 3] = [
        ("read only", Db::open_read_only, referring(each_key_once, false)),
        ("closed", Db::open, referring(each_key_once, true)),
        ("not closed", Db::open, referring(one_key, false)),
    ];
    for (name, open, env) in ways {
        let options = options(Arc::new(env.clone())).write_buffer_bytes(16 << 20);
        let db = open(DIRECTORY, options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (read, most) = (env.bytes_read(".blob"), MOST_READS_OF_VALUE * LARGE_BYTES as u64);
        assert!((LARGE_BYTES as u64..=most).contains(&read), "{name}: {read} bytes for a value of {LARGE_BYTES}");
        let found = db.existing_keyspace("k").unwrap().get((REFERENCES - 1).to_be_bytes()).unwrap();
        assert_eq!(found.as_deref(), Some(&[7u8; LARGE_BYTES][..]), "{name}");
    }
}
