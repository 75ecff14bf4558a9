//! The internal cursor over one sorted run of a memtable.

use super::arena::START;
use super::run::Run;
use super::sorted_runs::Order;
use super::store::Memtable;
use crate::base::key::{Entry, Sequence};
use crate::error::Result;
use crate::iter::{Cursor, PlainSearch};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Memtable {
    /// Passes cursors that together cover every entry written before the call to `take`. Whether
    /// [`Memtable::merge_runs`] should follow, in the background.
    pub fn cursors(self: &Arc<Memtable>, mut take: impl FnMut(RunCursor)) -> bool {
        let end = self.end.load(Ordering::Acquire);
        let mut order = self.sorted.lock();
        let runs = order.extend(&self.arena, START, end);
        runs.iter().for_each(|run| take(RunCursor::new(Arc::clone(self), Arc::clone(run))));
        self.order_bytes.store(order.bytes(), Ordering::Relaxed);
        order.pair_to_merge().is_some()
    }

    /// One cursor over everything, for an immutable memtable.
    pub fn sealed_cursor(self: &Arc<Memtable>) -> RunCursor {
        let end = self.end.load(Ordering::Acquire);
        self.sorted.lock().extend(&self.arena, START, end);
        self.merge_while(Order::any_pair);
        let run = self.sorted.lock().first();
        RunCursor::new(Arc::clone(self), run)
    }

    /// Merges the runs that make scans slower than they need be. Scans may begin meanwhile, with
    /// what is there.
    pub fn merge_runs(&self) {
        self.merge_while(Order::pair_to_merge);
    }

    fn merge_while(&self, next: impl Fn(&Order) -> Option<[Arc<Run>; 2]>) {
        loop {
            let Some(pair) = next(&self.sorted.lock()) else { return };
            let merged = Run::merge(&self.arena, &pair[0], &pair[1]);
            let mut order = self.sorted.lock();
            order.replace(&pair, merged);
            self.order_bytes.store(order.bytes(), Ordering::Relaxed);
        }
    }
}

/// How many entries ahead of a scan memory is prefetched.
const PREFETCH_AHEAD: usize = 12;

/// At most so many entries are checked for being plain: their memory is prefetched then.
const MOST_PLAIN: usize = 16;

/// A position in a run. Entries that are dead (superseded before any live snapshot) are skipped.
pub struct RunCursor {
    memtable: Arc<Memtable>,
    run: Arc<Run>,
    /// Index in the run; the run's length when not valid.
    index: usize,
    /// A copy of the current value, if it has eight bytes: those can change.
    eight: [u8; 8],
    /// What [`Run::first_candidate`] says about the key of the seek to come, if that is prepared.
    candidate: Option<usize>,
}

impl RunCursor {
    fn new(memtable: Arc<Memtable>, run: Arc<Run>) -> RunCursor {
        let index = run.len();
        RunCursor { memtable, run, index, eight: [0; 8], candidate: None }
    }

    /// Moves forward from `index` to the first entry that is alive.
    #[inline]
    fn settle_forward(&mut self, mut index: usize) {
        // The entries lie in the order of writing: without this every step would wait for memory.
        if let Some(ahead) = self.run.get(index + PREFETCH_AHEAD) {
            self.memtable.arena.prefetch(ahead);
        }
        while index < self.run.len() && self.memtable.arena.stored(self.run.offset(index)).is_dead() {
            index += 1;
        }
        self.arrive(index);
    }

    /// Moves back from the entry before `end` to the first one that is alive.
    #[inline]
    fn settle_backward(&mut self, mut end: usize) {
        while end > 0 && self.memtable.arena.stored(self.run.offset(end - 1)).is_dead() {
            end -= 1;
        }
        self.arrive(if end == 0 { self.run.len() } else { end - 1 });
    }

    #[inline]
    fn arrive(&mut self, index: usize) {
        self.index = index;
        if index < self.run.len() {
            let entry = self.memtable.arena.stored(self.run.offset(index));
            if let Some(eight) = entry.eight() {
                self.eight = eight.get().to_le_bytes();
            }
        }
    }
}

impl Cursor for RunCursor {
    fn seek_to_first(&mut self) -> Result<()> {
        self.candidate = None;
        self.settle_forward(0);
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.candidate = None;
        self.settle_backward(self.run.len());
        Ok(())
    }

    fn prepare(&mut self, key: &[u8], stage: usize) {
        match stage {
            0 => self.run.prefetch_candidates(key),
            1 => {
                let candidate = self.run.first_candidate(key);
                self.run.prefetch_offset(candidate);
                self.candidate = Some(candidate);
            }
            _ => {
                if let Some(offset) = self.candidate.and_then(|candidate| self.run.get(candidate)) {
                    self.memtable.arena.prefetch(offset);
                }
            }
        }
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        let candidate = self.candidate.take().unwrap_or_else(|| self.run.first_candidate(key));
        let index = self.run.lower_bound(&self.memtable.arena, candidate, key, sequence);
        self.settle_forward(index);
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if self.valid() {
            self.settle_forward(self.index + 1);
        }
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if self.valid() {
            self.settle_backward(self.index);
        }
        Ok(())
    }

    #[inline]
    fn valid(&self) -> bool {
        self.index < self.run.len()
    }

    fn plain_run(&mut self, search: PlainSearch<'_>) -> usize {
        let candidates = search.until.map(|until| self.run.candidates(until));
        let mut index = self.index;
        let steps = if search.backward {
            let first = candidates.map_or(0, |candidates| candidates.end);
            index.saturating_sub(first)
        } else {
            let end = candidates.map_or(self.run.len(), |candidates| candidates.start);
            end.saturating_sub(index + 1)
        };
        for step in 0..steps.min(MOST_PLAIN) {
            let last = index;
            index = if search.backward { index - 1 } else { index + 1 };
            let ahead = if search.backward { index.checked_sub(MOST_PLAIN) } else { Some(index + MOST_PLAIN) };
            if let Some(ahead) = ahead.and_then(|ahead| self.run.get(ahead)) {
                self.memtable.arena.prefetch(ahead);
            }
            // The neighbours on both sides have other keys; going forward, the one behind may have
            // the same.
            let is_only = !self.run.may_share_key(last, index)
                && (!search.backward || index == 0 || !self.run.may_share_key(index - 1, index));
            if !is_only || !self.memtable.arena.stored(self.run.offset(index)).is_plain(search.sequence) {
                return step;
            }
        }
        steps.min(MOST_PLAIN)
    }

    #[inline]
    fn step_plain(&mut self, backward: bool) {
        let index = if backward { self.index - 1 } else { self.index + 1 };
        self.arrive(index);
    }

    #[inline]
    fn is_first_of_key(&self) -> bool {
        self.index == 0 || !self.run.may_share_key(self.index - 1, self.index)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.memtable.arena.stored(self.run.offset(self.index)).key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        let stored = self.memtable.arena.stored(self.run.offset(self.index));
        if stored.value_length() == 8 { &self.eight[..] } else { stored.long_value() }
    }

    #[inline]
    fn entry(&self) -> Entry<'_> {
        let stored = self.memtable.arena.stored(self.run.offset(self.index));
        let value = if stored.value_length() == 8 { &self.eight[..] } else { stored.long_value() };
        Entry {
            key: stored.key(),
            sequence: stored.sequence(),
            kind: stored.kind(),
            expiry_ms: stored.expiry_ms(),
            value,
        }
    }
}
