//! Passing over what range tombstones hide.

use crate::base::key::{Entry, MAX_SEQUENCE, Sequence};
use crate::base::key_order::KeyOrder;
use crate::base::range_tombstone::RangeTombstones;
use crate::error::Result;
use crate::iter::Cursor;
use std::sync::Arc;

/// What the range tombstones of several sources hide from one reader. Remembers the last answer and
/// the keys around it that have the same one, so that a scan searches once for each range of keys
/// and not for each entry.
#[derive(Debug)]
pub struct Covers {
    sets: Vec<Arc<RangeTombstones>>,
    order: KeyOrder,
    sequence: Sequence,
    /// The newest tombstone over the keys from `start` on and before `end`, which has no meaning
    /// before the first answer.
    cover: Sequence,
    start: Vec<u8>,
    end: Vec<u8>,
    known: bool,
}

impl Covers {
    /// For a reader at `sequence`.
    pub fn new(sets: Vec<Arc<RangeTombstones>>, sequence: Sequence) -> Covers {
        let order = sets.first().map_or(KeyOrder::Bytewise, |set| set.order().clone());
        Covers { sets, order, sequence, cover: 0, start: Vec::new(), end: Vec::new(), known: false }
    }

    /// Whether there are no range tombstones at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Whether the reader cannot see `entry`, which is not too new for it.
    #[inline]
    pub fn hides(&mut self, entry: &Entry<'_>) -> bool {
        !self.sets.is_empty() && entry.sequence < self.cover(entry.key)
    }

    /// The newest tombstone over `key` that the reader sees; 0 if there is none.
    #[inline]
    fn cover(&mut self, key: &[u8]) -> Sequence {
        if !self.known || self.order.less(key, &self.start) || !self.order.is_before_end(key, &self.end) {
            self.search(key);
        }
        self.cover
    }

    fn search(&mut self, key: &[u8]) {
        let mut cover = 0;
        let (mut start, mut end): (&[u8], &[u8]) = (&[], &[]);
        for set in &self.sets {
            let span = set.cover_span(key, self.sequence);
            cover = cover.max(span.cover);
            if self.order.less(start, span.start) {
                start = span.start;
            }
            if self.order.compare_ends(span.end, end).is_lt() {
                end = span.end;
            }
        }
        self.cover = cover;
        self.start.clear();
        self.start.extend_from_slice(start);
        self.end.clear();
        self.end.extend_from_slice(end);
        self.known = true;
    }
}

/// A cursor over one source without the keys that range tombstones of newer sources cover: whatever
/// the source has of them is older, so it seeks past them instead of stepping. In an order that is
/// not to be trusted a seek may go back, and the cursor never come to an end: there it steps.
#[derive(Debug)]
pub struct SkippingCursor<C> {
    inner: C,
    newer: Covers,
    /// The rest of the source, in the direction of the last step, is covered.
    ended: bool,
}

impl<C: Cursor> SkippingCursor<C> {
    pub fn new(inner: C, newer: Covers) -> SkippingCursor<C> {
        SkippingCursor { inner, newer, ended: false }
    }

    #[inline]
    fn settle_forward(&mut self) -> Result<()> {
        while self.inner.valid() && self.newer.cover(self.inner.entry().key) > 0 {
            if self.newer.end.is_empty() {
                self.ended = true;
                return Ok(());
            }
            if self.newer.order.is_trusted() {
                self.inner.seek(&self.newer.end, MAX_SEQUENCE)?;
            } else {
                self.inner.next()?;
            }
        }
        Ok(())
    }

    #[inline]
    fn settle_backward(&mut self) -> Result<()> {
        while self.inner.valid() && self.newer.cover(self.inner.entry().key) > 0 {
            if self.newer.order.is_trusted() {
                // It is before the entry at hand, or at it, so that there is one.
                self.inner.seek(&self.newer.start, MAX_SEQUENCE)?;
            }
            self.inner.prev()?;
        }
        Ok(())
    }
}

impl<C: Cursor> Cursor for SkippingCursor<C> {
    fn seek_to_first(&mut self) -> Result<()> {
        self.ended = false;
        self.inner.seek_to_first()?;
        self.settle_forward()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.ended = false;
        self.inner.seek_to_last()?;
        self.settle_backward()
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        self.ended = false;
        self.inner.seek(key, sequence)?;
        self.settle_forward()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        self.inner.next()?;
        self.settle_forward()
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        self.inner.prev()?;
        self.settle_backward()
    }

    #[inline]
    fn valid(&self) -> bool {
        !self.ended && self.inner.valid()
    }

    #[inline]
    fn entry(&self) -> Entry<'_> {
        self.inner.entry()
    }

    fn intact(&self) -> Result<()> {
        self.inner.intact()
    }
}
