//! Logs.

use super::counting::CountingEnv;
use super::trying::{Outcomes, options, outcomes};
use super::writing::{
    BATCH, BEHIND_LINK, Files, KEYSPACE, LARGE, LINK, SEGMENT_BYTES, blob, checksum, counted, first_edit, manifest,
    put, reference, segment, segment_of, varint, varints,
};
use esker::env::mem::MemEnv;
use esker::{ChangeRetention, Db, Error, Options, WriteOptions};
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
    let is_typed = |(call, outcome): (&String, &String)| {
        typed(outcome) || call == "changes of the writer" && outcome.starts_with("Gone")
    };
    assert!(found.iter().all(is_typed), "{found:#?}");
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

/// A keyspace that no manifest has was not dropped, be its number the next one or a later one; and
/// no engine writes a range without a key.
#[test]
fn batches_of_what_cannot_be_there_are_refused() {
    let payloads = [
        ("keyspace-with-the-next-number", put(KEYSPACE + 1, b"a")),
        ("keyspace-with-a-later-number", put(KEYSPACE + 2, b"a")),
        ("range-without-a-key", [varints(&[5, KEYSPACE]), counted(b"b"), counted(b"a")].concat()),
    ];
    for (name, payload) in payloads {
        assert_refused(name, vec![segment(1, [0, 0, 0], &[(BATCH, 1001, payload), batch(1002, &["b"])])]);
    }
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

/// A put whose number does not fit was acknowledged.
#[test]
fn nothing_is_written_behind_the_last_sequence_number() {
    let last = (1 << 56) - 1;
    let mut files = manifest(&[first_edit(&[])]);
    files.insert("000001.wal".into(), segment(1, [0, 0, 0], &[batch(last - 3, &["a"])]));
    let options = options(Arc::new(counting(files))).keep_changes(ChangeRetention::AsBefore);
    let refused = |name: &str, result: esker::Result<()>| match result {
        Err(Error::InvalidArgument { what }) => assert!(what.contains("no sequence numbers left"), "{name}: {what}"),
        other => panic!("{name}: {other:?}"),
    };
    let keys = |db: &Db| -> Vec<Vec<u8>> {
        db.existing_keyspace("k").unwrap().iter().map(|pair| pair.unwrap().0.to_vec()).collect()
    };
    let db = Db::open(DIRECTORY, options.clone()).unwrap();
    let pairs = db.existing_keyspace("k").unwrap();
    let put_all = |keys: &[&str]| {
        let mut batch = db.batch();
        keys.iter().for_each(|key| batch.put(&pairs, key, "v").unwrap());
        batch.commit()
    };
    refused("a batch that ends behind it", put_all(&["e", "f", "g", "h"]));
    put_all(&["b", "c"]).unwrap();
    pairs.put("d", "v").unwrap();
    refused("put", pairs.put("e", "v"));
    refused("put without log", pairs.put_with("e", "v", &WriteOptions::new().disable_wal(true)));
    refused("delete", pairs.delete("a"));
    refused("range delete", pairs.delete_prefix("a"));
    refused("rename", pairs.rename("other"));
    refused("drop", db.drop_keyspace("k"));
    let written = ["a", "b", "c", "d"].map(|key| key.as_bytes().to_vec());
    assert!(keys(&db) == written && db.health().writable);
    db.compact().unwrap();
    drop((pairs, db));
    assert_eq!(keys(&Db::open(DIRECTORY, options).unwrap()), written);
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
const BLOB: u64 = 21;
/// How often a log refers to a large value.
const REFERENCES: u32 = 20_000;
const OPERATIONS_OF_RECORD: usize = 1000;
const LARGE_BYTES: usize = 64 << 10;
/// Bytes of headers, again and again.
const FEW_BYTES: u64 = 4096;

/// Where the log ends behind these records.
fn end_of(records: &[Record]) -> u64 {
    BEHIND_LINK + records.iter().map(|(.., payload)| (24 + payload.len()).next_multiple_of(8) as u64).sum::<u64>()
}

/// A keyspace beside that of all forged databases. It appends operands to values.
const APPENDING: u64 = 2;

fn appending_edit() -> Vec<u8> {
    let names = [counted(b"appending"), counted(b"bytewise"), counted(b"stringappend:2c")].concat();
    [varints(&[4, APPENDING]), names, varint(0)].concat()
}

/// A database without tables, with this blob file and these operations in its log. With `closed`
/// the manifest says where the log was closed.
fn with_operations(blob: Vec<u8>, operations: &[Vec<u8>], closed: bool) -> Files {
    const CLOSE: u64 = 3;
    const BYTES: u64 = 1 << 20;
    let records = operations.chunks(OPERATIONS_OF_RECORD).enumerate();
    let mut records: Vec<Record> =
        records.map(|(at, of)| (BATCH, 1001 + (at * OPERATIONS_OF_RECORD) as u64, of.concat())).collect();
    let mut edits = vec![appending_edit()];
    if closed {
        records.push((CLOSE, 0, Vec::new()));
        edits.push(varints(&[8, 1, end_of(&records)]));
    }
    let mut files = manifest(&[first_edit(&edits)]);
    files.insert(format!("{BLOB:06}.blob"), blob);
    files.insert("000001.wal".into(), segment_of(1, BYTES, BYTES as usize, [0, 0, 0], &records));
    files
}

fn counting(files: Files) -> CountingEnv {
    let env = MemEnv::new();
    for (name, bytes) in files {
        env.set_file_bytes(&Path::new(DIRECTORY).join(name), bytes);
    }
    CountingEnv::new(&env)
}

fn put_large(keyspace: u64, key: u32, reference: &[u8]) -> Vec<u8> {
    [varints(&[LARGE.into(), keyspace]), counted(&key.to_be_bytes()), counted(reference)].concat()
}

/// The two values that the n-th reference is to one of, in turn.
fn value_at(number: u32) -> [u8; LARGE_BYTES] {
    [7 + (number % 2) as u8; LARGE_BYTES]
}

/// The keyspace that the n-th reference is in: each has both values.
fn keyspace_at(number: u32) -> u64 {
    if (number / 2).is_multiple_of(2) { KEYSPACE } else { APPENDING }
}

fn blob_of_two() -> Vec<u8> {
    let mut bytes = blob(BLOB, 1, &value_at(0), false);
    let (second, offset) = (value_at(1), bytes.len() as u64 + 8);
    bytes.extend(checksum(BLOB, offset, &second).to_le_bytes());
    bytes.extend((LARGE_BYTES as u32).to_le_bytes());
    bytes.extend(second);
    bytes
}

/// A log that refers to two large values again and again: the n-th time under the key `key_of(n)`.
/// With `operands` it then appends to each value of the keyspace that does so.
fn referring(key_of: fn(u32) -> u32, closed: bool, operands: bool) -> CountingEnv {
    const MERGE: u64 = 2;
    let references = [0u32, 1].map(|at| {
        let offset = 40 + u64::from(at) * (8 + LARGE_BYTES as u64);
        reference(BLOB, offset, LARGE_BYTES as u32, checksum(BLOB, offset, &value_at(at)))
    });
    let put = |number: u32| put_large(keyspace_at(number), key_of(number), &references[number as usize % 2]);
    let merge =
        |number: u32| [varints(&[MERGE, APPENDING]), counted(&key_of(number).to_be_bytes()), counted(b"more")].concat();
    let mut operations: Vec<Vec<u8>> = (0..REFERENCES).map(put).collect();
    if operands {
        operations.extend((0..REFERENCES).filter(|&number| keyspace_at(number) == APPENDING).map(merge));
    }
    counting(with_operations(blob_of_two(), &operations, closed))
}

type Open = fn(&'static str, Options) -> esker::Result<Db>;

/// Large values, and references to them without end, from two keyspaces: a log of some hundred KiB
/// that would have an open read more than a GiB. It reads each value once to check it, and once
/// more to copy it, where it writes tables.
#[test]
fn a_large_value_is_not_read_for_each_reference_in_the_log() {
    let each_key_once: fn(u32) -> u32 = |number| number;
    let one_key: fn(u32) -> u32 = |_| REFERENCES - 1;
    let ways: [(&str, Open, CountingEnv, u64); 6] = [
        ("read only", Db::open_read_only, referring(each_key_once, false, false), 1),
        ("closed", Db::open, referring(each_key_once, true, false), 1),
        ("one key", Db::open, referring(one_key, false, false), 2),
        ("each key", Db::open, referring(each_key_once, false, false), 2),
        ("operands, read only", Db::open_read_only, referring(each_key_once, false, true), 1),
        ("operands", Db::open, referring(each_key_once, false, true), 2),
    ];
    let values_bytes = blob_of_two().len() as u64;
    for (name, open, env, reads) in ways {
        let options = options(Arc::new(env.clone())).write_buffer_bytes(16 << 20);
        let db = open(DIRECTORY, options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (read, written) = (env.bytes_read(".blob"), env.bytes_written(".blob"));
        let least = 2 * LARGE_BYTES as u64;
        assert!((least..=reads * values_bytes + FEW_BYTES).contains(&read), "{name}: {read} of {values_bytes} read");
        let most = (reads - 1) * (values_bytes + FEW_BYTES);
        assert!(written <= most, "{name}: {written} bytes written for values of {values_bytes}");
        let last = REFERENCES - 1;
        assert_eq!(keyspace_at(last), APPENDING);
        let found = db.existing_keyspace("appending").unwrap().get(last.to_be_bytes()).unwrap();
        let appended: &[u8] = if name.starts_with("operands") { b",more" } else { b"" };
        assert!(found.as_deref() == Some(&[&value_at(last)[..], appended].concat()[..]), "{name}");
    }
}

/// References to the ends of one large value, each under a checksum that is right: none is the same
/// as another, so that each would be read. No engine wrote such a record, so it is no end of a log
/// that a crash cut short.
#[test]
fn large_values_that_overlap_are_refused() {
    const OVERLAPPING: u32 = 200;
    let value = [7u8; LARGE_BYTES];
    let operation = |number: u32| {
        let rest = &value[number as usize * 8..];
        let offset = 40 + u64::from(number) * 8;
        put_large(KEYSPACE, number, &reference(BLOB, offset, rest.len() as u32, checksum(BLOB, offset, rest)))
    };
    for (name, backwards) in [("inwards", false), ("outwards", true)] {
        let mut operations: Vec<Vec<u8>> = (0..OVERLAPPING).map(operation).collect();
        if backwards {
            operations.reverse();
        }
        let files = with_operations(blob(BLOB, 1, &value, false), &operations, false);
        let ways: [(&str, Open); 2] = [("read only", Db::open_read_only), ("open", Db::open)];
        for (way, open) in ways {
            let env = counting(files.clone());
            match open(DIRECTORY, options(Arc::new(env.clone()))) {
                Err(Error::Corruption { path, .. }) => assert!(path.ends_with("000001.wal"), "{way}, {name}: {path:?}"),
                other => panic!("{way}, {name}: {other:?}"),
            }
            // A reader may try again, because a writer may have been at work.
            let (read, most) = (env.bytes_read(".blob"), 10 * (LARGE_BYTES as u64 + FEW_BYTES));
            assert!(read <= most, "{way}, {name}: {read} bytes of a value of {LARGE_BYTES}");
        }
        let found = outcomes(&format!("overlapping-{name}"), &files);
        assert!(found["read"].starts_with("Corruption") && found["open"].starts_with("Corruption"), "{found:#?}");
        assert!(found["repair"] == "ok" && found["after repair"] == "ok", "{name}: {found:#?}");
    }
}
