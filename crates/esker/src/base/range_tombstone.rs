//! Range tombstones: deletes of all keys of a range.
//!
//! A tombstone hides every older entry of the keys from `start` on and before `end`. An empty `end`
//! is behind every key: as a bound of its own it would say that the range is empty, so that nothing
//! else needs it.
//!
//! [`RangeTombstones`] is what readers search: fragments that do not overlap, in the order of their
//! keys, each with all of its sequence numbers. Building it takes the time of a sort, searching it
//! that of a binary search.

use super::coding::{Cursor, DecodeError, put_bytes, put_varint};
use super::key::{MAX_SEQUENCE, Sequence};
use super::key_order::KeyOrder;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Keys between two neighbouring bounds, and the tombstones over all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The first key.
    pub start: Vec<u8>,
    /// The first key behind; empty if there is none.
    pub end: Vec<u8>,
    /// The tombstones, newest first; at least one.
    pub sequences: Vec<Sequence>,
}

impl Fragment {
    /// The newest tombstone at or before `max_sequence`; 0 if there is none.
    #[inline]
    fn newest(&self, max_sequence: Sequence) -> Sequence {
        let at = self.sequences.partition_point(|&sequence| sequence > max_sequence);
        self.sequences.get(at).copied().unwrap_or(0)
    }

    fn memory_bytes(&self) -> usize {
        let sequences = size_of::<Sequence>() * self.sequences.capacity();
        COUNTED_FRAGMENT_BYTES + self.start.capacity() + self.end.capacity() + sequences
    }
}

/// A fragment, and the two counts of its `Arc`.
const COUNTED_FRAGMENT_BYTES: usize = size_of::<Fragment>() + 2 * size_of::<usize>();

/// A fragment without its keys, at most: with two places in the list, which has just doubled when
/// half of it is free, and with the four numbers that a vector has room for at least once it grows.
const MOST_FRAGMENT_BYTES: usize = COUNTED_FRAGMENT_BYTES + 2 * size_of::<Arc<Fragment>>() + 4 * size_of::<Sequence>();

/// The memory that a tombstone adds to a set, at most, if of those over the same keys only the
/// newest and the one before it are kept: its bounds may divide what is there, which makes two
/// fragments more.
pub fn tombstone_bytes(start_length: usize, end_length: usize) -> usize {
    2 * (MOST_FRAGMENT_BYTES + start_length + end_length)
}

/// The range of keys around one in which the answer of [`RangeTombstones::cover_span`] is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoverSpan<'a> {
    /// The first key.
    pub start: &'a [u8],
    /// The first key behind; empty if there is none.
    pub end: &'a [u8],
    /// The newest tombstone over them; 0 if there is none.
    pub cover: Sequence,
}

/// A set of range tombstones that never changes.
#[derive(Clone, Debug, Default)]
pub struct RangeTombstones {
    fragments: Vec<Arc<Fragment>>,
    /// Of the keys, and so of the fragments; any if there is none.
    order: KeyOrder,
}

impl PartialEq for RangeTombstones {
    fn eq(&self, other: &RangeTombstones) -> bool {
        self.fragments == other.fragments
    }
}

impl Eq for RangeTombstones {}

impl RangeTombstones {
    /// The set of one tombstone, in the bytewise order.
    #[cfg(test)]
    pub fn one(start: &[u8], end: &[u8], sequence: Sequence) -> RangeTombstones {
        RangeTombstones::one_in(&KeyOrder::Bytewise, start, end, sequence)
    }

    /// The set of one tombstone.
    pub fn one_in(order: &KeyOrder, start: &[u8], end: &[u8], sequence: Sequence) -> RangeTombstones {
        let (start, end) = (start.to_vec(), end.to_vec());
        let fragments = vec![Arc::new(Fragment { start, end, sequences: vec![sequence] })];
        RangeTombstones { fragments, order: order.clone() }
    }

    /// All tombstones of `sets`.
    pub fn union<'a>(sets: impl IntoIterator<Item = &'a RangeTombstones>) -> RangeTombstones {
        let mut sets = sets.into_iter().filter(|set| !set.is_empty());
        let Some(first) = sets.next() else { return RangeTombstones::default() };
        let Some(second) = sets.next() else { return first.clone() };
        let all: Vec<&RangeTombstones> = [first, second].into_iter().chain(sets).collect();
        sweep(&first.order, all.iter().flat_map(|set| set.fragments.iter()))
    }

    /// Sets whose keys do not overlap, in their order, as one.
    pub fn concatenate<'a>(sets: impl IntoIterator<Item = &'a RangeTombstones>) -> RangeTombstones {
        let mut all = RangeTombstones::default();
        for set in sets.into_iter().filter(|set| !set.is_empty()) {
            all.order.clone_from(&set.order);
            all.fragments.extend(set.fragments.iter().cloned());
        }
        all
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The order of its keys; any if there is no tombstone.
    #[inline]
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// The fragments, in the order of their keys.
    pub fn fragments(&self) -> &[Arc<Fragment>] {
        &self.fragments
    }

    /// The memory it takes: what was requested of the allocator.
    pub fn memory_bytes(&self) -> usize {
        let list = size_of::<Arc<Fragment>>() * self.fragments.capacity();
        list + self.fragments.iter().map(|fragment| fragment.memory_bytes()).sum::<usize>()
    }

    /// The oldest and the newest sequence number; 0 and 0 without tombstones.
    pub fn sequence_bounds(&self) -> (Sequence, Sequence) {
        let oldest = self.fragments.iter().filter_map(|fragment| fragment.sequences.last()).min();
        let newest = self.fragments.iter().filter_map(|fragment| fragment.sequences.first()).max();
        (oldest.copied().unwrap_or(0), newest.copied().unwrap_or(0))
    }

    /// The number of fragments that begin at or before `key`.
    #[inline]
    fn begun(&self, key: &[u8]) -> usize {
        self.fragments.partition_point(|fragment| self.order.compare(&fragment.start, key).is_le())
    }

    /// The fragment that holds `key`.
    #[inline]
    pub fn fragment_of(&self, key: &[u8]) -> Option<&Fragment> {
        let before = self.fragments.get(..self.begun(key))?.last()?;
        self.order.is_before_end(key, &before.end).then_some(before)
    }

    /// The newest tombstone over `key` at or before `max_sequence`; 0 if there is none.
    #[inline]
    pub fn cover(&self, key: &[u8], max_sequence: Sequence) -> Sequence {
        // Every get asks every table on its way, and few have any.
        if self.is_empty() {
            return 0;
        }
        self.fragment_of(key).map_or(0, |fragment| fragment.newest(max_sequence))
    }

    /// As `cover`, with the keys around `key` that have the same answer.
    pub fn cover_span(&self, key: &[u8], max_sequence: Sequence) -> CoverSpan<'_> {
        let begun = self.begun(key);
        let before = begun.checked_sub(1).and_then(|at| self.fragments.get(at));
        match before {
            Some(fragment) if self.order.is_before_end(key, &fragment.end) => {
                CoverSpan { start: &fragment.start, end: &fragment.end, cover: fragment.newest(max_sequence) }
            }
            _ => CoverSpan {
                start: before.map_or(&[], |fragment| &fragment.end),
                end: self.fragments.get(begun).map_or(&[], |fragment| &fragment.start),
                cover: 0,
            },
        }
    }

    /// What lies from `start` on and before `end`.
    pub fn clip(&self, start: &[u8], end: &[u8]) -> RangeTombstones {
        let order = &self.order;
        let overlapping = |fragment: &&Arc<Fragment>| {
            order.is_before_end(start, &fragment.end) && order.is_before_end(&fragment.start, end)
        };
        let clipped = self.fragments.iter().filter(overlapping).map(|fragment| {
            let begins_inside = !order.less(&fragment.start, start);
            let ends_inside = order.compare_ends(&fragment.end, end).is_le();
            if begins_inside && ends_inside {
                return Arc::clone(fragment);
            }
            let start = if begins_inside { fragment.start.as_slice() } else { start };
            let end = if ends_inside { fragment.end.as_slice() } else { end };
            let (start, end) = (start.to_vec(), end.to_vec());
            Arc::new(Fragment { start, end, sequences: fragment.sequences.clone() })
        });
        RangeTombstones { fragments: clipped.collect(), order: order.clone() }
    }

    /// Of each fragment only the sequence numbers that `keep` leaves, which gets them newest first.
    pub fn reduced(&self, mut keep: impl FnMut(&[Sequence]) -> Vec<Sequence>) -> RangeTombstones {
        let mut fragments: Vec<Arc<Fragment>> = Vec::new();
        for fragment in &self.fragments {
            let sequences = keep(&fragment.sequences);
            append(&mut fragments, &fragment.start, &fragment.end, sequences);
        }
        RangeTombstones { fragments, order: self.order.clone() }
    }

    /// Appends the bytes of the set: `{ start:bytes end:bytes count:varint newest:varint { to the
    /// next older:varint }* }*`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for fragment in &self.fragments {
            put_bytes(out, &fragment.start);
            put_bytes(out, &fragment.end);
            put_varint(out, fragment.sequences.len() as u64);
            let mut newer = 0;
            for &sequence in &fragment.sequences {
                put_varint(out, if newer == 0 { sequence } else { newer - sequence });
                newer = sequence;
            }
        }
    }

    /// The set in `bytes`, if it is one: fragments in order, sequence numbers that descend. Of a
    /// comparator that breaks its laws fragments may be in no order.
    pub fn decode(bytes: &[u8], order: &KeyOrder) -> Result<RangeTombstones, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let mut fragments: Vec<Arc<Fragment>> = Vec::new();
        while !cursor.is_empty() {
            let start = cursor.bytes("the start of a range")?.to_vec();
            let end = cursor.bytes("the end of a range")?.to_vec();
            let follows = fragments.last().is_none_or(|last| !order.is_before_end(&start, &last.end));
            if !follows || !order.is_before_end(&start, &end) {
                if order.is_trusted() {
                    return Err(cursor.expected("ranges in order"));
                }
                order.note_fault();
            }
            let count = cursor.varint("a number of range tombstones")?;
            if count == 0 || count > (bytes.len() - cursor.offset()) as u64 {
                return Err(cursor.expected("a possible number of range tombstones"));
            }
            let mut sequences = Vec::with_capacity(count as usize);
            let mut newer: Option<Sequence> = None;
            for _ in 0..count {
                let number = cursor.varint("a sequence number")?;
                let sequence = newer.map_or(Some(number), |newer| newer.checked_sub(number)).unwrap_or(0);
                if sequence == 0 || sequence > MAX_SEQUENCE || Some(sequence) == newer {
                    return Err(cursor.expected("sequence numbers in order"));
                }
                sequences.push(sequence);
                newer = Some(sequence);
            }
            fragments.push(Arc::new(Fragment { start, end, sequences }));
        }
        Ok(RangeTombstones { fragments, order: order.clone() })
    }
}

/// Appends a fragment, or lengthens the last one if it has the same tombstones and ends where this
/// one starts.
fn append(fragments: &mut Vec<Arc<Fragment>>, start: &[u8], end: &[u8], sequences: Vec<Sequence>) {
    if sequences.is_empty() {
        return;
    }
    match fragments.last_mut() {
        Some(last) if last.end == start && !start.is_empty() && last.sequences == sequences => {
            Arc::make_mut(last).end = end.to_vec();
        }
        _ => fragments.push(Arc::new(Fragment { start: start.to_vec(), end: end.to_vec(), sequences })),
    }
}

/// Fragments that may overlap as ones that do not: passes all bounds in order, with the tombstones
/// that are open between two.
fn sweep<'a>(order: &KeyOrder, overlapping: impl Iterator<Item = &'a Arc<Fragment>>) -> RangeTombstones {
    let mut bounds: Vec<(&[u8], bool, &[Sequence])> = Vec::new();
    for fragment in overlapping {
        bounds.push((&fragment.start, true, &fragment.sequences));
        if !fragment.end.is_empty() {
            bounds.push((&fragment.end, false, &fragment.sequences));
        }
    }
    order.sort(&mut bounds, |&(key, ..)| key);
    let mut open: BTreeMap<Reverse<Sequence>, usize> = BTreeMap::new();
    let mut fragments = Vec::new();
    let mut last: &[u8] = &[];
    for (key, begins, sequences) in bounds {
        if order.less(last, key) {
            append(&mut fragments, last, key, open.keys().map(|sequence| sequence.0).collect());
            last = key;
        }
        for &sequence in sequences {
            // At one key an end may come after the start of the next piece of the same tombstone.
            let count = open.entry(Reverse(sequence)).or_default();
            *count = if begins { *count + 1 } else { count.saturating_sub(1) };
            if *count == 0 {
                open.remove(&Reverse(sequence));
            }
        }
    }
    append(&mut fragments, last, &[], open.keys().map(|sequence| sequence.0).collect());
    RangeTombstones { fragments, order: order.clone() }
}

#[cfg(test)]
#[path = "range_tombstone_tests.rs"]
mod tests;
