//! The internal cursor: one interface over memtables, tables and merges of them.

use crate::base::key::{Entry, Sequence};
use crate::error::Result;

pub mod bounded;
pub mod merging;
pub mod skipping;

/// A position in a sequence of entries sorted by THE order ([`crate::base::key`]).
///
/// Every step returns a `Result`, so that a damaged block or a failed read surfaces at the step that met it. After an error the cursor is
/// not valid, and every later step returns an error too until the next successful seek: it never falls through to other data.
///
/// A cursor starts invalid. `next` at the last entry and `prev` at the first make it invalid; `next` or `prev` on an invalid cursor
/// does nothing.
pub trait Cursor {
    /// Moves to the first entry, if any.
    fn seek_to_first(&mut self) -> Result<()>;
    /// Moves to the last entry, if any.
    fn seek_to_last(&mut self) -> Result<()>;
    /// Moves to the first entry at or after (`key`, `sequence`) in THE order: with [`crate::base::key::MAX_SEQUENCE`] the newest version of `key` or
    /// the first entry of a later key.
    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()>;
    /// Moves to the entry behind this one.
    fn next(&mut self) -> Result<()>;
    /// Moves to the entry before this one.
    fn prev(&mut self) -> Result<()>;
    /// Whether the cursor is at an entry.
    fn valid(&self) -> bool;
    /// The entry at a valid cursor, borrowed until it moves. May panic on an invalid one.
    fn entry(&self) -> Entry<'_>;
}
