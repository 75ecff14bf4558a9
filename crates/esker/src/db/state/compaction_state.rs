//! What compaction remembers of a keyspace. Read by compactions, under the job lock, and in small
//! part by other threads.

use crate::base::sync::ArcSwapOption;
use crate::compaction_filter::CompactionFilter;
use crate::options::CompactionStyle;
use crate::version::runs::Version;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// See the module's comment. All locks in here are leaves.
#[derive(Default)]
pub struct CompactionState {
    style: Mutex<CompactionStyle>,
    filter: ArcSwapOption<Arc<dyn CompactionFilter>>,
    /// Dead entries that scans have skipped since the last full compaction: deleted, expired or
    /// overwritten ones.
    pub tombstones_skipped: AtomicU64,
    /// The newest write in a table that was dropped with what it held alive.
    dropped_until: AtomicU64,
    /// Operands up to this write may have lost what they were written upon, though no job of this
    /// process took it for expired.
    bases_lost_until: AtomicU64,
    /// Tables that were rewritten for what is dead in them, without effect.
    rewrite_futile: Mutex<BTreeSet<u64>>,
    /// The last automatic compaction that was divided among threads failed.
    division_failed: AtomicBool,
    /// See [`CompactionState::last_failure`].
    last_failure: AtomicU64,
}

impl CompactionState {
    pub fn style(&self) -> CompactionStyle {
        *self.style.lock()
    }

    pub fn set_style(&self, style: CompactionStyle) {
        *self.style.lock() = style;
    }

    pub fn filter(&self) -> Option<Arc<dyn CompactionFilter>> {
        self.filter.load().as_deref().cloned()
    }

    pub fn set_filter(&self, filter: Arc<dyn CompactionFilter>) {
        self.filter.store(Some(Arc::new(filter)));
    }

    /// When the last compaction failed, in the order of those of all keyspaces; 0 if it did not.
    pub fn last_failure(&self) -> u64 {
        self.last_failure.load(Relaxed)
    }

    /// Notes how a compaction ended. Call under the job lock.
    pub fn set_last_failure(&self, place: u64) {
        self.last_failure.store(place, Relaxed);
    }

    /// Tables that are not to be rewritten again.
    pub fn rewrite_futile(&self) -> BTreeSet<u64> {
        self.rewrite_futile.lock().clone()
    }

    /// Remembers tables as such, and forgets those that are not in `version` any more.
    pub fn settle(&self, numbers: impl IntoIterator<Item = u64>, version: &Version) {
        let present: BTreeSet<u64> = version.tables().map(|(_, table)| table.summary().file_number).collect();
        let mut rewrite_futile = self.rewrite_futile.lock();
        rewrite_futile.extend(numbers);
        rewrite_futile.retain(|number| present.contains(number));
    }

    /// The newest write in a table that was dropped with what it held alive; 0 if none was.
    pub fn dropped_until(&self) -> u64 {
        self.dropped_until.load(Relaxed)
    }

    /// Notes that such a table is dropped. Call before it is.
    pub fn note_dropped(&self, newest: u64) {
        self.dropped_until.fetch_max(newest, Relaxed);
    }

    /// Whether what the operand written at `sequence` was written upon is still there, unless a job
    /// of this process took it for expired. Call under the writer lock.
    #[inline]
    pub fn has_kept_base(&self, sequence: u64) -> bool {
        sequence > self.bases_lost_until.load(Relaxed)
    }

    /// Notes that operands up to the write `until` may have lost what they were written upon. Call
    /// under the writer lock once it is gone, and if writes go on beside that, with the greatest
    /// number before it goes.
    pub fn note_lost_bases(&self, until: u64) {
        self.bases_lost_until.store(until, Relaxed);
    }

    /// Whether the last automatic compaction that was divided among threads failed: the next one is
    /// not divided, as the system may refuse threads.
    pub fn division_failed(&self) -> bool {
        self.division_failed.load(Relaxed)
    }

    /// Notes how such a compaction ended.
    pub fn note_failed_division(&self, failed: bool) {
        self.division_failed.store(failed, Relaxed);
    }

    /// Resets the count of dead entries that scans have skipped.
    pub fn forgive_scans(&self) {
        self.tombstones_skipped.store(0, Relaxed);
    }
}
