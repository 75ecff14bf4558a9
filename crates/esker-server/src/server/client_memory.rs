//! The memory that all clients hold together: requests that are not executed yet, and replies that
//! are not taken yet.
//!
//! Above the limit clients wait: no more of their requests is read, and nothing is executed as long
//! as replies are a part of it. Where that does not help within a second, those that hold most are
//! disconnected, until the others are within the limit.

use super::clock::now_ms;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// How long clients wait before those that hold most are disconnected.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// Replies and requests that are being executed count from so many bytes of a client on: most are
/// gone before others could look.
pub const COUNTED_BYTES: usize = 4 << 10;

/// What a client holds.
#[derive(Debug, Default)]
pub struct HeldBytes {
    input: AtomicUsize,
    output: AtomicUsize,
}

impl HeldBytes {
    /// The bytes of its requests.
    pub fn input(&self) -> usize {
        self.input.load(Ordering::Relaxed)
    }

    /// The bytes of its replies.
    pub fn output(&self) -> usize {
        self.output.load(Ordering::Relaxed)
    }

    /// All of it.
    pub fn total(&self) -> usize {
        self.input() + self.output()
    }
}

/// What all clients hold, and the limit.
#[derive(Debug)]
pub struct ClientMemory {
    /// There is none if 0.
    limit: AtomicUsize,
    input: AtomicUsize,
    output: AtomicUsize,
    /// Since when it is more than the limit, in milliseconds since the epoch; 0 if it is not.
    full_since_ms: AtomicU64,
    /// How many connections wait.
    waiting: AtomicUsize,
    freed: Notify,
}

impl ClientMemory {
    /// Nothing, with a limit; 0 is none.
    pub fn new(limit: usize) -> ClientMemory {
        ClientMemory {
            limit: AtomicUsize::new(limit),
            input: AtomicUsize::new(0),
            output: AtomicUsize::new(0),
            full_since_ms: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        }
    }

    /// Sets the limit; 0 is none.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
        self.look();
    }

    /// The limit; 0 is none.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// The bytes that all clients hold.
    pub fn total(&self) -> usize {
        self.input.load(Ordering::Relaxed) + self.output.load(Ordering::Relaxed)
    }

    /// Whether that is more than the limit: no more is read.
    pub fn is_full(&self) -> bool {
        let limit = self.limit();
        limit > 0 && self.total() > limit
    }

    /// Whether nothing is to be executed: that frees requests, but makes replies.
    pub fn holds_execution(&self) -> bool {
        self.is_full() && self.output.load(Ordering::Relaxed) > 0
    }

    /// The requests of a client have so many bytes now.
    pub fn set_input(&self, held: &HeldBytes, bytes: usize) {
        self.set((&self.input, &held.input), bytes);
    }

    /// The replies of a client have so many bytes now.
    pub fn set_output(&self, held: &HeldBytes, bytes: usize) {
        self.set((&self.output, &held.output), bytes);
    }

    /// A client has gone.
    pub fn forget(&self, held: &HeldBytes) {
        self.set_input(held, 0);
        self.set_output(held, 0);
    }

    fn set(&self, (all, of_client): (&AtomicUsize, &AtomicUsize), bytes: usize) {
        if of_client.load(Ordering::Relaxed) == bytes {
            return;
        }
        let before = of_client.swap(bytes, Ordering::Relaxed);
        if bytes > before {
            all.fetch_add(bytes - before, Ordering::Relaxed);
        } else {
            all.fetch_sub(before - bytes, Ordering::SeqCst);
        }
        self.look();
    }

    /// Notes since when it is full, and has those go on that wait if it is not.
    fn look(&self) {
        let is_noted = self.full_since_ms.load(Ordering::Relaxed) > 0;
        if self.is_full() {
            if !is_noted {
                self.full_since_ms.store(now_ms(), Ordering::Relaxed);
                // Another thread may have freed it before it could see that.
                if !self.is_full() {
                    self.full_since_ms.store(0, Ordering::Relaxed);
                }
            }
        } else if is_noted {
            self.full_since_ms.store(0, Ordering::Relaxed);
        }
        // Also where it is full yet: what waited for replies alone may go on.
        if self.waiting.load(Ordering::SeqCst) > 0 && !self.holds_execution() {
            self.freed.notify_waiters();
        }
    }

    /// Whether the memory has been full for too long. Only one caller gets the answer, and again
    /// one after the same period: it checks all clients.
    pub fn take_overdue(&self, now_ms: u64) -> bool {
        let since_ms = self.full_since_ms.load(Ordering::Relaxed);
        let is_overdue = since_ms > 0 && now_ms.saturating_sub(since_ms) >= PATIENCE.as_millis() as u64;
        is_overdue
            && self.full_since_ms.compare_exchange(since_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Waits until it may be worth while to look again.
    pub async fn wait_freed(&self, is_held_up: impl Fn(&ClientMemory) -> bool) {
        struct Waiting<'a>(&'a AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let mut freed = std::pin::pin!(self.freed.notified());
        freed.as_mut().enable();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(&self.waiting);
        // Memory that was freed before this client counted as waiting has not woken it.
        if is_held_up(self) {
            freed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_adds_up() {
        let memory = ClientMemory::new(100);
        let (first, second) = (HeldBytes::default(), HeldBytes::default());
        memory.set_input(&first, 60);
        memory.set_input(&second, 40);
        assert!(!memory.is_full());
        memory.set_input(&second, 41);
        assert!(memory.is_full() && !memory.holds_execution());
        assert!(!memory.take_overdue(now_ms()) && memory.take_overdue(now_ms() + 2000));
        memory.set_output(&first, 7);
        assert!(memory.holds_execution());
        memory.forget(&first);
        assert_eq!((memory.total(), second.total()), (41, 41));
        assert!(!memory.is_full() && !memory.take_overdue(u64::MAX));
        memory.set_limit(0);
        memory.set_output(&first, usize::MAX >> 1);
        assert!(!memory.is_full());
    }
}
