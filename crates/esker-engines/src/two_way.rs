//! Iteration over an engine whose ranges can be walked from both ends, but not turned round in the
//! middle.

use super::{Iteration, Result};
use std::ops::Bound;

/// Where a range begins and ends.
pub(crate) type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// What ranges are taken from: a table or a snapshot.
pub(crate) trait Ranges {
    /// A key or a value, pinned or counted, and not copied.
    type Bytes;
    /// What the engine's ranges yield.
    type Item;
    /// A range of it.
    type Range: DoubleEndedIterator<Item = Self::Item>;

    /// The entries within bounds.
    fn range(&self, bounds: Bounds<'_>) -> Result<Self::Range>;
    /// A key and its value, with the error as adapters have it.
    fn entry(item: Self::Item) -> Result<(Self::Bytes, Self::Bytes)>;
    /// What the caller reads.
    fn bytes(of: &Self::Bytes) -> &[u8];
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// The entry at the position, a range with the direction it is walked in, and what that is a range
/// of. They are dropped in this order: an entry of redb pins its page but not the read transaction,
/// and a page that is still pinned when its last transaction is over may be freed by the writer.
pub(crate) struct TwoWay<R: Ranges> {
    current: Option<(R::Bytes, R::Bytes)>,
    range: Option<(R::Range, Direction)>,
    of: R,
}

impl<R: Ranges> TwoWay<R> {
    /// Not positioned yet.
    pub fn new(of: R) -> TwoWay<R> {
        TwoWay { current: None, range: None, of }
    }

    fn start(&mut self, bounds: Bounds<'_>, direction: Direction) -> Result<bool> {
        self.range = Some((self.of.range(bounds)?, direction));
        self.step()
    }

    fn step(&mut self) -> Result<bool> {
        let entry = match &mut self.range {
            None => None,
            Some((range, Direction::Forward)) => range.next(),
            Some((range, Direction::Backward)) => range.next_back(),
        };
        self.current = entry.map(R::entry).transpose()?;
        if self.current.is_none() {
            self.range = None;
        }
        Ok(self.current.is_some())
    }

    fn walk(&mut self, wanted: Direction) -> Result<bool> {
        match &self.range {
            Some((_, direction)) if *direction != wanted => {
                let here = self.key().to_vec();
                let bounds = match wanted {
                    Direction::Forward => (Bound::Excluded(here.as_slice()), Bound::Unbounded),
                    Direction::Backward => (Bound::Unbounded, Bound::Excluded(here.as_slice())),
                };
                self.start(bounds, wanted)
            }
            _ => self.step(),
        }
    }
}

impl<R: Ranges> Iteration for TwoWay<R> {
    fn seek_to_first(&mut self) -> Result<bool> {
        self.start((Bound::Unbounded, Bound::Unbounded), Direction::Forward)
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.start((Bound::Unbounded, Bound::Unbounded), Direction::Backward)
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.start((Bound::Included(key), Bound::Unbounded), Direction::Forward)
    }

    fn next(&mut self) -> Result<bool> {
        self.walk(Direction::Forward)
    }

    fn prev(&mut self) -> Result<bool> {
        self.walk(Direction::Backward)
    }

    fn key(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |(key, _)| R::bytes(key))
    }

    fn value(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |(_, value)| R::bytes(value))
    }
}
