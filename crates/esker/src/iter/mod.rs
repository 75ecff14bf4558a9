//! The internal cursor: one interface over memtables, tables and merges of them.

use crate::base::key::{Entry, Sequence};
use crate::error::Result;

pub mod bounded;
pub mod merging;
pub mod skipping;

/// See [`Cursor::prepare`].
pub const LAST_STAGE: usize = 2;

/// The argument of [`Cursor::plain_run`].
#[derive(Clone, Copy, Debug)]
pub struct PlainSearch<'a> {
    /// The reader's sequence number: what is newer it does not see.
    pub sequence: Sequence,
    /// Entries before the current one are counted, and not those behind it.
    pub backward: bool,
    /// Only entries that come, in that direction, before all of this key count.
    pub until: Option<&'a [u8]>,
}

/// A position in a sequence of entries in internal key order ([`crate::base::key`]).
///
/// Every step returns a `Result`, so that a damaged block or a failed read surfaces at the step
/// that met it. After an error the cursor is not valid, and every later step returns an error too
/// until the next successful seek: it never falls through to other data.
///
/// A cursor starts invalid. `next` at the last entry and `prev` at the first make it invalid;
/// `next` or `prev` on an invalid cursor does nothing.
pub trait Cursor {
    /// Moves to the first entry, if any.
    fn seek_to_first(&mut self) -> Result<()>;
    /// Moves to the last entry, if any.
    fn seek_to_last(&mut self) -> Result<()>;
    /// Moves to the first entry at or after (`key`, `sequence`) in internal key order: with
    /// [`crate::base::key::MAX_SEQUENCE`] the newest version of `key` or the first entry of a later
    /// key.
    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()>;
    /// Moves to the entry behind this one.
    fn next(&mut self) -> Result<()>;
    /// Moves to the entry before this one.
    fn prev(&mut self) -> Result<()>;
    /// Whether the cursor is at an entry.
    fn valid(&self) -> bool;
    /// The entry at a valid cursor, borrowed until it moves. May panic on an invalid one.
    fn entry(&self) -> Entry<'_>;

    /// The key of that entry.
    #[inline]
    fn key(&self) -> &[u8] {
        self.entry().key
    }

    /// The value of that entry.
    #[inline]
    fn value(&self) -> &[u8] {
        self.entry().value
    }

    /// Prefetches for a seek of `key`: called with stage 0, then 1, up to [`LAST_STAGE`], and then
    /// the seek is the next move. Each stage prefetches what the next one reads, so that the cache
    /// misses of several cursors overlap.
    fn prepare(&mut self, _key: &[u8], _stage: usize) {}

    /// At a valid cursor: how many of the next entries are plain, at least. Such an entry is a put
    /// that the reader sees and that never expires; it is the newest version of its key in this
    /// cursor; and going backward the only one.
    fn plain_run(&mut self, _search: PlainSearch<'_>) -> usize {
        0
    }

    /// A step to an entry that [`Cursor::plain_run`] has counted: it cannot fail, but for what
    /// [`Cursor::intact`] then reports.
    #[inline]
    fn step_plain(&mut self, _backward: bool) {}

    /// Fails if the bytes borrowed from the current entry, or the answers of calls that return no
    /// `Result`, came from a mapping with an unavailable page. Every step but `step_plain` checks
    /// this itself, for its entry and for the one before.
    fn intact(&self) -> Result<()> {
        Ok(())
    }

    /// Whether it is certain that the entry before the one at a valid cursor, if any, has another
    /// key.
    #[inline]
    fn is_first_of_key(&self) -> bool {
        false
    }
}
