//! The threads that run the user's code, and the database that called it.
//!
//! A database calls operators, filters and its clock with its locks held, or from the thread that
//! does its background work. Such a callback must not wait for these: calls that would check here
//! first.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// So many callbacks may be under way in one thread, each called by a read that the one before
/// made. It ends those that call themselves for ever.
const MOST_NESTED: u32 = 4;

/// A database, by a number that no other one in the process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Database(u64);

/// What `call` returns, or `None` if it panicked. Nothing of the panic gets past here, so that
/// locks may be held.
pub fn contained<T>(call: impl FnOnce() -> T) -> Option<T> {
    let payload = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => return Some(result),
        Err(payload) => payload,
    };
    // What a panic carries is the user's too, and may panic once more as it goes.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    None
}

/// No database.
const NONE: Database = Database(0);
/// The mark of a thread that is in callbacks of several databases, one called from the other. Any
/// database may be among them.
const SEVERAL: Database = Database(u64::MAX);

/// The callbacks under way in a thread.
#[derive(Clone, Copy)]
struct Depth {
    database: Database,
    callbacks: u32,
    /// One of them is a comparator.
    comparing: bool,
}

thread_local! {
    static DEPTH: Cell<Depth> = const { Cell::new(Depth { database: NONE, callbacks: 0, comparing: false }) };
}

/// A callback under way, until it is dropped.
#[derive(Debug)]
pub struct Inside(Depth);

impl std::fmt::Debug for Depth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} callbacks of {:?}", self.callbacks, self.database)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = DEPTH.try_with(|depth| depth.set(self.0));
    }
}

impl Database {
    /// One more.
    pub fn new() -> Database {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Database(NEXT.fetch_add(1, Relaxed))
    }

    /// No database: one that is not open yet.
    pub const NONE: Database = NONE;

    /// Marks this thread as in a callback. `None` if callbacks have called callbacks too often.
    pub fn enter(self) -> Option<Inside> {
        self.enter_callback(false)
    }

    /// As [`Database::enter`], in a comparator: it is also called with locks held that scans of an
    /// earlier snapshot take.
    pub fn enter_comparator(self) -> Option<Inside> {
        self.enter_callback(true)
    }

    fn enter_callback(self, is_comparator: bool) -> Option<Inside> {
        let before = DEPTH.try_with(Cell::get).ok()?;
        if before.callbacks == MOST_NESTED {
            return None;
        }
        let database = if before.database == NONE || before.database == self { self } else { SEVERAL };
        let _ = DEPTH.try_with(|depth| {
            depth.set(Depth { database, callbacks: before.callbacks + 1, comparing: before.comparing || is_comparator })
        });
        Some(Inside(before))
    }

    /// Whether this thread is in a callback of the database.
    #[inline]
    pub fn is_calling(self) -> bool {
        let inside = DEPTH.try_with(|depth| depth.get().database).unwrap_or(NONE);
        inside == self || inside == SEVERAL
    }

    /// Whether this thread is in a callback of the database, and in a comparator.
    #[inline]
    pub fn is_comparing(self) -> bool {
        self.is_calling() && DEPTH.try_with(|depth| depth.get().comparing).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_in_a_callback_until_that_returns() {
        let (one, other) = (Database::new(), Database::new());
        let is_in = || (one.is_calling(), other.is_calling());
        assert_eq!(is_in(), (false, false));
        let inside = one.enter().expect("the first");
        assert_eq!(is_in(), (true, false));
        std::thread::scope(|scope| scope.spawn(|| assert_eq!(is_in(), (false, false))).join().unwrap());
        let deeper = other.enter().expect("the second");
        assert_eq!(is_in(), (true, true));
        let deepest = (one.enter().expect("the third"), one.enter().expect("the fourth"));
        assert!(one.enter().is_none(), "for ever");
        drop(deepest.1);
        drop(deepest.0);
        drop(deeper);
        assert_eq!(is_in(), (true, false));
        drop(inside);
        assert_eq!(is_in(), (false, false));
    }
}
