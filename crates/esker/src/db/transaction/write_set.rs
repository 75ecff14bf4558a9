//! An open transaction: its snapshot, its read set, and its write set.
//!
//! A read sees the snapshot with the transaction's own writes on top. What it read is noted
//! (`read_set.rs`), and the commit goes ahead only if nothing was written there since the snapshot
//! (`conflict.rs`). The writes themselves wait, encoded, in the handle's batch; what is kept of
//! them here serves reads.

use crate::base::expiry::Expiry;
use crate::base::slice::Slice;
use crate::db::read::get;
use crate::db::read::scan::Source;
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::db::state::snapshots::{ReadPoint, SnapshotGuard};
use crate::db::transaction::range_set::RangeSet;
use crate::db::transaction::read_set::{ReadSet, ScannedRange};
use crate::error::{Error, Result, escape_key};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// What the transaction's own writes make of one key.
#[derive(Debug, Default)]
pub struct Pending {
    /// What the key holds, or that it holds nothing, since the last put or delete. `None`: that is
    /// for the snapshot to say.
    base: Option<Option<Slice>>,
    /// Merged on top of it, oldest first.
    operands: Vec<Slice>,
}

impl Pending {
    /// Whether the snapshot's value of the key matters.
    pub fn needs_snapshot(&self) -> bool {
        self.base.is_none()
    }

    /// The value of `key`, which is `in_snapshot` before the transaction's own writes.
    pub fn value(
        &self,
        inner: &Inner,
        keyspace: &KeyspaceInner,
        key: &[u8],
        in_snapshot: Option<&[u8]>,
    ) -> Result<Option<Slice>> {
        if self.operands.is_empty()
            && let Some(base) = &self.base
        {
            return Ok(base.clone());
        }
        let existing = self.base.as_ref().map_or(in_snapshot, |base| base.as_deref());
        if self.operands.is_empty() {
            // Its expiry was changed, and nothing else.
            return Ok(existing.map(Slice::copy));
        }
        let operands: Vec<&[u8]> = self.operands.iter().map(|operand| &**operand).collect();
        let settings = keyspace.present_merge_settings();
        Ok(get::full_merge(inner, keyspace, &settings, key, existing, &operands)?.map(Slice::from))
    }
}

/// The writes of a transaction to one keyspace, by the bytes of their keys, whatever the order of
/// the keyspace is. A key is here once it was put, deleted or merged,
/// or got another expiry.
pub type WriteSet = BTreeMap<Vec<u8>, Pending>;

/// What a transaction has to do with one keyspace.
#[derive(Debug)]
pub struct Part {
    pub keyspace: Arc<KeyspaceInner>,
    pub reads: ReadSet,
    pub writes: WriteSet,
    /// The ranges deleted so far. A key of one is in `writes` only if it was written since.
    pub deleted: RangeSet,
}

/// What a scan of a transaction works on.
pub struct ScanParts<'t> {
    pub source: Source,
    pub writes: &'t WriteSet,
    pub deleted: &'t RangeSet,
    pub passage: &'t mut ScannedRange,
}

/// A transaction at work.
#[derive(Debug)]
pub struct Transaction {
    inner: Arc<Inner>,
    /// None in a transaction that a callback of the database began: it neither reads nor commits.
    snapshot_guard: Option<Arc<SnapshotGuard>>,
    /// By keyspace id.
    parts: BTreeMap<u64, Part>,
}

impl Transaction {
    /// One that sees every write acknowledged so far.
    pub fn begin(inner: &Arc<Inner>) -> Transaction {
        let snapshot_guard = inner.register_transaction().ok().map(Arc::new);
        Transaction { inner: Arc::clone(inner), snapshot_guard, parts: BTreeMap::new() }
    }

    /// The registered snapshot.
    pub fn snapshot_guard(&self) -> Result<&Arc<SnapshotGuard>> {
        self.snapshot_guard.as_ref().ok_or_else(|| self.inner.in_callback())
    }

    /// The keyspaces concerned.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.values()
    }

    fn part(&mut self, keyspace: &Arc<KeyspaceInner>) -> &mut Part {
        self.parts.entry(keyspace.id).or_insert_with(|| Part {
            keyspace: Arc::clone(keyspace),
            reads: ReadSet::new(&keyspace.order),
            writes: WriteSet::new(),
            deleted: RangeSet::new(&keyspace.order),
        })
    }

    /// The value of `key`.
    pub fn get(&mut self, keyspace: &Arc<KeyspaceInner>, key: &[u8]) -> Result<Option<Slice>> {
        let inner = Arc::clone(&self.inner);
        let snapshot_guard = self.snapshot_guard()?;
        let pins = snapshot_guard.pins().cloned();
        let point = ReadPoint { pins: pins.as_deref(), ..snapshot_guard.point() };
        let Part { reads, writes, deleted, .. } = self.part(keyspace);
        let Some(pending) = writes.get_mut(key) else {
            if deleted.covers(key) {
                return Ok(None);
            }
            // Noted first: a read that fails has seen something, too.
            reads.keys.insert(key);
            return get::get(&inner, keyspace, key, point);
        };
        let in_snapshot = match pending.needs_snapshot() {
            true => get::get(&inner, keyspace, key, point)?,
            false => None,
        };
        let value = pending.value(&inner, keyspace, key, in_snapshot.as_deref())?;
        // The snapshot never changes, so the next read need not merge again.
        pending.base = Some(value.clone());
        pending.operands.clear();
        Ok(value)
    }

    /// When the value of `key` expires, if it has one, which the transaction has not written.
    pub fn expires_at(&mut self, keyspace: &Arc<KeyspaceInner>, key: &[u8]) -> Result<Option<Expiry>> {
        let inner = Arc::clone(&self.inner);
        let snapshot_guard = self.snapshot_guard()?;
        let pins = snapshot_guard.pins().cloned();
        let point = ReadPoint { pins: pins.as_deref(), ..snapshot_guard.point() };
        let Part { reads, writes, deleted, .. } = self.part(keyspace);
        if writes.contains_key(key) {
            let shown = escape_key(keyspace.order.key_of(key));
            return Err(Error::invalid(format!(
                "the transaction has written key {shown} of keyspace {:?}, whose expiry is known at the commit only",
                keyspace.name()
            )));
        }
        if deleted.covers(key) {
            return Ok(None);
        }
        // Noted first: a read that fails has seen something, too.
        reads.keys.insert(key);
        get::expires_at(&inner, keyspace, key, point)
    }

    /// Notes a put or a delete.
    pub fn set(&mut self, keyspace: &Arc<KeyspaceInner>, key: &[u8], value: Option<&[u8]>) {
        let pending = self.pending(keyspace, key);
        pending.base = Some(value.map(Slice::copy));
        pending.operands.clear();
    }

    /// Notes a merge.
    pub fn merge(&mut self, keyspace: &Arc<KeyspaceInner>, key: &[u8], operand: &[u8]) {
        self.pending(keyspace, key).operands.push(Slice::copy(operand));
    }

    /// Notes that the value stays and gets another expiry.
    pub fn change_expiry(&mut self, keyspace: &Arc<KeyspaceInner>, key: &[u8]) {
        self.pending(keyspace, key);
    }

    fn pending(&mut self, keyspace: &Arc<KeyspaceInner>, key: &[u8]) -> &mut Pending {
        let Part { writes, deleted, .. } = self.part(keyspace);
        let base = deleted.covers(key).then_some(None);
        writes.entry(key.to_vec()).or_insert_with(|| Pending { base, operands: Vec::new() })
    }

    /// Notes that the keys from `start` on and before `end` are deleted; an empty `end` is behind
    /// every key. Another writer's write to one of them is a conflict, as it is to any key that the
    /// transaction writes.
    pub fn delete_range(&mut self, keyspace: &Arc<KeyspaceInner>, start: &[u8], end: &[u8]) {
        let Part { reads, writes, deleted, .. } = self.part(keyspace);
        let order = &keyspace.order;
        writes.retain(|key, _| order.less(key, start) || !order.is_before_end(key, end));
        let upper = if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(end.to_vec()) };
        reads.begin_scan(Bound::Included(start.to_vec()), upper).complete();
        deleted.add(start, end);
    }

    /// Begins a scan of the keys between the bounds.
    pub fn scan(
        &mut self,
        keyspace: &Arc<KeyspaceInner>,
        lower: Bound<Vec<u8>>,
        upper: Bound<Vec<u8>>,
    ) -> Result<ScanParts<'_>> {
        let source = self.source(keyspace)?;
        let Part { reads, writes, deleted, .. } = self.part(keyspace);
        Ok(ScanParts { source, writes, deleted, passage: reads.begin_scan(lower, upper) })
    }

    fn source(&self, keyspace: &Arc<KeyspaceInner>) -> Result<Source> {
        Source::new(&self.inner, keyspace, Arc::clone(self.snapshot_guard()?))
    }
}
