//! A sorted run of a memtable: how it is made, searched and merged.
//!
//! An entry is known by the eight bytes of its key behind a prefix that all keys of the run share,
//! and read only where those are equal to another's. Where all keys are as long as each other and
//! no longer than that, not even then: equal heads are equal keys, and the later of two entries of
//! a key lies behind the other in the arena.
//!
//! In an order that is not that of bytes there is no prefix, and the eight bytes are 0: every
//! comparison is one of keys.

use super::arena::Arena;
use crate::base::key::{Sequence, common_prefix, head};
use crate::base::prefetch::{LINE_BYTES, prefetch_first};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::ops::Range;

/// A run that is longer than another by more than this factor is merged with it range by range, not
/// entry by entry.
const MUCH_LONGER: usize = 16;

/// One head in so many is also in the sample, which a search looks through first: what is left is a
/// few cache lines.
const SAMPLED: usize = 32;

/// Sorted entries of a memtable: their offsets, and the eight bytes after a prefix that their keys
/// share.
pub struct Run {
    prefix: Vec<u8>,
    heads: Vec<u64>,
    offsets: Vec<u32>,
    /// The last of every [`SAMPLED`] heads.
    sample: Vec<u64>,
    /// How long all keys are, if all are as long and the bytes of a head are in their order.
    key_length: Option<usize>,
    /// The heads say nothing about the order.
    headless: bool,
}

impl Run {
    fn new(prefix: Vec<u8>, heads: Vec<u64>, offsets: Vec<u32>, key_length: Option<usize>, headless: bool) -> Run {
        let sample = heads.chunks_exact(SAMPLED).map(|chunk| chunk[SAMPLED - 1]).collect();
        Run { prefix, heads, offsets, sample, key_length, headless }
    }

    /// No entries.
    pub fn empty() -> Run {
        Run::new(Vec::new(), Vec::new(), Vec::new(), None, false)
    }

    /// The heads behind the first `shared` bytes, which are no more than the prefix.
    fn heads_behind(&self, shared: usize) -> Cow<'_, [u64]> {
        match &self.prefix[shared..] {
            [] => Cow::Borrowed(&self.heads),
            cut => self.heads.iter().map(|&head| lengthened(cut, head)).collect(),
        }
    }

    /// What both runs hold.
    pub fn merge(arena: &Arena, a: &Run, b: &Run) -> Run {
        let shared = common_prefix(&a.prefix, &b.prefix);
        let key_length = a.key_length.filter(|_| a.key_length == b.key_length);
        let ties = Ties { arena, by_offset: reach_the_end(shared, key_length) };
        let (long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
        let (long_heads, short_heads) = (long.heads_behind(shared), short.heads_behind(shared));
        let (long, short) = ((&*long_heads, &*long.offsets), (&*short_heads, &*short.offsets));
        let (heads, offsets) = if long.0.len() / MUCH_LONGER > short.0.len() {
            merge_sparse(ties, long, short)
        } else {
            merge_entries(ties, long, short)
        };
        Run::new(a.prefix[..shared].to_vec(), heads, offsets, key_length, a.headless || b.headless)
    }

    /// Adds a few entries, for a run without other users. False, with nothing done, if they have
    /// another prefix.
    pub fn insert(&mut self, arena: &Arena, few: &Gathered) -> bool {
        if few.prefix.as_ref() != Some(&self.prefix) {
            return false;
        }
        self.key_length = self.key_length.filter(|_| self.key_length == few.key_length);
        let ties = Ties { arena, by_offset: reach_the_end(self.prefix.len(), self.key_length) };
        for &(head, offset) in &few.pairs {
            let at = place(ties, (&self.heads, &self.offsets), head, offset);
            self.heads.insert(at, head);
            self.offsets.insert(at, offset);
        }
        self.sample.clear();
        self.sample.extend(self.heads.chunks_exact(SAMPLED).map(|chunk| chunk[SAMPLED - 1]));
        true
    }

    #[cfg(test)]
    pub fn head_prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.prefix.capacity() + 8 * (self.heads.capacity() + self.sample.capacity()) + 4 * self.offsets.capacity()
    }

    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<u32> {
        self.offsets.get(index).copied()
    }

    #[inline]
    pub fn offset(&self, index: usize) -> u32 {
        self.offsets[index]
    }

    /// Whether the entries at two neighbouring indexes may be of the same key; only their heads are
    /// read.
    #[inline]
    pub fn may_share_key(&self, a: usize, b: usize) -> bool {
        self.heads[a] == self.heads[b]
    }

    /// The head of `key`, which begins with the prefix.
    #[inline]
    fn head(&self, key: &[u8]) -> u64 {
        if self.headless { 0 } else { head(key, self.prefix.len()) }
    }

    /// The entries that may have this key, by their prefix and head alone.
    pub fn candidates(&self, key: &[u8]) -> Range<usize> {
        let start = self.first_candidate(key);
        match self.heads.get(start) {
            Some(&first) if key.starts_with(&self.prefix) && first == self.head(key) => {
                start..start + self.heads[start..].partition_point(|&other| other == first)
            }
            _ => start..start,
        }
    }

    /// The heads that [`Run::first_candidate`] is found among, or right behind; or itself as an
    /// error, if the prefix already decides.
    #[inline]
    fn chunk(&self, key: &[u8]) -> Result<Range<usize>, usize> {
        let skip = self.prefix.len();
        let start = &key[..key.len().min(skip)];
        match start.cmp(&self.prefix[..start.len()]) {
            Ordering::Less => return Err(0),
            Ordering::Greater => return Err(self.len()),
            Ordering::Equal if start.len() < skip => return Err(0),
            Ordering::Equal => {}
        }
        let chunk = partition(&self.sample, self.head(key)) * SAMPLED;
        Ok(chunk..self.heads.len().min(chunk + SAMPLED))
    }

    /// Prefetches what [`Run::first_candidate`] reads.
    pub fn prefetch_candidates(&self, key: &[u8]) {
        if let Ok(chunk) = self.chunk(key) {
            self.heads[chunk].chunks(LINE_BYTES / size_of::<u64>()).for_each(prefetch_first);
        }
    }

    /// Starts loading the offset at `index`.
    #[inline]
    pub fn prefetch_offset(&self, index: usize) {
        prefetch_first(self.offsets.get(index..).unwrap_or_default());
    }

    /// How many of the first entries are before `key` by their prefix and head alone: of those that
    /// follow only such with an equal head are too.
    pub fn first_candidate(&self, key: &[u8]) -> usize {
        match self.chunk(key) {
            Ok(chunk) => chunk.start + partition(&self.heads[chunk], self.head(key)),
            Err(known) => known,
        }
    }

    /// The first index whose entry is at or after (`key`, `sequence`); `candidate` is what
    /// [`Run::first_candidate`] says about `key`.
    pub fn lower_bound(&self, arena: &Arena, candidate: usize, key: &[u8], sequence: Sequence) -> usize {
        let before = |offset: u32| {
            let entry = arena.stored(offset);
            arena.order().compare_versions((entry.key(), entry.sequence()), (key, sequence)).is_lt()
        };
        match self.offsets.get(candidate) {
            Some(&offset) if before(offset) => {}
            _ => return candidate,
        }
        // Ties are few where keys differ soon behind their prefix.
        let head = self.heads[candidate];
        let ties = self.heads[candidate..].partition_point(|&other| other == head);
        candidate + self.offsets[candidate..candidate + ties].partition_point(|&offset| before(offset))
    }
}

/// How many of the first `heads`, which ascend, are below `wanted`. Without branches that depend on
/// the data.
#[inline]
fn partition(heads: &[u64], wanted: u64) -> usize {
    let (mut low, mut length) = (0, heads.len());
    while length > 1 {
        let half = length / 2;
        low = select_unpredictable(heads[low + half - 1] < wanted, low + half, low);
        length -= half;
    }
    low + usize::from(length == 1 && heads[low] < wanted)
}

/// The head of a key behind a prefix that is shorter by `cut` than the one that `head` is behind.
#[inline]
fn lengthened(cut: &[u8], head: u64) -> u64 {
    match cut.len() {
        0 => head,
        length @ 1..=7 => self::head(cut, 0) | head >> (8 * length),
        _ => self::head(cut, 0),
    }
}

/// Whether the heads of keys of this length, behind a prefix, are all the rest of the keys.
fn reach_the_end(prefix: usize, key_length: Option<usize>) -> bool {
    key_length.is_some_and(|length| length <= prefix + size_of::<u64>())
}

/// The order of entries with equal heads.
#[derive(Clone, Copy)]
struct Ties<'a> {
    arena: &'a Arena,
    /// Their keys are equal.
    by_offset: bool,
}

impl Ties<'_> {
    #[inline]
    fn order(self, a: u32, b: u32) -> Ordering {
        if self.by_offset { b.cmp(&a) } else { compare_in_full(self.arena, a, b) }
    }
}

#[inline(never)]
fn compare_in_full(arena: &Arena, a: u32, b: u32) -> Ordering {
    let (a, b) = (arena.stored(a), arena.stored(b));
    arena.order().compare_versions((a.key(), a.sequence()), (b.key(), b.sequence()))
}

/// StaticBTree behind the same prefix, ascending, and the offsets that go with them.
type Sorted<'a> = (&'a [u64], &'a [u32]);

/// The merge of both, with no branch that depends on the data but for equal heads.
fn merge_entries(ties: Ties<'_>, a: Sorted<'_>, b: Sorted<'_>) -> (Vec<u64>, Vec<u32>) {
    let count = a.0.len() + b.0.len();
    let (mut heads, mut offsets) = (vec![0; count], vec![0; count]);
    let (mut i, mut j) = (0, 0);
    while i < a.0.len() && j < b.0.len() {
        let (x, y) = (a.0[i], b.0[j]);
        let from_a = if x == y { ties.order(a.1[i], b.1[j]).is_lt() } else { x < y };
        heads[i + j] = x.min(y);
        offsets[i + j] = select_unpredictable(from_a, a.1[i], b.1[j]);
        i += usize::from(from_a);
        j += usize::from(!from_a);
    }
    let (rest, from) = if i < a.0.len() { (a, i) } else { (b, j) };
    heads[i + j..].copy_from_slice(&rest.0[from..]);
    offsets[i + j..].copy_from_slice(&rest.1[from..]);
    (heads, offsets)
}

/// How many of the entries are before this one.
#[inline]
fn place(ties: Ties<'_>, (heads, offsets): Sorted<'_>, head: u64, offset: u32) -> usize {
    let at = partition(heads, head);
    if heads.get(at) != Some(&head) {
        return at;
    }
    let equal = heads[at..].partition_point(|&other| other == head);
    at + offsets[at..at + equal].partition_point(|&other| ties.order(other, offset).is_lt())
}

/// As `merge_entries`, for a `short` that is spread thinly among a `long`: what lies between is
/// copied in one go.
fn merge_sparse(ties: Ties<'_>, long: Sorted<'_>, short: Sorted<'_>) -> (Vec<u64>, Vec<u32>) {
    let count = long.0.len() + short.0.len();
    let (mut heads, mut offsets) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut done = 0;
    for (&head, &offset) in short.0.iter().zip(short.1) {
        let end = done + place(ties, (&long.0[done..], &long.1[done..]), head, offset);
        heads.extend_from_slice(&long.0[done..end]);
        offsets.extend_from_slice(&long.1[done..end]);
        heads.push(head);
        offsets.push(offset);
        done = end;
    }
    heads.extend_from_slice(&long.0[done..]);
    offsets.extend_from_slice(&long.1[done..]);
    (heads, offsets)
}

/// Entries on their way into a run. Used again and again: it keeps its memory, and what all keys
/// ever taken begin with.
#[derive(Default)]
pub struct Gathered {
    /// What the keys so far begin with. It gets shorter, which changes the heads so far without
    /// reading the keys. Together, heads are changed less often than there are bytes in the arena:
    /// as many keys as share a prefix have as many bytes as that, each.
    prefix: Option<Vec<u8>>,
    pairs: Vec<(u64, u32)>,
    /// Some entry came before one that is less.
    unsorted: bool,
    /// As in [`Run`]; none as well before the first.
    key_length: Option<usize>,
    headless: bool,
}

impl Gathered {
    /// Forgets the entries, and keeps memory for no more than `kept` others.
    pub fn clear(&mut self, kept: usize) {
        self.pairs.clear();
        self.pairs.shrink_to(kept);
        self.unsorted = false;
    }

    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Bytes of memory kept.
    pub fn bytes(&self) -> usize {
        self.pairs.capacity() * size_of::<(u64, u32)>()
    }

    /// Takes the entry at `offset`, which lies behind all before.
    #[inline]
    pub fn push(&mut self, arena: &Arena, key: &[u8], offset: u32) {
        let order = arena.order();
        self.headless = !order.is_bytewise();
        let prefix = self.prefix.get_or_insert_with(|| if order.is_bytewise() { key.to_vec() } else { Vec::new() });
        if !key.starts_with(prefix) {
            let cut = prefix.split_off(common_prefix(prefix, key));
            self.pairs.iter_mut().for_each(|pair| pair.0 = lengthened(&cut, pair.0));
        }
        let pair = (order.head(key, prefix.len()), offset);
        match self.pairs.last() {
            None => self.key_length = (!self.headless).then_some(key.len()),
            Some(&last) => {
                self.key_length = self.key_length.filter(|&length| length == key.len());
                self.unsorted = self.unsorted
                    || match last.0.cmp(&pair.0) {
                        Ordering::Equal => !compare_in_full(arena, last.1, offset).is_lt(),
                        order => order.is_gt(),
                    };
            }
        }
        self.pairs.push(pair);
    }

    /// Puts the entries in order.
    pub fn sort(&mut self, arena: &Arena) {
        if !self.unsorted {
            return;
        }
        let prefix = self.prefix.as_ref().map_or(0, Vec::len);
        let ties = Ties { arena, by_offset: reach_the_end(prefix, self.key_length) };
        // By the heads alone, which the sort does without branches, and then what they leave open.
        self.pairs.sort_unstable_by_key(|pair| pair.0);
        for equal in self.pairs.chunk_by_mut(|a, b| a.0 == b.0).filter(|equal| equal.len() > 1) {
            if arena.order().is_trusted() {
                equal.sort_unstable_by(|a, b| ties.order(a.1, b.1));
            } else {
                arena.order().sort_by(equal, |a, b| ties.order(a.1, b.1));
            }
        }
        self.unsorted = false;
    }

    /// The run of all, which are in order.
    pub fn to_run(&self) -> Run {
        let (heads, offsets) = self.pairs.iter().copied().unzip();
        Run::new(self.prefix.clone().unwrap_or_default(), heads, offsets, self.key_length, self.headless)
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
