//! Segments that recovery needs no more, kept for readers of changes.
//!
//! The log from the oldest of them on is whole: segments come in at the new end, with everything in
//! them on the device, and go out at the old one. How far they go back, the manifest says
//! (`version/edit.rs`): a segment goes only when a durable manifest says that changes are kept from
//! behind it on. The files are closed meanwhile.

use super::segment::{FreeFile, Retired, SegmentMaker, Space};
use crate::base::key::{MAX_SEQUENCE, Sequence};
use crate::options::ChangeRetention;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// See the module's comment.
#[derive(Debug, Default)]
pub struct Archive {
    /// None: no changes are kept.
    retention: Option<ChangeRetention>,
    /// Oldest first; their numbers ascend.
    segments: VecDeque<Archived>,
}

/// A segment with its file closed.
#[derive(Debug)]
pub struct Archived {
    pub number: u64,
    pub path: PathBuf,
    pub file_bytes: u64,
    /// Where its records end.
    pub written: u64,
    /// The first write behind it. None: none was found, so that it is the next one to come.
    pub next_sequence: Option<Sequence>,
    /// When it came in, by the wall clock: no earlier than its last write.
    pub since_ms: u64,
}

/// What is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expendable {
    /// The first write of which changes are kept without it.
    pub next_sequence: Sequence,
    /// The first segment that stays, if that is here.
    pub next_segment: Option<u64>,
}

impl Archive {
    /// What a start has found.
    pub(super) fn found(oldest_first: impl Iterator<Item = Archived>) -> Archive {
        Archive { retention: None, segments: oldest_first.collect() }
    }

    /// Keeps the segments that were found for as long as this says, from now on: when they came in
    /// is not known any more. `last_sequence`: the last write of the database.
    pub fn keep(&mut self, retention: ChangeRetention, last_sequence: Sequence, now_ms: u64) {
        self.retention = Some(retention);
        for archived in &mut self.segments {
            archived.next_sequence.get_or_insert(next_of(last_sequence));
            archived.since_ms = now_ms;
        }
    }

    /// Whether segments are kept.
    pub fn keeps_changes(&self) -> bool {
        self.retention.is_some()
    }

    /// Takes the segment behind those that are here.
    pub(super) fn push(&mut self, Retired { segment, last_sequence }: &Retired, now_ms: u64) {
        // One that a start has found without writes has none to tell.
        let before = self.newest().and_then(|newest| newest.next_sequence).unwrap_or(0);
        self.segments.push_back(Archived {
            number: segment.number,
            path: segment.path.clone(),
            file_bytes: segment.file.len(),
            written: segment.written.load(Ordering::Relaxed),
            next_sequence: Some(before.max(next_of(*last_sequence))),
            since_ms: now_ms,
        });
    }

    /// What is kept for longer than it has to be.
    pub(super) fn expendable(&self, now_ms: u64) -> Option<Expendable> {
        let count = match self.retention? {
            ChangeRetention::Time(time) => {
                let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                let is_old = |archived: &&Archived| now_ms.saturating_sub(archived.since_ms) >= time_ms;
                self.segments.iter().take_while(is_old).count()
            }
            ChangeRetention::Bytes(bytes) => {
                let mut rest = self.file_bytes();
                let is_beyond = |archived: &&Archived| {
                    rest -= archived.file_bytes;
                    rest >= bytes
                };
                self.segments.iter().take_while(is_beyond).count()
            }
            ChangeRetention::AsBefore => 0,
        };
        let next_sequence = self.segments.get(count.checked_sub(1)?)?.next_sequence?;
        Some(Expendable { next_sequence, next_segment: self.segments.get(count).map(|archived| archived.number) })
    }

    /// Takes out the segments before `number`.
    pub(super) fn take_before(&mut self, number: u64) -> Vec<Archived> {
        let count = self.segments.iter().take_while(|archived| archived.number < number).count();
        self.segments.drain(..count).collect()
    }

    /// Takes out the segments before `number`, whose files the next `LogSync::release` removes. One
    /// that cannot be opened is left to the next start.
    pub fn free_before(&mut self, number: u64, maker: &SegmentMaker, free: &mut Vec<FreeFile>) {
        free.extend(self.take_before(number).into_iter().filter_map(|archived| archived.reopen(maker)));
    }

    /// The oldest segment.
    pub fn oldest(&self) -> Option<&Archived> {
        self.segments.front()
    }

    /// The newest segment.
    pub fn newest(&self) -> Option<&Archived> {
        self.segments.back()
    }

    /// Bytes of the files.
    pub(super) fn file_bytes(&self) -> u64 {
        self.segments.iter().map(|archived| archived.file_bytes).sum()
    }
}

/// Behind the last number, which only a forged database reaches, there is none, and an open would
/// refuse a manifest with one.
fn next_of(last_sequence: Sequence) -> Sequence {
    (last_sequence + 1).min(MAX_SEQUENCE)
}

impl Archived {
    /// Opens its file again, to be removed; none if that fails.
    pub(super) fn reopen(self, maker: &SegmentMaker) -> Option<FreeFile> {
        let file = maker.open(&self.path).ok()?;
        Some(FreeFile { path: self.path, file, space: Space::Found })
    }
}
