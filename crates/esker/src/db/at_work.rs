//! Who is at work without a lock, and waiting for them.
//!
//! Each thread announces itself in its slot before it looks at anything, and leaves the slot when it is done. Whoever changes what they rely on does so
//! first, and then waits until each slot was seen empty. Who comes later sees the change.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// Threads beyond this number share slots.
const SLOTS: usize = 64;
/// A slot counts the threads at work in its lowest bits, and in the others all that ever were.
const ENTERED: u64 = 1 << 16;
/// How often a thread that waits looks before it lets others run.
const LOOKS: u32 = 64;

/// On a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Slot(AtomicU64);

/// See the module's comment.
pub struct ThreadsAtWork {
    slots: [Slot; SLOTS],
    /// No slot from this one on was ever used.
    used: AtomicUsize,
}

impl Default for ThreadsAtWork {
    fn default() -> ThreadsAtWork {
        ThreadsAtWork { slots: std::array::from_fn(|_| Slot::default()), used: AtomicUsize::new(0) }
    }
}

impl fmt::Debug for ThreadsAtWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadsAtWork").field("writes", &self.writes()).finish_non_exhaustive()
    }
}

/// A thread at work, until dropped.
pub struct AtWork<'a>(&'a Slot);

impl Drop for AtWork<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

impl ThreadsAtWork {
    /// Announces this thread. What it loads afterwards was not changed before everybody who changes it waits for the thread.
    #[inline]
    pub fn enter(&self) -> AtWork<'_> {
        let slot = slot_of_this_thread();
        if slot >= self.used.load(Ordering::Relaxed) {
            // Before the slot is used: whoever does not see this sees nothing of the thread's, which in turn sees all of theirs.
            self.used.fetch_max(slot + 1, Ordering::SeqCst);
        }
        let slot = &self.slots[slot];
        slot.0.fetch_add(ENTERED + 1, Ordering::SeqCst);
        // Pairs with the fence in `wait_for_all`: one of the two threads sees what the other did before its fence.
        fence(Ordering::SeqCst);
        AtWork(slot)
    }

    /// Returns when no thread is at work that may have missed what the caller did before.
    pub fn wait_for_all(&self) {
        fence(Ordering::SeqCst);
        let used = self.used.load(Ordering::SeqCst);
        for slot in &self.slots[..used.min(SLOTS)] {
            let mut looks = 0;
            // The load that ends the loop sees what the threads did.
            while slot.0.load(Ordering::Acquire) % ENTERED != 0 {
                looks += 1;
                if looks % LOOKS == 0 {
                    std::thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// Writes tried so far: whether there were any between two looks.
    pub fn writes(&self) -> u64 {
        let used = self.used.load(Ordering::Relaxed);
        self.slots[..used.min(SLOTS)]
            .iter()
            .map(|slot| slot.0.load(Ordering::Relaxed) / ENTERED)
            .fold(0, u64::wrapping_add)
    }
}

thread_local! {
    static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[inline]
fn slot_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    SLOT.with(|slot| {
        if slot.get() == usize::MAX {
            slot.set(NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS);
        }
        slot.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn whoever_waits_sees_what_threads_at_work_did_and_those_to_come_see_the_change() {
        let threads = ThreadsAtWork::default();
        let (closed, value, late) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let at_work = threads.enter();
                        if closed.load(Ordering::Relaxed) {
                            return;
                        }
                        value.fetch_add(1, Ordering::Relaxed);
                        drop(at_work);
                    }
                });
            }
            while threads.writes() < 20_000 {
                std::thread::yield_now();
            }
            closed.store(true, Ordering::Relaxed);
            threads.wait_for_all();
            let seen = value.load(Ordering::Relaxed);
            for _ in 0..1000 {
                std::thread::yield_now();
                late.fetch_max(value.load(Ordering::Relaxed) - seen, Ordering::Relaxed);
            }
        });
        assert_eq!(late.load(Ordering::Relaxed), 0);
        assert!(value.load(Ordering::Relaxed) <= threads.writes());
    }
}
