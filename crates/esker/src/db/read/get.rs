//! The read path for one key.
//!
//! 1. Load the keyspace's read state: no lock, no counter shared with other readers. Start loading
//!    the index slots of all memtables and the filter lines of runs of one table.
//! 2. Probe the active memtable's index, then those of the immutable ones, newest first.
//! 3. Probe the filters of the runs that can hold the key, those of runs of several tables loaded
//!    first, then search those that may, newest first.
//! 4. The first put or delete decides. Merge operands met before it are combined with it. If the
//!    newest version has expired, the key has no value, whatever is older. A range tombstone over
//!    the key is a delete at its place among the versions: each source is searched for one before
//!    its entries, and ends the search if it has one.

use crate::base::expiry::{Expiry, visible};
use crate::base::key::{Entry, Kind, NEVER, Sequence, hash};
use crate::base::slice::Slice;
use crate::base::sync::AtomicU64;
use crate::db::read::blob_value;
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::db::state::merge_settings::{MergeEpoch, MergeSettings};
use crate::db::state::read_state::ReadState;
use crate::db::state::read_stats::ReadStats;
use crate::db::state::snapshots::ReadPoint;
use crate::error::{Error, Result, escape_key};
use crate::memtable::Memtable;
use crate::merge_operator::contained;
use crate::table::{FoundEntry, Table};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

/// Under what a key's operands lie.
#[derive(Debug, Default)]
pub enum Base {
    /// No version that decides was met: nothing.
    #[default]
    None,
    /// The key was deleted, or has expired.
    Absent,
    /// The oldest operand starts from nothing.
    First,
    /// The value of a put.
    Value(Slice),
    /// The value of a put with no operands above it, which is where the reader wants it:
    /// [`get_into`] alone.
    Copied,
    /// The reference of a large value.
    Blob(Slice),
}

/// What a reader wants of the value of a put that is the answer.
trait Keep {
    /// Keeps `value`, which `slice` would pin.
    fn keep(&mut self, value: &[u8], slice: impl FnOnce() -> Slice) -> Base;
}

/// Wants it as a slice.
struct Pinned;

impl Keep for Pinned {
    #[inline]
    fn keep(&mut self, _value: &[u8], slice: impl FnOnce() -> Slice) -> Base {
        Base::Value(slice())
    }
}

/// Wants it in a buffer of its own, whatever was there before.
impl Keep for Vec<u8> {
    #[inline]
    fn keep(&mut self, value: &[u8], _slice: impl FnOnce() -> Slice) -> Base {
        self.clear();
        self.extend_from_slice(value);
        Base::Copied
    }
}

/// The sources of a reader.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    pub read_state: &'a ReadState,
    /// The last write of all finished batches.
    pub last_sequence: &'a AtomicU64,
    pub read_stats: &'a ReadStats,
}

impl<'a> Sources<'a> {
    #[inline]
    pub fn new(inner: &'a Inner, keyspace: &'a KeyspaceInner, read_state: &'a ReadState) -> Sources<'a> {
        Sources { read_state, last_sequence: &inner.last_sequence, read_stats: &keyspace.read_stats }
    }
}

/// What the versions of a key amount to, for one reader.
#[derive(Debug, Default)]
pub struct Lookup {
    /// The reader's time.
    now_ms: u64,
    /// The operands above the base, newest first.
    pub operands: Vec<Slice>,
    pub base: Base,
    /// The expiry of the newest version, which is the key's.
    pub expiry_ms: u64,
    /// The newest range tombstone over the key in the sources searched so far; 0 if there is none.
    cover: Sequence,
}

impl Lookup {
    fn new(now_ms: u64) -> Lookup {
        Lookup { now_ms, ..Lookup::default() }
    }

    #[inline]
    fn take(
        &mut self,
        keep: &mut impl Keep,
        Entry { sequence, kind, expiry_ms, value, .. }: Entry<'_>,
        slice: impl FnOnce() -> Slice,
    ) -> ControlFlow<()> {
        if sequence < self.cover {
            self.base = Base::Absent;
            return ControlFlow::Break(());
        }
        if expiry_ms != NEVER && self.operands.is_empty() {
            // The newest version decides; once it has expired it masks everything older.
            if !visible(expiry_ms, self.now_ms) {
                self.base = Base::Absent;
                return ControlFlow::Break(());
            }
            self.expiry_ms = expiry_ms;
        }
        self.base = match kind {
            Kind::Merge => {
                self.operands.push(slice());
                return ControlFlow::Continue(());
            }
            Kind::MergeFirst => {
                self.operands.push(slice());
                Base::First
            }
            Kind::Put if self.operands.is_empty() => keep.keep(value, slice),
            Kind::Put => Base::Value(slice()),
            Kind::PutBlob => Base::Blob(slice()),
            Kind::Delete => Base::Absent,
        };
        ControlFlow::Break(())
    }

    /// Searches all sources, newest first.
    #[inline]
    fn search(
        &mut self,
        Sources { read_state, last_sequence, read_stats }: Sources<'_>,
        key: &[u8],
        sequence: Sequence,
        keep: &mut impl Keep,
    ) -> Result<()> {
        let hash = hash(key);
        prefetch(read_state, hash);
        let mut found = self.search_active(last_sequence, &read_state.active, key, hash, sequence, keep);
        for memtable in &read_state.immutable {
            if found.is_break() {
                return Ok(());
            }
            found = self.search_immutable(memtable, key, hash, sequence, keep);
        }
        if found.is_break() {
            Ok(())
        } else {
            search_runs(read_stats, &read_state.version.runs, key, hash, sequence, self, keep)
        }
    }

    /// After a whole source: whether a range tombstone hides all older ones.
    #[inline]
    fn end_of_source(&mut self) -> ControlFlow<()> {
        if self.cover == 0 {
            return ControlFlow::Continue(());
        }
        self.base = Base::Absent;
        ControlFlow::Break(())
    }

    /// Searches an immutable memtable.
    fn search_immutable(
        &mut self,
        memtable: &Memtable,
        key: &[u8],
        hash: u64,
        at: Sequence,
        keep: &mut impl Keep,
    ) -> ControlFlow<()> {
        self.cover = memtable.cover(key, at);
        memtable.get(key, hash, at, &mut |entry| self.take(keep, entry, || Slice::copy(entry.value)))?;
        self.end_of_source()
    }

    /// Searches the active memtable, the first of all sources.
    #[inline]
    fn search_active(
        &mut self,
        last_sequence: &AtomicU64,
        memtable: &Memtable,
        key: &[u8],
        hash: u64,
        at: Sequence,
        keep: &mut impl Keep,
    ) -> ControlFlow<()> {
        if !memtable.has_range_tombstones() {
            let found = memtable.get(key, hash, at, &mut |entry| self.take(keep, entry, || Slice::copy(entry.value)));
            // Operands may belong to a range tombstone that was just written below them.
            if self.operands.is_empty() || !memtable.has_range_tombstones() {
                return found;
            }
        }
        self.search_covered(last_sequence, memtable, key, hash, at, keep)
    }

    /// As `search_active`, with range tombstones. One of a batch that is not finished counts only
    /// for what the batch itself wrote: a batch that replaces a range never shows it empty.
    #[cold]
    fn search_covered(
        &mut self,
        last_sequence: &AtomicU64,
        memtable: &Memtable,
        key: &[u8],
        hash: u64,
        at: Sequence,
        keep: &mut impl Keep,
    ) -> ControlFlow<()> {
        loop {
            *self = Lookup::new(self.now_ms);
            let finished = last_sequence.load(Ordering::Acquire);
            let mut bound = None;
            let found = memtable.get(key, hash, at, &mut |entry| {
                if bound.is_none() {
                    // Looked up after the entry was found: what it was written upon is there.
                    let newest = at.min(finished.max(entry.sequence));
                    self.cover = memtable.cover(key, newest);
                    bound = Some(newest);
                }
                self.take(keep, entry, || Slice::copy(entry.value))
            });
            let newest = bound.unwrap_or(at.min(finished));
            if bound.is_none() {
                self.cover = memtable.cover(key, newest);
            }
            // A tombstone written in the meantime may have taken the place of the one that counts:
            // see `memtable/tombstones.rs`.
            if newest == at || memtable.cover(key, at) <= newest || last_sequence.load(Ordering::Acquire) == finished {
                found?;
                return self.end_of_source();
            }
        }
    }
}

/// The value of `key` as of `point`.
pub fn get(inner: &Inner, keyspace: &KeyspaceInner, key: &[u8], point: ReadPoint<'_>) -> Result<Option<Slice>> {
    // Held until the value is loaded: it keeps the file of a large one.
    let loaded = keyspace.read_state.load();
    let read_state = keyspace.visible(&loaded, point)?;
    let mut lookup = Lookup::new(point.now_ms);
    lookup.search(Sources::new(inner, keyspace, read_state), key, point.sequence, &mut Pinned)?;
    if !lookup.operands.is_empty() {
        return value_of(inner, keyspace, &read_state.merge_epoch, key, lookup);
    }
    match lookup.base {
        Base::Value(value) => Ok(Some(value)),
        Base::None | Base::Absent | Base::First | Base::Copied => Ok(None),
        Base::Blob(reference) => Ok(Some(Slice::from(blob_value::load(inner, &reference)?))),
    }
}

/// As [`get`], but puts the value in the place of what `out` holds, and says whether there is one;
/// without one `out` is empty. The usual value is copied from where it lies: nothing is allocated,
/// and no counter that others share is touched.
pub fn get_into(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    key: &[u8],
    point: ReadPoint<'_>,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let loaded = keyspace.read_state.load();
    let read_state = keyspace.visible(&loaded, point).inspect_err(|_| out.clear())?;
    let mut lookup = Lookup::new(point.now_ms);
    let searched = lookup.search(Sources::new(inner, keyspace, read_state), key, point.sequence, out);
    if matches!(lookup.base, Base::Copied) && lookup.operands.is_empty() && searched.is_ok() {
        return Ok(true);
    }
    // What was there before, or what was copied before a range tombstone over it was seen.
    out.clear();
    searched?;
    if lookup.operands.is_empty() && !matches!(lookup.base, Base::Blob(_)) {
        return Ok(false);
    }
    let value = value_of(inner, keyspace, &read_state.merge_epoch, key, lookup)?;
    value.iter().for_each(|value| out.extend_from_slice(value));
    Ok(value.is_some())
}

/// When the value of `key` expires, if it has one.
pub fn expires_at(inner: &Inner, keyspace: &KeyspaceInner, key: &[u8], point: ReadPoint<'_>) -> Result<Option<Expiry>> {
    let loaded = keyspace.read_state.load();
    let read_state = keyspace.visible(&loaded, point)?;
    let lookup = look_up(Sources::new(inner, keyspace, read_state), key, point.sequence, point.now_ms)?;
    let expiry_ms = lookup.expiry_ms;
    if lookup.operands.is_empty() && matches!(lookup.base, Base::Blob(_)) {
        return Ok(Some(Expiry::from_ms(expiry_ms)));
    }
    // Operands may amount to no value.
    Ok(value_of(inner, keyspace, &read_state.merge_epoch, key, lookup)?.map(|_| Expiry::from_ms(expiry_ms)))
}

/// Collects the versions of `key` that a reader at `sequence` and `now_ms` has to look at.
pub fn look_up(sources: Sources<'_>, key: &[u8], sequence: Sequence, now_ms: u64) -> Result<Lookup> {
    let mut lookup = Lookup::new(now_ms);
    lookup.search(sources, key, sequence, &mut Pinned)?;
    Ok(lookup)
}

/// The value that a lookup amounts to. The caller holds the read state that was searched, whose
/// `merge_epoch` it is.
#[cold]
pub fn value_of(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    merge_epoch: &MergeEpoch,
    key: &[u8],
    lookup: Lookup,
) -> Result<Option<Slice>> {
    let lacks_base = matches!(lookup.base, Base::None | Base::Absent);
    let base = match lookup.base {
        // What operands lie on is not copied.
        Base::None | Base::Absent | Base::First | Base::Copied => None,
        Base::Value(value) => Some(value),
        Base::Blob(reference) => Some(Slice::from(blob_value::load(inner, &reference)?)),
    };
    if lookup.operands.is_empty() {
        return Ok(base);
    }
    let settings = keyspace.merge_settings(merge_epoch);
    if lacks_base && settings.expires() {
        // An operand that lost what it was combined with: when that expired, if the clock stepped
        // back since, or to a compaction filter.
        return Ok(None);
    }
    let operands: Vec<&[u8]> = lookup.operands.iter().rev().map(|operand| &**operand).collect();
    Ok(full_merge(inner, keyspace, &settings, key, base.as_deref(), &operands)?.map(Slice::from))
}

/// Starts loading what the search will look at first, in all sources: one wait instead of one after
/// the other. Of a run of several tables, the search for the right one would cost too much if a
/// memtable has the key.
#[inline]
fn prefetch(read_state: &ReadState, hash: u64) {
    read_state.active.prefetch(hash);
    read_state.immutable.iter().for_each(|memtable| memtable.prefetch(hash));
    for run in &read_state.version.runs {
        if let [table] = run.tables.as_slice() {
            table.prefetch_filter(hash);
        }
    }
}

#[inline]
fn search_runs(
    read_stats: &ReadStats,
    runs: &[std::sync::Arc<crate::version::runs::Run>],
    key: &[u8],
    hash: u64,
    sequence: Sequence,
    lookup: &mut Lookup,
    keep: &mut impl Keep,
) -> Result<()> {
    if runs.len() > 1 {
        let of_several = runs.iter().filter(|run| run.tables.len() > 1);
        of_several.filter_map(|run| run.table_for(key)).for_each(|table| table.prefetch_filter(hash));
    }
    for table in runs.iter().filter_map(|run| run.table_for(key)) {
        if search_table(read_stats, table, key, hash, sequence, lookup, keep)?.is_break() {
            break;
        }
    }
    Ok(())
}

#[inline]
fn search_table(
    read_stats: &ReadStats,
    table: &Table,
    key: &[u8],
    hash: u64,
    sequence: Sequence,
    lookup: &mut Lookup,
    keep: &mut impl Keep,
) -> Result<ControlFlow<()>> {
    lookup.cover = table.range_tombstones().cover(key, sequence);
    let mut found = false;
    let mut visit = |FoundEntry { sequence, kind, expiry_ms, value }: FoundEntry<'_>| {
        found = true;
        let entry = Entry { key, sequence, kind, expiry_ms, value: &value };
        lookup.take(keep, entry, || value.to_slice()).is_continue()
    };
    let go_on = if table.may_contain(hash) && table.policy_may_match(key) {
        read_stats.begin();
        let go_on = table.search(key, sequence, &mut visit)?;
        if !found {
            read_stats.probe_missed();
        }
        go_on
    } else {
        true
    };
    Ok(if go_on { lookup.end_of_source() } else { ControlFlow::Break(()) })
}

/// What `operands`, oldest first, make of `existing`, or why the operator cannot tell.
pub fn full_merge(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    settings: &MergeSettings,
    key: &[u8],
    existing: Option<&[u8]>,
    operands: &[&[u8]],
) -> Result<Option<Vec<u8>>> {
    keyspace.longest_chain.note(operands.len());
    let operator_name = || keyspace.operator_name_of(settings);
    let Some(operator) = settings.operator() else {
        return Err(Error::MissingMergeOperator { keyspace: keyspace.name().to_string(), operator: operator_name() });
    };
    // An error and a panic in a user's operator end here: they harm reads of this key only.
    contained::full_merge(operator, key, existing, operands).map_err(|reason| {
        inner.error_state.merge_failed();
        Error::MergeFailed {
            keyspace: keyspace.name().to_string(),
            key: escape_key(keyspace.order.key_of(key)),
            operator: operator_name(),
            reason: reason.0,
        }
    })
}
