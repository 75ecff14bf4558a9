//! The threads at work without a lock, and the wait for them.
//!
//! Each thread announces itself in its slot before it reads anything, and leaves the slot when it
//! is done. A thread that changes what they rely on makes the change first, and then waits until
//! every count of every slot was seen at zero. A thread that enters later sees the change.
//!
//! Of the two counts of a slot only one is open at a time. Threads that share a slot may keep its
//! open count above zero for good, so a waiting thread opens the other one first: the count that is
//! closed only falls, except for threads that read just before which one is open. So no thread
//! waits for one that came later. Which count a thread takes does not affect what it sees: a stale
//! choice costs the waiting thread one operation more.

use crate::base::sync::{AtomicU64, AtomicUsize, Mutex, fence, spin_loop, yield_now};
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::Ordering;

/// Threads beyond this number share slots.
pub const SLOTS: usize = if cfg!(esker_loom) { 2 } else { 64 };
/// A count has the threads at work in its lowest bits, and in the others all that ever were.
const ENTERED: u64 = 1 << 16;
/// How often a waiting thread checks a count before it pauses, or opens the other ones.
const LOOKS: u32 = if cfg!(esker_loom) { 1 } else { 64 };

/// Two counts, on a cache line of their own.
#[derive(Default)]
#[repr(align(64))]
struct Slot([AtomicU64; 2]);

/// Whether the count has no thread at work. A load that finds none sees all that those threads
/// wrote.
#[inline]
fn is_left(count: &AtomicU64) -> bool {
    count.load(Ordering::Acquire).is_multiple_of(ENTERED)
}

/// Looks a few times.
fn is_left_soon(count: &AtomicU64) -> bool {
    for _ in 0..LOOKS {
        if is_left(count) {
            return true;
        }
        spin_loop();
    }
    false
}

/// See the module's comment.
pub struct ThreadGate {
    slots: [Slot; SLOTS],
    /// No slot from this one on was ever used.
    used: AtomicUsize,
    /// The count of each slot that is open.
    open: AtomicUsize,
    /// Held by the one that closes counts: a second one would open what the first waits for.
    closes: Mutex<()>,
}

impl Default for ThreadGate {
    fn default() -> ThreadGate {
        ThreadGate {
            slots: std::array::from_fn(|_| Slot::default()),
            used: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            closes: Mutex::new(()),
        }
    }
}

impl fmt::Debug for ThreadGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadGate").field("writes", &self.writes()).finish_non_exhaustive()
    }
}

/// A thread at work, until dropped.
pub struct GatePass<'a>(&'a AtomicU64);

impl Drop for GatePass<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl ThreadGate {
    /// Announces this thread. What it loads afterwards is not changed further until every thread
    /// that changes it has waited for this one.
    #[inline]
    pub fn enter(&self) -> GatePass<'_> {
        self.enter_slot(slot_of_this_thread())
    }

    #[inline]
    pub fn enter_slot(&self, slot: usize) -> GatePass<'_> {
        if slot >= self.used.load(Ordering::Relaxed) {
            // Before the slot is used. A thread that does not see this store sees no write of this
            // thread, and then this thread sees all writes of that one.
            self.used.fetch_max(slot + 1, Ordering::SeqCst);
        }
        let count = &self.slots[slot].0[self.open.load(Ordering::Relaxed) % 2];
        count.fetch_add(ENTERED + 1, Ordering::SeqCst);
        // Pairs with the fence in `wait`: one of the two threads sees what the other did before its
        // fence.
        fence(Ordering::SeqCst);
        GatePass(count)
    }

    /// Returns when no thread is at work that may have missed what the caller did before: after at
    /// most the operations that were under way when this began.
    pub fn wait_for_all(&self) {
        self.wait(yield_now);
    }

    fn wait(&self, mut pause: impl FnMut()) {
        fence(Ordering::SeqCst);
        let used = self.used.load(Ordering::SeqCst);
        let slots = &self.slots[..used.min(SLOTS)];
        // Mostly threads have slots of their own, and are soon done.
        let counts_are_left = |slot: &Slot| slot.0.iter().all(is_left_soon);
        let Some(first) = slots.iter().position(|slot| !counts_are_left(slot)) else { return };
        let mut wait_for = |which: usize| {
            for slot in &slots[first..] {
                while !is_left_soon(&slot.0[which]) {
                    pause();
                }
            }
        };
        let _closes = self.closes.lock();
        let open = self.open.load(Ordering::Relaxed) % 2;
        // Left over from when it was open the last time.
        wait_for(1 - open);
        self.open.store(1 - open, Ordering::Relaxed);
        // A thread whose own fence comes after this one sees what is open now.
        fence(Ordering::SeqCst);
        wait_for(open);
    }

    /// Which count of each slot is open. Before it waits for a thread that entered there, a waiting
    /// thread opens the other one.
    #[cfg(test)]
    pub fn open_count(&self) -> usize {
        self.open.load(Ordering::Relaxed) % 2
    }

    /// Writes tried so far: whether there were any between two looks.
    pub fn writes(&self) -> u64 {
        let used = self.used.load(Ordering::Relaxed);
        self.slots[..used.min(SLOTS)]
            .iter()
            .flat_map(|slot| &slot.0)
            .map(|count| count.load(Ordering::Relaxed) / ENTERED)
            .fold(0, u64::wrapping_add)
    }
}

thread_local! {
    static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[inline]
pub fn slot_of_this_thread() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
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
    fn nobody_waits_for_who_came_later() {
        let threads = ThreadGate::default();
        for _ in 0..3 {
            let mut gate = threads.enter();
            let mut relays = 0;
            threads.wait(|| {
                // The next one is there before the last one leaves: some count of the slot is never
                // at zero.
                gate = threads.enter();
                relays += 1;
                assert!(relays < 1000, "who came later keeps it waiting");
            });
            assert!(relays > 0, "somebody was at work");
        }
    }

    #[test]
    fn whoever_waits_sees_what_threads_at_work_did_and_those_to_come_see_the_change() {
        let threads = ThreadGate::default();
        let (closed, value, late) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let gate = threads.enter();
                        if closed.load(Ordering::Relaxed) {
                            return;
                        }
                        value.fetch_add(1, Ordering::Relaxed);
                        drop(gate);
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
