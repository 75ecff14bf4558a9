//! A byte-wise comparator that counts, for the C interfaces that take one: LevelDB's and RocksDB's
//! have the same shape.
//!
//! Its name is that of the built-in comparator and its order too, so a database made with either
//! can be opened with the other. It differs in one thing: the C interfaces let a foreign comparator
//! shorten no keys of index blocks.

use super::dynamic::bytes;
use std::cmp::Ordering as Order;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// A function that compares two keys, as both interfaces declare it.
pub type Compare = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;
/// A function that names the order.
pub type Name = unsafe extern "C" fn(*mut c_void) -> *const c_char;
/// A function that releases the state.
pub type Release = unsafe extern "C" fn(*mut c_void);

/// How many comparisons were made. Its address is the comparator's state, so it lives in a box at
/// least as long as the database.
#[derive(Debug, Default)]
pub struct Comparisons(AtomicU64);

impl Comparisons {
    /// A count of 0.
    pub fn new() -> Box<Comparisons> {
        Box::default()
    }

    /// What the comparator is created with.
    pub fn state(&self) -> *mut c_void {
        std::ptr::from_ref(self).cast_mut().cast()
    }

    /// Comparisons so far.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The comparator's function.
///
/// # Safety
/// `state` comes from [`Comparisons::state`] of a count that lives, and both keys are readable.
pub unsafe extern "C" fn compare(
    state: *mut c_void,
    a: *const c_char,
    a_len: usize,
    b: *const c_char,
    b_len: usize,
) -> c_int {
    // SAFETY: the caller's promise; the count is shared and atomic.
    let (counted, a, b) = unsafe { (&*state.cast::<Comparisons>(), bytes(a, a_len), bytes(b, b_len)) };
    counted.0.fetch_add(1, Ordering::Relaxed);
    match a.cmp(b) {
        Order::Less => -1,
        Order::Equal => 0,
        Order::Greater => 1,
    }
}

/// The name of the order, which both engines write into the database.
///
/// # Safety
/// None is needed; the type asks for it.
pub unsafe extern "C" fn name(_: *mut c_void) -> *const c_char {
    c"leveldb.BytewiseComparator".as_ptr()
}

/// Releases nothing: the maker of the count keeps it.
///
/// # Safety
/// None is needed; the type asks for it.
pub unsafe extern "C" fn release(_: *mut c_void) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_by_bytes_and_counted() {
        let comparisons = Comparisons::new();
        let order = |a: &[u8], b: &[u8]| {
            // SAFETY: the count and both slices live during the call.
            unsafe { compare(comparisons.state(), a.as_ptr().cast(), a.len(), b.as_ptr().cast(), b.len()) }
        };
        assert_eq!([order(b"a", b"b"), order(b"b", b"b"), order(b"ba", b"b"), order(b"", b"\xff")], [-1, 0, 1, -1]);
        assert_eq!(comparisons.count(), 4);
    }
}
