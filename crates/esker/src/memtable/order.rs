//! The order of a memtable, made when somebody asks for it.
//!
//! Writes only append to the arena. The first reader that needs order sorts what has been appended since the last one into a new run, unless it was
//! appended in order. A run that is no longer much shorter than the one before it is merged with it, so that there are never more than a few runs and every
//! entry is merged a logarithm of times.

use super::arena::Arena;
use crate::base::key::{Sequence, common_prefix, compare, head};
use crate::base::prefetch::{LINE_BYTES, prefetch_first};
use std::cmp::Ordering;
use std::hint::select_unpredictable;
use std::ops::Range;
use std::sync::Arc;

/// A run stays apart from the one before it while it is shorter by more than this factor. Greater: fewer runs to search, more merging.
const GROWTH: usize = 8;

/// One head in so many is also in the sample, which a search looks through first: what is left is a few cache lines.
const SAMPLED: usize = 32;

/// Sorted entries of a memtable: their offsets, and the eight bytes after a prefix that their keys share.
pub struct Run {
    prefix: Vec<u8>,
    heads: Vec<u64>,
    offsets: Vec<u32>,
    /// The last of every [`SAMPLED`] heads.
    sample: Vec<u64>,
}

impl Run {
    fn new(prefix: Vec<u8>, heads: Vec<u64>, offsets: Vec<u32>) -> Run {
        let sample = heads.chunks_exact(SAMPLED).map(|chunk| chunk[SAMPLED - 1]).collect();
        Run { prefix, heads, offsets, sample }
    }

    /// What both runs hold.
    fn merge(arena: &Arena, a: &Run, b: &Run) -> Run {
        let shared = common_prefix(&a.prefix, &b.prefix);
        let (in_a, in_b) = (&a.prefix[shared..], &b.prefix[shared..]);
        let count = a.len() + b.len();
        let (mut heads, mut offsets) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut left = a.heads.iter().map(|&head| lengthened(in_a, head)).zip(a.offsets.iter().copied()).peekable();
        let mut right = b.heads.iter().map(|&head| lengthened(in_b, head)).zip(b.offsets.iter().copied()).peekable();
        loop {
            let from_left = match (left.peek(), right.peek()) {
                (Some(&x), Some(&y)) => is_before(arena, x, y),
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => break,
            };
            if let Some((head, offset)) = if from_left { left.next() } else { right.next() } {
                heads.push(head);
                offsets.push(offset);
            }
        }
        Run::new(a.prefix[..shared].to_vec(), heads, offsets)
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

    /// Whether the entries at two neighbouring indexes may be of the same key; nothing but their heads is looked at.
    #[inline]
    pub fn may_share_key(&self, a: usize, b: usize) -> bool {
        self.heads[a] == self.heads[b]
    }

    /// The entries that may have this key, by their prefix and head alone.
    pub fn candidates(&self, key: &[u8]) -> Range<usize> {
        let start = self.first_candidate(key);
        match self.heads.get(start) {
            Some(&first) if key.starts_with(&self.prefix) && first == head(key, self.prefix.len()) => {
                start..start + self.heads[start..].partition_point(|&other| other == first)
            }
            _ => start..start,
        }
    }

    /// The heads that [`Run::first_candidate`] is found among, or right behind; or itself as an error, if the prefix already decides.
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
        let chunk = partition(&self.sample, head(key, skip)) * SAMPLED;
        Ok(chunk..self.heads.len().min(chunk + SAMPLED))
    }

    /// Starts loading what [`Run::first_candidate`] looks at.
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

    /// How many of the first entries are before `key` by their prefix and head alone: of those that follow only such with an equal head are too.
    pub fn first_candidate(&self, key: &[u8]) -> usize {
        match self.chunk(key) {
            Ok(chunk) => chunk.start + partition(&self.heads[chunk], head(key, self.prefix.len())),
            Err(known) => known,
        }
    }

    /// The first index whose entry is at or after (`key`, `sequence`); `candidate` is what [`Run::first_candidate`] says about `key`.
    pub fn lower_bound(&self, arena: &Arena, candidate: usize, key: &[u8], sequence: Sequence) -> usize {
        let before = |offset: u32| {
            let entry = arena.stored(offset);
            compare(entry.key(), entry.sequence(), key, sequence).is_lt()
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

/// How many of the first `heads`, which ascend, are below `wanted`. Without branches that depend on the data.
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

/// Whether `a` is before `b`, each a head, behind the same prefix, and an offset.
#[inline]
fn is_before(arena: &Arena, a: (u64, u32), b: (u64, u32)) -> bool {
    match a.0.cmp(&b.0) {
        Ordering::Equal => compare_in_full(arena, a.1, b.1).is_lt(),
        order => order.is_lt(),
    }
}

#[inline(never)]
fn compare_in_full(arena: &Arena, a: u32, b: u32) -> Ordering {
    let (a, b) = (arena.stored(a), arena.stored(b));
    compare(a.key(), a.sequence(), b.key(), b.sequence())
}

/// Entries on their way into a run.
struct Gathered {
    /// What the keys so far begin with. It gets shorter, which changes the heads so far without a look at the keys. Together, heads are
    /// changed less often than there are bytes in the arena: as many keys as share a prefix have as many bytes as that, each.
    prefix: Option<Vec<u8>>,
    pairs: Vec<(u64, u32)>,
    /// The entries came in order.
    ascending: bool,
}

impl Gathered {
    #[inline]
    fn push(&mut self, arena: &Arena, key: &[u8], offset: u32) {
        let prefix = self.prefix.get_or_insert_with(|| key.to_vec());
        if !key.starts_with(prefix) {
            let cut = prefix.split_off(common_prefix(prefix, key));
            self.pairs.iter_mut().for_each(|pair| pair.0 = lengthened(&cut, pair.0));
        }
        let pair = (head(key, prefix.len()), offset);
        self.ascending = self.ascending && self.pairs.last().is_none_or(|&last| is_before(arena, last, pair));
        self.pairs.push(pair);
    }

    fn into_run(mut self, arena: &Arena) -> Run {
        if !self.ascending {
            // By the heads alone, which the sort does without branches, and then what they leave open.
            self.pairs.sort_unstable_by_key(|pair| pair.0);
            for ties in self.pairs.chunk_by_mut(|a, b| a.0 == b.0).filter(|ties| ties.len() > 1) {
                ties.sort_unstable_by(|a, b| compare_in_full(arena, a.1, b.1));
            }
        }
        let (heads, offsets) = self.pairs.into_iter().unzip();
        Run::new(self.prefix.unwrap_or_default(), heads, offsets)
    }
}

/// The runs made so far, longest first.
#[derive(Default)]
pub struct Order {
    /// Arena bytes that the runs cover.
    covered: usize,
    runs: Vec<Arc<Run>>,
}

impl Order {
    /// Covers the arena up to `end`, and returns the runs.
    pub fn extend(&mut self, arena: &Arena, start: usize, end: usize) -> &[Arc<Run>] {
        let mut at = self.covered.max(start);
        if at >= end {
            return &self.runs;
        }
        // With the prefix of the run before, which it is likely to be merged with.
        let prefix = self.runs.last().map(|run| run.prefix.clone());
        let mut fresh = Gathered { prefix, pairs: Vec::new(), ascending: true };
        while at < end {
            let entry = arena.entry(at);
            if !entry.is_dead() {
                fresh.push(arena, entry.key(), (at / 8) as u32);
            }
            at = entry.end();
        }
        self.covered = at;
        if !fresh.pairs.is_empty() {
            let mut run = fresh.into_run(arena);
            while let Some(last) = self.runs.pop_if(|last| run.len() * GROWTH >= last.len()) {
                run = Run::merge(arena, &last, &run);
            }
            self.runs.push(Arc::new(run));
        }
        &self.runs
    }

    /// Bytes of the runs.
    pub fn bytes(&self) -> usize {
        let run_bytes = |run: &Arc<Run>| {
            run.prefix.capacity() + 8 * (run.heads.capacity() + run.sample.capacity()) + 4 * run.offsets.capacity()
        };
        self.runs.iter().map(run_bytes).sum()
    }

    /// As `extend`, with everything in one run.
    pub fn seal(&mut self, arena: &Arena, start: usize, end: usize) -> Arc<Run> {
        self.extend(arena, start, end);
        let mut sealed = self.runs.pop().unwrap_or_else(|| Arc::new(Run::new(Vec::new(), Vec::new(), Vec::new())));
        while let Some(last) = self.runs.pop() {
            sealed = Arc::new(Run::merge(arena, &last, &sealed));
        }
        self.runs.push(Arc::clone(&sealed));
        sealed
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
