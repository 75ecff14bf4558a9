//! The merge of several cursors into one, by a loser tree over cached heads of their keys.
//!
//! The tree's inner nodes hold the losers of the matches below them, so that the next winner takes
//! one match per level along one path. While one child keeps winning, as in a run that does not
//! overlap the others, not even that: it is compared with the best of the others only.

use crate::base::key::{Entry, Sequence};
use crate::base::key_order::KeyOrder;
use crate::error::{Error, Result};
use crate::iter::{Cursor, LAST_STAGE, PlainSearch};
use std::cmp::Ordering;
use std::io;

/// Up to so many children are put in order without memory from the heap.
const FEW: usize = 16;

/// After so many wins in a row it pays to find out how many more there will be.
const LONG_STREAK: u32 = 4;

/// A [`Cursor`] over the entries of all its children. Equal entries come in the order of the
/// children.
#[derive(Debug)]
pub struct MergingCursor<C> {
    children: Vec<C>,
    order: KeyOrder,
    is_bytewise: bool,
    /// What is known of each child's key.
    heads: Vec<Head>,
    /// `losers[1..]`: the child that lost at each inner node. Node `n` is above nodes `2n` and
    /// `2n + 1`; child `c` is the leaf `children.len() + c`.
    losers: Vec<usize>,
    winner: usize,
    /// The best of the others, if it was found since one of them last moved.
    runner_up: Option<usize>,
    /// How often in a row the present winner has won.
    streak: u32,
    backward: bool,
    valid: bool,
    /// A copy of the current key while the children change direction.
    key: Vec<u8>,
    /// The error that made the cursor unusable until the next seek.
    failure: Option<Error>,
}

/// The first 16 bytes of a child's key as a number, so that most matches need no look at the key:
/// 16, because 8 are often all the same in keys with a common beginning. Unequal heads decide,
/// equal ones do not. 0 in an order that is not that of bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    bytes: u128,
    /// False at a child that has no more entries.
    valid: bool,
}

impl Head {
    #[inline]
    fn of(child: &impl Cursor, is_bytewise: bool) -> Head {
        if !child.valid() {
            return Head::default();
        }
        if !is_bytewise {
            return Head { bytes: 0, valid: true };
        }
        let key = child.entry().key;
        let bytes = match key.first_chunk::<16>() {
            Some(bytes) => u128::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0u8; 16];
                bytes[..key.len()].copy_from_slice(key);
                u128::from_be_bytes(bytes)
            }
        };
        Head { bytes, valid: true }
    }
}

impl<C: Cursor> MergingCursor<C> {
    /// The merge of `children`, newest first, in the order of their keys. It starts invalid.
    pub fn new(children: Vec<C>, order: &KeyOrder) -> MergingCursor<C> {
        // One alone plays no matches.
        let count = if children.len() == 1 { 0 } else { children.len() };
        MergingCursor {
            children,
            order: order.clone(),
            is_bytewise: order.is_bytewise(),
            heads: vec![Head::default(); count],
            // Any will do; zeroes would be requested as zeroed memory, which takes allocators
            // longer.
            losers: (0..count).collect(),
            winner: 0,
            runner_up: None,
            streak: 0,
            backward: false,
            valid: false,
            key: Vec::new(),
            failure: None,
        }
    }

    /// Whether child `a` comes before child `b` in the present direction.
    #[inline]
    fn before(&self, a: usize, b: usize) -> bool {
        let (x, y) = (self.heads[a], self.heads[b]);
        if x.valid && y.valid && x.bytes != y.bytes {
            return (x.bytes < y.bytes) != self.backward;
        }
        self.before_in_full(a, b)
    }

    #[inline(never)]
    fn before_in_full(&self, a: usize, b: usize) -> bool {
        if !self.heads[a].valid || !self.heads[b].valid {
            return self.heads[a].valid || (!self.heads[b].valid && a < b);
        }
        let (x, y) = (self.children[a].entry(), self.children[b].entry());
        let order = self.order.compare_versions((x.key, x.sequence), (y.key, y.sequence));
        (order.then(a.cmp(&b)) == Ordering::Less) != self.backward
    }

    /// Plays all matches.
    fn build(&mut self) {
        if let [only] = self.children.as_slice() {
            self.valid = only.valid();
            return;
        }
        let count = self.children.len();
        for (head, child) in self.heads.iter_mut().zip(&self.children) {
            *head = Head::of(child, self.is_bytewise);
        }
        // The winners of all nodes, leaves included; only needed while the matches are played.
        let (mut few, mut many) = ([0; 2 * FEW], Vec::new());
        let winners = if count <= FEW {
            &mut few[..2 * count]
        } else {
            many.resize(2 * count, 0);
            &mut many[..]
        };
        winners[count..].iter_mut().enumerate().for_each(|(child, winner)| *winner = child);
        for node in (1..count).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            (winners[node], self.losers[node]) = if self.before(a, b) { (a, b) } else { (b, a) };
        }
        self.winner = winners.get(1).copied().unwrap_or(0);
        self.runner_up = None;
        self.streak = 0;
        self.valid = self.heads.get(self.winner).is_some_and(|head| head.valid);
    }

    /// Finds the next winner after the present one has moved.
    #[inline]
    fn replay(&mut self) {
        let moved = self.winner;
        self.heads[moved] = Head::of(&self.children[moved], self.is_bytewise);
        if let Some(runner_up) = self.runner_up
            && self.before(moved, runner_up)
        {
            self.valid = self.heads[moved].valid;
            self.streak = self.streak.saturating_add(1);
            return;
        }
        self.replay_path(moved);
    }

    fn replay_path(&mut self, moved: usize) {
        let mut winner = moved;
        let mut node = (self.children.len() + moved) / 2;
        while node > 0 {
            if self.before(self.losers[node], winner) {
                std::mem::swap(&mut self.losers[node], &mut winner);
            }
            node /= 2;
        }
        self.winner = winner;
        self.valid = self.heads[winner].valid;
        // The same winner twice is taken for a run: then it pays to know whom to compare it with.
        self.runner_up = if winner == moved { self.best_loser() } else { None };
        self.streak = 0;
    }

    /// The best of the losers on the winner's path: every other child lost to one of them, or is
    /// one.
    fn best_loser(&self) -> Option<usize> {
        let mut best = None;
        let mut node = (self.children.len() + self.winner) / 2;
        while node > 0 {
            let loser = self.losers[node];
            if best.is_none_or(|best| self.before(loser, best)) {
                best = Some(loser);
            }
            node /= 2;
        }
        best
    }

    /// Runs `step`, and makes the cursor unusable if it fails.
    #[inline]
    fn guarded(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let result = step(self);
        if let Err(error) = &result {
            self.valid = false;
            self.failure = Some(repeat_error(error));
        }
        result
    }

    fn seek_all(&mut self, backward: bool, mut seek: impl FnMut(&mut C) -> Result<()>) -> Result<()> {
        self.valid = false;
        self.failure = None;
        self.backward = backward;
        self.guarded(|this| {
            this.children.iter_mut().try_for_each(&mut seek)?;
            this.build();
            Ok(())
        })
    }

    /// What a step does at an invalid cursor.
    #[cold]
    fn step_invalid(&self) -> Result<()> {
        self.failure.as_ref().map_or(Ok(()), |error| Err(repeat_error(error)))
    }

    /// Puts every child but the winner on its first entry behind the current one, or its last
    /// before it.
    #[cold]
    fn turn(&mut self, backward: bool) -> Result<()> {
        let entry = self.children[self.winner].entry();
        let sequence = entry.sequence;
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        for (index, child) in self.children.iter_mut().enumerate() {
            if index == self.winner {
                continue;
            }
            child.seek(&self.key, sequence)?;
            let equal = child.valid() && {
                let entry = child.entry();
                (entry.key, entry.sequence) == (&self.key, sequence)
            };
            // An equal entry of an earlier child is before the current one, that of a later child
            // behind it.
            let equal_before = equal && index < self.winner;
            match (backward, child.valid()) {
                (false, true) if equal_before => child.next()?,
                (true, true) if !equal_before => child.prev()?,
                (true, false) => child.seek_to_last()?,
                _ => {}
            }
        }
        self.backward = backward;
        Ok(())
    }

    /// A step against the direction of the last one.
    #[cold]
    fn step_turning(&mut self, backward: bool) -> Result<()> {
        self.guarded(|this| {
            this.turn(backward)?;
            let winner = &mut this.children[this.winner];
            if backward {
                winner.prev()?
            } else {
                winner.next()?
            }
            this.build();
            Ok(())
        })
    }
}

impl<C: Cursor> Cursor for MergingCursor<C> {
    fn seek_to_first(&mut self) -> Result<()> {
        self.seek_all(false, |child| child.seek_to_first())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.seek_all(true, |child| child.seek_to_last())
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        if self.children.len() > 1 {
            for stage in 0..=LAST_STAGE {
                self.children.iter_mut().for_each(|child| child.prepare(key, stage));
            }
        }
        self.seek_all(false, |child| child.seek(key, sequence))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if let [only] = self.children.as_mut_slice() {
            let result = only.next();
            self.valid = only.valid();
            return result;
        }
        if !self.valid {
            return self.step_invalid();
        }
        if self.backward {
            return self.step_turning(false);
        }
        self.guarded(|this| this.children[this.winner].next())?;
        self.replay();
        Ok(())
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if let [only] = self.children.as_mut_slice() {
            let result = only.prev();
            self.valid = only.valid();
            return result;
        }
        if !self.valid {
            return self.step_invalid();
        }
        if !self.backward {
            return self.step_turning(true);
        }
        self.guarded(|this| this.children[this.winner].prev())?;
        self.replay();
        Ok(())
    }

    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }

    #[inline]
    fn entry(&self) -> Entry<'_> {
        self.children[self.winner].entry()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.children[self.winner].key()
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.children[self.winner].value()
    }

    fn plain_run(&mut self, search: PlainSearch<'_>) -> usize {
        if let [only] = self.children.as_mut_slice() {
            return only.plain_run(search);
        }
        if !self.valid || self.backward != search.backward || self.streak < LONG_STREAK {
            return 0;
        }
        let Some(runner_up) = self.runner_up.filter(|&other| self.heads[other].valid) else {
            // The others have no more entries, as far as is known.
            return if self.runner_up.is_some() { self.children[self.winner].plain_run(search) } else { 0 };
        };
        let Ok([winner, runner_up]) = self.children.get_disjoint_mut([self.winner, runner_up]) else { return 0 };
        let other = runner_up.key();
        let until = match search.until {
            Some(until) if self.order.less(until, other) != search.backward => until,
            _ => other,
        };
        winner.plain_run(PlainSearch { until: Some(until), ..search })
    }

    #[inline]
    fn step_plain(&mut self, backward: bool) {
        self.children[self.winner].step_plain(backward);
    }

    fn intact(&self) -> Result<()> {
        self.children.get(self.winner).map_or(Ok(()), Cursor::intact)
    }

    fn is_first_of_key(&self) -> bool {
        let winner = self.winner;
        // What is known of the keys is enough where it differs.
        let differs =
            |(child, head): (usize, &Head)| child == winner || !head.valid || head.bytes != self.heads[winner].bytes;
        self.children[winner].is_first_of_key()
            && (self.children.len() == 1 || (self.backward && self.heads.iter().enumerate().all(differs)))
    }
}

/// An error like `error`, for a cursor that must fail again. The operating system's own error is
/// reduced to its kind.
#[cold]
pub fn repeat_error(error: &Error) -> Error {
    match error {
        Error::Io { operation, path, source } => Error::io(operation, path, io::Error::from(source.kind())),
        Error::Corruption { path, offset, what } => Error::corruption(path, *offset, what.clone()),
        other => Error::invalid(format!("an earlier step of this cursor failed: {other}")),
    }
}

#[cfg(test)]
#[path = "merging_tests.rs"]
mod tests;
