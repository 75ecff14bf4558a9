//! Lookups without the writer lock that know whether a write was under way meanwhile.
//!
//! A write takes the lock, changes memtables in steps, stores its last number, and releases the
//! lock. A lookup loads the lock and the number, looks, and loads both again. If the lock was free
//! both times, and the number the same one, n, then it has found what the write n has left:
//!
//! 1. **Nothing is missing.** The first load of the number acquires what the write n released: its
//!    steps, and through the lock those of all writes before it.
//! 2. **Nothing is of a later write.** Suppose that the lookup has met a step of the write m > n.
//!    Steps may be relaxed, as those to a value of eight bytes. But the step comes behind the fence
//!    in [`begin_changes`], and the lookup's load of it before the fence in front of the second
//!    loads: these two synchronize, so that the second load of the lock finds it as the write m
//!    took it, or later. If it was free then, it had been released by the write m or a later
//!    holder, and the fence behind that load acquires what was released: the second load of the
//!    number finds m or more, and not n.
//!
//! So this is a sequence lock, whose counter is odd while the lock is held. Without the two fences
//! a processor that orders less than x86 does could make both second loads before the lookup, or
//! show a step before the lock. The number alone would not do, since it comes behind the steps. A
//! change that is one replacement of a read state, as that of a drop or a load, needs no place in
//! this argument: it is met as a whole or not at all.
//!
//! The interleavings are tried by `db/interleavings/between_writes.rs`.

use crate::base::sync::{AtomicU64, fence};
use std::sync::atomic::Ordering;

/// To be called by a write with the writer lock held, before the first step.
#[inline(always)]
pub fn begin_changes() {
    fence(Ordering::Release);
}

/// What `look` finds, and whether no write was under way meanwhile. `is_locked`: loads the writer
/// lock.
pub fn look_between_writes<T>(
    is_locked: impl Fn() -> bool,
    last_sequence: &AtomicU64,
    look: impl FnOnce() -> T,
) -> (T, bool) {
    let sequence_between_writes = || {
        let is_locked = is_locked();
        // Pairs with the release of the lock: the number is that of the last write before it.
        fence(Ordering::Acquire);
        (!is_locked).then(|| last_sequence.load(Ordering::Acquire))
    };
    let before = sequence_between_writes();
    let found = look();
    // Pairs with the fence in `begin_changes`.
    fence(Ordering::Acquire);
    (found, before.is_some() && sequence_between_writes() == before)
}
