//! Collapsing a chain of merge operands: one entry takes its place once its value was looked up.

use super::arena::Appender;
use super::index::{Found, Slot};
use super::store::Memtable;
use super::writer::MemtableWriter;
use crate::base::key::{Entry, Kind, NEVER, Sequence};
use crate::merge_operator::{MergeOperator, contained};
use std::sync::atomic::Ordering;

/// Shorter chains are not replaced: a thread may still be adding to the first operand (rule 2 of
/// `in_place.rs`).
const SHORTEST: u32 = 3;

impl MemtableWriter {
    /// Makes the newest entry of `key`, the operand written at `sequence`, a put of `value`, or a
    /// delete if there is none: what a reader at `sequence` finds, with everything below. Nothing
    /// happens if that operand is not the newest entry any more, or if a snapshot sees it. Nothing
    /// happens either, and the result is false, if there is no room.
    ///
    /// No write of the key came after `sequence`, and no thread changes such a chain in place
    /// (`in_place.rs`), so the value cannot have changed while it was looked up without a lock. The
    /// versions that only newer readers see die; those that a snapshot may need stay below.
    pub fn replace_chain(
        &mut self,
        hash: u64,
        key: &[u8],
        sequence: Sequence,
        value: Option<&[u8]>,
        newest_snapshot: Sequence,
    ) -> bool {
        let MemtableWriter { memtable, appender, .. } = self;
        let found = memtable.index.find(hash, |offset| memtable.arena.entry(offset).key() == key);
        let Found::Entry(at, slot) = found else { return true };
        let newest = memtable.arena.entry(at);
        let kind = if value.is_some() { Kind::Put } else { Kind::Delete };
        let expiry_ms = if value.is_some() { newest.expiry_ms() } else { NEVER };
        let whole = Entry { key, sequence, kind, expiry_ms, value: value.unwrap_or_default() };
        // A scan that sees the operand may have been made before its successor: it would skip the
        // one and not reach the other.
        let unseen = newest.sequence() == sequence && sequence > newest_snapshot;
        if !unseen || newest.kind() != Kind::Merge || newest.chain() < SHORTEST {
            return true;
        }
        if !memtable.fits(&whole, 0) {
            return false;
        }
        put_in_place(memtable, appender, at, slot, whole, newest_snapshot);
        true
    }

    /// As [`MemtableWriter::replace_chain`], with what the operator makes of the chain by itself:
    /// while the log is replayed, when there are no snapshots, and nothing else can be read yet.
    /// `bottom`: the key has nothing outside this memtable.
    pub fn combine_chain(&mut self, hash: u64, key: &[u8], operator: &dyn MergeOperator, bottom: bool) -> bool {
        let MemtableWriter { memtable, appender, .. } = self;
        if memtable.has_range_tombstones() {
            // One may lie in the chain.
            return false;
        }
        let found = memtable.index.find(hash, |offset| memtable.arena.entry(offset).key() == key);
        let Found::Entry(newest, slot) = found else { return false };
        let mut newest_first: Vec<Vec<u8>> = Vec::new();
        let mut base = None;
        let mut next = Some(newest);
        while let Some(at) = next {
            let entry = memtable.arena.entry(at);
            if entry.expiry_ms() != NEVER {
                return false;
            }
            let value = entry.value(&mut [0; 8]).to_vec();
            next = entry.older();
            match entry.kind() {
                Kind::Merge => newest_first.push(value),
                Kind::Put => base = Some(Some(value)),
                Kind::Delete => base = Some(None),
                Kind::MergeFirst | Kind::PutBlob => return false,
            }
            if base.is_some() {
                break;
            }
        }
        let oldest_first: Vec<&[u8]> = newest_first.iter().rev().map(Vec::as_slice).collect();
        let combined = match base.or(bottom.then_some(None)) {
            Some(existing) => match contained::full_merge(operator, key, existing.as_deref(), &oldest_first) {
                Ok(Some(value)) => Some((Kind::Put, value)),
                Ok(None) => Some((Kind::Delete, Vec::new())),
                Err(_) => None,
            },
            None => contained::partial_merges(operator, key, &oldest_first).map(|value| (Kind::Merge, value)),
        };
        let Some((kind, value)) = combined else { return false };
        let sequence = memtable.arena.entry(newest).sequence();
        let whole = Entry { key, sequence, kind, expiry_ms: NEVER, value: &value };
        if !memtable.fits(&whole, 0) {
            return false;
        }
        put_in_place(memtable, appender, newest, slot, whole, 0);
        true
    }
}

/// Publishes `whole` in the place of the chain that begins at `newest`, as far as only readers
/// newer than all snapshots see it.
fn put_in_place(
    memtable: &Memtable,
    appender: &mut Appender,
    newest: usize,
    slot: Slot<'_>,
    whole: Entry<'_>,
    newest_snapshot: Sequence,
) {
    let mut older = Some(newest);
    let mut dead = 0;
    while let Some(at) = older {
        let entry = memtable.arena.entry(at);
        if entry.sequence() <= newest_snapshot {
            break;
        }
        entry.set_dead(appender);
        dead += 1;
        older = entry.older();
    }
    memtable.live.store(memtable.live() - dead, Ordering::Relaxed);
    slot.publish(memtable.append(appender, whole, older.unwrap_or(0)));
}
