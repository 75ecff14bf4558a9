//! The summary of a table, and the properties block that holds it.
//!
//! ```text
//! properties := section*                            ids ascending
//! section    := id:varint bytes:varint payload
//! 1 counts         entries:varint deletes:varint merges:varint
//! 2 smallest key   the bytes; empty also for an empty table
//! 3 largest key    the bytes
//! 4 sequences      smallest:varint largest:varint
//! 5 expiries       entries that expire:varint smallest:varint largest:varint
//! 6 raw sizes      key bytes:varint value bytes:varint
//! 7 range deletes  { start:bytes end:bytes tombstones:varint newest:varint { to the next older:varint }* }*
//!                  only in a table that has any; an empty end is behind every key
//! 8 blobs          (blob file number:varint bytes:varint)*    ascending; left out if no entry refers to one
//! 9 compressions   compression kind:varint, 2 for zstd; only in a table that has such blocks, which not every
//!                  build can read
//! 128 keyspace     `keyspace.rs`; may be missing
//! ```
//! Sections 2 to 4 are about entries only. The summary's key range and sequence numbers include the
//! range tombstones. A reader that does not know a section must refuse the table if its id is below
//! 128, and may skip it otherwise.

use super::format::{FORMAT_VERSION, ZSTD};
use super::keyspace::TableKeyspace;
use crate::base::blob_reference::BlobReference;
use crate::base::coding::{Cursor, DecodeError, put_bytes, put_varint};
use crate::base::compression::Codec;
use crate::base::key::{Kind, NEVER, Sequence};
use crate::base::key_order::KeyOrder;
use crate::base::range_tombstone::RangeTombstones;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// The facts about a table that its readers and the levels above need without opening a block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableSummary {
    /// The file's number.
    pub file_number: u64,
    /// The file's length.
    pub file_bytes: u64,
    /// Entries of every kind.
    pub entries: u64,
    /// Entries that are deletes.
    pub deletes: u64,
    /// Entries that are merge operands.
    pub merges: u64,
    /// The first user key, or where the first range tombstone starts; empty if there is neither.
    pub smallest_key: Vec<u8>,
    /// The last user key, or where the last range tombstone ends; empty if there is neither.
    pub largest_key: Vec<u8>,
    /// The last key itself is not in the table: a range tombstone ends there, at an empty one
    /// behind every key.
    pub largest_exclusive: bool,
    /// The oldest sequence number; 0 if there are no entries and no range tombstones.
    pub smallest_sequence: Sequence,
    /// The newest sequence number; 0 if there are no entries and no range tombstones.
    pub largest_sequence: Sequence,
    /// Entries that expire at some time.
    pub expiring_entries: u64,
    /// The first time at which one of them expires; 0 if none does.
    pub smallest_expiry_ms: u64,
    /// The last time at which one of them expires; 0 if none does.
    pub largest_expiry_ms: u64,
    /// All keys together, each version counted.
    pub raw_key_bytes: u64,
    /// All values together.
    pub raw_value_bytes: u64,
    /// The range tombstones, which are no entries.
    pub range_tombstones: RangeTombstones,
    /// The blob files that entries refer to, and the bytes of these values in them.
    pub blobs: BTreeMap<u64, u64>,
    /// Whether blocks are compressed with zstd, which not every build can read.
    pub has_zstd: bool,
    /// Whose table it is, if it says so.
    pub keyspace: Option<TableKeyspace>,
    /// The order of the keys, which the file does not say.
    pub order: KeyOrder,
}

/// No table has so many entries or bytes; thousands of tables together cannot overflow.
const MOST: u64 = 1 << 48;

const COUNTS: u64 = 1;
const SMALLEST_KEY: u64 = 2;
const LARGEST_KEY: u64 = 3;
const SEQUENCES: u64 = 4;
const EXPIRIES: u64 = 5;
const RAW_SIZES: u64 = 6;
const RANGE_TOMBSTONES: u64 = 7;
const BLOBS: u64 = 8;
/// The compression kinds of blocks that only some builds can read.
const COMPRESSIONS: u64 = 9;
/// Sections from this id on may be skipped by a reader that does not know them.
const FIRST_OPTIONAL: u64 = 128;
const KEYSPACE: u64 = 128;

impl TableSummary {
    /// Adds the columns of one block.
    pub(super) fn add_columns(&mut self, sequences: &[Sequence], kinds: &[u8], expiries: &[u64]) {
        let smallest = sequences.iter().copied().min().unwrap_or(0);
        let largest = sequences.iter().copied().max().unwrap_or(0);
        self.smallest_sequence = if self.entries == 0 { smallest } else { self.smallest_sequence.min(smallest) };
        self.largest_sequence = self.largest_sequence.max(largest);
        self.entries += kinds.len() as u64;
        let number = |kind: Kind| kinds.iter().filter(|&&k| k == kind as u8).count() as u64;
        self.deletes += number(Kind::Delete);
        self.merges += number(Kind::Merge);
        if expiries.iter().all(|&expiry| expiry == NEVER) {
            return;
        }
        for &expiry in expiries.iter().filter(|&&expiry| expiry != NEVER) {
            let first = self.expiring_entries == 0;
            self.smallest_expiry_ms = if first { expiry } else { self.smallest_expiry_ms.min(expiry) };
            self.largest_expiry_ms = self.largest_expiry_ms.max(expiry);
            self.expiring_entries += 1;
        }
    }

    /// Adds the reference to a large value that an entry has in place of it.
    #[cold]
    pub(super) fn add_blob(&mut self, reference: &[u8]) {
        // One that is malformed counts nowhere; reading the value reports what is wrong with it.
        if let Some(reference) = BlobReference::decode(reference) {
            *self.blobs.entry(reference.file).or_default() += reference.stored_bytes();
        }
    }

    /// Whether the whole table is before `key`.
    #[inline]
    pub fn is_before(&self, key: &[u8]) -> bool {
        if self.largest_exclusive {
            !self.order.is_before_end(key, &self.largest_key)
        } else {
            self.order.less(&self.largest_key, key)
        }
    }

    /// Whether `key` is between the table's bounds.
    #[inline]
    pub fn spans(&self, key: &[u8]) -> bool {
        !self.order.less(key, &self.smallest_key) && !self.is_before(key)
    }

    /// Adds range tombstones to a summary of the entries alone.
    pub(super) fn add_range_tombstones(&mut self, tombstones: RangeTombstones) {
        if let (Some(first), Some(last)) = (tombstones.fragments().first(), tombstones.fragments().last()) {
            let bare = self.entries == 0;
            if bare || self.order.less(&first.start, &self.smallest_key) {
                self.smallest_key.clone_from(&first.start);
            }
            if bare || self.order.is_before_end(&self.largest_key, &last.end) {
                self.largest_key.clone_from(&last.end);
                self.largest_exclusive = true;
            }
            let (oldest, newest) = tombstones.sequence_bounds();
            self.smallest_sequence = if bare { oldest } else { self.smallest_sequence.min(oldest) };
            self.largest_sequence = self.largest_sequence.max(newest);
        }
        self.range_tombstones = tombstones;
    }

    /// The content of the properties block of a table with these entries and the range tombstones.
    pub(super) fn encode_with(&self, tombstones: &RangeTombstones) -> Vec<u8> {
        let mut out = Vec::new();
        put_numbers(&mut out, COUNTS, &[self.entries, self.deletes, self.merges]);
        put_section(&mut out, SMALLEST_KEY, &self.smallest_key);
        put_section(&mut out, LARGEST_KEY, &self.largest_key);
        put_numbers(&mut out, SEQUENCES, &[self.smallest_sequence, self.largest_sequence]);
        let expiries = [self.expiring_entries, self.smallest_expiry_ms, self.largest_expiry_ms];
        put_numbers(&mut out, EXPIRIES, &expiries);
        put_numbers(&mut out, RAW_SIZES, &[self.raw_key_bytes, self.raw_value_bytes]);
        if !tombstones.is_empty() {
            let mut payload = Vec::new();
            tombstones.encode(&mut payload);
            put_section(&mut out, RANGE_TOMBSTONES, &payload);
        }
        if !self.blobs.is_empty() {
            let numbers: Vec<u64> = self.blobs.iter().flat_map(|(&number, &bytes)| [number, bytes]).collect();
            put_numbers(&mut out, BLOBS, &numbers);
        }
        if self.has_zstd {
            put_numbers(&mut out, COMPRESSIONS, &[u64::from(ZSTD)]);
        }
        if let Some(keyspace) = &self.keyspace {
            put_section(&mut out, KEYSPACE, &keyspace.encode());
        }
        out
    }

    /// The summary in a properties block that begins at `base` of the file, of a table with keys in
    /// this order.
    pub(super) fn decode(content: &[u8], path: &Path, base: u64, order: &KeyOrder) -> Result<TableSummary> {
        let mut summary = TableSummary { order: order.clone(), ..TableSummary::default() };
        let mut tombstones = RangeTombstones::default();
        let mut cursor = Cursor::new(content);
        let mut last = 0;
        let mut known = 0;
        while !cursor.is_empty() {
            let start = base + cursor.offset() as u64;
            let (id, payload) = section(&mut cursor).map_err(|error| error.at(path, base))?;
            if id <= last {
                return Err(Error::corruption(path, start, "property sections are out of order"));
            }
            last = id;
            if (COUNTS..=RAW_SIZES).contains(&id) {
                known += 1;
                summary.take_section(id, payload).map_err(|error| error.at(path, start))?;
            } else if id == BLOBS {
                summary.take_blobs(payload).map_err(|error| error.at(path, start))?;
            } else if id == RANGE_TOMBSTONES {
                tombstones = RangeTombstones::decode(payload, order).map_err(|error| error.at(path, start))?;
            } else if id == KEYSPACE {
                let keyspace = TableKeyspace::decode(payload).map_err(|error| error.at(path, start))?;
                summary.keyspace = Some(keyspace);
            } else if id == COMPRESSIONS && payload == [ZSTD] {
                Codec::Zstd.check(path)?;
                summary.has_zstd = true;
            } else if id < FIRST_OPTIONAL {
                // Only a later version writes such a section, and it changes what the entries mean.
                let version = FORMAT_VERSION + 1;
                return Err(Error::Unsupported { path: path.to_path_buf(), version, supported: FORMAT_VERSION });
            }
        }
        if known != RAW_SIZES {
            return Err(Error::corruption(path, base, "a property section is missing"));
        }
        summary.add_range_tombstones(tombstones);
        Ok(summary)
    }

    /// What a properties block that begins at `base` of the file says about the keyspace.
    pub(super) fn label_in(content: &[u8], path: &Path, base: u64) -> Result<Option<TableKeyspace>> {
        let mut cursor = Cursor::new(content);
        while !cursor.is_empty() {
            let (id, payload) = section(&mut cursor).map_err(|error| error.at(path, base))?;
            if id == KEYSPACE {
                return TableKeyspace::decode(payload).map(Some).map_err(|error| error.at(path, base));
            }
        }
        Ok(None)
    }

    fn take_blobs(&mut self, payload: &[u8]) -> std::result::Result<(), DecodeError> {
        let mut cursor = Cursor::new(payload);
        while !cursor.is_empty() {
            let number = cursor.varint("a blob file's number")?;
            if self.blobs.last_key_value().is_some_and(|(&last, _)| last >= number) {
                return Err(cursor.expected("ascending numbers of blob files"));
            }
            let bytes = cursor.varint("bytes in a blob file")?;
            if bytes > MOST {
                return Err(cursor.expected("a possible number of bytes in a blob file"));
            }
            self.blobs.insert(number, bytes);
        }
        Ok(())
    }

    fn take_section(&mut self, id: u64, payload: &[u8]) -> std::result::Result<(), DecodeError> {
        let mut cursor = Cursor::new(payload);
        let targets: Vec<&mut u64> = match id {
            COUNTS => vec![&mut self.entries, &mut self.deletes, &mut self.merges],
            SMALLEST_KEY => {
                self.smallest_key = payload.to_vec();
                return Ok(());
            }
            LARGEST_KEY => {
                self.largest_key = payload.to_vec();
                return Ok(());
            }
            SEQUENCES => vec![&mut self.smallest_sequence, &mut self.largest_sequence],
            EXPIRIES => vec![&mut self.expiring_entries, &mut self.smallest_expiry_ms, &mut self.largest_expiry_ms],
            _ => vec![&mut self.raw_key_bytes, &mut self.raw_value_bytes],
        };
        for target in targets {
            *target = cursor.varint("a property")?;
        }
        if !cursor.is_empty() {
            return Err(cursor.expected("the end of a property section"));
        }
        let parts = [self.deletes, self.merges, self.expiring_entries];
        let sizes = [self.entries, self.raw_key_bytes, self.raw_value_bytes];
        // Sections ascend, and the number of all entries is in the first.
        let is_possible = parts.iter().all(|&part| part <= self.entries) && sizes.iter().all(|&size| size <= MOST);
        if is_possible { Ok(()) } else { Err(cursor.expected("possible numbers of entries and bytes")) }
    }
}

fn section<'a>(cursor: &mut Cursor<'a>) -> std::result::Result<(u64, &'a [u8]), DecodeError> {
    Ok((cursor.varint("a section id")?, cursor.bytes("a section")?))
}

fn put_section(out: &mut Vec<u8>, id: u64, payload: &[u8]) {
    put_varint(out, id);
    put_bytes(out, payload);
}

fn put_numbers(out: &mut Vec<u8>, id: u64, numbers: &[u64]) {
    let mut payload = Vec::new();
    numbers.iter().for_each(|&number| put_varint(&mut payload, number));
    put_section(out, id, &payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_with_zstd_is_refused_by_builds_without() {
        let path = Path::new("7.table");
        let summary = TableSummary { has_zstd: true, ..TableSummary::default() };
        let content = summary.encode_with(&RangeTombstones::default());
        match TableSummary::decode(&content, path, 0, &KeyOrder::Bytewise) {
            Ok(decoded) => assert!(cfg!(feature = "zstd") && decoded == summary),
            Err(error) => {
                assert!(!cfg!(feature = "zstd") && matches!(error, Error::UnsupportedCompression { .. }), "{error}");
                assert!(error.to_string().contains("7.table") && error.to_string().contains("feature `zstd`"));
            }
        }
        // A kind of a later version.
        let mut content = TableSummary::default().encode_with(&RangeTombstones::default());
        put_section(&mut content, COMPRESSIONS, &[3]);
        assert!(matches!(TableSummary::decode(&content, path, 0, &KeyOrder::Bytewise), Err(Error::Unsupported { .. })));
        // Without the section its blocks say it.
        let mut block = b"content".to_vec();
        super::super::format::seal(&mut block, 0, ZSTD, 7, 0);
        let unsealed = super::super::format::unseal(&block, path, 7, 0);
        assert_eq!(unsealed.is_ok(), cfg!(feature = "zstd"), "{unsealed:?}");
    }

    #[test]
    fn optional_sections_are_skipped_and_others_refused() {
        let blobs = BTreeMap::from([(3, 1 << 40), (900, 24)]);
        let summary = TableSummary { entries: 3, smallest_key: b"a".to_vec(), blobs, ..TableSummary::default() };
        let path = Path::new("t");
        let mut content = summary.encode_with(&RangeTombstones::default());
        assert_eq!(TableSummary::decode(&content, path, 0, &KeyOrder::Bytewise).expect("own encoding"), summary);
        put_section(&mut content, 200, b"later");
        assert_eq!(TableSummary::decode(&content, path, 0, &KeyOrder::Bytewise).expect("optional section"), summary);
        let mut content = summary.encode_with(&RangeTombstones::default());
        put_section(&mut content, 100, b"later");
        assert!(matches!(TableSummary::decode(&content, path, 0, &KeyOrder::Bytewise), Err(Error::Unsupported { .. })));
        let content = TableSummary { blobs: BTreeMap::new(), ..summary }.encode_with(&RangeTombstones::default());
        for length in 0..content.len() {
            assert!(matches!(
                TableSummary::decode(&content[..length], path, 0, &KeyOrder::Bytewise),
                Err(Error::Corruption { .. })
            ));
        }
    }
}
