//! Which sequence numbers somebody still reads at.
//!
//! A reader registers under the writer lock, so that no batch is half visible to it; from then on writes keep what it sees. It leaves without that
//! lock: writers then keep a little too much for a moment, which harms nobody.

use crate::base::key::Sequence;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The sequence numbers in use, ascending, each with its number of readers.
#[derive(Debug, Default)]
pub struct SnapshotList {
    live: Mutex<VecDeque<(Sequence, u64)>>,
    newest: AtomicU64,
}

impl SnapshotList {
    /// Registers a reader at `sequence`, which is not below any registered before. Call under the writer lock.
    pub fn register(self: &Arc<SnapshotList>, sequence: Sequence) -> Registration {
        let mut live = self.live.lock();
        match live.back_mut() {
            Some((newest, readers)) if *newest == sequence => *readers += 1,
            _ => live.push_back((sequence, 1)),
        }
        self.newest.store(sequence, Ordering::Relaxed);
        drop(live);
        Registration { list: Arc::clone(self), sequence }
    }

    fn leave(&self, sequence: Sequence) {
        let mut live = self.live.lock();
        let at = live.partition_point(|(other, _)| *other < sequence);
        if let Some((_, readers)) = live.get_mut(at) {
            *readers -= 1;
            if *readers == 0 {
                live.remove(at);
            }
        }
        self.newest.store(live.back().map_or(0, |(newest, _)| *newest), Ordering::Relaxed);
    }

    /// The greatest registered sequence number; 0 if there is none. Exact under the writer lock, but for readers that are leaving.
    #[inline]
    pub fn newest(&self) -> Sequence {
        self.newest.load(Ordering::Relaxed)
    }

    /// All registered sequence numbers, ascending.
    pub fn all(&self) -> Vec<Sequence> {
        self.live.lock().iter().map(|(sequence, _)| *sequence).collect()
    }
}

/// One reader's registration; ends when dropped.
#[derive(Debug)]
pub struct Registration {
    list: Arc<SnapshotList>,
    sequence: Sequence,
}

impl Registration {
    /// What the reader reads at.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.list.leave(self.sequence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_and_all_follow_registrations() {
        let list = Arc::new(SnapshotList::default());
        let a = list.register(5);
        let b = list.register(5);
        let c = list.register(9);
        assert_eq!((list.newest(), list.all()), (9, vec![5, 9]));
        drop(c);
        assert_eq!((list.newest(), list.all()), (5, vec![5]));
        drop(a);
        assert_eq!(list.all(), [5]);
        drop(b);
        assert_eq!((list.newest(), list.all()), (0, vec![]));
    }
}
