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
use crate::env::mem::MemEnv;
use crate::iter::Cursor;
use crate::options::{Compression, ReadMode};
use crate::table::{Table, TableBuilder, TableOptions, reseal, salvage_unindexed};
use crate::version::edit::{self, ManifestState};
use crate::version::manifest::{file_with, point_current, read_current};
use crate::version::salvage::salvage as salvage_manifest;
use crate::wal::format::{
    HEADER_BYTES, Place, RECORD_HEADER_BYTES, RecordType, encode_header, record_bytes, seal_record,
};
use crate::wal::reader::{Visited, replay};
use crate::wal::salvage::salvage as salvage_log;
use crate::wal::segment::Position;
use crate::wal::segment::SegmentMaker;
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

/// A log is replayed in the order in which its records were written, and from its beginning.
pub fn log(bytes: &[u8]) {
    const SEGMENT_BYTES: u64 = 4 << 10;
    let mut parts = Parts(bytes);
    let (mode, floor) = (parts.byte(), u64::from(parts.byte() % 4));
    let synced = Position { segment: u64::from(parts.byte() % 4), offset: parts.number(2) & !7 };
    let (env, directory) = (MemEnv::new(), PathBuf::from("db"));
    env.create_dir_all(&directory).expect("no fault is set");
    let mut written = Vec::new();
    for number in 1..=u64::from(mode >> 1 & 3) {
        let content = if mode.is_multiple_of(2) {
            segment(number, SEGMENT_BYTES, &mut parts, &mut written)
        } else {
            parts.part().to_vec()
        };
        env.set_file_bytes(&directory.join(format!("{number:06}.wal")), content);
    }
    let maker = SegmentMaker {
        env: Arc::new(env),
        directory,
        mapped: false,
        in_foreground: true,
        read_only: true,
        smallest_bytes: SEGMENT_BYTES,
        largest_bytes: SEGMENT_BYTES,
    };
    let mut replayed: Vec<Vec<u8>> = Vec::new();
    let _ = replay(&maker, floor, synced, &mut |record| {
        replayed.push(record.payload.to_vec());
        Ok(Visited::Last(last_of(record.sequence, record.payload)))
    });
    if mode.is_multiple_of(2) {
        let mut rest = written.iter();
        assert!(
            replayed.iter().all(|payload| rest.any(|written| written == payload)),
            "out of order, or never written"
        );
    }
    let _ = salvage_log(&maker, floor, &mut |record| Ok(last_of(record.sequence, record.payload)));
}

fn last_of(first: Sequence, payload: &[u8]) -> Sequence {
    first + Operations::new(payload).count().saturating_sub(1) as Sequence
}

/// A segment of records as the fuzzer says, with their checksums. Appends the payloads of its
/// batches to `written`.
fn segment(number: u64, bytes: u64, parts: &mut Parts<'_>, written: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let salt = 0x5a17 + number;
    let mut content = encode_header(number, bytes, salt).to_vec();
    for _ in 0..parts.byte() % 16 {
        let kind = match parts.byte() % 8 {
            0 => RecordType::Close,
            1 | 2 => RecordType::Link,
            _ => RecordType::Batch,
        };
        let (sequence, synced) = (parts.number(2), parts.number(2));
        let payload = parts.part();
        let offset = content.len() as u64;
        if offset + record_bytes(payload.len()) > bytes {
            break;
        }
        let mut record = vec![0; RECORD_HEADER_BYTES];
        record.extend_from_slice(payload);
        seal_record(&mut record, kind, sequence, synced, Place { segment: number, salt, offset });
        record.resize(record_bytes(payload.len()) as usize, 0);
        content.extend_from_slice(&record);
        if kind == RecordType::Batch {
            written.push(payload.to_vec());
        }
    }
    content.resize(bytes as usize, 0);
    debug_assert!(content.len() >= HEADER_BYTES);
    content
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
