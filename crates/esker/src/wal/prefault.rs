//! Prefaulting of the log: which of its pages are in the process's memory, a few ahead of the
//! writer, ready for its stores, and a few behind it.
//!
//! A store into a page that is not mapped is a page fault, in the writer. And every page that is
//! mapped counts as memory of the process until it is taken out of the mapping, though its bytes
//! are the system's. So the background thread goes along with the writer, in steps between which a
//! flush can begin.

use super::segment::Segment;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The writer calls for the background thread after so many bytes.
pub const TEND_EVERY_BYTES: u64 = 2 << 20;
/// Pages are ready for so many bytes ahead of the writer: what it stores while the background
/// thread sorts a memtable without a yield point.
const AHEAD_BYTES: u64 = 8 << 20;
/// They are prefaulted in steps of this size.
const READY_STEP_BYTES: u64 = 1 << 20;
/// And left in steps of this size.
const LEAVE_STEP_BYTES: u64 = 2 << 20;

/// Something to do for a part of a segment.
#[derive(Debug)]
pub struct Step {
    segment: Arc<Segment>,
    kind: Kind,
    from: u64,
    to: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    MakeReady,
    Leave,
}

impl Step {
    pub fn take(self) {
        match self.kind {
            Kind::MakeReady => self.segment.file.prefault(self.from, self.to),
            Kind::Leave => self.segment.file.release_memory(self.from, self.to),
        }
    }
}

/// What is next, noted as done. The caller holds the log's state. `leaving`: full segments that are
/// still in memory, oldest first. No more than `most` bytes are prefaulted ahead of the writer.
pub fn next_step(
    active: &Arc<Segment>,
    prepared: Option<&Arc<Segment>>,
    leaving: &mut VecDeque<Arc<Segment>>,
    most: u64,
) -> Option<Step> {
    let written = active.written.load(Ordering::Acquire);
    let goal = written + AHEAD_BYTES.min(most);
    let beyond = goal.saturating_sub(active.file.len());
    make_ready(active, written, goal)
        .or_else(|| make_ready(prepared?, 0, beyond))
        .or_else(|| leaving.pop_front().and_then(|full| leave(&full, full.file.len())))
        // The page that the writer is in stays.
        .or_else(|| leave(active, written - written % LEAVE_STEP_BYTES))
}

fn make_ready(segment: &Arc<Segment>, written: u64, goal: u64) -> Option<Step> {
    let len = segment.file.len();
    let from = segment.ready.load(Ordering::Relaxed).max(written);
    let to = goal.min(from + READY_STEP_BYTES).min(len);
    // Not for a few pages, but for the last ones.
    if from >= to || (to < len && to < from + READY_STEP_BYTES) {
        return None;
    }
    segment.ready.store(to, Ordering::Relaxed);
    Some(Step { segment: Arc::clone(segment), kind: Kind::MakeReady, from, to })
}

fn leave(segment: &Arc<Segment>, goal: u64) -> Option<Step> {
    let from = segment.left.load(Ordering::Relaxed);
    if from >= goal {
        return None;
    }
    segment.left.store(goal, Ordering::Relaxed);
    Some(Step { segment: Arc::clone(segment), kind: Kind::Leave, from, to: goal })
}
