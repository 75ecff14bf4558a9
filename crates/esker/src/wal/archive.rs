//! Segments that recovery needs no more, kept for readers of changes.
//!
//! The log from the oldest of them on is whole: segments come in at the new end, with everything in
//! them on the device, and go out at the old one. How far they go back, the manifest says
//! (`version/edit.rs`): a segment goes only when a durable manifest says that changes are kept from
//! behind it on.

use super::segment::{FreeFile, Retired};
use crate::base::key::Sequence;
use crate::options::ChangeRetention;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// See the module's comment.
#[derive(Debug, Default)]
pub struct Archive {
    /// None: no changes are kept.
    retention: Option<ChangeRetention>,
    /// Oldest first.
    segments: VecDeque<Archived>,
}

#[derive(Debug)]
struct Archived {
    retired: Retired,
    /// When it came in, by the wall clock: no earlier than its last write.
    since_ms: u64,
}

impl Archived {
    fn record_bytes(&self) -> u64 {
        self.retired.segment.written.load(Ordering::Relaxed)
    }
}

impl Archive {
    /// What a start has found. Of the newest one the last write is not known yet.
    pub(super) fn found(oldest_first: impl Iterator<Item = Retired>) -> Archive {
        let segments = oldest_first.map(|retired| Archived { retired, since_ms: 0 }).collect();
        Archive { retention: None, segments }
    }

    /// Keeps the segments that were found for as long as this says, from now on: when they came in
    /// is not known any more. `last_sequence`: the last write in the newest one, or a later one
    /// that is in none.
    pub fn keep(&mut self, retention: ChangeRetention, last_sequence: Sequence, now_ms: u64) {
        self.retention = Some(retention);
        // Those without writes have the number of the one after them.
        for archived in self.segments.iter_mut().rev().take_while(|archived| archived.retired.last_sequence == 0) {
            archived.retired.last_sequence = last_sequence;
        }
        self.segments.iter_mut().for_each(|archived| archived.since_ms = now_ms);
    }

    /// Gives up all that was found.
    pub fn clear(&mut self, free: &mut Vec<FreeFile>) {
        free.extend(self.take_until(Sequence::MAX));
    }

    /// Whether segments are kept.
    pub fn keeps_changes(&self) -> bool {
        self.retention.is_some()
    }

    /// Takes the segment behind those that are here.
    pub(super) fn push(&mut self, retired: Retired, now_ms: u64) {
        self.segments.push_back(Archived { retired, since_ms: now_ms });
    }

    /// The last write of the newest segment that is to go, if one is, and the number of the first
    /// one behind it, if that is here.
    pub(super) fn last_expendable(&self, now_ms: u64) -> Option<(Sequence, Option<u64>)> {
        let expendable = match self.retention? {
            ChangeRetention::Time(time) => {
                let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                let is_old = |archived: &&Archived| now_ms.saturating_sub(archived.since_ms) >= time_ms;
                self.segments.iter().take_while(is_old).count()
            }
            ChangeRetention::Bytes(bytes) => {
                let mut rest: u64 = self.segments.iter().map(Archived::record_bytes).sum();
                let is_beyond = |archived: &&Archived| {
                    rest -= archived.record_bytes();
                    rest >= bytes
                };
                self.segments.iter().take_while(is_beyond).count()
            }
        };
        let last = self.segments.get(expendable.checked_sub(1)?)?.retired.last_sequence;
        Some((last, self.segments.get(expendable).map(|archived| archived.retired.segment.number)))
    }

    /// The files of the segments up to that with the write `last`; they are not kept any more.
    pub(super) fn take_until(&mut self, last: Sequence) -> Vec<FreeFile> {
        let count = self.segments.iter().take_while(|archived| archived.retired.last_sequence <= last).count();
        self.segments.drain(..count).map(|archived| archived.retired.segment.to_free()).collect()
    }

    /// The number of the oldest segment.
    pub fn oldest(&self) -> Option<u64> {
        self.segments.front().map(|archived| archived.retired.segment.number)
    }

    /// Bytes of the files.
    pub(super) fn file_bytes(&self) -> u64 {
        self.segments.iter().map(|archived| archived.retired.segment.file.len()).sum()
    }
}
