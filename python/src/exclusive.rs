//! What one thread at a time may use.

use crate::errors;
use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A value for one thread at a time.
///
/// A thread waits for another one with the interpreter released. It does not wait for itself: where
/// a merge operator of the program uses the object whose call has called it, that is an error.
///
/// Lock order: the interpreter is never waited for by a thread that others wait for here, except
/// by the holder of the lock, and nobody waits for the lock while attached.
pub struct Exclusive<T> {
    value: Mutex<T>,
    /// The token of the thread that holds the lock; 0 for none.
    owner: AtomicUsize,
}

/// The value, until this is dropped.
pub struct Held<'a, T> {
    value: MutexGuard<'a, T>,
    owner: &'a AtomicUsize,
}

/// A number of this thread, which no other living thread has.
fn token() -> usize {
    thread_local!(static TOKEN: u8 = const { 0 });
    TOKEN.with(|token| std::ptr::from_ref(token) as usize)
}

impl<T: Send> Exclusive<T> {
    pub fn new(value: T) -> Exclusive<T> {
        Exclusive { value: Mutex::new(value), owner: AtomicUsize::new(0) }
    }

    pub fn lock(&self, py: Python<'_>) -> PyResult<Held<'_, T>> {
        let token = token();
        let value = match self.value.try_lock() {
            Some(value) => value,
            // Only this thread itself stores its token.
            None if self.owner.load(Ordering::Relaxed) == token => {
                return Err(errors::in_callback(py, "the object is in use by the call that has called this code"));
            }
            None => pyo3::sync::MutexExt::lock_py_attached(&self.value, py),
        };
        self.owner.store(token, Ordering::Relaxed);
        Ok(Held { value, owner: &self.owner })
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}
