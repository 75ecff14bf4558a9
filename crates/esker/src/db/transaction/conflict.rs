//! Conflict detection: whether a key that a transaction read or writes was written since its
//! snapshot.
//!
//! There are two checks. The first runs without the writer lock, over all that was written between
//! the snapshot and now, and may read tables. The second runs under the lock that the commit itself
//! takes, over what was appended to the memtables in the meantime. If that is much, or reached
//! tables already, the lock is released and the first check is repeated over the difference; after
//! a few rounds all is done under the lock, so that the check terminates.
//!
//! Every write since the snapshot leaves an entry with a greater sequence number, which is found:
//! - The memtable folds a write only into an entry above the newest registered snapshot, and gives
//!   it the number of the write. As the transaction's snapshot is registered, both are above it.
//! - `job/version_gc.rs` drops an entry only for a newer one in the same stripe. The lowest stripe
//!   ends at the oldest registered snapshot, and only in that one do deletes go and numbers become
//!   zero. A job that took its list of snapshots before this one was registered reads only entries
//!   that are not above it. A removal of entries without `version_gc`, say of tables as a whole,
//!   has to keep to that: none whose number is above a registered snapshot. FIFO compaction does
//!   not keep to it: what it dropped last counts as written everywhere in the keyspace.
//! - Range deletes are checked apart: one is a write to each key in it, whether that had a value or
//!   not.
//! - A keyspace that was dropped ends the transaction, with an error that says so.
//! - A key that expires is not written: no conflict.
//!
//! For any one key a newer source has only newer entries (memtables, then runs), so the first entry
//! met decides about the key.

use crate::base::key::{Entry, MAX_SEQUENCE, Sequence, hash};
use crate::base::key_order::KeyOrder;
use crate::base::range_tombstone::{Fragment, RangeTombstones};
use crate::db::state::inner::{Inner, KeyspaceInner, Writer};
use crate::db::state::read_state::ReadState;
use crate::db::transaction::read_set::{Interval, any_contains};
use crate::db::transaction::write_set::{Part, Transaction};
use crate::db::write::commit::{Precondition, Verdict};
use crate::error::{Error, Result, escape_key};
use crate::iter::Cursor;
use crate::memtable::Memtable;
use crate::table::{FoundEntry, TableSummary};
use crate::version::runs::Run;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Memtable bytes that are checked under the writer lock: some microseconds' worth.
const MOST_LOCKED_BYTES: usize = 64 << 10;
/// Checks without the lock before all is done under it.
const MOST_ROUNDS: usize = 4;

/// The check of one keyspace, and how far it has come.
struct Question<'t> {
    part: &'t Part,
    intervals: Vec<Interval>,
    /// What held all writes up to `Conflicts::answered`, and no others but those behind `end` in
    /// the active memtable.
    read_state: Arc<ReadState>,
    end: usize,
}

/// The search for conflicts of one transaction.
pub struct Conflicts<'t> {
    inner: &'t Inner,
    snapshot: Sequence,
    questions: Vec<Question<'t>>,
    /// Up to this write there is no conflict.
    answered: Sequence,
    rounds: usize,
}

impl<'t> Conflicts<'t> {
    pub fn new(inner: &'t Inner, transaction: &'t Transaction) -> Result<Conflicts<'t>> {
        let question = |part: &'t Part| Question {
            part,
            intervals: part.reads.intervals(),
            read_state: part.keyspace.read_state.load_full(),
            end: 0,
        };
        let questions = transaction.parts().map(question).collect();
        let snapshot = transaction.snapshot_guard()?.sequence();
        Ok(Conflicts { inner, snapshot, questions, answered: snapshot, rounds: 0 })
    }

    /// Checks the read states, above what was checked before.
    fn look(&self) -> Result<()> {
        self.questions.iter().try_for_each(|question| question.look(self.snapshot, self.answered))
    }
}

impl Precondition for Conflicts<'_> {
    fn catch_up(&mut self) -> Result<Verdict> {
        self.rounds += 1;
        let writer = self.inner.writer.lock();
        let last = writer.last_sequence;
        for question in &mut self.questions {
            question.load_read_state();
        }
        drop(writer);
        if last > self.answered {
            self.look()?;
            self.answered = last;
        }
        Ok(Verdict::Holds)
    }

    fn holds(&mut self, writer: &Writer) -> Result<Verdict> {
        if writer.last_sequence == self.answered {
            return Ok(Verdict::Holds);
        }
        if self.rounds >= MOST_ROUNDS {
            self.questions.iter_mut().for_each(Question::load_read_state);
            return self.look().map(|()| Verdict::Holds);
        }
        let mut bytes = 0;
        for question in &self.questions {
            let read_state = question.part.keyspace.read_state.load();
            if !Arc::ptr_eq(&read_state.version, &question.read_state.version) {
                return Ok(Verdict::Repeat);
            }
            bytes += question
                .appended(&read_state, self.answered)
                .map(|(memtable, from)| memtable.end() - from)
                .sum::<usize>();
        }
        if bytes > MOST_LOCKED_BYTES {
            return Ok(Verdict::Repeat);
        }
        self.questions.iter().try_for_each(|question| question.look_at_appended(self.answered))?;
        Ok(Verdict::Holds)
    }
}

impl Question<'_> {
    fn keyspace(&self) -> &KeyspaceInner {
        &self.part.keyspace
    }

    fn order(&self) -> &KeyOrder {
        &self.keyspace().order
    }

    /// Call under the writer lock: then the read state and the end of its active memtable hold
    /// exactly the writes made so far.
    fn load_read_state(&mut self) {
        self.read_state = self.keyspace().read_state.load_full();
        self.end = self.read_state.active.end();
    }

    /// The memtables of the read state with writes after `answered`, each with where these begin.
    /// Call under the writer lock.
    fn appended<'v>(
        &self,
        read_state: &'v ReadState,
        answered: Sequence,
    ) -> impl Iterator<Item = (&'v Arc<Memtable>, usize)> {
        let newer = read_state.memtables().filter(move |memtable| memtable.last_sequence() > answered);
        newer.map(|memtable| {
            let known = Arc::ptr_eq(memtable, &self.read_state.active);
            (memtable, if known { self.end } else { 0 })
        })
    }

    /// Looks through what was appended after `answered`. A write that only changed an entry in
    /// place needs no look: that entry was above the snapshot before, so it is in here or was found
    /// by an earlier look.
    fn look_at_appended(&self, answered: Sequence) -> Result<()> {
        let read_state = self.keyspace().read_state.load();
        for (memtable, from) in self.appended(&read_state, answered) {
            memtable.keys_from(from, &mut |key| if self.concerns(key) { Err(self.conflict(key)) } else { Ok(()) })?;
            if memtable.has_range_tombstones() {
                memtable.range_tombstones().iter().try_for_each(|set| self.look_at_ranges(set, answered))?;
            }
        }
        Ok(())
    }

    fn concerns(&self, key: &[u8]) -> bool {
        self.part.reads.keys.contains(key)
            || self.part.writes.contains_key(key)
            || any_contains(self.order(), &self.intervals, key)
    }

    fn conflict(&self, key: &[u8]) -> Error {
        let key = escape_key(self.keyspace().order.key_of(key));
        Error::Conflict { keyspace: self.keyspace().name().to_string(), key }
    }

    /// Looks for entries above `snapshot` in whatever has any above `answered`, which is not below
    /// `snapshot`. Up to `answered` there are none.
    fn look(&self, snapshot: Sequence, answered: Sequence) -> Result<()> {
        if self.read_state.dropped.is_some() {
            return Err(self.keyspace().was_dropped());
        }
        if self.keyspace().compaction.dropped_until() > snapshot {
            // What was there is unknown.
            return Err(self.conflict(b""));
        }
        let memtables: Vec<&Arc<Memtable>> =
            self.read_state.memtables().filter(|memtable| memtable.last_sequence() > answered).collect();
        let has_newer = |run: &&Arc<Run>| run.tables.iter().any(|table| table.summary().largest_sequence > answered);
        let runs: Vec<&Arc<Run>> = self.read_state.version.runs.iter().filter(has_newer).collect();
        if memtables.is_empty() && runs.is_empty() {
            return Ok(());
        }
        for memtable in memtables.iter().filter(|memtable| memtable.has_range_tombstones()) {
            memtable.range_tombstones().iter().try_for_each(|set| self.look_at_ranges(set, snapshot))?;
        }
        for table in runs.iter().flat_map(|run| &run.tables).filter(|table| table.summary().largest_sequence > answered)
        {
            self.look_at_ranges(table.range_tombstones(), snapshot)?;
        }
        for key in self.part.reads.keys.iter().chain(self.part.writes.keys().map(Vec::as_slice)) {
            if newest(&memtables, &runs, key, answered)? > snapshot {
                return Err(self.conflict(key));
            }
        }
        if self.intervals.is_empty() {
            return Ok(());
        }
        let mut cursors = Vec::new();
        for memtable in &memtables {
            // The next scan has the sorted runs merged.
            memtable.cursors(|cursor| cursors.push(cursor));
        }
        for mut cursor in cursors {
            self.look_along(&mut cursor, snapshot)?;
        }
        let newer = runs
            .iter()
            .flat_map(|run| &run.tables)
            .filter(|table| table.summary().largest_sequence > answered && self.overlaps(table.summary()));
        for table in newer {
            self.look_along(&mut table.cursor(true), snapshot)?;
        }
        Ok(())
    }

    /// Looks for a range deleted after `above` that has a key in it which the transaction read or
    /// writes, or might have met in a scan.
    fn look_at_ranges(&self, tombstones: &RangeTombstones, above: Sequence) -> Result<()> {
        let newer = |fragment: &&Arc<Fragment>| fragment.sequences.first().is_some_and(|&newest| newest > above);
        for fragment in tombstones.fragments().iter().filter(newer) {
            let Fragment { start, end, .. } = &**fragment;
            let order = self.order();
            let scanned = self
                .intervals
                .iter()
                .filter(|interval| interval.ends_behind(order, start))
                .map(|found| found.start.as_slice());
            let key = if order.is_bytewise() {
                let read = self.part.reads.keys.first_from(start);
                let written = self.part.writes.range(start.clone()..).next().map(|(key, _)| key.as_slice());
                let mut met = read.into_iter().chain(written).chain(scanned);
                met.find(|key| order.is_before_end(key, end))
            } else {
                // Both are sorted by their bytes.
                let keys = self.part.reads.keys.iter().chain(self.part.writes.keys().map(Vec::as_slice));
                let mut met = keys.filter(|key| !order.less(key, start)).chain(scanned);
                met.find(|key| order.is_before_end(key, end))
            };
            if let Some(key) = key {
                return Err(self.conflict(key));
            }
        }
        Ok(())
    }

    /// Whether an interval has a key between the bounds of the table.
    fn overlaps(&self, table: &TableSummary) -> bool {
        let at = self.intervals.partition_point(|interval| !interval.ends_behind(self.order(), &table.smallest_key));
        self.intervals.get(at).is_some_and(|interval| !table.is_before(&interval.start))
    }

    /// Looks for an entry above `snapshot` in any interval.
    fn look_along(&self, cursor: &mut impl Cursor, snapshot: Sequence) -> Result<()> {
        for interval in &self.intervals {
            cursor.seek(&interval.start, MAX_SEQUENCE)?;
            while cursor.valid() && interval.ends_behind(self.order(), cursor.entry().key) {
                if cursor.entry().sequence > snapshot {
                    return Err(self.conflict(cursor.entry().key));
                }
                cursor.next()?;
            }
        }
        Ok(())
    }
}

/// The sequence number of the newest entry of `key` in any of these; 0 if there is none. Tables
/// without entries above `answered` are left out.
fn newest(memtables: &[&Arc<Memtable>], runs: &[&Arc<Run>], key: &[u8], answered: Sequence) -> Result<Sequence> {
    let hash = hash(key);
    let mut newest = 0;
    for memtable in memtables {
        let mut first = |entry: Entry<'_>| {
            newest = entry.sequence;
            ControlFlow::Break(())
        };
        if memtable.get(key, hash, MAX_SEQUENCE, &mut first).is_break() {
            return Ok(newest);
        }
    }
    for table in runs.iter().filter_map(|run| run.table_for(key)) {
        let mut first = |version: FoundEntry| {
            newest = version.sequence;
            false
        };
        let newer = table.summary().largest_sequence > answered;
        if newer && !table.get(key, hash, MAX_SEQUENCE, &mut first)? {
            return Ok(newest);
        }
    }
    Ok(newest)
}

#[cfg(test)]
mod tests;
