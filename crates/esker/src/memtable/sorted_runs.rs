//! The sorted runs of a memtable, made on demand.
//!
//! Writes only append to the arena. The first reader that needs order sorts what has been appended
//! since the last one into a new run, unless it was appended in order. A run that is not much
//! shorter than the one before it is to be merged with it, so that there are never more than a few
//! runs and every entry is merged a logarithm of times. Short runs are merged by the reader itself;
//! it does so with a bounded number of entries, so that no reader waits long for the sorting that
//! many writes have left. The others are merged by the background thread (or by a flush, which
//! needs all in one run), not under the lock: readers use what is there meanwhile.

use super::arena::Arena;
use super::run::{Gathered, Run};
use std::sync::Arc;

/// A run stays apart from the one before it while it is shorter by more than this factor. Greater:
/// fewer runs to search, more merging.
const GROWTH: usize = 4;

/// Runs up to this long never stay apart from the next one: to copy one costs less than to search
/// it.
const SHORT_ENTRIES: usize = 256;

/// Up to so many entries are put into a short run one by one, without memory for another.
const FEW_ENTRIES: usize = 8;

/// A reader makes no run longer than this by merging.
pub const MOST_MERGED: usize = 16 << 10;

/// With more runs than this readers merge long ones as well: the background thread is behind.
const MOST_RUNS: usize = 24;

/// Memory for the sorting of so many entries is kept for the next reader.
const MOST_KEPT: usize = 4 << 10;

/// How far ahead of the walk over new entries memory is prefetched: it is probably in the cache of
/// the writer's processor.
const AHEAD_BYTES: usize = 1 << 10;

/// The runs made so far, mostly longest first.
#[derive(Default)]
pub struct Order {
    /// Arena bytes that the runs cover.
    covered: usize,
    runs: Vec<Arc<Run>>,
    /// Nothing, but for memory to sort in.
    fresh: Gathered,
    /// Entries sorted and merged in `extend`.
    #[cfg(test)]
    pub moved: usize,
}

impl Order {
    /// Covers the arena up to `end`, and returns the runs.
    pub fn extend(&mut self, arena: &Arena, start: usize, end: usize) -> &[Arc<Run>] {
        let mut at = self.covered.max(start);
        if at >= end {
            return &self.runs;
        }
        while at < end {
            arena.prefetch_entry(at + AHEAD_BYTES);
            let entry = arena.entry(at);
            if !entry.is_dead() {
                self.fresh.push(arena, entry.key(), (at / 8) as u32);
            }
            at = entry.end();
        }
        self.covered = at;
        let count = self.fresh.len();
        if count > 0 {
            self.fresh.sort(arena);
            let run = if self.insert_few(arena) { self.runs.pop() } else { None };
            let run = run.unwrap_or_else(|| Arc::new(self.fresh.to_run()));
            self.note_moved(count);
            self.fresh.clear(MOST_KEPT);
            self.add(arena, run);
        }
        &self.runs
    }

    /// Adds the fresh entries to the last run, if they are few, and it is short and used by no
    /// reader at the moment.
    fn insert_few(&mut self, arena: &Arena) -> bool {
        let last = self.runs.last_mut().filter(|last| last.len() <= SHORT_ENTRIES && self.fresh.len() <= FEW_ENTRIES);
        last.and_then(Arc::get_mut).is_some_and(|last| last.insert(arena, &self.fresh))
    }

    /// Adds a run, merged with those before it as far as that is little work.
    fn add(&mut self, arena: &Arena, mut run: Arc<Run>) {
        let joins = |last: &Run, run: &Run| {
            are_close(last, run) && last.len() + run.len() <= MOST_MERGED || last.len() <= SHORT_ENTRIES
        };
        while let Some(last) = self.runs.pop_if(|last| joins(last, &run)) {
            run = Arc::new(Run::merge(arena, &last, &run));
            self.note_moved(run.len());
        }
        self.runs.push(run);
        if self.runs.len() > MOST_RUNS
            && let Some(pair) = self.shortest_pair(|_, _| true)
        {
            let merged = Run::merge(arena, &pair[0], &pair[1]);
            self.note_moved(merged.len());
            self.replace(&pair, merged);
        }
    }

    /// For tests.
    fn note_moved(&mut self, _entries: usize) {
        #[cfg(test)]
        {
            self.moved += _entries;
        }
    }

    /// The neighbours that are together the shortest of those that `is_wanted`.
    fn shortest_pair(&self, is_wanted: impl Fn(&Run, &Run) -> bool) -> Option<[Arc<Run>; 2]> {
        let pairs = self.runs.iter().zip(self.runs.iter().skip(1)).filter(|(a, b)| is_wanted(a, b));
        pairs.min_by_key(|(a, b)| a.len() + b.len()).map(|(a, b)| [Arc::clone(a), Arc::clone(b)])
    }

    /// Two runs that should not stay apart, and that are too long for readers to merge.
    pub fn pair_to_merge(&self) -> Option<[Arc<Run>; 2]> {
        self.shortest_pair(|a, b| are_close(a, b) && a.len() + b.len() > MOST_MERGED)
    }

    /// Two runs, while there is more than one.
    pub fn any_pair(&self) -> Option<[Arc<Run>; 2]> {
        self.shortest_pair(|_, _| true)
    }

    /// Puts `merged` in the place of the two neighbours that it was made of, unless one of them is
    /// not there any more.
    pub fn replace(&mut self, pair: &[Arc<Run>; 2], merged: Run) {
        let is_there = |window: &[Arc<Run>]| window.iter().zip(pair).all(|(run, old)| Arc::ptr_eq(run, old));
        if let Some(at) = self.runs.windows(2).position(is_there) {
            self.runs.splice(at..at + 2, [Arc::new(merged)]);
        }
    }

    /// The first of the runs; an empty one if there is none.
    pub fn first(&self) -> Arc<Run> {
        self.runs.first().map_or_else(|| Arc::new(Run::empty()), Arc::clone)
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.runs.iter().map(|run| run.bytes()).sum::<usize>() + self.fresh.bytes()
    }
}

/// Whether two neighbours are so close in length that they should be one.
fn are_close(a: &Run, b: &Run) -> bool {
    a.len() <= b.len() * GROWTH
}

#[cfg(test)]
#[path = "sorted_runs_tests.rs"]
mod tests;
