//! What the log keeps for readers of changes, and when it goes: `archive.rs` has the segments.

use super::writer::{LogSync, Position};
use crate::base::key::Sequence;
use crate::error::Result;

impl LogSync {
    /// Where changes are kept, keeps the segments before `floor`, which a durable manifest must
    /// name, with everything in them on the device. To be called before [`LogSync::release`].
    pub fn archive(&self, floor: u64, now_ms: u64) -> Result<()> {
        if !self.keeps_changes() {
            return Ok(());
        }
        self.sync_to(Position { segment: floor, offset: 0 })?;
        let mut state = self.state.lock();
        while state.retired.front().is_some_and(|old| old.segment.number < floor) {
            if let Some(old) = state.retired.pop_front() {
                state.archive.push(old, now_ms);
            }
        }
        Ok(())
    }

    /// Whether segments are kept for readers of changes.
    pub fn keeps_changes(&self) -> bool {
        self.keeps_changes
    }

    /// The write from which on changes are to be kept, and the oldest segment that will have them,
    /// if some are kept for long enough now. A durable manifest must say so before
    /// [`LogSync::forget_changes`].
    pub fn changes_from(&self, now_ms: u64) -> Option<(Sequence, u64)> {
        let state = self.state.lock();
        let (last, oldest) = state.archive.last_expendable(now_ms)?;
        let oldest = oldest.or_else(|| state.segments().next().map(|segment| segment.number));
        Some((last + 1, oldest.unwrap_or(state.active.number)))
    }

    /// Releases the segments that were kept for changes before `from`.
    pub fn forget_changes(&self, from: Sequence) {
        let mut state = self.state.lock();
        let gone = state.archive.take_until(from.saturating_sub(1));
        state.free.extend(gone);
    }

    /// The number of the segment that records go to.
    pub fn active_segment(&self) -> u64 {
        self.state.lock().active.number
    }

    /// The number of the oldest segment that holds records.
    pub fn oldest_segment(&self) -> u64 {
        let state = self.state.lock();
        let oldest = state.segments().next().map(|segment| segment.number);
        state.archive.oldest().or(oldest).unwrap_or(state.active.number)
    }

    /// Bytes of the files that are kept for readers of changes.
    pub fn archived_bytes(&self) -> u64 {
        self.state.lock().archive.file_bytes()
    }
}
