//! The read path for a range: a cursor over what a reader at one sequence number sees.
//!
//! Under it is a merging cursor over every memtable run and every table run of one read state,
//! which passes all versions of all keys in internal key order. Going forward, the first version of
//! a key that is not too new decides; going backward, the last one passed. A put that decides is
//! handed out from where it lies, going backward if it is the only version of its key; everything
//! else is copied. Where the merged cursor knows of several such puts in a row, the scan steps
//! through them without checking each: they are counted for a whole block at a time. A seek to the
//! first key begins behind the dead entries that earlier seeks from there have skipped
//! (`tombstone_skip_cache.rs`).

use crate::base::expiry::visible;
use crate::base::key::{Kind, MAX_SEQUENCE, NEVER, Sequence};
use crate::base::key_order::KeyOrder;
use crate::base::slice::Slice;
use crate::db::read::get::full_merge;
use crate::db::read::{blob_value, memtable_sort};
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::db::state::merge_settings::MergeSettings;
use crate::db::state::read_state::ReadState;
use crate::db::state::snapshots::SnapshotGuard;
use crate::db::state::tombstone_skip_cache::LEAST_PASSED;
use crate::env::mapping_fault_seen;
use crate::error::Result;
use crate::iter::merging::MergingCursor;
use crate::iter::skipping::Covers;
use crate::iter::{Cursor as _, PlainSearch};
use crate::version::cursor::AnyCursor;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Skipped dead entries are reported in portions of at least this many, and at the end of the scan.
const REPORT_SKIPPED: u64 = 256;

/// A memtable that is scanned while it is written has about so many runs.
const RUNS_OF_A_MEMTABLE: usize = 4;

/// What cursors of one scan have in common: the state they see.
#[derive(Clone)]
pub struct Source {
    pub inner: Arc<Inner>,
    pub keyspace: Arc<KeyspaceInner>,
    pub snapshot_guard: Arc<SnapshotGuard>,
    read_state: Arc<ReadState>,
}

impl Source {
    /// The keyspace as the registered reader sees it.
    ///
    /// # Errors
    /// `KeyspaceDropped`, if that was before.
    pub fn new(
        inner: &Arc<Inner>,
        keyspace: &Arc<KeyspaceInner>,
        snapshot_guard: Arc<SnapshotGuard>,
    ) -> Result<Source> {
        // Loaded after the snapshot guard is registered: a flush or compaction before kept what the
        // reader sees.
        let loaded = keyspace.read_state.load();
        let read_state = Arc::clone(keyspace.visible(&loaded, snapshot_guard.point())?);
        Ok(Source { inner: Arc::clone(inner), keyspace: Arc::clone(keyspace), snapshot_guard, read_state })
    }

    /// What operands in it are combined by.
    fn merge_settings(&self) -> MergeSettings {
        self.keyspace.merge_settings(&self.read_state.merge_epoch)
    }

    /// All entries but those that range tombstones of newer sources hide; and what all range
    /// tombstones hide.
    fn merged(&self) -> (MergingCursor<AnyCursor>, Covers) {
        let sequence = self.snapshot_guard.sequence();
        let memtables = [&self.read_state.active].into_iter().chain(&self.read_state.immutable);
        let memtables = memtables.filter(|memtable| !memtable.is_empty());
        // No more than needed: allocators take a slow path for more than a KiB, which is that of a
        // few cursors.
        let in_memory = memtables.clone().count() * RUNS_OF_A_MEMTABLE;
        let mut children: Vec<AnyCursor> = Vec::with_capacity(in_memory + self.read_state.version.runs.len());
        let mut newer = Vec::new();
        for memtable in memtables {
            let has_runs_to_merge =
                memtable.cursors(|cursor| children.push(AnyCursor::Memory(cursor).behind(&newer, sequence)));
            if has_runs_to_merge && Arc::ptr_eq(memtable, &self.read_state.active) {
                memtable_sort::want_merged(&self.inner);
            }
            if memtable.has_range_tombstones() {
                newer.extend(memtable.range_tombstones());
            }
        }
        for run in &self.read_state.version.runs {
            children.push(AnyCursor::over(run, true).behind(&newer, sequence));
            if !run.range_tombstones.is_empty() {
                newer.push(Arc::clone(&run.range_tombstones));
            }
        }
        (MergingCursor::new(children, &self.keyspace.order), Covers::new(newer, sequence))
    }
}

/// Where the merged cursor is, relative to the key handed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Nothing is handed out.
    Nowhere,
    /// On the put handed out, which is borrowed from it.
    At,
    /// On the put handed out, which is borrowed from it, the only version of its key. Only going
    /// backward.
    Only,
    /// Behind all versions of the key handed out, which is in the buffers.
    Behind,
    /// Before all versions of the key handed out, which is in the buffers.
    Before,
    /// As `Behind` and `Before`, but the operands of the key in the buffer could not be combined:
    /// nothing is handed out, and a step goes on from there.
    FailedBehind,
    FailedBefore,
}

/// See the module's comment.
pub struct ScanCursor {
    source: Source,
    sequence: Sequence,
    now_ms: u64,
    /// Entries passed that no reader at this point of time sees, not reported yet.
    skipped: u64,
    /// Entries passed since the last seek because they were deleted; `None` once something was
    /// passed that may be seen again.
    deleted: Option<u64>,
    merged: MergingCursor<AnyCursor>,
    covers: Covers,
    place: Place,
    /// How many entries follow in the direction of the last step that are to be handed out as they
    /// are. Not 0 only at `At` and `Only`.
    plain: usize,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    key: Vec<u8>,
    value: Vec<u8>,
    /// Values are not wanted: large ones with nothing merged into them are not loaded.
    keys_only: bool,
}

impl ScanCursor {
    /// A cursor over the keys between the bounds, at none of them yet.
    ///
    /// # Errors
    /// `InCallback` in a comparator, which may be called while the memtables' order is made.
    pub fn new(source: Source, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Result<ScanCursor> {
        if source.inner.number.is_comparing() {
            return Err(source.inner.in_callback());
        }
        let sequence = source.snapshot_guard.sequence();
        let now_ms = source.snapshot_guard.now_ms();
        let (merged, covers) = source.merged();
        Ok(ScanCursor {
            source,
            sequence,
            now_ms,
            skipped: 0,
            deleted: None,
            merged,
            covers,
            place: Place::Nowhere,
            plain: 0,
            lower,
            upper,
            key: Vec::new(),
            value: Vec::new(),
            keys_only: false,
        })
    }

    /// The order of the keys.
    #[inline]
    pub fn order(&self) -> &KeyOrder {
        &self.source.keyspace.order
    }

    /// From now on keys alone are handed out.
    pub fn skip_values(&mut self) {
        self.keys_only = true;
    }

    /// From now on only keys between the bounds are handed out. The cursor is at none of them.
    pub fn restrict(&mut self, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) {
        self.leave();
        self.lower = lower;
        self.upper = upper;
    }

    #[inline]
    pub fn valid(&self) -> bool {
        matches!(self.place, Place::At | Place::Only | Place::Behind | Place::Before)
    }

    /// The key that the cursor is at, or whose operands could not be combined there.
    pub fn reached(&self) -> Option<&[u8]> {
        match self.place {
            Place::Nowhere => None,
            Place::At | Place::Only => Some(self.merged.key()),
            _ => Some(&self.key),
        }
    }

    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.place {
            Place::At | Place::Only => self.merged.key(),
            Place::Behind | Place::Before => &self.key,
            _ => &[],
        }
    }

    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.place {
            Place::At | Place::Only => self.merged.value(),
            Place::Behind | Place::Before => &self.value,
            _ => &[],
        }
    }

    /// Whether what was handed out is to be believed, and what calls that return no `Result` have
    /// said: see [`Cursor::intact`](crate::iter::Cursor::intact). If not, the cursor is at no key
    /// any more.
    #[inline]
    pub fn intact(&mut self) -> Result<()> {
        if mapping_fault_seen() { self.look_at_fault() } else { Ok(()) }
    }

    #[cold]
    fn look_at_fault(&mut self) -> Result<()> {
        let borrows = matches!(self.place, Place::At | Place::Only);
        let intact = if borrows { self.merged.intact() } else { Ok(()) };
        if intact.is_err() {
            self.leave();
        }
        intact
    }

    /// The key, as the program knows it, and the value, copied.
    pub fn item(&mut self) -> Result<(Slice, Slice)> {
        let item = (Slice::copy(self.order().key_of(self.key())), Slice::copy(self.value()));
        self.intact()?;
        Ok(item)
    }

    /// The key, as the program knows it, copied.
    pub fn key_item(&mut self) -> Result<Slice> {
        let key = Slice::copy(self.order().key_of(self.key()));
        self.intact()?;
        Ok(key)
    }

    fn leave(&mut self) {
        self.place = Place::Nowhere;
        self.plain = 0;
    }

    /// Begins a search for another place.
    fn begin(&mut self) -> Result<()> {
        let left = self.intact();
        self.leave();
        left
    }

    pub fn seek_to_first(&mut self) -> Result<()> {
        // Not read meanwhile.
        let lower = std::mem::replace(&mut self.lower, Bound::Unbounded);
        let result = match &lower {
            Bound::Unbounded => self.seek_from(&[]),
            Bound::Included(key) => self.seek_from(key),
            // The next key that there can be.
            Bound::Excluded(key) => self.seek_from(&self.order().successor(key)),
        };
        self.lower = lower;
        result
    }

    pub fn seek_to_last(&mut self) -> Result<()> {
        self.begin()?;
        match &self.upper {
            Bound::Unbounded => self.merged.seek_to_last()?,
            Bound::Excluded(key) => {
                self.merged.seek(key, MAX_SEQUENCE)?;
                step_back(&mut self.merged)?;
            }
            Bound::Included(key) => {
                self.merged.seek(key, 0)?;
                // A version with sequence number 0 lies at the place itself.
                while self.merged.valid() && self.merged.entry().key == key.as_slice() {
                    self.merged.next()?;
                }
                step_back(&mut self.merged)?;
            }
        }
        self.settle_backward()
    }

    /// Moves to the first key at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        if !self.order().is_above(self.lower.as_ref().map(Vec::as_slice), key) {
            return self.seek_to_first();
        }
        self.seek_from(key)
    }

    /// Moves to the first key at or after `from`, which lies within the lower bound, behind the
    /// dead entries that other scans from there have skipped.
    fn seek_from(&mut self, from: &[u8]) -> Result<()> {
        self.begin()?;
        self.deleted = Some(0);
        match self.source.keyspace.tombstone_skip_cache.behind(from, self.sequence) {
            Some(end) => self.merged.seek(&end, MAX_SEQUENCE)?,
            None if from.is_empty() => self.merged.seek_to_first()?,
            None => self.merged.seek(from, MAX_SEQUENCE)?,
        }
        self.settle_forward()?;
        if self.deleted.is_some_and(|deleted| deleted >= LEAST_PASSED) {
            self.remember(from);
        }
        Ok(())
    }

    /// Records for later scans that no key is visible from `from` up to the position of this one.
    #[cold]
    fn remember(&self, from: &[u8]) {
        let (sequence, passed) = (self.sequence, &self.source.keyspace.tombstone_skip_cache);
        // Not waited for: a scan takes the writer lock only if it is free, and can do without this.
        // A database that is only read has no writes to watch.
        if let Some(writer) = self.source.inner.writer.try_lock()
            && writer.log.is_some()
        {
            // Without a key to see, the last one that was passed is in the buffer.
            passed.note_passed(from, self.reached().unwrap_or(&self.key), sequence, writer.last_sequence);
        }
    }

    /// Moves to the last key at or before `key`.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        if !self.order().is_below(self.upper.as_ref().map(Vec::as_slice), key) {
            return self.seek_to_last();
        }
        self.begin()?;
        self.merged.seek(key, 0)?;
        while self.merged.valid() && self.merged.entry().key == key {
            self.merged.next()?;
        }
        step_back(&mut self.merged)?;
        self.settle_backward()
    }

    #[inline]
    pub fn next(&mut self) -> Result<()> {
        if self.place == Place::At && self.plain > 0 {
            self.plain -= 1;
            self.merged.step_plain(false);
            return self.intact();
        }
        self.next_version()
    }

    /// How many plain entries follow the one that the merged cursor is at.
    #[inline]
    fn plain_run(&mut self, backward: bool) -> usize {
        if !self.covers.is_empty() {
            return 0;
        }
        let bound = if backward { &self.lower } else { &self.upper };
        let until = match bound {
            Bound::Unbounded => None,
            // A key at an included bound is left to a step that checks it.
            Bound::Included(key) | Bound::Excluded(key) => Some(key.as_slice()),
        };
        self.merged.plain_run(PlainSearch { sequence: self.sequence, backward, until })
    }

    /// A step that is not through plain entries, or to the first of them.
    fn next_version(&mut self) -> Result<()> {
        self.plain = 0;
        match self.place {
            Place::Nowhere => return Ok(()),
            Place::Behind | Place::FailedBehind => {}
            Place::At | Place::Only => {
                let plain = if self.place == Place::At { self.plain_run(false) } else { 0 };
                if plain > 0 {
                    self.plain = plain - 1;
                    self.merged.step_plain(false);
                    return self.intact();
                }
                self.key.clear();
                self.key.extend_from_slice(self.merged.key());
                self.place = Place::Nowhere;
                self.merged.next()?;
                self.skip_older_versions()?;
            }
            Place::Before | Place::FailedBefore => {
                self.place = Place::Nowhere;
                self.merged.seek(&self.key, 0)?;
                self.skip_older_versions()?;
            }
        }
        self.place = Place::Nowhere;
        self.settle_forward()
    }

    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        if self.place == Place::Only && self.plain > 0 {
            self.plain -= 1;
            self.merged.step_plain(true);
            return self.intact();
        }
        self.prev_version()
    }

    /// As `next_version`, backward.
    fn prev_version(&mut self) -> Result<()> {
        self.plain = 0;
        match self.place {
            Place::Nowhere => return Ok(()),
            Place::Only => {
                let plain = self.plain_run(true);
                if plain > 0 {
                    self.plain = plain - 1;
                    self.merged.step_plain(true);
                    return self.intact();
                }
                self.place = Place::Nowhere;
                self.merged.prev()?;
            }
            Place::Before | Place::FailedBefore => {}
            Place::At | Place::Behind | Place::FailedBehind => {
                let key = self.reached().unwrap_or_default().to_vec();
                self.place = Place::Nowhere;
                self.merged.seek(&key, MAX_SEQUENCE)?;
                step_back(&mut self.merged)?;
            }
        }
        self.place = Place::Nowhere;
        self.settle_backward()
    }

    /// Passes what is left of the key in the buffer.
    #[inline]
    fn skip_older_versions(&mut self) -> Result<()> {
        while self.merged.valid() && self.merged.entry().key == self.key.as_slice() {
            self.skipped += 1;
            self.merged.next()?;
        }
        Ok(())
    }

    /// Reports the dead entries skipped: for statistics, and as a reason to compact.
    #[cold]
    fn report_skipped(&mut self) {
        let skipped = std::mem::take(&mut self.skipped);
        self.source.inner.counters.skipped_entries.fetch_add(skipped, Relaxed);
        self.source.keyspace.compaction.tombstones_skipped.fetch_add(skipped, Relaxed);
    }

    /// From the first version of some key on, finds the first key that the reader sees.
    #[inline]
    fn settle_forward(&mut self) -> Result<()> {
        while self.merged.valid() {
            let entry = self.merged.entry();
            // Before anything else: what lies behind the bound can be much, and too new.
            if !self.order().is_below(self.upper.as_ref().map(Vec::as_slice), entry.key) {
                return Ok(());
            }
            if entry.sequence > self.sequence {
                self.merged.next()?;
                continue;
            }
            // The newest version decides; once it has expired it masks everything older, as a
            // delete does.
            let is_expired = !visible(entry.expiry_ms, self.now_ms);
            let dead = is_expired || self.covers.hides(&entry);
            match if dead { Kind::Delete } else { entry.kind } {
                Kind::Put => {
                    self.place = Place::At;
                    return Ok(());
                }
                Kind::Delete => {
                    self.key.clear();
                    self.key.extend_from_slice(entry.key);
                    self.skipped += 1;
                    self.deleted = if is_expired { None } else { self.deleted.map(|deleted| deleted + 1) };
                    self.merged.next()?;
                    self.skip_older_versions()?;
                    if self.skipped >= REPORT_SKIPPED {
                        self.report_skipped();
                    }
                }
                Kind::Merge | Kind::MergeFirst | Kind::PutBlob => {
                    if self.merge_forward()? {
                        self.place = Place::Behind;
                        return Ok(());
                    }
                    self.deleted = None;
                }
            }
        }
        Ok(())
    }

    /// At the newest visible version of a key, a merge or a large value: combines it with the older
    /// ones, and goes behind them all. Whether the key has a value.
    #[cold]
    fn merge_forward(&mut self) -> Result<bool> {
        self.key.clear();
        self.key.extend_from_slice(self.merged.entry().key);
        let mut newest_first: Vec<Vec<u8>> = Vec::new();
        let mut existing = None;
        let (mut has_base, mut is_large) = (false, false);
        while self.merged.valid() && self.merged.entry().key == self.key.as_slice() {
            let entry = self.merged.entry();
            if self.covers.hides(&entry) {
                break;
            }
            let (kind, value) = (entry.kind, entry.value.to_vec());
            self.merged.next()?;
            match kind {
                Kind::Merge => newest_first.push(value),
                Kind::MergeFirst => {
                    newest_first.push(value);
                    has_base = true;
                    break;
                }
                Kind::Put | Kind::PutBlob => {
                    existing = Some(value);
                    has_base = true;
                    is_large = kind == Kind::PutBlob;
                    break;
                }
                Kind::Delete => break,
            }
        }
        self.skip_older_versions()?;
        if !has_base && self.source.merge_settings().expires() {
            return Ok(false);
        }
        if is_large && self.keys_only && newest_first.is_empty() {
            self.value.clear();
            return Ok(true);
        }
        newest_first.reverse();
        self.place = Place::FailedBehind;
        if is_large {
            existing = existing.map(|reference| blob_value::load(&self.source.inner, &reference)).transpose()?;
        }
        let has_value = self.merge_into_value(existing, &newest_first)?;
        self.place = Place::Nowhere;
        Ok(has_value)
    }

    fn merge_into_value(&mut self, existing: Option<Vec<u8>>, oldest_first: &[Vec<u8>]) -> Result<bool> {
        let operands: Vec<&[u8]> = oldest_first.iter().map(Vec::as_slice).collect();
        let merged = match existing {
            existing if operands.is_empty() => existing,
            existing => {
                let Source { inner, keyspace, .. } = &self.source;
                full_merge(inner, keyspace, &self.source.merge_settings(), &self.key, existing.as_deref(), &operands)?
            }
        };
        let has_value = merged.is_some();
        self.value = merged.unwrap_or_default();
        Ok(has_value)
    }

    /// From the last version of some key on, going back, finds the first key that the reader sees.
    fn settle_backward(&mut self) -> Result<()> {
        while self.merged.valid() {
            let entry = self.merged.entry();
            if !self.order().is_above(self.lower.as_ref().map(Vec::as_slice), entry.key) {
                return Ok(());
            }
            if entry.kind == Kind::Put
                && entry.sequence <= self.sequence
                && visible(entry.expiry_ms, self.now_ms)
                && !self.covers.hides(&entry)
                && self.merged.is_first_of_key()
            {
                self.place = Place::Only;
                return self.intact();
            }
            self.key.clear();
            self.key.extend_from_slice(self.merged.key());
            if self.pass_key_backward()? {
                self.place = Place::Before;
                return Ok(());
            }
            self.skipped += 1;
            if self.skipped >= REPORT_SKIPPED {
                self.report_skipped();
            }
        }
        Ok(())
    }

    /// Passes all versions of the key in the buffer, oldest first, and leaves its value in the
    /// buffer. Whether the reader sees one.
    fn pass_key_backward(&mut self) -> Result<bool> {
        let mut has_value = false;
        let mut expiry_ms = NEVER;
        let (mut has_base, mut is_large) = (false, false);
        let mut oldest_first: Vec<Vec<u8>> = Vec::new();
        while self.merged.valid() && self.merged.entry().key == self.key.as_slice() {
            let entry = self.merged.entry();
            if entry.sequence <= self.sequence && !self.covers.hides(&entry) {
                expiry_ms = entry.expiry_ms;
                match entry.kind {
                    Kind::Merge => oldest_first.push(entry.value.to_vec()),
                    Kind::MergeFirst => {
                        oldest_first.clear();
                        has_value = false;
                        has_base = true;
                        oldest_first.push(entry.value.to_vec());
                    }
                    kind => {
                        oldest_first.clear();
                        has_value = matches!(kind, Kind::Put | Kind::PutBlob);
                        has_base = has_value;
                        is_large = kind == Kind::PutBlob;
                        self.value.clear();
                        self.value.extend_from_slice(entry.value);
                    }
                }
            }
            self.merged.prev()?;
        }
        // That of the newest version, which was passed last.
        if !visible(expiry_ms, self.now_ms) {
            return Ok(false);
        }
        if (oldest_first.is_empty() && !is_large) || !has_base && self.source.merge_settings().expires() {
            return Ok(has_value);
        }
        if is_large && self.keys_only && oldest_first.is_empty() {
            self.value.clear();
            return Ok(has_value);
        }
        let mut existing = has_value.then(|| std::mem::take(&mut self.value));
        self.place = Place::FailedBefore;
        if is_large {
            existing = existing.map(|reference| blob_value::load(&self.source.inner, &reference)).transpose()?;
        }
        let has_value = self.merge_into_value(existing, &oldest_first)?;
        self.place = Place::Nowhere;
        Ok(has_value)
    }
}

impl Drop for ScanCursor {
    fn drop(&mut self) {
        if self.skipped > 0 {
            self.report_skipped();
        }
    }
}

/// Steps back from where a seek ended, which may be behind the last entry.
fn step_back(merged: &mut MergingCursor<AnyCursor>) -> Result<()> {
    if merged.valid() { merged.prev() } else { merged.seek_to_last() }
}
