//! A scan inside a transaction: the snapshot's keys and the transaction's own writes as one
//! sequence, from both ends.
//!
//! Each end has a cursor over the snapshot, at the next key that it has not handed out, or knows
//! that there is none. The own writes need no position: what comes next is looked up between the
//! keys that the two ends have passed, which is also what the transaction remembers as read.

use crate::base::slice::Slice;
use crate::db::read::scan::{ScanCursor, Source};
use crate::db::transaction::range_set::RangeSet;
use crate::db::transaction::read_set::{Bounds, ScannedRange};
use crate::db::transaction::write_set::{Pending, ScanParts, WriteSet};
use crate::error::{Error, Result};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Where an end's cursor over the snapshot is.
enum Next {
    /// At a key that was passed: it has to move.
    Passed,
    /// At the next key, or behind the last.
    Here,
    /// The operands of the next key, `ScanCursor::reached`, could not be combined.
    Failed(Error),
}

/// One end of a scan.
struct End {
    cursor: ScanCursor,
    next: Next,
}

impl End {
    /// The snapshot's next key, if it is not behind what the other end has passed.
    fn key<'a>(&'a self, rest: &Bounds<'_>) -> Option<&'a [u8]> {
        let order = self.cursor.order();
        self.cursor.reached().filter(|key| order.is_above(rest.0, key) && order.is_below(rest.1, key))
    }
}

/// The own writes between the bounds of a scan.
enum OwnWrites<'t> {
    /// In the order of the keyspace.
    Bytewise(&'t WriteSet),
    /// Put into the order of the keyspace; those that no end has passed. A comparator that breaks
    /// its laws may bring one late, but none twice.
    Sorted(VecDeque<(&'t Vec<u8>, &'t Pending)>),
}

impl<'t> OwnWrites<'t> {
    fn new(writes: &'t WriteSet, passage: &ScannedRange) -> OwnWrites<'t> {
        let order = passage.order();
        if order.is_bytewise() {
            return OwnWrites::Bytewise(writes);
        }
        let (lower, upper) = passage.bounds();
        let (lower, upper) = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        let is_inside = |(key, _): &(&Vec<u8>, &Pending)| order.is_above(lower, key) && order.is_below(upper, key);
        let mut sorted: Vec<_> = writes.iter().filter(is_inside).collect();
        order.sort(&mut sorted, |(key, _)| key);
        OwnWrites::Sorted(sorted.into())
    }

    /// The next one from either end, between the keys that both have passed.
    fn next(&self, rest: Bounds<'_>, forward: bool) -> Option<(&'t Vec<u8>, &'t Pending)> {
        match self {
            OwnWrites::Bytewise(writes) => {
                let mut own = writes.range::<[u8], _>(rest);
                if forward { own.next() } else { own.next_back() }
            }
            OwnWrites::Sorted(sorted) => if forward { sorted.front() } else { sorted.back() }.copied(),
        }
    }

    /// The next one was handed out.
    fn pass(&mut self, forward: bool) {
        if let OwnWrites::Sorted(sorted) = self {
            if forward {
                sorted.pop_front()
            } else {
                sorted.pop_back()
            };
        }
    }
}

/// See the module's comment.
pub struct TransactionScan<'t> {
    source: Source,
    writes: OwnWrites<'t>,
    deleted: &'t RangeSet,
    passage: &'t mut ScannedRange,
    front: Option<End>,
    back: Option<End>,
    /// A read failed: nothing more is handed out.
    failed: bool,
}

/// What the next key is made of.
enum Found<'t> {
    InSnapshot,
    Own(&'t Pending),
    Both(&'t Pending),
}

impl<'t> TransactionScan<'t> {
    pub fn new(parts: ScanParts<'t>) -> TransactionScan<'t> {
        let ScanParts { source, writes, deleted, passage } = parts;
        let writes = OwnWrites::new(writes, passage);
        TransactionScan { source, writes, deleted, passage, front: None, back: None, failed: false }
    }

    /// The next pair from the front or from the back.
    pub fn step(&mut self, forward: bool) -> Option<Result<(Slice, Slice)>> {
        while !self.failed {
            if self.passage.rest().is_none() {
                self.passage.complete();
                return None;
            }
            let mut end = match self.arrive(forward) {
                Ok(end) => end,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            };
            let Some((key, found)) = self.next_key(&end, forward) else {
                self.passage.complete();
                return None;
            };
            self.passage.pass(&key, forward);
            if !matches!(found, Found::InSnapshot) {
                self.writes.pass(forward);
            }
            let was_at_key = end.cursor.reached().is_some();
            let value = self.value(&mut end, &key, found);
            // A cursor that has lost its place cannot go on.
            self.failed = was_at_key && end.cursor.reached().is_none();
            let side = if forward { &mut self.front } else { &mut self.back };
            *side = Some(end);
            match value {
                Ok(Some(value)) => {
                    let order = &self.source.keyspace.order;
                    let key = if order.is_bytewise() { key } else { Slice::copy(order.key_of(&key)) };
                    return Some(Ok((key, value)));
                }
                Ok(None) => {}
                // As in any scan: the next step goes on behind the key.
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    /// The end with its cursor at the next key. An error that names no key is returned.
    fn arrive(&mut self, forward: bool) -> Result<End> {
        let side = if forward { &mut self.front } else { &mut self.back };
        let (cursor, moved) = match side.take() {
            Some(End { cursor, next: Next::Here }) => return Ok(End { cursor, next: Next::Here }),
            Some(End { cursor, next: Next::Failed(error) }) => return Ok(End { cursor, next: Next::Failed(error) }),
            Some(End { mut cursor, next: Next::Passed }) => {
                let moved = if forward { cursor.next() } else { cursor.prev() };
                (cursor, moved)
            }
            None => {
                let (lower, upper) = self.passage.bounds();
                let mut cursor = ScanCursor::new(self.source.clone(), lower, upper)?;
                let moved = if forward { cursor.seek_to_first() } else { cursor.seek_to_last() };
                (cursor, moved)
            }
        };
        match moved {
            Ok(()) => Ok(End { cursor, next: Next::Here }),
            Err(error) if cursor.reached().is_some() => Ok(End { cursor, next: Next::Failed(error) }),
            Err(error) => Err(error),
        }
    }

    fn next_key(&self, end: &End, forward: bool) -> Option<(Slice, Found<'t>)> {
        let rest = self.passage.rest()?;
        let own = self.writes.next(rest, forward);
        match (end.key(&rest), own) {
            (None, None) => None,
            (Some(key), None) => Some((Slice::copy(key), Found::InSnapshot)),
            (None, Some((key, pending))) => Some((Slice::copy(key), Found::Own(pending))),
            (Some(key), Some((own, pending))) => {
                let order = self.passage.order().compare(key, own);
                let order = if forward { order } else { order.reverse() };
                Some(match order {
                    Ordering::Less => (Slice::copy(key), Found::InSnapshot),
                    Ordering::Equal => (Slice::copy(key), Found::Both(pending)),
                    Ordering::Greater => (Slice::copy(own), Found::Own(pending)),
                })
            }
        }
    }

    /// The value of `key`, if it has one. Where the snapshot has the key, too, the end has passed
    /// it then.
    fn value(&self, end: &mut End, key: &[u8], found: Found<'_>) -> Result<Option<Slice>> {
        let (inner, keyspace) = (&self.source.inner, &self.source.keyspace);
        let pending = match found {
            Found::Own(pending) => return pending.value(inner, keyspace, key, None),
            Found::InSnapshot => None,
            Found::Both(pending) => Some(pending),
        };
        let next = std::mem::replace(&mut end.next, Next::Passed);
        match (pending, next) {
            (Some(pending), _) if !pending.needs_snapshot() => pending.value(inner, keyspace, key, None),
            (None, _) if self.deleted.covers(key) => Ok(None),
            (_, Next::Failed(error)) => Err(error),
            (Some(pending), _) => {
                let value = pending.value(inner, keyspace, key, Some(end.cursor.value()));
                end.cursor.intact().and(value)
            }
            (None, _) => end.cursor.item().map(|(_, value)| Some(value)),
        }
    }
}
