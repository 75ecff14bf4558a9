//! Threads that wait for writes to keys of a keyspace, or to any.
//!
//! A watcher is added under the writer lock, and a write looks for watchers under it: either the
//! write is told to it, or the watcher's thread sees the write in its first read after it was
//! added. While there are watchers, no value is changed in place (`write/in_place_write.rs`), since
//! such a write tells nobody.

use crate::base::batch::{AnyOperation, Operation};
use crate::base::key_order::KeyOrder;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// See the module's comment.
#[derive(Debug, Default)]
pub struct Watchers {
    count: AtomicUsize,
    all: Mutex<Vec<Weak<Watcher>>>,
}

/// What one thread, or several, wait for.
#[derive(Debug)]
pub struct Watcher {
    /// None: all keyspaces.
    keyspace: Option<u64>,
    prefix: Vec<u8>,
    /// The order of the keyspace.
    order: KeyOrder,
    /// Whether it waits for syncs of the log too.
    of_syncs: bool,
    state: Mutex<Woken>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    No,
    ByWrite,
    ByClose,
}

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Written,
    TimedOut,
    Closed,
}

impl Watchers {
    /// Adds a watcher. The caller holds the writer lock.
    pub fn add(&self, keyspace: Option<u64>, order: KeyOrder, prefix: Vec<u8>, of_syncs: bool) -> Arc<Watcher> {
        let (state, changed) = (Mutex::new(Woken::No), Condvar::new());
        let watcher = Arc::new(Watcher { keyspace, prefix, order, of_syncs, state, changed });
        let mut all = self.all.lock();
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&watcher));
        self.count.store(all.len(), Ordering::Relaxed);
        watcher
    }

    /// Whether a write has to say what it has written. Under the writer lock: see the module.
    #[inline]
    pub fn are_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Tells of an operation, which readers see already.
    pub fn note(&self, operation: &AnyOperation<'_>) {
        self.wake(|watcher| watcher.concerns(operation), Woken::ByWrite);
    }

    /// Tells of a write to any keys of a keyspace.
    pub fn note_keyspace(&self, id: u64) {
        self.wake(|watcher| watcher.keyspace.is_none_or(|other| other == id), Woken::ByWrite);
    }

    /// Tells of writes to any keyspaces.
    pub fn note_all(&self) {
        self.wake(|_| true, Woken::ByWrite);
    }

    /// Tells that more of the log is on the device.
    pub fn note_sync(&self) {
        self.wake(|watcher| watcher.of_syncs, Woken::ByWrite);
    }

    /// Ends all waits, also those that begin later.
    pub fn close(&self) {
        self.wake(|_| true, Woken::ByClose);
    }

    fn wake(&self, concerns: impl Fn(&Watcher) -> bool, woken: Woken) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut all = self.all.lock();
        all.retain(|watcher| {
            let Some(watcher) = watcher.upgrade() else { return false };
            if concerns(&watcher) {
                let mut state = watcher.state.lock();
                if *state != Woken::ByClose {
                    *state = woken;
                }
                drop(state);
                watcher.changed.notify_all();
            }
            true
        });
        self.count.store(all.len(), Ordering::Relaxed);
    }
}

impl Watcher {
    fn concerns(&self, operation: &AnyOperation<'_>) -> bool {
        if self.keyspace.is_some_and(|id| id != operation.keyspace()) {
            return false;
        }
        match operation {
            AnyOperation::Key(Operation { key, .. }) => self.order.key_of(key).starts_with(&self.prefix),
            // Any key may be in it.
            AnyOperation::Range(_) if !self.order.is_bytewise() => true,
            // The range ends behind its start, and the keys with the prefix are those from it on
            // that begin with it.
            AnyOperation::Range(range) => {
                let ends_before = !range.end.is_empty() && range.end <= self.prefix.as_slice();
                let begins_behind = range.start > self.prefix.as_slice() && !range.start.starts_with(&self.prefix);
                !ends_before && !begins_behind
            }
        }
    }

    /// Waits for a write since the last wait that found one, or since the watcher was added. None:
    /// for as long as it takes.
    pub fn wait_until(&self, until: Option<Instant>) -> Wait {
        let mut state = self.state.lock();
        loop {
            match *state {
                Woken::ByClose => return Wait::Closed,
                Woken::ByWrite => {
                    *state = Woken::No;
                    return Wait::Written;
                }
                Woken::No => {}
            }
            match until {
                None => self.changed.wait(&mut state),
                Some(until) if Instant::now() >= until => return Wait::TimedOut,
                Some(until) => {
                    self.changed.wait_until(&mut state, until);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::batch::RangeDelete;

    #[test]
    fn a_range_concerns_a_prefix_that_it_holds_a_key_of() {
        let watchers = Watchers::default();
        let watcher = watchers.add(Some(1), KeyOrder::Bytewise, b"b".to_vec(), false);
        let range = |start, end| AnyOperation::Range(RangeDelete { keyspace: 1, start, end });
        let none: &[u8] = b"";
        for (start, end, concerns) in [
            (none, none, true),
            (b"a", b"b", false),
            (b"a", b"b\0", true),
            (b"ba", b"bb", true),
            (b"b", b"c", true),
            (b"c", b"d", false),
            (b"c", none, false),
            (b"b\xff\xff", none, true),
        ] {
            assert_eq!(watcher.concerns(&range(start, end)), concerns, "{start:?} {end:?}");
        }
    }
}
