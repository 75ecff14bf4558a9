//! The buffer pool: memory of blocks that have left the cache, for the next ones.
//!
//! Blocks are made by many threads and freed by others. The system's allocator has an arena for
//! each of some threads: what is freed in one is not used by another, and is not given back to the
//! system as long as anything behind it lives. A full cache was measured at twice its budget for
//! that reason. The memory of a block that leaves the cache stays here instead, within the cache's
//! budget.

use crate::base::sync::{AtomicUsize, Mutex};
use std::fmt;
use std::sync::atomic::Ordering;

/// Smaller memory is not worth keeping, and the allocator gives larger back to the system itself.
const KEPT: std::ops::RangeInclusive<usize> = (1 << 10)..=(128 << 10);
/// Blocks differ a little in length. With a multiple of this, memory of one fits the next.
const STEP_BYTES: usize = 512;
/// So many pieces are tried for one that fits.
const LOOKS: usize = 4;

/// See the module's comment. Its lock is the last of the cache's: nothing else is taken with it.
#[derive(Default)]
pub(super) struct BufferPool {
    pieces: Mutex<Vec<Vec<u8>>>,
    /// Of all pieces. Changed under the lock.
    bytes: AtomicUsize,
}

impl BufferPool {
    /// Bytes kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Keeps `piece` if there is `room` for all that is kept then.
    pub(super) fn keep(&self, piece: Vec<u8>, room: usize) {
        if !KEPT.contains(&piece.capacity()) {
            return;
        }
        let mut pieces = self.pieces.lock();
        if self.bytes() + piece.capacity() <= room {
            self.bytes.fetch_add(piece.capacity(), Ordering::Relaxed);
            pieces.push(piece);
        }
    }

    /// Memory for at least `bytes`, with whatever was in it.
    pub(super) fn take(&self, bytes: usize) -> Vec<u8> {
        let wanted = bytes.next_multiple_of(STEP_BYTES);
        if self.bytes() > 0 && KEPT.contains(&wanted) {
            let mut pieces = self.pieces.lock();
            let last = pieces.len().saturating_sub(LOOKS)..pieces.len();
            // What is longer by more than a quarter would make the cache hold so much less.
            let fits = |piece: &Vec<u8>| (bytes..=wanted + wanted / 4).contains(&piece.capacity());
            let found = last.clone().find(|&at| pieces.get(at).is_some_and(fits));
            // If none fits, one is freed: the others' turn comes, and the new one will need its
            // space. Another thread may have taken the last one.
            if !last.is_empty() {
                let piece = pieces.swap_remove(found.unwrap_or(last.start));
                self.bytes.fetch_sub(piece.capacity(), Ordering::Relaxed);
                if found.is_some() {
                    return piece;
                }
            }
        }
        Vec::with_capacity(wanted)
    }

    /// Frees what is more than `room`.
    pub(super) fn trim(&self, room: usize) {
        if self.bytes() <= room {
            return;
        }
        let mut pieces = self.pieces.lock();
        while self.bytes() > room {
            let Some(piece) = pieces.pop() else { return };
            self.bytes.fetch_sub(piece.capacity(), Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_used_again_and_stays_within_its_room() {
        let pool = BufferPool::default();
        let piece = pool.take(8000);
        assert_eq!((piece.capacity(), pool.bytes()), (8192, 0));
        pool.keep(piece, 8191);
        assert_eq!(pool.bytes(), 0, "there is no room");
        let piece = pool.take(8000);
        pool.keep(piece, 8192);
        assert_eq!(pool.bytes(), 8192);
        let again = pool.take(8100);
        assert_eq!((again.capacity(), pool.bytes()), (8192, 0));
        pool.keep(again, usize::MAX);
        pool.keep(Vec::with_capacity(100), usize::MAX);
        pool.keep(Vec::with_capacity(1 << 20), usize::MAX);
        assert_eq!(pool.bytes(), 8192, "neither the small nor the large");
        pool.keep(Vec::with_capacity(4096), usize::MAX);
        pool.trim(10_000);
        assert_eq!(pool.bytes(), 8192);
        pool.trim(0);
        assert_eq!(pool.bytes(), 0);
    }

    /// Seen: a panic in a get. Trigger: two threads that came for the last piece.
    #[test]
    fn many_threads_share_few_pieces() {
        let pool = BufferPool::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let pool = &pool;
                scope.spawn(move || {
                    for round in 0..50_000 {
                        let piece = pool.take(2000 + thread * 500);
                        assert!(piece.capacity() >= 2000);
                        if round % 3 != 0 {
                            pool.keep(piece, 6000);
                        }
                        if round % 100 == 0 {
                            pool.trim(0);
                        }
                    }
                });
            }
        });
        pool.trim(0);
        assert_eq!(pool.bytes(), 0);
    }

    #[test]
    fn what_does_not_fit_stays_for_others_but_one() {
        let pool = BufferPool::default();
        (0..3).for_each(|_| pool.keep(Vec::with_capacity(2048), usize::MAX));
        pool.keep(Vec::with_capacity(65_536), usize::MAX);
        assert_eq!(pool.take(5000).capacity(), 5120);
        assert_eq!(pool.bytes(), 2 * 2048 + 65_536, "one made room");
        assert_eq!(pool.take(2000).capacity(), 2048);
        assert_eq!(pool.take(1 << 20).capacity(), 1 << 20);
        assert_eq!(pool.bytes(), 2048 + 65_536, "what is never kept frees nothing");
        assert_eq!(pool.take(60_000).capacity(), 65_536);
        assert_eq!(pool.take(1500).capacity(), 1536, "a third more is too much");
        assert_eq!(pool.bytes(), 0);
    }
}
