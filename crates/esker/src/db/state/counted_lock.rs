//! A lock that counts the threads that wait for it. Tests go by that: nothing else shows that a
//! call waits for another one.

use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// See the module's comment.
#[derive(Debug, Default)]
pub struct CountedLock {
    lock: Mutex<()>,
    waiting: AtomicUsize,
}

impl CountedLock {
    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.try_lock().unwrap_or_else(|| self.counted(|lock| lock.lock()))
    }

    /// The lock, if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, ()>> {
        self.lock.try_lock()
    }

    /// Waits for the lock, but no longer than `most`.
    pub fn try_lock_for(&self, most: Duration) -> Option<MutexGuard<'_, ()>> {
        self.try_lock().or_else(|| self.counted(|lock| lock.try_lock_for(most)))
    }

    fn counted<'a, T>(&'a self, wait: impl FnOnce(&'a Mutex<()>) -> T) -> T {
        self.waiting.fetch_add(1, Relaxed);
        let waited = wait(&self.lock);
        self.waiting.fetch_sub(1, Relaxed);
        waited
    }

    /// The threads that wait for the lock.
    #[cfg(any(test, feature = "internals"))]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_waits_counts_until_the_wait_is_over() {
        let lock = CountedLock::default();
        let held = lock.lock();
        assert!(lock.try_lock().is_none() && lock.try_lock_for(Duration::ZERO).is_none());
        assert_eq!(lock.waiting(), 0);
        std::thread::scope(|scope| {
            scope.spawn(|| drop(lock.lock()));
            while lock.waiting() == 0 {
                std::thread::yield_now();
            }
            drop(held);
        });
        assert_eq!(lock.waiting(), 0);
        assert!(lock.try_lock_for(Duration::ZERO).is_some());
    }
}
