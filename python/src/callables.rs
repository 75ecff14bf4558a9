//! Whether the engine may call Python.
//!
//! A call of the engine may wait for another thread of it, and that thread for the interpreter, if
//! it calls a merge operator or a comparator in Python. So calls are made with the interpreter
//! released, which costs as much as the shortest of them. Where no object of Python was ever given
//! to the engine, those few need not release it: they wait for nothing but the engine, and for no
//! longer than a write holds its lock. The end of a snapshot never does: what it waits for is never
//! held while the program is called.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set before the first such object is given away, and never reset.
static ARE_ANY: AtomicBool = AtomicBool::new(false);

/// A merge operator or a comparator in Python is about to be given to the engine.
pub fn note() {
    ARE_ANY.store(true, Ordering::SeqCst);
}

/// Whether there may be one.
#[inline]
pub fn are_any() -> bool {
    ARE_ANY.load(Ordering::SeqCst)
}
