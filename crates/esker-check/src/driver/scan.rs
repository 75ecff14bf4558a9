//! Iterators and cursors, each beside the entries that it must yield.

use crate::Checked;
use crate::answer::shown_entry;
use crate::generator::Move;
use crate::model::{Bytes, Entry, Order};
use crate::state::shown;
use esker::{Cursor, Error, Iter};
use std::collections::VecDeque;

/// A range iterator beside the entries that it has yet to yield.
pub(super) struct OpenIterator {
    iterator: Iter,
    entries: VecDeque<Entry>,
}

impl OpenIterator {
    pub fn new(iterator: Iter, entries: Vec<Entry>) -> OpenIterator {
        OpenIterator { iterator, entries: entries.into() }
    }

    /// Takes from the front (`true`) or back, and compares. The key, if it is one whose merge must
    /// fail, and did.
    fn take(&mut self, front: bool) -> Checked<Option<Bytes>> {
        let (found, expected) = if front {
            (self.iterator.next(), self.entries.pop_front())
        } else {
            (self.iterator.next_back(), self.entries.pop_back())
        };
        match (found, expected) {
            (None, None) => Ok(None),
            (Some(Err(Error::MergeFailed { .. })), Some((key, Err(_)))) => Ok(Some(key)),
            (Some(Ok((key, value))), Some((expected_key, Ok(expected_value))))
                if key[..] == expected_key[..] && value[..] == expected_value[..] =>
            {
                Ok(None)
            }
            (found, expected) => {
                let end = if front { "front" } else { "back" };
                let expected = expected.map(|(key, value)| (shown(&key), value.map(|value| shown(&value))));
                Err(format!("the scan yields {} at the {end}, expected {expected:?}", shown_entry(found)))
            }
        }
    }

    /// Takes from both ends. False if the iterator returned the failure that was due, which ends
    /// it.
    pub fn step(&mut self, ends: &[bool]) -> Checked<bool> {
        for &front in ends {
            if self.take(front)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes all the rest from the front, up to the first key whose merge must fail: that key.
    pub fn drain(&mut self) -> Checked<Option<Bytes>> {
        for _ in 0..=self.entries.len() {
            if let Some(failed) = self.take(true)? {
                return Ok(Some(failed));
            }
        }
        Ok(None)
    }
}

/// A cursor beside the entries that it must walk over.
pub(super) struct OpenCursor {
    cursor: Cursor,
    entries: Vec<Entry>,
    order: Order,
    position: Option<usize>,
}

impl OpenCursor {
    pub fn new(cursor: Cursor, entries: Vec<Entry>, order: Order) -> OpenCursor {
        OpenCursor { cursor, entries, order, position: None }
    }

    /// Moves and compares. False if the cursor returned the failure that was due, which ends it.
    pub fn walk(&mut self, moves: &[Move]) -> Checked<bool> {
        for step in moves {
            if !self.step(step).map_err(|what| format!("at {step:?}: {what}"))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn step(&mut self, step: &Move) -> Checked<bool> {
        let count = self.entries.len();
        let (outcome, position) = match (step, self.position) {
            (Move::First, _) => (self.cursor.seek_to_first(), (count > 0).then_some(0)),
            (Move::Last, _) => (self.cursor.seek_to_last(), count.checked_sub(1)),
            (Move::Seek(key), _) => {
                let index = self.entries.partition_point(|(other, _)| self.order.compare(other, key).is_lt());
                (self.cursor.seek(key), (index < count).then_some(index))
            }
            (Move::SeekForPrev(key), _) => {
                let index = self.entries.partition_point(|(other, _)| self.order.compare(other, key).is_le());
                (self.cursor.seek_for_prev(key), index.checked_sub(1))
            }
            (Move::Next, Some(index)) => (self.cursor.next(), (index + 1 < count).then_some(index + 1)),
            (Move::Prev, Some(index)) => (self.cursor.prev(), index.checked_sub(1)),
            // What a relative step does without a position is not promised.
            (Move::Next | Move::Prev, None) => return Ok(true),
        };
        self.position = position;
        self.compare(outcome)
    }

    fn compare(&self, outcome: esker::Result<()>) -> Checked<bool> {
        let expected = self.position.map(|index| &self.entries[index]);
        match (outcome, expected) {
            (Err(Error::MergeFailed { .. }), Some((_, Err(_)))) => Ok(false),
            (Err(error), _) => Err(format!("the step failed: {error}")),
            (Ok(()), Some((key, Err(_)))) => Err(format!("the merge of {} must fail here", shown(key))),
            (Ok(()), None) if self.cursor.valid() => {
                Err(format!("the cursor is at {}, expected at the end", shown(self.cursor.key())))
            }
            (Ok(()), None) => Ok(true),
            (Ok(()), Some((key, Ok(_)))) if !self.cursor.valid() => {
                Err(format!("the cursor is at the end, expected at {}", shown(key)))
            }
            (Ok(()), Some((key, Ok(value)))) => {
                let (found_key, found_value) = (self.cursor.key(), self.cursor.value());
                if (found_key, found_value) == (&key[..], &value[..]) {
                    return Ok(true);
                }
                let (found_key, found_value) = (shown(found_key), shown(found_value));
                Err(format!("the cursor is at {found_key}={found_value}, expected {}={}", shown(key), shown(value)))
            }
        }
    }
}
