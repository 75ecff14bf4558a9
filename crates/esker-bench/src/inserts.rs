//! What the threads of a benchmark insert behind the keys that were loaded. Each thread has numbers
//! of its own, so that an inserted key can be told from one that is about to be: any thread may ask
//! for any key that another has put, and must find it.

use std::sync::atomic::{AtomicU64, Ordering};

/// The keys inserted so far.
#[derive(Debug)]
pub struct Inserts {
    /// Loaded keys: 0..loaded.
    loaded: u64,
    /// The first number for inserted keys; thread `t` takes `base + t`, `base + t + threads`, ...
    base: u64,
    /// Finished inserts by thread.
    finished: Vec<AtomicU64>,
}

/// A key chosen by its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chosen {
    /// Its number.
    pub number: u64,
    /// Whether the key was inserted by the benchmark, and must be found; otherwise it was loaded.
    pub inserted: bool,
}

impl Inserts {
    /// None yet. Inserted keys have numbers from `base` on, which is at least `loaded`.
    pub fn new(loaded: u64, base: u64, threads: u32) -> Inserts {
        Inserts { loaded, base, finished: (0..threads.max(1)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// How many threads insert.
    pub fn threads(&self) -> u64 {
        self.finished.len() as u64
    }

    /// The number that a thread inserts next.
    pub fn next(&self, thread: u32) -> u64 {
        let done = self.finished.get(thread as usize).map_or(0, |count| count.load(Ordering::Relaxed));
        self.base + done * self.threads() + u64::from(thread)
    }

    /// The thread's insert is done.
    pub fn finish(&self, thread: u32) {
        if let Some(count) = self.finished.get(thread as usize) {
            // A thread that sees the count sees the key.
            count.fetch_add(1, Ordering::Release);
        }
    }

    /// The key of age `rank` (0: the newest) as thread number `thread` has made them; behind its
    /// oldest come the loaded ones, the last first.
    pub fn by_age(&self, thread: u64, rank: u64) -> Chosen {
        let threads = self.threads();
        let thread = thread % threads;
        let done = self.finished.get(thread as usize).map_or(0, |count| count.load(Ordering::Acquire));
        let back = rank / threads;
        if back < done {
            return Chosen { number: self.base + (done - 1 - back) * threads + thread, inserted: true };
        }
        let older = rank.saturating_sub(done * threads) % self.loaded.max(1);
        Chosen { number: self.loaded.saturating_sub(1 + older), inserted: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_come_first_and_then_the_loaded_ones() {
        let inserts = Inserts::new(10, 20, 2);
        let number = |thread, rank| inserts.by_age(thread, rank).number;
        assert_eq!((number(0, 0), number(1, 3), number(0, 10)), (9, 6, 9));
        for _ in 0..3 {
            inserts.finish(1);
        }
        assert_eq!((inserts.next(0), inserts.next(1)), (20, 27));
        assert_eq!(inserts.by_age(1, 0), Chosen { number: 25, inserted: true });
        assert_eq!(inserts.by_age(1, 5), Chosen { number: 21, inserted: true });
        assert_eq!(inserts.by_age(1, 6), Chosen { number: 9, inserted: false });
        assert_eq!(inserts.by_age(1, 15), Chosen { number: 0, inserted: false });
        assert_eq!(inserts.by_age(0, 0), Chosen { number: 9, inserted: false });
    }
}
