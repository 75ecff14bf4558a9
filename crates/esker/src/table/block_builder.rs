//! Collects entries as columns and writes them as a data block ([`super::block`] has the format).

use super::block::{
    EXPIRIES, HEADER_BYTES, KEY_OFFSETS, KINDS, SEQUENCES, VALUE_OFFSETS, WIDE_OFFSETS, WIDE_SEQUENCES, copy_short,
};
use crate::base::key::{Entry, Sequence, common_prefix};
use crate::base::key_order::KeyOrder;

/// The entries of the block being built. Everything is appended to flat buffers that are reused for
/// the next block.
#[derive(Debug, Default)]
pub(super) struct BlockBuilder {
    /// Whole keys: the common prefix is only known at the end.
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    values: Vec<u8>,
    value_ends: Vec<u32>,
    pub(super) sequences: Vec<Sequence>,
    pub(super) kinds: Vec<u8>,
    pub(super) expiries: Vec<u64>,
}

/// What each entry counts for beside its key and value when a block's size is estimated.
const ENTRY_OVERHEAD: usize = 4;

/// Buffers that one large entry made larger than this are given back.
const KEPT_BYTES: usize = 4 << 20;

impl BlockBuilder {
    /// Adds the entry that follows those already there. The caller has checked order and lengths.
    #[inline]
    pub(super) fn add(&mut self, entry: &Entry<'_>) {
        self.keys.extend_from_slice(entry.key);
        self.key_ends.push(self.keys.len() as u32);
        self.values.extend_from_slice(entry.value);
        self.value_ends.push(self.values.len() as u32);
        self.sequences.push(entry.sequence);
        self.kinds.push(entry.kind as u8);
        self.expiries.push(entry.expiry_ms);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Roughly the size of the block without the columns that may be omitted.
    #[inline]
    pub(super) fn estimated_bytes(&self) -> usize {
        self.keys.len() + self.values.len() + self.kinds.len() * ENTRY_OVERHEAD
    }

    /// Roughly what `entry` adds to that.
    #[inline]
    pub(super) fn estimated_increase(entry: &Entry<'_>) -> usize {
        entry.key.len() + entry.value.len() + ENTRY_OVERHEAD
    }

    /// The key and sequence of the last entry, if there is one.
    #[inline]
    pub(super) fn last(&self) -> Option<(&[u8], Sequence)> {
        let sequence = *self.sequences.last()?;
        let start = match self.key_ends.len() {
            0 | 1 => 0,
            n => self.key_ends[n - 2] as usize,
        };
        Some((&self.keys[start..], sequence))
    }

    /// The first key, if there is an entry.
    pub(super) fn first_key(&self) -> Option<&[u8]> {
        self.key_ends.first().map(|&end| &self.keys[..end as usize])
    }

    pub(super) fn key_bytes(&self) -> u64 {
        self.keys.len() as u64
    }

    pub(super) fn value_bytes(&self) -> u64 {
        self.values.len() as u64
    }

    /// Appends the block to `out`. There must be an entry.
    pub(super) fn write(&self, out: &mut Vec<u8>, order: &KeyOrder) {
        let count = self.kinds.len();
        let (first, last) = (self.first_key().unwrap_or_default(), self.last().unwrap_or_default().0);
        // The keys are sorted by their bytes: what the first and the last share, all share.
        let prefix = if order.is_bytewise() { common_prefix(first, last) } else { 0 };
        let key_bytes = self.keys.len() - prefix * count;
        let smallest = self.sequences.iter().copied().min().unwrap_or(0);
        let spread = self.sequences.iter().copied().max().unwrap_or(0) - smallest;
        let (kind, expiry) = (self.kinds[0], self.expiries[0]);
        let mut flags = 0;
        for (flag, set) in [
            (KEY_OFFSETS, !equal_widths(&self.key_ends)),
            (VALUE_OFFSETS, !equal_widths(&self.value_ends)),
            (WIDE_OFFSETS, key_bytes.max(self.values.len()) > usize::from(u16::MAX)),
            (SEQUENCES, spread > 0),
            (WIDE_SEQUENCES, spread > u64::from(u32::MAX)),
            (KINDS, self.kinds.iter().any(|&k| k != kind)),
            (EXPIRIES, self.expiries.iter().any(|&e| e != expiry)),
        ] {
            flags |= if set { flag } else { 0 };
        }
        out.reserve(HEADER_BYTES + prefix + key_bytes + self.values.len() + 25 * count + 8);
        for number in [count, prefix, key_bytes, self.values.len()] {
            out.extend_from_slice(&(number as u32).to_le_bytes());
        }
        out.extend_from_slice(&[flags, if flags & KINDS == 0 { kind } else { 0 }, 0, 0]);
        out.extend_from_slice(&smallest.to_le_bytes());
        out.extend_from_slice(&(if flags & EXPIRIES == 0 { expiry } else { 0 }).to_le_bytes());
        out.extend_from_slice(&first[..prefix]);
        self.write_keys(out, prefix, flags & KEY_OFFSETS == 0);
        self.write_columns(out, flags, prefix, smallest);
        out.extend_from_slice(&self.values);
    }

    fn write_keys(&self, out: &mut Vec<u8>, prefix: usize, fixed: bool) {
        let width = self.key_ends[0] as usize;
        if fixed && width > prefix {
            let start = out.len();
            out.resize(start + (width - prefix) * self.key_ends.len(), 0);
            let targets = out[start..].chunks_exact_mut(width - prefix);
            let keys = self.keys.chunks_exact(width);
            targets.zip(keys).for_each(|(target, key)| copy_short(target, &key[prefix..]));
            return;
        }
        let mut start = 0;
        for &end in &self.key_ends {
            out.extend_from_slice(&self.keys[start + prefix..end as usize]);
            start = end as usize;
        }
    }

    fn write_columns(&self, out: &mut Vec<u8>, flags: u8, prefix: usize, smallest: Sequence) {
        let wide = flags & WIDE_OFFSETS != 0;
        if flags & KEY_OFFSETS != 0 {
            let ends = self.key_ends.iter().enumerate().map(|(i, &end)| end - (prefix * (i + 1)) as u32);
            write_offsets(out, wide, ends);
        }
        if flags & SEQUENCES != 0 {
            for sequence in &self.sequences {
                let delta = sequence - smallest;
                if flags & WIDE_SEQUENCES != 0 {
                    out.extend_from_slice(&delta.to_le_bytes());
                } else {
                    out.extend_from_slice(&(delta as u32).to_le_bytes());
                }
            }
        }
        if flags & KINDS != 0 {
            out.extend_from_slice(&self.kinds);
        }
        if flags & EXPIRIES != 0 {
            self.expiries.iter().for_each(|expiry| out.extend_from_slice(&expiry.to_le_bytes()));
        }
        if flags & VALUE_OFFSETS != 0 {
            write_offsets(out, wide, self.value_ends.iter().copied());
        }
    }

    /// Makes room for the next block.
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.key_ends.clear();
        self.values.clear();
        self.value_ends.clear();
        self.sequences.clear();
        self.kinds.clear();
        self.expiries.clear();
        if self.values.capacity() > KEPT_BYTES {
            self.values = Vec::new();
        }
    }
}

fn equal_widths(ends: &[u32]) -> bool {
    let width = ends.first().copied().unwrap_or(0);
    ends.windows(2).all(|pair| pair[1] - pair[0] == width)
}

fn write_offsets(out: &mut Vec<u8>, wide: bool, ends: impl Iterator<Item = u32>) {
    for end in std::iter::once(0).chain(ends) {
        if wide {
            out.extend_from_slice(&end.to_le_bytes());
        } else {
            out.extend_from_slice(&(end as u16).to_le_bytes());
        }
    }
}
