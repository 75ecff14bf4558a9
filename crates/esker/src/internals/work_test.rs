//! A decoder takes time in proportion to its input, whatever is in it.
//!
//! No counter sees all that a decoder does, so the processor time of the thread is measured: of 32
//! small inputs, and of a large one of the same shape and of as many bytes as all of them. Work in
//! proportion takes about as long in both cases, quadratic work 32 times as long in the second. The
//! limit is 8.
//!
//! A busy machine makes no test fail. The time of the thread stands still while it waits. What load
//! still adds to it (caches that others use, interrupts, a processor that two threads share)
//! concerns both measurements, which take about as long and follow each other; and of five pairs
//! one within the limit is enough. Quadratic work is beyond it in all of them.

#![cfg(target_os = "linux")]

use super::decoders::DECODERS;
use crate::base::batch::{Operation, RangeDelete, encode, encode_range};
use crate::base::blob_reference::BlobReference;
use crate::base::compression::{Codec, Compressor};
use crate::base::key::{Entry, Kind, NEVER};
use crate::base::random::Random;
use crate::base::range_tombstone::RangeTombstones;
use crate::blob::format::reference_to;
use crate::env::Env;
use crate::env::mem::MemEnv;
use crate::options::Compression;
use crate::table::{TableBuilder, TableOptions, reseal};
use crate::version::edit::{Change, Settings, encode as encode_edit};
use crate::version::manifest::file_with;
use std::path::PathBuf;

const LARGE_BYTES: usize = 256 << 10;
/// So many small inputs have as many bytes as the large one.
const PIECES: usize = 32;
const SMALL_BYTES: usize = LARGE_BYTES / PIECES;
/// The large input may take so many times as long as all small ones.
const MOST_GROWTH: u64 = 8;
const ATTEMPTS: usize = 5;
/// A large input that takes less is refused at once, or as good as that. Quadratic work over
/// records of 64 bytes takes ten times as long.
const NEGLIGIBLE_NANOSECONDS: u64 = 2_000_000;
const SEED: u64 = 0x5eed;
/// Begins with the nanoseconds that the thread was on a processor.
const ACCOUNTING: &str = "/proc/thread-self/schedstat";

/// The numbers of the files, as in `decoders.rs`.
const MANIFEST: u64 = 7;
const TABLE: u64 = 9;
const BLOB: u64 = 5;

/// Makes an input of about so many bytes.
type Make = fn(usize) -> Vec<u8>;

/// Inputs of one decoder, and what they are.
struct Shape {
    decoder: &'static str,
    what: &'static str,
    make: Make,
}

/// The time that the thread was on a processor.
fn processor_nanoseconds() -> u64 {
    // The kernel brings the number up to date when the thread makes way for others.
    std::thread::yield_now();
    let text = std::fs::read_to_string(ACCOUNTING).expect("the kernel accounts for threads");
    text.split_whitespace().next().and_then(|number| number.parse().ok()).expect("it begins with the time")
}

/// Whether the kernel says so.
fn is_measurable() -> bool {
    let is_there = std::path::Path::new(ACCOUNTING).exists();
    if !is_there {
        eprintln!("{ACCOUNTING} is missing: not checked");
    }
    is_there
}

fn cost(run: impl FnOnce()) -> u64 {
    let before = processor_nanoseconds();
    run();
    processor_nanoseconds() - before
}

/// What the large input took in the attempt that was within the limit; if none was, what all small
/// inputs and the large one took in each.
fn in_proportion(run: fn(&[u8]), make: &dyn Fn(usize) -> Vec<u8>) -> Result<u64, Vec<(u64, u64)>> {
    let (small, large) = (make(SMALL_BYTES), make(LARGE_BYTES));
    let mut attempts = Vec::new();
    for _ in 0..ATTEMPTS {
        let pieces = cost(|| (0..PIECES).for_each(|_| run(&small)));
        let whole = cost(|| run(&large));
        if whole <= NEGLIGIBLE_NANOSECONDS.max(MOST_GROWTH * pieces) {
            return Ok(whole);
        }
        attempts.push((pieces, whole));
    }
    Err(attempts)
}

#[track_caller]
fn assert_in_proportion(decoder: &str, what: &str, make: &dyn Fn(usize) -> Vec<u8>) -> u64 {
    let decoder = DECODERS.iter().find(|known| known.name == decoder).expect("a decoder of that name");
    in_proportion(decoder.run, make).unwrap_or_else(|attempts| {
        panic!(
            "{}, {what}: nanoseconds of {PIECES} inputs of {SMALL_BYTES} bytes, and of one of {LARGE_BYTES}: \
             {attempts:?}",
            decoder.name
        )
    })
}

/// The beginning of `pattern` repeated without end.
fn repeated(pattern: &[u8], bytes: usize) -> Vec<u8> {
    pattern.iter().copied().cycle().take(bytes).collect()
}

/// What each decoder gets behind each of its beginnings.
const BODIES: [(&str, Make); 5] = [
    ("zeroes", zeroes),
    ("ones", ones),
    ("noise", noise),
    ("small counts", small_counts),
    ("large counts", large_counts),
];

fn zeroes(bytes: usize) -> Vec<u8> {
    vec![0; bytes]
}

fn ones(bytes: usize) -> Vec<u8> {
    vec![0xff; bytes]
}

fn noise(bytes: usize) -> Vec<u8> {
    Random::new(SEED).noise(bytes)
}

fn small_counts(bytes: usize) -> Vec<u8> {
    repeated(&[1, 0, 0, 0], bytes)
}

fn large_counts(bytes: usize) -> Vec<u8> {
    repeated(&[0xff, 0xff, 0xff, 0xff, 0x0f], bytes)
}

/// What decides how the rest is taken: parts of files to be sealed, or a file as it is.
fn beginnings(decoder: &str) -> &'static [&'static [u8]] {
    match decoder {
        "blob" | "manifest" => &[&[0], &[1]],
        // Three segments.
        "log" => &[&[6, 0, 0, 0, 0], &[7, 0, 0, 0, 0]],
        // The key that is searched for is empty.
        "table" => &[&[0, 0, 0], &[1, 0, 0], &[5, 0, 0]],
        _ => &[&[]],
    }
}

#[test]
fn any_bytes_take_time_in_proportion_to_their_number() {
    if !is_measurable() {
        return;
    }
    let mut total = 0;
    for decoder in &DECODERS {
        for beginning in beginnings(decoder.name) {
            for (body, make_body) in BODIES {
                let what = format!("{body} behind {beginning:?}, seed {SEED}");
                let make = |bytes: usize| [*beginning, &make_body(bytes)[..]].concat();
                total += assert_in_proportion(decoder.name, &what, &make);
            }
        }
    }
    assert!(total > 0, "the time stands still, and nothing was checked");
}

#[test]
fn forged_inputs_take_time_in_proportion_to_their_length() {
    if !is_measurable() {
        return;
    }
    let mut total = 0;
    for Shape { decoder, what, make } in &FORGED {
        total += assert_in_proportion(decoder, what, make);
    }
    assert!(total > 0, "the time stands still, and nothing was checked");
}

/// Cubic, so that no noise hides it: 1000 times the small inputs.
#[test]
fn a_decoder_that_is_not_in_proportion_is_noticed() {
    if !is_measurable() {
        return;
    }
    fn cubic(bytes: &[u8]) {
        let steps = (bytes.len() >> 9).pow(3);
        for step in 0..steps {
            std::hint::black_box(step);
        }
    }
    let measured = in_proportion(cubic, &|bytes| vec![0; bytes]);
    assert!(measured.is_err(), "{measured:?}");
}

/// What looks right for long, for each decoder in the ways that could make it go over the same
/// bytes again.
const FORGED: [Shape; 29] = [
    Shape { decoder: "batch", what: "puts", make: |bytes| batch_of(bytes, put) },
    Shape { decoder: "batch", what: "puts that expire", make: |bytes| batch_of(bytes, expiring_put) },
    Shape { decoder: "batch", what: "deleted ranges", make: |bytes| batch_of(bytes, range_delete) },
    Shape { decoder: "batch", what: "puts, and a length beyond them", make: cut_short_batch },
    Shape { decoder: "manifest_edit", what: "numbers", make: |bytes| edit_of(bytes, Change::NextFile) },
    Shape { decoder: "manifest_edit", what: "keyspaces", make: |bytes| edit_of(bytes, keyspace) },
    Shape { decoder: "manifest_edit", what: "tables", make: |bytes| edit_of(bytes, table_added) },
    Shape { decoder: "manifest_edit", what: "tables in and out", make: |bytes| edit_of(bytes, table_in_and_out) },
    Shape { decoder: "manifest_edit", what: "loads", make: |bytes| edit_of(bytes, load) },
    Shape { decoder: "manifest_edit", what: "loads forgotten again", make: |bytes| edit_of(bytes, load_or_forget) },
    Shape { decoder: "manifest_edit", what: "drops", make: |bytes| edit_of(bytes, dropped) },
    Shape { decoder: "manifest_edit", what: "recoveries", make: |bytes| edit_of(bytes, recovery) },
    Shape { decoder: "manifest", what: "vouchers", make: |bytes| manifest_of(bytes, Change::NextFile) },
    Shape { decoder: "manifest", what: "tables", make: |bytes| manifest_of(bytes, table_added) },
    Shape { decoder: "manifest", what: "loads", make: |bytes| manifest_of(bytes, load) },
    Shape { decoder: "manifest", what: "damage everywhere", make: damaged_manifest },
    Shape { decoder: "manifest", what: "records within records", make: overlapping_manifest },
    Shape { decoder: "lz4", what: "short matches", make: lz4_matches },
    Shape { decoder: "zstd", what: "empty blocks", make: zstd_blocks },
    Shape { decoder: "blob", what: "a value", make: plain_blob },
    Shape { decoder: "blob", what: "a compressed value", make: compressed_blob },
    Shape { decoder: "table", what: "small blocks", make: |bytes| for_table(small_blocks(bytes, Compression::None)) },
    Shape { decoder: "table", what: "small blocks, LZ4", make: lz4_table },
    Shape { decoder: "table", what: "versions of one key", make: |bytes| for_table(table_with(bytes, 64, version)) },
    Shape { decoder: "table", what: "one block", make: |bytes| for_table(table_with(bytes, 1 << 20, entry)) },
    Shape { decoder: "table", what: "blob files", make: |bytes| for_table(table_with(bytes, 8 << 10, large_value)) },
    Shape { decoder: "table", what: "range tombstones", make: |bytes| for_table(tombstones(&beside(bytes))) },
    Shape { decoder: "table", what: "tombstones within each other", make: nested_ranges },
    Shape { decoder: "table", what: "damage everywhere", make: |bytes| for_table(damaged_table(bytes)) },
];

fn batch_of(bytes: usize, operation: fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut batch = Vec::new();
    while batch.len() < bytes {
        operation(&mut batch);
    }
    batch
}

fn put(batch: &mut Vec<u8>) {
    encode(batch, &Operation { keyspace: 1, kind: Kind::Put, expiry_ms: NEVER, key: b"k", value: b"v" });
}

fn expiring_put(batch: &mut Vec<u8>) {
    encode(batch, &Operation { keyspace: 1, kind: Kind::Merge, expiry_ms: 7, key: b"k", value: b"v" });
}

fn range_delete(batch: &mut Vec<u8>) {
    encode_range(batch, &RangeDelete { keyspace: 1, start: b"k", end: b"l" });
}

/// The last key is said to have 4 GiB.
fn cut_short_batch(bytes: usize) -> Vec<u8> {
    [&batch_of(bytes, put)[..], &[1, 1, 0xff, 0xff, 0xff, 0xff, 0x0f][..]].concat()
}

/// An edit of the changes of 1, 2, 3 and so on.
fn edit_of(bytes: usize, change: fn(u64) -> Change) -> Vec<u8> {
    let (mut edit, mut number) = (Vec::new(), 0);
    while edit.len() < bytes {
        number += 1;
        encode_edit(&[change(number)], &mut edit);
    }
    edit
}

/// As [`edit_of`], with an edit for each change.
fn manifest_of(bytes: usize, change: fn(u64) -> Change) -> Vec<u8> {
    let (mut parts, mut number) = (vec![0], 0);
    while parts.len() < bytes {
        number += 1;
        let mut edit = Vec::new();
        encode_edit(&[change(number)], &mut edit);
        parts.extend_from_slice(&(edit.len() as u16).to_be_bytes());
        parts.extend_from_slice(&edit);
    }
    parts
}

fn keyspace(id: u64) -> Change {
    Change::Keyspace { id, name: String::new(), comparator: String::new(), operator: None, ttl: 0 }
}

fn table_added(number: u64) -> Change {
    match number {
        1 => keyspace(1),
        _ => Change::AddTable { keyspace: 1, run: number, number, bytes: 1 },
    }
}

fn table_in_and_out(number: u64) -> Change {
    match number {
        1 => keyspace(1),
        _ if number.is_multiple_of(2) => table_added(number),
        _ => Change::RemoveTable { keyspace: 1, number: number - 1 },
    }
}

fn load(sequence: u64) -> Change {
    Change::Loaded { sequence, keyspace: 1 }
}

fn load_or_forget(number: u64) -> Change {
    if number.is_multiple_of(2) { load(number) } else { Change::ChangesFrom { sequence: 1, segment: 1 } }
}

fn dropped(sequence: u64) -> Change {
    Change::Dropped { sequence, keyspace: 1, comparator: String::new(), settings: Settings::default() }
}

fn recovery(sequence: u64) -> Change {
    Change::ChangesRecovered { sequence, segment: sequence }
}

/// Every fourth record is damaged, but not the first.
fn damaged_manifest(bytes: usize) -> Vec<u8> {
    const HEADER_BYTES: usize = 24;
    const RECORD_BYTES: usize = 10;
    let mut file = file_with(MANIFEST, &vec![&[1u8, 5][..]; bytes / RECORD_BYTES]);
    for end in (HEADER_BYTES + 2 * RECORD_BYTES..=file.len()).step_by(4 * RECORD_BYTES) {
        file[end - 1] ^= 1;
    }
    [&[1][..], &file[..]].concat()
}

/// Behind an intact record, every place looks like the beginning of a long one.
fn overlapping_manifest(bytes: usize) -> Vec<u8> {
    let high_byte = ((bytes / 2) >> 8).min(255) as u8;
    let file = file_with(MANIFEST, &[&[1u8, 5][..]]);
    [&[1][..], &file[..], &repeated(&[0, high_byte, 0, 0], bytes)[..]].concat()
}

/// Of the fewest bytes that a match takes.
fn lz4_matches(bytes: usize) -> Vec<u8> {
    let size = (2 * bytes as u32).to_le_bytes();
    [&size[..], &[0x10, 7, 1, 0][..], &repeated(&[0, 1, 0], bytes)[..]].concat()
}

/// A frame's header, and blocks of no bytes of which none is the last.
fn zstd_blocks(bytes: usize) -> Vec<u8> {
    let size = (bytes as u32).to_le_bytes();
    [&size[..], &[0x28, 0xb5, 0x2f, 0xfd, 0, 0][..], &zeroes(bytes)[..]].concat()
}

/// A reference to what follows it. The decoder puts the header of a blob file in front.
fn blob_of(mode: u8, stored: &[u8], compressed: bool) -> Vec<u8> {
    // The reference lies behind the header of 32 bytes; the last of its bytes are where the
    // record's header would be.
    let reference = reference_to(BLOB, 48, stored, compressed);
    [&[mode][..], &reference.encode()[..], stored].concat()
}

fn plain_blob(bytes: usize) -> Vec<u8> {
    blob_of(0, &noise(bytes), false)
}

/// Each 64 bytes come twice, so that compression pays.
fn compressed_blob(bytes: usize) -> Vec<u8> {
    let raw: Vec<u8> = noise(bytes).chunks(64).flat_map(|chunk| [chunk, chunk].concat()).collect();
    let mut compressor = Compressor::new(Codec::Lz4);
    blob_of(2, compressor.compress(&raw).expect("it pays"), true)
}

/// The key that is searched for is empty; then the file as it is.
fn for_table(file: Vec<u8>) -> Vec<u8> {
    [&[1, 0, 0][..], &file[..]].concat()
}

fn built(options: TableOptions, fill: impl FnOnce(&mut TableBuilder)) -> Vec<u8> {
    let (env, path) = (MemEnv::new(), PathBuf::from("built"));
    let file = env.create(&path).expect("no fault is set");
    let mut builder = TableBuilder::new(file, path.clone(), TABLE, options);
    fill(&mut builder);
    builder.finish_reusably().expect("no fault is set");
    env.file_bytes(&path).expect("it was built")
}

/// A table of about so many bytes, of the entries of 1, 2, 3 and so on.
fn filled(bytes: usize, options: TableOptions, add: fn(&mut TableBuilder, u64)) -> Vec<u8> {
    built(options, |builder| {
        let mut number = 0;
        while builder.estimated_file_bytes() < bytes as u64 {
            number += 1;
            add(builder, number);
        }
    })
}

fn table_with(bytes: usize, block_bytes: usize, add: fn(&mut TableBuilder, u64)) -> Vec<u8> {
    filled(bytes, TableOptions { block_bytes, ..TableOptions::default() }, add)
}

fn lz4_table(bytes: usize) -> Vec<u8> {
    for_table(small_blocks(bytes, Compression::Lz4))
}

fn nested_ranges(bytes: usize) -> Vec<u8> {
    for_table(tombstones(&nested(bytes)))
}

/// Of one entry or two each, which makes the index as long as it can be.
fn small_blocks(bytes: usize, compression: Compression) -> Vec<u8> {
    filled(bytes, TableOptions { block_bytes: 64, compression, ..TableOptions::default() }, entry)
}

fn entry(builder: &mut TableBuilder, number: u64) {
    let key = number.to_be_bytes();
    let entry = Entry { key: &key, sequence: number, kind: Kind::Put, expiry_ms: NEVER, value: &[0; 40] };
    builder.add(entry).expect("keys in order");
}

/// All of the key that is searched for.
fn version(builder: &mut TableBuilder, number: u64) {
    let entry = Entry { key: b"", sequence: (1 << 40) - number, kind: Kind::Merge, expiry_ms: NEVER, value: b"v" };
    builder.add(entry).expect("newest first");
}

/// Each in a blob file of its own.
fn large_value(builder: &mut TableBuilder, number: u64) {
    let (key, sequence) = (number.to_be_bytes(), number);
    let value = BlobReference { file: number, offset: 40, length: 9, compressed: false, checksum: 0 }.encode();
    let entry = Entry { key: &key, sequence, kind: Kind::PutBlob, expiry_ms: NEVER, value: &value };
    builder.add(entry).expect("keys in order");
}

fn tombstones(set: &RangeTombstones) -> Vec<u8> {
    built(TableOptions::default(), |builder| builder.set_range_tombstones(set.clone()))
}

fn range(start: u64, end: u64, sequence: u64) -> RangeTombstones {
    RangeTombstones::one(&start.to_be_bytes(), &end.to_be_bytes(), sequence)
}

/// One range behind the other. Each takes about 20 bytes.
fn beside(bytes: usize) -> RangeTombstones {
    let ranges: Vec<_> = (0..bytes as u64 / 20).map(|at| range(2 * at, 2 * at + 1, at + 1)).collect();
    RangeTombstones::concatenate(&ranges)
}

/// Each range within the one before, so that a fragment has as many tombstones as it is deep: a
/// byte for each pair of a fragment and a tombstone over it.
fn nested(bytes: usize) -> RangeTombstones {
    let count = (bytes as u64).isqrt();
    let ranges: Vec<_> = (0..count).map(|at| range(at, 2 * count - at, at + 1)).collect();
    RangeTombstones::union(&ranges)
}

/// With all checksums right.
fn damaged_table(bytes: usize) -> Vec<u8> {
    let mut file = small_blocks(bytes, Compression::None);
    let changes: Vec<(usize, u8)> = (0..file.len()).step_by(509).map(|place| (place, 1)).collect();
    reseal(&mut file, TABLE, &changes).expect("it was intact");
    file
}
