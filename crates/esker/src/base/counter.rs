//! A counter that many threads add to all the time.
//!
//! Each thread has a number of its own while it lives, and with it a part of every counter that no
//! other thread adds to: adding is a load and a store without contention. A thread that comes when
//! all numbers are taken adds to a common part.

use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many threads at a time have a part of their own.
const OWN_PARTS: usize = 32;

/// A part on a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Part(AtomicU64);

/// See the module's comment.
#[derive(Default)]
pub struct Counter {
    own: [Part; OWN_PARTS],
    common: Part,
}

impl Counter {
    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        // A thread that is ending may have given its number back already.
        let number = LEASE.try_with(|lease| lease.0).unwrap_or(OWN_PARTS);
        match self.own.get(number) {
            Some(Part(own)) => own.store(own.load(Ordering::Relaxed) + 1, Ordering::Relaxed),
            None => drop(self.common.0.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// What all threads have added.
    pub fn sum(&self) -> u64 {
        self.own.iter().chain([&self.common]).map(|part| part.0.load(Ordering::Relaxed)).sum()
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sum().fmt(f)
    }
}

/// The numbers that no thread has. The lock also passes on what the last owner of a number has
/// added.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The first number never given out.
static NEXT: Mutex<usize> = Mutex::new(0);

/// A thread's number, until the thread ends; `OWN_PARTS` or more if it has none.
struct Lease(usize);

impl Lease {
    #[cold]
    fn take() -> Lease {
        if let Some(number) = FREE.lock().pop() {
            return Lease(number);
        }
        let mut next = NEXT.lock();
        let number = *next;
        *next = (number + 1).min(OWN_PARTS);
        Lease(number)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.0 < OWN_PARTS {
            FREE.lock().push(self.0);
        }
    }
}

thread_local! {
    static LEASE: Lease = Lease::take();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_with_more_threads_than_parts_and_in_later_ones() {
        const THREADS: u64 = OWN_PARTS as u64 * 2;
        const EACH: u64 = if cfg!(miri) { 20 } else { 1000 };
        let counter = Counter::default();
        for _ in 0..3 {
            let barrier = std::sync::Barrier::new(THREADS as usize);
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        counter.increment();
                        barrier.wait();
                        (1..EACH).for_each(|_| counter.increment());
                    });
                }
            });
        }
        assert_eq!(counter.sum(), 3 * THREADS * EACH);
    }
}
