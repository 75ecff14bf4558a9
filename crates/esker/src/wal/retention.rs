//! What the log keeps for readers of changes, and when it goes: `archive.rs` has the segments.

use super::archive::Expendable;
use super::log_sync::LogSync;
use super::segment::Position;
use crate::base::key::Sequence;
use std::sync::atomic::Ordering;

impl LogSync {
    /// Where changes are kept, keeps the segments before `floor`, which a durable manifest must
    /// name. To be called before [`LogSync::release`]. Everything in them is on the device: where
    /// changes are kept, a flush and a drop sync the log before the edit that raises the floor.
    pub fn archive(&self, floor: u64, now_ms: u64) {
        if !self.keeps_changes() {
            return;
        }
        let mut gone = Vec::new();
        let mut state = self.state.lock();
        while state.retired.front().is_some_and(|old| old.segment.number < floor) {
            if let Some(old) = state.retired.pop_front() {
                state.archive.push(&old, now_ms);
                gone.push(old);
            }
        }
        state.leaving.retain(|segment| segment.number >= floor);
        drop(state);
        // Closing a file takes a mapping down, which takes a while.
        drop(gone);
    }

    /// Where the log ended that this run goes on from.
    pub fn end_of_replayed(&self) -> Position {
        let state = self.state.lock();
        let last = state.retired.back().map(|last| &last.segment);
        last.map_or(Position::default(), |last| Position {
            segment: last.number,
            offset: last.written.load(Ordering::Relaxed),
        })
    }

    /// The number of the segment that the active one leads back to; 0 if there is none.
    pub fn segment_before_active(&self) -> u64 {
        let state = self.state.lock();
        let retired = state.retired.back().map(|last| last.segment.number);
        retired.or(state.archive.newest().map(|newest| newest.number)).unwrap_or(0)
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
        let Expendable { next_sequence, next_segment } = state.archive.expendable(now_ms)?;
        let oldest = next_segment.or_else(|| state.segments().next().map(|segment| segment.number));
        Some((next_sequence, oldest.unwrap_or(state.active.number)))
    }

    /// Gives up the segments before `segment`, which were kept for changes: the next
    /// [`LogSync::release`] returns their files for removal.
    pub fn forget_changes(&self, segment: u64) {
        let gone = self.state.lock().archive.take_before(segment);
        let free: Vec<_> = gone.into_iter().filter_map(|archived| archived.reopen(&self.maker)).collect();
        self.state.lock().free.extend(free);
    }

    /// The number of the segment that records go to.
    pub fn active_segment(&self) -> u64 {
        self.state.lock().active.number
    }

    /// Behind the last record that was written.
    pub fn end(&self) -> Position {
        let state = self.state.lock();
        Position { segment: state.active.number, offset: state.active.written.load(Ordering::Acquire) }
    }

    /// The number of the oldest segment that holds records.
    pub fn oldest_segment(&self) -> u64 {
        let state = self.state.lock();
        let oldest = state.segments().next().map(|segment| segment.number);
        let archived = state.archive.oldest().map(|archived| archived.number);
        archived.or(oldest).unwrap_or(state.active.number)
    }

    /// Bytes of the files that are kept for readers of changes.
    pub fn archived_bytes(&self) -> u64 {
        self.state.lock().archive.file_bytes()
    }
}
