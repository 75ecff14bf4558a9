//! The internal cursor over one ordered run of a memtable.

use super::Memtable;
use super::order::Run;
use crate::base::key::{Entry, Sequence};
use crate::error::Result;
use crate::iter::Cursor;
use std::sync::Arc;

/// A position in a run. Entries that are dead (superseded before any live snapshot) are passed over.
pub struct RunCursor {
    memtable: Arc<Memtable>,
    run: Arc<Run>,
    /// Index in the run; the run's length when not valid.
    index: usize,
    /// A copy of the current value, if it has eight bytes: those can change.
    eight: [u8; 8],
}

impl RunCursor {
    pub fn new(memtable: Arc<Memtable>, run: Arc<Run>) -> RunCursor {
        let index = run.len();
        RunCursor { memtable, run, index, eight: [0; 8] }
    }

    /// Moves forward from `index` to the first entry that is alive.
    #[inline]
    fn settle_forward(&mut self, mut index: usize) {
        while index < self.run.len() && self.memtable.stored(self.run.offset(index)).is_dead() {
            index += 1;
        }
        self.arrive(index);
    }

    /// Moves back from the entry before `end` to the first one that is alive.
    #[inline]
    fn settle_backward(&mut self, mut end: usize) {
        while end > 0 && self.memtable.stored(self.run.offset(end - 1)).is_dead() {
            end -= 1;
        }
        self.arrive(if end == 0 { self.run.len() } else { end - 1 });
    }

    #[inline]
    fn arrive(&mut self, index: usize) {
        self.index = index;
        if index < self.run.len() {
            let entry = self.memtable.stored(self.run.offset(index));
            if entry.value_length() == 8 {
                self.eight = entry.eight().to_le_bytes();
            }
        }
    }
}

impl Cursor for RunCursor {
    fn seek_to_first(&mut self) -> Result<()> {
        self.settle_forward(0);
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.settle_backward(self.run.len());
        Ok(())
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        let index = self.run.lower_bound(&self.memtable, key, sequence);
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

    #[inline]
    fn entry(&self) -> Entry<'_> {
        let stored = self.memtable.stored(self.run.offset(self.index));
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
