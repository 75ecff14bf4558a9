//! The decoders of everything that is read from a disk, each as a function of the bytes of a
//! fuzzer. A function returns whatever the bytes are, in time and memory in proportion to their
//! number, or panics: then the decoder is wrong.
//!
//! Checksums would keep a fuzzer from everything behind them. So most functions take two kinds of
//! bytes, chosen by the first one: a file as it is, and the parts of a file, to which the checksums
//! are computed.

use crate::base::batch::{AnyOperation, Operations, encode, encode_range};
use crate::base::blob_reference::BlobReference;
use crate::base::compression::{Codec, Compressor, Partly, Walk, decompress};
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, NEVER, Sequence, hash};
use crate::base::key_order::KeyOrder;
use crate::base::lz4::{End, Progress, SLACK_BYTES, decode_until};
use crate::blob::BlobStore;
use crate::blob::format::{Values, encode_header as encode_blob_header};
use crate::cache::Cache;
use crate::env::Env;
use crate::env::fault::{Class, FaultEnv};
use crate::env::mem::MemEnv;
use crate::error::Error;
use crate::iter::Cursor;
use crate::options::{Compression, ReadMode};
use crate::table::{Table, TableBuilder, TableOptions, reseal, salvage_unindexed};
use crate::version::edit::{self, ManifestState};
use crate::version::manifest::{file_with, point_current, read_current};
use crate::version::salvage::salvage as salvage_manifest;
use crate::wal::format::{
    HEADER_BYTES, Link, Place, RECORD_HEADER_BYTES, RecordType, encode_header, record_bytes, seal_record,
};
use crate::wal::reader::{Record, Visited, replay};
use crate::wal::salvage::{Known, salvage as salvage_log};
use crate::wal::segment::{Position, SegmentMaker};
use crate::wal::tail::{End as TailEnd, LogTail, Taken};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A decoder under test.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    /// What it decodes.
    pub name: &'static str,
    /// Decodes these bytes.
    pub run: fn(&[u8]),
}

/// All of them.
pub const DECODERS: [Decoder; 8] = [
    Decoder { name: "batch", run: batch },
    Decoder { name: "blob", run: blob },
    Decoder { name: "lz4", run: lz4 },
    Decoder { name: "zstd", run: zstd },
    Decoder { name: "manifest_edit", run: manifest_edit },
    Decoder { name: "manifest", run: manifest },
    Decoder { name: "log", run: log },
    Decoder { name: "table", run: table },
];

/// Splits a fuzzer's bytes. Past the end everything is zero or empty.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn number(&mut self, bytes: u32) -> u64 {
        (0..bytes).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// A part behind its length; what is left, if that is less.
    fn part(&mut self) -> &'a [u8] {
        let length = (self.number(2) as usize).min(self.0.len());
        let (part, rest) = self.0.split_at(length);
        self.0 = rest;
        part
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A batch that decodes is that which its operations encode to.
pub fn batch(bytes: &[u8]) {
    let operations: Result<Vec<AnyOperation<'_>>, _> = Operations::new(bytes).collect();
    let Ok(operations) = operations else { return };
    let mut encoded = Vec::new();
    for operation in &operations {
        match operation {
            AnyOperation::Key(operation) => drop(encode(&mut encoded, operation)),
            AnyOperation::Range(operation) => encode_range(&mut encoded, operation),
        }
    }
    let again: Result<Vec<AnyOperation<'_>>, _> = Operations::new(&encoded).collect();
    assert_eq!(again.as_ref(), Ok(&operations));
}

/// What was compressed decompresses to itself; what a fuzzer made decompresses to the same in one
/// go, in pieces, and with the library that compresses.
pub fn lz4(bytes: &[u8]) {
    let mut compressor = Compressor::new(Codec::Lz4);
    if let Some(stored) = compressor.compress(bytes) {
        assert_eq!(decompress(Codec::Lz4, stored, Vec::new()).as_deref(), Ok(bytes));
    }
    let whole = decompress(Codec::Lz4, bytes, vec![0xaa; 300]);
    if let Ok(whole) = &whole {
        let theirs = lz4_flex::block::decompress(&bytes[4..], whole.len());
        assert!(theirs.is_ok_and(|theirs| theirs == *whole), "another decoder has another result");
    }
    let mut memory = Vec::new();
    if let (Ok(mut partly), Ok(whole)) = (Partly::new(Codec::Lz4, bytes, &mut memory), &whole) {
        for until in [whole.len() / 3, whole.len() / 2, whole.len()] {
            let start = partly.up_to(until).expect("all of it decompresses");
            assert_eq!(start, &whole[..start.len()]);
        }
    }
    // A fuzzer does not guess the size: here it needs none.
    let mut output = vec![0; 4096 + SLACK_BYTES];
    let mut progress = Progress::default();
    if decode_until(bytes, &mut output, &mut progress, usize::MAX).is_some() {
        let theirs = lz4_flex::block::decompress(bytes, 4096).expect("another decoder takes it too");
        assert_eq!(theirs, &output[..progress.to]);
    }
}

/// As `lz4`, for zstd: what was compressed decompresses to itself and ends where it does; what a
/// fuzzer made takes no more memory than the size that it claims.
pub fn zstd(bytes: &[u8]) {
    let mut compressor = Compressor::new(Codec::Zstd);
    if let Some(stored) = compressor.compress(bytes) {
        assert_eq!(decompress(Codec::Zstd, stored, Vec::new()).as_deref(), Ok(bytes));
        let followed = [stored, bytes].concat();
        assert_eq!(Walk::new(Codec::Zstd).end(&followed), End::At(stored.len()));
    }
    let whole = decompress(Codec::Zstd, bytes, vec![0xaa; 300]);
    let mut memory = Vec::new();
    let partly = Partly::new(Codec::Zstd, bytes, &mut memory);
    assert_eq!(partly.is_ok(), whole.is_ok());
    if let (Ok(mut partly), Ok(whole)) = (partly, whole) {
        assert_eq!(partly.up_to(whole.len()), Ok(&*whole));
        assert!(partly.up_to(whole.len() + 1).is_err());
    }
    let _ = Walk::new(Codec::Zstd).end(bytes);
}

/// Applies an edit as far as it is valid. The snapshot of the resulting state must decode to the
/// same state.
pub fn manifest_edit(bytes: &[u8]) {
    let Ok(changes) = edit::decode(bytes) else { return };
    let mut encoded = Vec::new();
    edit::encode(&changes, &mut encoded);
    assert_eq!(edit::decode(&encoded).as_ref(), Ok(&changes));
    let mut state = ManifestState::default();
    for change in &changes {
        if state.apply(change).is_err() {
            // A failed edit may have been applied in part; such a state is not used further.
            return;
        }
    }
    let mut again = ManifestState { closed: state.closed, ..ManifestState::default() };
    for change in state.snapshot() {
        again.apply(&change).expect("a state that was possible");
    }
    assert_eq!(again, state);
}

/// A manifest that opens is salvaged as a whole.
pub fn manifest(bytes: &[u8]) {
    const NUMBER: u64 = 7;
    let mut parts = Parts(bytes);
    let content = if parts.byte().is_multiple_of(2) {
        let mut payloads = Vec::new();
        while !parts.is_empty() {
            payloads.push(parts.part());
        }
        file_with(NUMBER, &payloads)
    } else {
        parts.0.to_vec()
    };
    let (env, directory) = (MemEnv::new(), Path::new("db"));
    env.create_dir_all(directory).expect("no fault is set");
    point_current(&env, directory, NUMBER).expect("no fault is set");
    env.set_file_bytes(&directory.join("MANIFEST-000007"), content);
    let opened = read_current(&env, directory);
    let salvaged = salvage_manifest(&env, directory, NUMBER);
    if let Ok(Some(opened)) = opened {
        let salvaged = salvaged.expect("it opens").expect("it has a first record");
        assert_eq!(salvaged.state, opened.state);
    }
}

/// The length of the segments that are made of a fuzzer's bytes.
const SEGMENT_BYTES: u64 = 4 << 10;
/// Files as they are, and not segments of records.
const IS_RAW: u8 = 1;
/// Segments whose links and numbers are right, but for lies that the fuzzer chooses.
const IS_LINKED: u8 = 8;
/// Reads of a reader behind the writer, of a file's header, its link, or all of it: of three
/// segments it needs no more, whatever is in them.
const MOST_TAIL_READS: u64 = 64;

/// A record as readers hand it out: segment, offset, first write, payload.
type Seen = (u64, u64, Sequence, Vec<u8>);

fn seen(record: &Record<'_>) -> Seen {
    (record.segment, record.offset, record.sequence, record.payload.to_vec())
}

/// The records of a log that a fuzzer has made.
#[derive(Default)]
struct Written {
    /// The payloads of its batches.
    batches: Vec<Vec<u8>>,
    /// Where the records of the last segment end, and its last write.
    end: u64,
    last_sequence: Sequence,
}

/// A log is replayed in the order in which its records were written, and from its beginning. A
/// reader behind its writer hands out the same records, as far as it goes: all of them if it comes
/// to the end.
pub fn log(bytes: &[u8]) {
    read_log(bytes);
}

/// As [`log`]: how many records both have read, up to the end.
fn read_log(bytes: &[u8]) -> usize {
    let mut parts = Parts(bytes);
    let (mode, floor) = (parts.byte(), u64::from(parts.byte() % 4));
    let synced = Position { segment: u64::from(parts.byte() % 4), offset: parts.number(2) & !7 };
    let (env, directory) = (MemEnv::new(), PathBuf::from("db"));
    env.create_dir_all(&directory).expect("no fault is set");
    let is_sealed = mode & IS_RAW == 0;
    let mut written = Written::default();
    let mut newest = None;
    for number in 1..=u64::from(mode >> 1 & 3) {
        let content = if is_sealed {
            segment(number, mode & IS_LINKED != 0, &mut parts, &mut written)
        } else {
            parts.part().to_vec()
        };
        let path = directory.join(format!("{number:06}.wal"));
        env.set_file_bytes(&path, content.clone());
        newest = Some((path, content));
    }
    let counted = FaultEnv::new(Arc::new(env.clone()));
    let maker = SegmentMaker {
        env: Arc::new(counted.clone()),
        directory,
        mapped: false,
        in_foreground: true,
        read_only: true,
        unfinished: None,
        smallest_bytes: SEGMENT_BYTES,
        largest_bytes: SEGMENT_BYTES,
    };
    let mut replayed: Vec<Seen> = Vec::new();
    let inherited = replay(&maker, floor, synced, &mut |record| {
        replayed.push(seen(&record));
        Ok(Visited::Last(last_of(record.sequence, record.payload)))
    });
    let known = Known { floor, vouched: synced, in_tables: floor };
    let _ = salvage_log(&maker, known, &mut |record| Ok(last_of(record.sequence, record.payload)));
    // Where a follower would stand. None: the log is refused.
    let oldest = inherited.ok().and_then(|log| Some(log.retired.first()?.segment.number));
    let position = Position { segment: oldest.unwrap_or(floor), offset: 0 };
    let reads_before = counted.calls(Class::Read);
    let followed = follow(&maker, position, usize::MAX);
    assert!(counted.calls(Class::Read) - reads_before <= MOST_TAIL_READS, "work without bound");
    // A record that is not taken is handed out again.
    assert_eq!(follow(&maker, position, usize::from(mode >> 4)), followed, "in parts, it reads something else");
    let read = match (oldest, &followed) {
        (Some(_), Some((records, TailEnd::Reached))) => {
            assert_eq!(*records, replayed, "a reader behind the writer does not agree");
            records.len()
        }
        (Some(_), Some((records, _))) => {
            assert!(replayed.starts_with(records), "{records:?} are not the beginning of {replayed:?}");
            0
        }
        (Some(oldest), None) => panic!("segment {oldest} was replayed, and not found"),
        (None, _) => 0,
    };
    let while_it_grew = newest.and_then(|(path, content)| {
        follow_growing(&maker, position, (&env, path.as_path(), content), synced.offset as usize)
    });
    if let (Some(_), Some((records, TailEnd::Reached))) = (oldest, &while_it_grew) {
        assert_eq!(*records, replayed, "a reader that was there before does not agree");
    }
    let from_there = read_from(&maker, Sequence::from(mode >> 4), floor);
    for (records, _) in followed.iter().chain(&while_it_grew) {
        assert_in_order(records, is_sealed.then_some(&written));
    }
    [&replayed, &from_there].into_iter().for_each(|records| assert_in_order(records, is_sealed.then_some(&written)));
    read
}

/// Each write is behind the one before, and was written in that order, where that is known.
fn assert_in_order(records: &[Seen], written: Option<&Written>) {
    assert!(records.is_sorted_by(|before, behind| before.2 < behind.2), "writes out of order: {records:?}");
    let Some(written) = written else { return };
    let mut rest = written.batches.iter();
    let are_there = records.iter().all(|record| rest.any(|payload| *payload == record.3));
    assert!(are_there, "out of order, or never written: {records:?}");
}

/// What a reader behind the writer that begins there hands out, and where that ends; none if it
/// fails. The record of this number it has to hand out twice.
fn follow(maker: &SegmentMaker, position: Position, refused: usize) -> Option<(Vec<Seen>, TailEnd)> {
    let mut tail = LogTail::at(maker.clone(), position).ok()??;
    let mut records = Vec::new();
    let mut end = read_on(&mut tail, refused, &mut records).ok()?;
    if end == TailEnd::NotYet {
        end = read_on(&mut tail, usize::MAX, &mut records).ok()?;
    }
    Some((records, end))
}

/// As [`follow`], of a reader that had reached the end when the newest segment, a file with this
/// path and content, was empty from `cut` on. None as well if it has to begin anew.
fn follow_growing(
    maker: &SegmentMaker,
    position: Position,
    (env, path, content): (&MemEnv, &Path, Vec<u8>),
    cut: usize,
) -> Option<(Vec<Seen>, TailEnd)> {
    let mut before = content.clone();
    let cut = cut.min(before.len());
    before[cut..].fill(0);
    env.set_file_bytes(path, before);
    let mut records = Vec::new();
    let begun = LogTail::at(maker.clone(), position);
    let begun = begun.map(|tail| tail.map(|mut tail| (read_on(&mut tail, usize::MAX, &mut records), tail)));
    env.set_file_bytes(path, content);
    let Ok(Some((Ok(TailEnd::Reached), mut tail))) = begun else { return None };
    let end = read_on(&mut tail, usize::MAX, &mut records).ok()?;
    Some((records, end))
}

/// What a reader of changes comes across that begins at that write, until it ends or fails.
fn read_from(maker: &SegmentMaker, first: Sequence, oldest: u64) -> Vec<Seen> {
    let mut records = Vec::new();
    if let Ok(Some(mut tail)) = LogTail::from(maker.clone(), first, oldest, oldest) {
        let _ = read_on(&mut tail, usize::MAX, &mut records);
    }
    records
}

/// Reads on to the end, or up to the record of this number.
fn read_on(tail: &mut LogTail, refused: usize, records: &mut Vec<Seen>) -> Result<TailEnd, Error> {
    tail.read(None, &mut |record, _| {
        if records.len() == refused {
            return Ok(Taken::NotYet);
        }
        records.push(seen(&record));
        Ok(Taken::Yes)
    })
}

fn last_of(first: Sequence, payload: &[u8]) -> Sequence {
    first + Operations::new(payload).count().saturating_sub(1) as Sequence
}

/// A segment of records as the fuzzer says, with their checksums, added to those `written`. With
/// `is_linked` it begins with its link, and its records can be those of one log.
fn segment(number: u64, is_linked: bool, parts: &mut Parts<'_>, written: &mut Written) -> Vec<u8> {
    let mut content = encode_header(number, SEGMENT_BYTES, salt_of(number)).to_vec();
    if is_linked {
        let mut payload = Vec::new();
        link_behind(number - 1, written.end, parts.byte()).encode(&mut payload);
        append_record(&mut content, number, RecordType::Link, (0, 0), &payload);
    }
    for _ in 0..parts.byte() % 16 {
        let kind = match parts.byte() % 8 {
            0 => RecordType::Close,
            1 | 2 => RecordType::Link,
            _ => RecordType::Batch,
        };
        let (mut sequence, mut synced) = (parts.number(2), parts.number(2));
        let payload = parts.part();
        let offset = content.len() as u64;
        if offset + record_bytes(payload.len()) > SEGMENT_BYTES {
            break;
        }
        if is_linked {
            // One in eight is not behind the write before.
            sequence = written.last_sequence + sequence % 8;
            synced = (synced & !7).min(offset);
        }
        append_record(&mut content, number, kind, (sequence, synced), payload);
        if kind == RecordType::Batch {
            written.batches.push(payload.to_vec());
            written.last_sequence = last_of(sequence, payload);
        }
    }
    written.end = content.len() as u64;
    content.resize(SEGMENT_BYTES as usize, 0);
    content
}

fn salt_of(segment: u64) -> u64 {
    0x5a17 + segment
}

/// The link of the segment behind `previous`, whose records end there. Some values of `lie` make it
/// another one.
fn link_behind(previous: u64, end: u64, lie: u8) -> Link {
    let right = Link { previous_number: previous, previous_end: end, previous_synced: end.min(HEADER_BYTES as u64) };
    let other = u64::from(lie >> 3);
    match lie % 8 {
        4 => Link { previous_synced: other * 8, ..right },
        5 => Link { previous_number: other, ..right },
        6 => Link { previous_end: end ^ (other * 8), ..right },
        7 => Link { previous_end: 0, ..right },
        _ => right,
    }
}

fn append_record(
    content: &mut Vec<u8>,
    segment: u64,
    kind: RecordType,
    (sequence, synced): (Sequence, u64),
    payload: &[u8],
) {
    let offset = content.len() as u64;
    let mut record = vec![0; RECORD_HEADER_BYTES];
    record.extend_from_slice(payload);
    seal_record(&mut record, kind, sequence, synced, Place { segment, salt: salt_of(segment), offset });
    record.resize(record_bytes(payload.len()) as usize, 0);
    content.extend_from_slice(&record);
}

/// A table that opens is read at any key and in both directions, in bounded steps, and salvaged.
pub fn table(bytes: &[u8]) {
    const NUMBER: u64 = 9;
    let mut parts = Parts(bytes);
    let (mode, key) = (parts.byte(), parts.part());
    let path = PathBuf::from("000009.table");
    let env = MemEnv::new();
    let content = if mode.is_multiple_of(2) { changed_table(&mut parts, NUMBER) } else { parts.0.to_vec() };
    // Every entry takes a byte of its block, and LZ4 makes at most 255 of one.
    let most = content.len() as u64 * 256;
    env.set_file_bytes(&path, content);
    let open = || env.open(&path).expect("no fault is set");
    let mut salvaged = 0;
    let _ = salvage_unindexed(&*open(), &path, NUMBER, &KeyOrder::Bytewise, &mut |_| {
        salvaged += 1;
        Ok(())
    });
    assert!(salvaged <= most, "more entries than there can be");
    if let Ok(Some(damaged)) =
        Table::open_damaged(open(), path.clone(), NUMBER, Arc::new(Cache::new(1 << 20)), &KeyOrder::Bytewise)
    {
        let _ = damaged.salvage(&mut |_| Ok(()));
    }
    let read_mode = [ReadMode::Mmap, ReadMode::Pread, ReadMode::MmapChecked][usize::from(mode >> 1) % 3];
    let Ok(table) = Table::open(open(), path.clone(), NUMBER, Arc::new(Cache::new(1 << 20)), read_mode) else {
        return;
    };
    let _ = table.get(key, hash(key), MAX_SEQUENCE, &mut |_| true);
    let _ = table.search(key, u64::from(mode), &mut |_| false);
    let mut cursor = table.cursor(mode & 4 == 0);
    let _ = cursor.seek(key, MAX_SEQUENCE);
    let mut steps = 0;
    while cursor.valid() && steps <= most {
        steps += 1;
        if cursor.next().is_err() {
            break;
        }
    }
    assert!(steps <= most, "more entries than there can be");
    let _ = table.verify(&mut |_| ());
}

/// A table of a few entries, with some of its bytes changed and all its checksums right.
fn changed_table(parts: &mut Parts<'_>, number: u64) -> Vec<u8> {
    let (env, path) = (MemEnv::new(), PathBuf::from("built"));
    let compression = match parts.byte() % 4 {
        0 | 2 => Compression::None,
        3 if Compression::Zstd.is_available() => Compression::Zstd,
        _ => Compression::Lz4,
    };
    let options = TableOptions { block_bytes: 64, compression, filter_bits_per_key: u32::from(parts.byte() % 12) };
    let file = env.create(&path).expect("no fault is set");
    let mut builder = TableBuilder::new(file, path.clone(), number, options);
    for key in 0..=parts.byte() % 32 {
        let kind = [Kind::Put, Kind::Delete, Kind::Merge][usize::from(key % 3)];
        let value: &[u8] = if kind == Kind::Delete { b"" } else { parts.part() };
        let expiry_ms = if key % 5 == 4 { 1000 + u64::from(key) } else { NEVER };
        let entry = Entry { key: &[b'k', key / 2], sequence: 100 - u64::from(key), kind, expiry_ms, value };
        builder.add(entry).expect("keys in order");
    }
    builder.finish_reusably().expect("no fault is set");
    let mut content = env.file_bytes(&path).expect("it was built");
    let mut changes = Vec::new();
    while !parts.is_empty() {
        changes.push((parts.number(2) as usize % content.len(), parts.byte()));
    }
    reseal(&mut content, number, &changes).expect("it was intact");
    content
}

/// A value in a blob file is read by any reference.
pub fn blob(bytes: &[u8]) {
    const NUMBER: u64 = 5;
    let mut parts = Parts(bytes);
    let mode = parts.byte();
    let reference = BlobReference::decode(parts.0.get(..24).unwrap_or_default());
    let mut content = parts.0.to_vec();
    if mode.is_multiple_of(2) {
        let values = match mode & 6 {
            0 | 4 => Values::AsWritten,
            6 => Values::Zstd,
            _ => Values::Lz4,
        };
        content.splice(..0, encode_blob_header(NUMBER, values));
    }
    let (env, directory) = (MemEnv::new(), PathBuf::from("db"));
    env.create_dir_all(&directory).expect("no fault is set");
    env.set_file_bytes(&directory.join("000005.blob"), content);
    let store = BlobStore::new(Arc::new(env), directory, 1 << 20, Compression::Lz4);
    let Ok(file) = store.open_file(NUMBER, 0) else { return };
    if let Some(reference) = reference {
        assert_eq!(BlobReference::decode(&reference.encode()), Some(reference));
        let _ = file.read(&reference);
        let at = BlobReference { file: NUMBER, offset: 40, length: u32::from(mode), ..reference };
        let _ = file.read(&at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    const SEEDS: u64 = 500;
    /// Changes of each of these logs.
    const CHANGES: u64 = 20;

    /// Three segments without a lie, and how many records they have.
    fn right_log(random: &mut Random) -> (Vec<u8>, usize) {
        let (first_needed, none_synced, cut) = (1, 0, random.below(16) as u8);
        let mut bytes = vec![IS_LINKED | 3 << 1 | (random.below(16) as u8) << 4, first_needed, none_synced, cut, 0];
        let mut records = 0;
        for _ in 0..3 {
            let count = random.below(16) as u8;
            bytes.extend([0, count]);
            for _ in 0..count {
                let (batch, ahead, synced) = (3, 1 + random.below(7) as u8, random.below(256) as u8);
                let length = random.below(60);
                let payload = random.text(length);
                bytes.extend([batch, 0, ahead, 0, synced, 0, payload.len() as u8]);
                bytes.extend(payload);
            }
            records += usize::from(count);
        }
        (bytes, records)
    }

    /// What the fuzzer's bytes are turned into is what is meant to be reached.
    #[test]
    fn a_log_of_three_segments_is_read_to_the_end_by_both_readers() {
        for seed in 0..SEEDS {
            let (bytes, records) = right_log(&mut Random::new(seed));
            assert_eq!(read_log(&bytes), records, "seed {seed}");
        }
    }

    /// The readers agree on links that lead elsewhere, on segments that end elsewhere, and on
    /// writes out of order.
    #[test]
    fn logs_with_lies_are_read_alike() {
        let (mut read, mut refused) = (0, 0);
        for seed in 0..SEEDS {
            let mut random = Random::new(seed);
            let (bytes, _) = right_log(&mut random);
            for change in 0..CHANGES {
                let mut changed = bytes.clone();
                for _ in 0..=random.below(3) {
                    let at = random.index(changed.len());
                    changed[at] = random.below(256) as u8;
                }
                let outcome = std::panic::catch_unwind(|| read_log(&changed));
                let records = outcome.unwrap_or_else(|_| panic!("seed {seed}, change {change}: {changed:?}"));
                *(if records > 0 { &mut read } else { &mut refused }) += 1;
            }
        }
        assert!(read > 200 && refused > 200, "{read} read, {refused} refused: the lies are all of one kind");
    }
}
