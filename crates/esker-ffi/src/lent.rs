//! What an object lends: read without a lock, by handle.
//!
//! The object's slot writes it, under its lock. A reader finds a whole pair where no other thread
//! moves the object meanwhile, which is what a caller of such a library promises: what is lent ends
//! with the next move.

use std::num::NonZero;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};

/// A key and its value, as memory that the object lends.
///
/// ```
/// let loan = esker_ffi::lent::Loan { key: (std::ptr::null(), 0), value: (std::ptr::null(), 0) };
/// assert_eq!(loan.key.1, 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loan {
    /// Where the key begins, and its length.
    pub key: (*const u8, usize),
    /// Where the value begins, and its length.
    pub value: (*const u8, usize),
}

impl Loan {
    pub(crate) fn of((key, value): (&[u8], &[u8])) -> Loan {
        Loan { key: (key.as_ptr(), key.len()), value: (value.as_ptr(), value.len()) }
    }
}

/// What the object in a slot lends, if it does.
#[derive(Default)]
pub(crate) struct Lent {
    /// The generation of the object, and its kind; 0 if nothing is lent.
    lender: AtomicU64,
    key: AtomicPtr<u8>,
    key_length: AtomicUsize,
    value: AtomicPtr<u8>,
    value_length: AtomicUsize,
}

fn lender(generation: u32, kind: NonZero<u32>) -> u64 {
    u64::from(generation) << 32 | u64::from(kind.get())
}

impl Lent {
    /// Nothing is lent any more.
    #[inline]
    pub(crate) fn end(&self) {
        self.lender.store(0, Relaxed);
    }

    /// From here on the object of that generation and kind lends this, if it is something.
    #[inline]
    pub(crate) fn begin(&self, generation: u32, kind: NonZero<u32>, loan: Option<(&[u8], &[u8])>) {
        let Some(Loan { key, value }) = loan.map(Loan::of) else { return };
        self.key.store(key.0.cast_mut(), Relaxed);
        self.key_length.store(key.1, Relaxed);
        self.value.store(value.0.cast_mut(), Relaxed);
        self.value_length.store(value.1, Relaxed);
        self.lender.store(lender(generation, kind), Release);
    }

    /// What the object of that generation and kind lends.
    #[inline]
    pub(crate) fn loan(&self, generation: u32, kind: NonZero<u32>) -> Option<Loan> {
        (self.lender.load(Acquire) == lender(generation, kind)).then(|| Loan {
            key: (self.key.load(Relaxed), self.key_length.load(Relaxed)),
            value: (self.value.load(Relaxed), self.value_length.load(Relaxed)),
        })
    }
}
