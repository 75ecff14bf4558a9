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

#[cfg(test)]
mod tests {
    use super::super::segment::{FreeFile, Space};
    use super::*;
    use crate::base::sync::Mutex;
    use crate::env::LogFile;
    use crate::error::Result;
    use std::path::PathBuf;

    const MIB: u64 = 1 << 20;

    /// A file that notes what is done to its pages.
    #[derive(Debug, Default)]
    struct Noted {
        len: u64,
        prefaulted: Mutex<Vec<(u64, u64)>>,
        released: Mutex<Vec<(u64, u64)>>,
    }

    impl LogFile for Noted {
        fn len(&self) -> u64 {
            self.len
        }
        fn store(&self, _: u64, _: &[u8]) -> Result<()> {
            unreachable!("only pages")
        }
        fn write(&self, _: u64, _: &[u8]) -> Result<()> {
            unreachable!("only pages")
        }
        fn read_at(&self, _: u64, _: &mut [u8]) -> Result<()> {
            unreachable!("only pages")
        }
        fn sync(&self) -> Result<()> {
            unreachable!("only pages")
        }
        fn prefault(&self, from: u64, to: u64) {
            self.prefaulted.lock().push((from, to));
        }
        fn fill_new(&self, _: u64) {
            unreachable!("only what is there")
        }
        fn release_memory(&self, from: u64, to: u64) {
            self.released.lock().push((from, to));
        }
    }

    fn segment(number: u64, len: u64) -> (Arc<Segment>, Arc<Noted>) {
        let noted = Arc::new(Noted { len, ..Noted::default() });
        let file = Arc::clone(&noted) as Arc<dyn LogFile>;
        (Segment::found(number, FreeFile { path: PathBuf::new(), file, space: Space::Found }, 64), noted)
    }

    fn take(notes: &Mutex<Vec<(u64, u64)>>) -> Vec<(u64, u64)> {
        std::mem::take(&mut notes.lock())
    }

    #[test]
    fn pages_are_ready_ahead_of_the_writer_and_left_behind_it() {
        let (active, pages) = segment(1, 12 * MIB + 5000);
        let (next, next_pages) = segment(2, 100 * MIB);
        let mut leaving = VecDeque::new();
        let mut take_all = |most| {
            while let Some(step) = next_step(&active, Some(&next), &mut leaving, most) {
                step.take();
            }
        };
        let steps = |from: u64, count: u64| (0..count).map(move |at| (from + at * MIB, from + (at + 1) * MIB));
        take_all(2 * MIB);
        assert_eq!(take(&pages.prefaulted), steps(64, 2).collect::<Vec<_>>(), "no more than allowed");
        take_all(u64::MAX);
        assert_eq!(take(&pages.prefaulted), steps(64 + 2 * MIB, 6).collect::<Vec<_>>());
        // Not for a few pages.
        active.written.store(MIB + 63, Ordering::Relaxed);
        take_all(u64::MAX);
        assert_eq!(take(&pages.prefaulted), []);
        active.written.store(MIB + 64, Ordering::Relaxed);
        take_all(u64::MAX);
        assert_eq!(take(&pages.prefaulted), [(8 * MIB + 64, 9 * MIB + 64)]);
        // The writer has overtaken them; the last pages are few.
        active.written.store(10 * MIB, Ordering::Relaxed);
        take_all(u64::MAX);
        let last = (12 * MIB, 12 * MIB + 5000);
        assert_eq!(take(&pages.prefaulted), steps(10 * MIB, 2).chain([last]).collect::<Vec<_>>());
        // What is beyond is in the next segment, again not for a few pages.
        assert_eq!(take(&next_pages.prefaulted), steps(0, 5).collect::<Vec<_>>());
        assert_eq!(take(&pages.released), [(0, 10 * MIB)]);
        active.written.store(11 * MIB, Ordering::Relaxed);
        take_all(0);
        assert_eq!(take(&pages.released), [], "the stretch that the writer is in");
        active.written.store(12 * MIB, Ordering::Relaxed);
        take_all(0);
        assert_eq!(take(&pages.released), [(10 * MIB, 12 * MIB)]);
        leaving.push_back(Arc::clone(&active));
        while let Some(step) = next_step(&next, None, &mut leaving, 0) {
            step.take();
        }
        assert_eq!(take(&pages.released), [(12 * MIB, 12 * MIB + 5000)]);
        assert_eq!(take(&next_pages.released), []);
    }
}
