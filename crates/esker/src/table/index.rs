//! The index: the last key and sequence of every data block, and its size; in memory as flat
//! arrays.
//!
//! ```text
//! index := blocks:varint common:bytes { rest:bytes sequence:varint stored_bytes:varint }*
//! ```
//! `common` begins all the keys, and is empty where the order is not that of bytes; `rest` is what
//! follows in each. Data blocks lie end to end from
//! offset 0, so that their sizes (trailer included) are their places as well.

use super::format::{Handle, TRAILER_BYTES};
use super::static_btree::StaticBTree;
use crate::base::coding::{Cursor, DecodeError, put_bytes, put_varint};
use crate::base::compression::MAX_BLOCK_BYTES;
use crate::base::key::{Sequence, common_prefix, rest_after};
use crate::base::key_order::KeyOrder;
use std::cmp::Ordering;

/// No block is shorter: a decompressed size, and the LZ4 form of 36 bytes of header at its best.
const SMALLEST_CONTENT: usize = 14;

/// Collects the index entry of each block.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    /// Last sequence and stored bytes of each block.
    blocks: Vec<(Sequence, u64)>,
}

impl IndexBuilder {
    /// Adds the next block: its last entry and its length in the file.
    pub(super) fn add(&mut self, last_key: &[u8], last_sequence: Sequence, stored_bytes: u64) {
        self.keys.extend_from_slice(last_key);
        self.key_ends.push(self.keys.len());
        self.blocks.push((last_sequence, stored_bytes));
    }

    /// Roughly the size of the index block so far.
    pub(super) fn estimated_bytes(&self) -> u64 {
        (self.keys.len() + 8 * self.blocks.len()) as u64
    }

    /// Appends the content of the index block.
    pub(super) fn write(&self, out: &mut Vec<u8>, order: &KeyOrder) {
        let key = |i: usize| {
            let start = if i == 0 { 0 } else { self.key_ends[i - 1] };
            &self.keys[start..self.key_ends[i]]
        };
        let count = self.blocks.len();
        let common = if count == 0 || !order.is_bytewise() { 0 } else { common_prefix(key(0), key(count - 1)) };
        put_varint(out, count as u64);
        put_bytes(out, if count == 0 { &[] } else { &key(0)[..common] });
        for (i, &(sequence, stored_bytes)) in self.blocks.iter().enumerate() {
            put_bytes(out, &key(i)[common..]);
            put_varint(out, sequence);
            put_varint(out, stored_bytes);
        }
    }
}

/// The index of an open table.
#[derive(Debug)]
pub(super) struct Index {
    common: Vec<u8>,
    order: KeyOrder,
    /// The eight bytes behind `common` of each block's last key.
    heads: StaticBTree,
    rests: Vec<u8>,
    rest_ends: Vec<usize>,
    sequences: Vec<Sequence>,
    /// Where each block begins, and where the last one ends.
    offsets: Vec<u64>,
}

/// The longest block with its trailer.
const LARGEST_STORED_BYTES: u64 = (MAX_BLOCK_BYTES + TRAILER_BYTES) as u64;

impl Index {
    /// The index in `content`, of keys in this order, for data blocks that end at or before
    /// `limit`.
    pub(super) fn decode(content: &[u8], limit: u64, order: &KeyOrder) -> Result<Index, DecodeError> {
        let mut cursor = Cursor::new(content);
        let count = cursor.varint("a number of blocks")?;
        let smallest_block = (SMALLEST_CONTENT + TRAILER_BYTES) as u64;
        // Checked before memory is taken, so that it stays in proportion to the file.
        if count > content.len() as u64 / 3 || count > limit / smallest_block {
            return Err(cursor.expected("a possible number of blocks"));
        }
        let count = count as usize;
        let common = cursor.bytes("a common prefix")?.to_vec();
        let mut index = Index {
            common,
            order: order.clone(),
            heads: StaticBTree::default(),
            rests: Vec::new(),
            rest_ends: Vec::with_capacity(count),
            sequences: Vec::with_capacity(count),
            offsets: Vec::with_capacity(count + 1),
        };
        let mut heads = Vec::with_capacity(count);
        let mut offset = 0u64;
        index.offsets.push(offset);
        for _ in 0..count {
            let rest = cursor.bytes("a key")?;
            heads.push(order.head(rest, 0));
            index.rests.extend_from_slice(rest);
            index.rest_ends.push(index.rests.len());
            index.sequences.push(cursor.varint("a sequence number")?);
            let stored_bytes = cursor.varint("a block length")?;
            offset = offset
                .checked_add(stored_bytes)
                .filter(|&end| (smallest_block..=LARGEST_STORED_BYTES).contains(&stored_bytes) && end <= limit)
                .ok_or(cursor.expected("a block length within the file"))?;
            index.offsets.push(offset);
        }
        if !cursor.is_empty() {
            return Err(cursor.expected("the end of the index"));
        }
        index.heads = StaticBTree::new(&heads);
        index.check_order()?;
        Ok(index)
    }

    fn check_order(&self) -> Result<(), DecodeError> {
        let is_marked = !self.order.is_bytewise();
        if is_marked && !self.common.is_empty() {
            return Err(DecodeError { offset: 0, expected: "no common prefix in an order that is not that of bytes" });
        }
        let ascending = (1..self.len()).all(|i| self.compare(i - 1, self.rest(i), self.sequences[i]) == Ordering::Less);
        if ascending {
            Ok(())
        } else if self.order.is_trusted() {
            Err(DecodeError { offset: 0, expected: "block keys in order" })
        } else {
            self.order.note_fault();
            Ok(())
        }
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        let words = self.rest_ends.capacity() + self.sequences.capacity() + self.offsets.capacity();
        self.common.capacity() + self.rests.capacity() + self.heads.memory_bytes() + 8 * words
    }

    /// Data blocks.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Where block `number` is, if there is one.
    #[inline]
    pub(super) fn handle(&self, number: usize) -> Option<Handle> {
        let (&offset, &end) = (self.offsets.get(number)?, self.offsets.get(number + 1)?);
        Some(Handle { offset, bytes: end - offset })
    }

    /// Where the data blocks end.
    pub(super) fn data_end(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Whether (`key`, `sequence`) is the last entry of block `number`.
    pub(super) fn is_last(&self, number: usize, key: &[u8], sequence: Sequence) -> bool {
        number < self.len()
            && key.strip_prefix(self.common.as_slice()) == Some(self.rest(number))
            && self.sequences[number] == sequence
    }

    /// The key of the last entry of block `number`, which exists.
    pub(super) fn last_key(&self, number: usize) -> Vec<u8> {
        [self.common.as_slice(), self.rest(number)].concat()
    }

    fn rest(&self, number: usize) -> &[u8] {
        let start = if number == 0 { 0 } else { self.rest_ends[number - 1] };
        &self.rests[start..self.rest_ends[number]]
    }

    fn compare(&self, number: usize, rest: &[u8], sequence: Sequence) -> Ordering {
        self.order.compare(self.rest(number), rest).then_with(|| sequence.cmp(&self.sequences[number]))
    }

    /// The first block whose last entry is at or after (`key`, `sequence`) in internal key order;
    /// the number of blocks if there is none.
    pub(super) fn find(&self, key: &[u8], sequence: Sequence) -> usize {
        let Some(rest) = rest_after(key, &self.common) else {
            // Only in the bytewise order is there a common prefix.
            return if key < self.common.as_slice() { 0 } else { self.len() };
        };
        let wanted = self.order.head(rest, 0);
        let low = self.heads.rank(wanted);
        if self.heads.get(low) != Some(wanted) {
            return low;
        }
        // Equal heads decide nothing: compare in full among those.
        let mut high = wanted.checked_add(1).map_or(self.len(), |next| self.heads.rank(next));
        let mut low = low;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.compare(middle, rest, sequence) == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_finds_its_block() {
        let mut keys: Vec<Vec<u8>> =
            (0..300u32).map(|i| format!("key-with-prefix-{:05}", i * 3).into_bytes()).collect();
        keys.extend((0..20u32).map(|i| format!("key-with-prefix-99999999999{i:03}").into_bytes()));
        let mut builder = IndexBuilder::default();
        keys.iter().for_each(|key| builder.add(key, 7, 100));
        let mut content = Vec::new();
        builder.write(&mut content, &KeyOrder::Bytewise);
        let index = Index::decode(&content, 100 * keys.len() as u64, &KeyOrder::Bytewise).expect("own encoding");
        assert!(Index::decode(&content, 100 * keys.len() as u64 - 1, &KeyOrder::Bytewise).is_err());
        for probe in keys.iter().flat_map(|k| [k.clone(), [k.as_slice(), b"\0"].concat(), k[..k.len() - 1].to_vec()]) {
            for sequence in [0, 6, 7, 8] {
                let expected = keys.partition_point(|k| k < &probe || (*k == probe && sequence < 7));
                assert_eq!(index.find(&probe, sequence), expected);
            }
        }
        assert_eq!(index.find(b"", 0), 0);
        assert_eq!(index.find(b"zzz", 0), keys.len());
        assert_eq!(index.find(b"a", 0), 0);
    }
}
