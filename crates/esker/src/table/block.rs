//! A data block: its layout, checked once, and search and access in it.
//!
//! ```text
//! block   := header prefix keys key_offsets? sequences? kinds? expiries? value_offsets? values
//! header  := count:u32 prefix_bytes:u32 key_bytes:u32 value_bytes:u32
//!            flags:u8 kind:u8 zero:u16 sequence:u64 expiry:u64                          (36 bytes)
//! prefix  := what all keys of the block begin with
//! keys    := the rest of each key, end to end; key_bytes in all
//! offsets := (count + 1) ends, the first 0, as u16 (u32 with WIDE_OFFSETS); absent where all
//!            entries have the same width, which is then key_bytes / count or value_bytes / count
//! sequences := what to add to the header's, as u32 (u64 with WIDE_SEQUENCES); absent where all are the same
//! kinds   := u8 each; absent where all are as in the header
//! expiries := u64 each; absent where all are as in the header
//! ```
//! All integers are little-endian and unaligned; entries are in internal key order. The prefix is
//! empty where that is not the order of bytes.

use crate::base::coding::DecodeError;
use crate::base::key::{Kind, MAX_KEY_BYTES, MAX_SEQUENCE, MAX_VALUE_BYTES, NEVER, Sequence, head, rest_after, same};
use crate::base::key_order::KeyOrder;
use crate::base::prefetch::{prefetch_first, prefetch_lines};
use crate::base::slice::Pin;
use crate::cache::{Cache, Charge, Weigh};
use std::hint::select_unpredictable;

pub(super) const HEADER_BYTES: usize = 36;
pub(super) const KEY_OFFSETS: u8 = 1;
pub(super) const VALUE_OFFSETS: u8 = 2;
pub(super) const WIDE_OFFSETS: u8 = 4;
pub(super) const SEQUENCES: u8 = 8;
pub(super) const WIDE_SEQUENCES: u8 = 16;
pub(super) const KINDS: u8 = 32;
pub(super) const EXPIRIES: u8 = 64;
const KNOWN_FLAGS: u8 = 127;

/// A search goes through this much of a block's beginning, usually: header, prefix and the rests of
/// short keys.
pub(super) const KEY_LINES: usize = 8;

/// The memory of larger blocks is not reused.
const KEPT_BYTES: usize = 1 << 20;

/// Where everything is in a block. Made by [`Layout::parse`], which proves that all columns
/// together are exactly the block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Entries; at least one.
    pub(super) count: usize,
    pub(super) flags: u8,
    /// The kind of every entry without a kinds column.
    pub(super) kind: Kind,
    pub(super) prefix_bytes: usize,
    /// The width of every key's rest; meaningless with key offsets.
    pub(super) key_width: usize,
    /// The width of every value; meaningless with value offsets.
    pub(super) value_width: usize,
    key_bytes: usize,
    value_bytes: usize,
    pub(super) keys: usize,
    key_offsets: usize,
    sequences: usize,
    kinds: usize,
    expiries: usize,
    value_offsets: usize,
    pub(super) values: usize,
    /// The sequence of every entry, or what the column's are added to.
    pub(super) sequence: Sequence,
    pub(super) expiry_ms: u64,
}

/// The `N` bytes at `at`. Positions were checked by `parse`, so zeroes for what lies outside are
/// never seen.
#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

impl Layout {
    /// The layout of `bytes`, if its columns add up to exactly the block. Constant time.
    pub(super) fn parse(bytes: &[u8]) -> Result<Layout, DecodeError> {
        Layout::of(bytes, bytes.len())
    }

    /// As [`Layout::parse`], of a block with so many bytes, which begins with `start`.
    pub(super) fn of(start: &[u8], block_bytes: usize) -> Result<Layout, DecodeError> {
        let (layout, length) = Layout::with_length(start)?;
        if length != block_bytes as u64 {
            return Err(DecodeError { offset: 0, expected: "block columns that add up to the block's length" });
        }
        Ok(layout)
    }

    /// How long the block must be that begins with `start`, if one does.
    pub(super) fn length_of(start: &[u8]) -> Option<u64> {
        Layout::with_length(start).ok().map(|(_, length)| length)
    }

    /// The layout of a block that begins with `start`, and its length. Nothing else may be done
    /// with a layout before it is known that the block has that length.
    #[inline(always)]
    fn with_length(start: &[u8]) -> Result<(Layout, u64), DecodeError> {
        let wrong = |offset, expected| Err(DecodeError { offset, expected });
        let Some(header) = start.first_chunk::<HEADER_BYTES>() else {
            return wrong(0, "a block header");
        };
        let [count, prefix, keys, values] = [0, 4, 8, 12].map(|at| u64::from(u32_at(header, at)));
        let flags = header[16];
        if count == 0 {
            return wrong(0, "at least one entry in a block");
        }
        if flags & !KNOWN_FLAGS != 0 || header[18] != 0 || header[19] != 0 {
            return wrong(16, "known block flags");
        }
        if prefix > MAX_KEY_BYTES as u64 {
            return wrong(4, "a prefix no longer than a key may be");
        }
        let Some(kind) = Kind::from_byte(header[17]) else { return wrong(17, "an entry kind") };
        let (sequence, expiry_ms) = (u64_at(header, 20), u64_at(header, 28));
        if sequence > MAX_SEQUENCE {
            return wrong(20, "a sequence number");
        }
        let has = |flag: u8| flags & flag != 0;
        let fixed = |bytes: u64, most: u64| bytes.is_multiple_of(count) && bytes / count <= most;
        if !has(KEY_OFFSETS) && !fixed(keys, MAX_KEY_BYTES as u64 - prefix) {
            return wrong(8, "keys of one possible width");
        }
        if !has(VALUE_OFFSETS) && !fixed(values, MAX_VALUE_BYTES as u64) {
            return wrong(12, "values of one possible width");
        }
        if count > 1 && keys == 0 && !has(SEQUENCES) && !has(KEY_OFFSETS) {
            // Also what bounds the count by the block's length: every entry takes a byte of some
            // column.
            return wrong(0, "entries that differ in key or sequence");
        }
        let offset_width = if has(WIDE_OFFSETS) { 4 } else { 2 };
        let sequence_width = if has(WIDE_SEQUENCES) { 8 } else { 4 };
        // No sum can overflow: each term is below 2^36.
        let column = |flag: u8, bytes: u64| if has(flag) { bytes } else { 0 };
        let keys_at = HEADER_BYTES as u64 + prefix;
        let key_offsets = keys_at + keys;
        let sequences = key_offsets + column(KEY_OFFSETS, (count + 1) * offset_width);
        let kinds = sequences + column(SEQUENCES, count * sequence_width);
        let expiries = kinds + column(KINDS, count);
        let value_offsets = expiries + column(EXPIRIES, count * 8);
        let values_at = value_offsets + column(VALUE_OFFSETS, (count + 1) * offset_width);
        // Everything is below the block's length, so the conversions keep the values.
        let layout = Layout {
            count: count as usize,
            flags,
            kind,
            prefix_bytes: prefix as usize,
            key_width: (keys / count) as usize,
            value_width: (values / count) as usize,
            key_bytes: keys as usize,
            value_bytes: values as usize,
            keys: keys_at as usize,
            key_offsets: key_offsets as usize,
            sequences: sequences as usize,
            kinds: kinds as usize,
            expiries: expiries as usize,
            value_offsets: value_offsets as usize,
            values: values_at as usize,
            sequence,
            expiry_ms,
        };
        Ok((layout, values_at + values))
    }

    /// Whether every entry of `bytes` is well formed: the part of the check that visits each of
    /// them. Values are not read, and need not be there.
    pub(super) fn validate(&self, bytes: &[u8]) -> Result<(), DecodeError> {
        if self.has(KEY_OFFSETS) {
            let longest = MAX_KEY_BYTES - self.prefix_bytes;
            self.validate_offsets(bytes, self.key_offsets, self.key_bytes, longest)?;
        }
        if self.has(VALUE_OFFSETS) {
            self.validate_offsets(bytes, self.value_offsets, self.value_bytes, MAX_VALUE_BYTES)?;
        }
        let room = MAX_SEQUENCE - self.sequence;
        // What fits into four bytes cannot lead too far, but behind an absurd first sequence
        // number.
        if self.has(SEQUENCES) && (self.has(WIDE_SEQUENCES) || room < u64::from(u32::MAX)) {
            let largest = (0..self.count).map(|i| self.sequence_delta(bytes, i)).max().unwrap_or(0);
            if largest > room {
                return Err(DecodeError { offset: self.sequences, expected: "sequence numbers" });
            }
        }
        let kinds = bytes.get(self.kinds..self.expiries).unwrap_or_default();
        if kinds.iter().any(|&kind| Kind::from_byte(kind).is_none()) {
            return Err(DecodeError { offset: self.kinds, expected: "entry kinds" });
        }
        Ok(())
    }

    fn validate_offsets(&self, bytes: &[u8], column: usize, end: usize, longest: usize) -> Result<(), DecodeError> {
        let mut last = 0;
        let mut good = self.offset(bytes, column, 0) == 0;
        for index in 1..=self.count {
            let next = self.offset(bytes, column, index);
            good &= next >= last && next.wrapping_sub(last) <= longest;
            last = next;
        }
        if good && last == end { Ok(()) } else { Err(DecodeError { offset: column, expected: "ascending offsets" }) }
    }

    #[inline]
    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    fn offset(&self, bytes: &[u8], column: usize, index: usize) -> usize {
        if self.has(WIDE_OFFSETS) {
            u32_at(bytes, column + 4 * index) as usize
        } else {
            usize::from(u16::from_le_bytes(array(bytes, column + 2 * index)))
        }
    }

    #[inline]
    fn sequence_delta(&self, bytes: &[u8], index: usize) -> u64 {
        if self.has(WIDE_SEQUENCES) {
            u64_at(bytes, self.sequences + 8 * index)
        } else {
            u64::from(u32_at(bytes, self.sequences + 4 * index))
        }
    }

    /// Where the rest of key `index` begins and ends.
    #[inline]
    pub(super) fn key_range(&self, bytes: &[u8], index: usize) -> (usize, usize) {
        if self.has(KEY_OFFSETS) {
            let start = self.offset(bytes, self.key_offsets, index);
            (self.keys + start, self.keys + self.offset(bytes, self.key_offsets, index + 1))
        } else {
            let start = self.keys + index * self.key_width;
            (start, start + self.key_width)
        }
    }

    /// Where value `index` begins and ends.
    #[inline]
    pub(super) fn value_range(&self, bytes: &[u8], index: usize) -> (usize, usize) {
        if self.has(VALUE_OFFSETS) {
            let start = self.offset(bytes, self.value_offsets, index);
            (self.values + start, self.values + self.offset(bytes, self.value_offsets, index + 1))
        } else {
            let start = self.values + index * self.value_width;
            (start, start + self.value_width)
        }
    }

    /// The sequence number of entry `index`.
    #[inline]
    pub(super) fn sequence_of(&self, bytes: &[u8], index: usize) -> Sequence {
        if self.has(SEQUENCES) { self.sequence.wrapping_add(self.sequence_delta(bytes, index)) } else { self.sequence }
    }

    /// The kind of entry `index`.
    #[inline]
    pub(super) fn kind_of(&self, bytes: &[u8], index: usize) -> Kind {
        if self.has(KINDS) {
            bytes.get(self.kinds + index).and_then(|&byte| Kind::from_byte(byte)).unwrap_or(self.kind)
        } else {
            self.kind
        }
    }

    /// The expiry of entry `index`.
    #[inline]
    pub(super) fn expiry_of(&self, bytes: &[u8], index: usize) -> u64 {
        if self.has(EXPIRIES) { u64_at(bytes, self.expiries + 8 * index) } else { self.expiry_ms }
    }

    /// What all keys of the block begin with.
    #[inline]
    pub(super) fn prefix<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(HEADER_BYTES..self.keys).unwrap_or_default()
    }

    /// The rest of key `index`.
    #[inline]
    pub(super) fn key_rest<'a>(&self, bytes: &'a [u8], index: usize) -> &'a [u8] {
        let (start, end) = self.key_range(bytes, index);
        bytes.get(start..end).unwrap_or_default()
    }

    /// Whether every entry is a put that never expires, and no two are of one key. Reads each key
    /// only if their sequence numbers differ.
    pub(super) fn is_plain(&self, bytes: &[u8]) -> bool {
        let alike = !self.has(KINDS | EXPIRIES) && self.kind == Kind::Put && self.expiry_ms == NEVER;
        // Entries of one key differ in their sequence numbers.
        alike
            && (!self.has(SEQUENCES)
                || (1..self.count).all(|index| self.key_rest(bytes, index) != self.key_rest(bytes, index - 1)))
    }

    /// The index of the first entry at or after (`key`, `sequence`) in internal key order; `count`
    /// if there is none.
    pub(super) fn lower_bound(&self, bytes: &[u8], key: &[u8], sequence: Sequence, order: &KeyOrder) -> usize {
        if !order.is_bytewise() {
            return self.lower_bound_in(bytes, key, sequence, order);
        }
        let prefix = self.prefix(bytes);
        match rest_after(key, prefix) {
            Some(rest) => self.lower_bound_of_rest(bytes, rest, sequence),
            None if key < prefix => 0,
            None => self.count,
        }
    }

    /// As `lower_bound`, in an order that is not that of bytes: by whole keys.
    #[inline(never)]
    fn lower_bound_in(&self, bytes: &[u8], key: &[u8], sequence: Sequence, order: &KeyOrder) -> usize {
        let prefix = self.prefix(bytes);
        // No block of such a keyspace is written with a prefix.
        let mut whole = prefix.to_vec();
        self.partition(|index| {
            let rest = self.key_rest(bytes, index);
            let at_index = if prefix.is_empty() {
                rest
            } else {
                whole.truncate(prefix.len());
                whole.extend_from_slice(rest);
                &whole
            };
            order.compare_versions((at_index, self.sequence_of(bytes, index)), (key, sequence)).is_lt()
        })
    }

    /// As `lower_bound`, in the bytewise order, for a key that begins with the prefix and goes on
    /// with `rest`.
    #[inline]
    pub(super) fn lower_bound_of_rest(&self, bytes: &[u8], rest: &[u8], sequence: Sequence) -> usize {
        let wanted = head(rest, 0);
        let low = if self.has(KEY_OFFSETS) {
            self.partition(|index| head(self.key_rest(bytes, index), 0) < wanted)
        } else {
            let head_at = self.fixed_heads(bytes);
            let low = self.partition(|index| head_at(index) < wanted);
            if low < self.count && head_at(low) > wanted {
                return low;
            }
            low
        };
        // Equal heads decide nothing: look at the rest of the key, and at the sequence.
        self.search_ties(bytes, low, rest, sequence)
    }

    /// The heads of the keys' rests, for keys of one width: a load and a mask.
    #[inline]
    fn fixed_heads<'a>(&'a self, bytes: &'a [u8]) -> impl Fn(usize) -> u64 + 'a {
        let mask = match self.key_width {
            0 => 0,
            width @ 1..=7 => u64::MAX << (64 - 8 * width),
            _ => u64::MAX,
        };
        move |index| {
            let at = self.keys + index * self.key_width;
            match bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
                Some(chunk) => u64::from_be_bytes(*chunk) & mask,
                None => head(self.key_rest(bytes, index), 0),
            }
        }
    }

    /// How many of the first entries satisfy `before`, which holds for a prefix of them. Without
    /// branches that depend on the data.
    #[inline]
    fn partition(&self, mut before: impl FnMut(usize) -> bool) -> usize {
        let (mut low, mut length) = (0, self.count);
        while length > 1 {
            let half = length / 2;
            low = select_unpredictable(before(low + half - 1), low + half, low);
            length -= half;
        }
        low + usize::from(before(low))
    }

    /// The first entry from `low` on at or after (`rest`, `sequence`). Usually that is `low`
    /// itself, so the steps grow from there.
    #[inline]
    fn search_ties(&self, bytes: &[u8], low: usize, rest: &[u8], sequence: Sequence) -> usize {
        let before = |index: usize| {
            let at_index = self.key_rest(bytes, index);
            // Usually it is the key, and is at or before `sequence`.
            if same(at_index, rest) { self.sequence_of(bytes, index) > sequence } else { at_index < rest }
        };
        let (mut low, mut high, mut step) = (low, self.count, 1);
        // Everything below `low` is before the target.
        while low + step <= high {
            if !before(low + step - 1) {
                high = low + step - 1;
                break;
            }
            low += step;
            step *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Copies `source` over `target`, which is as long: without a call for the usual short keys.
#[inline]
pub(super) fn copy_short(target: &mut [u8], source: &[u8]) {
    if target.len() != source.len() {
        return;
    }
    match target.len() {
        8..=16 => {
            // Two words that may overlap.
            let (first, last) = (source.first_chunk::<8>(), source.last_chunk::<8>());
            if let (Some(first), Some(last)) = (first.copied(), last.copied()) {
                let end = target.len() - 8;
                target[..8].copy_from_slice(&first);
                target[end..].copy_from_slice(&last);
            }
        }
        4..=7 => {
            let (first, last) = (source.first_chunk::<4>(), source.last_chunk::<4>());
            if let (Some(first), Some(last)) = (first.copied(), last.copied()) {
                let end = target.len() - 4;
                target[..4].copy_from_slice(&first);
                target[end..].copy_from_slice(&last);
            }
        }
        0 => {}
        // Three bytes that may overlap. A compiler may turn a loop here into a call of `memcpy`.
        1..=3 => {
            for place in [0, target.len() / 2, target.len() - 1] {
                if let (Some(to), Some(from)) = (target.get_mut(place), source.get(place)) {
                    *to = *from;
                }
            }
        }
        _ => target.copy_from_slice(source),
    }
}

/// A block in memory of its own, as the cache keeps it.
#[derive(Debug)]
pub struct Block {
    bytes: Vec<u8>,
    pub(super) layout: Layout,
    /// Counts the block as alive, if it came out of a file.
    charge: Option<Charge>,
    /// The cache takes its memory when it is not needed any more.
    recycled: bool,
}

impl Block {
    /// The block in `bytes`, checked in full.
    pub(super) fn new(bytes: Vec<u8>) -> Result<Block, DecodeError> {
        let layout = Layout::parse(&bytes)?;
        layout.validate(&bytes)?;
        Ok(Block { bytes, layout, charge: None, recycled: false })
    }

    /// Prefetches the layout of the block.
    #[inline]
    pub(super) fn prefetch_layout(&self) {
        prefetch_first(std::slice::from_ref(&self.bytes));
        prefetch_first(std::slice::from_ref(&self.layout.count));
        prefetch_first(std::slice::from_ref(&self.layout.expiry_ms));
    }

    /// Prefetches what a search reads.
    #[inline]
    pub(super) fn prefetch_keys(&self) {
        prefetch_lines(&self.bytes, KEY_LINES);
    }

    /// The weight of a block of so many bytes.
    pub(super) fn weight_of(bytes: usize) -> usize {
        bytes + std::mem::size_of::<Block>()
    }

    /// The memory of a block that is not needed any more, for the next one.
    pub(super) fn into_spare(mut self) -> Vec<u8> {
        if self.bytes.capacity() > KEPT_BYTES { Vec::new() } else { std::mem::take(&mut self.bytes) }
    }

    /// This block, counted in `cache` for as long as it is alive.
    pub(super) fn charged(mut self, cache: &Cache<Block>) -> Block {
        self.charge = Some(cache.charge(self.weight()));
        self
    }

    /// As [`Block::charged`], for one that the cache may keep: its memory goes to another one
    /// afterwards.
    pub(super) fn for_cache(self, cache: &Cache<Block>) -> Block {
        let mut block = self.charged(cache);
        block.recycled = true;
        block
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(charge) = self.charge.take().filter(|_| self.recycled) {
            charge.end(std::mem::take(&mut self.bytes));
        }
    }
}

impl Pin for Block {
    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Weigh for Block {
    fn weight(&self) -> usize {
        Block::weight_of(self.bytes.capacity())
    }

    fn first_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_without_columns_is_refused() {
        let mut bytes = vec![0u8; HEADER_BYTES];
        bytes[17] = Kind::Put as u8;
        bytes[0] = 1;
        assert!(Layout::parse(&bytes).is_ok());
        bytes[..4].fill(0xff);
        assert!(Layout::parse(&bytes).is_err());
        bytes[0..4].copy_from_slice(&[2, 0, 0, 0]);
        assert!(Layout::parse(&bytes).is_err());
    }

    #[test]
    fn short_copies_are_whole() {
        for length in 0..40u8 {
            let source: Vec<u8> = (1..=length).collect();
            let mut target = vec![0; source.len()];
            copy_short(&mut target, &source);
            assert_eq!(target, source);
        }
    }
}
