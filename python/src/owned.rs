//! Handles of the engine as Python objects own them.

use crate::fork;
use pyo3::Python;
use std::ops::{Deref, DerefMut};

/// A handle of the engine.
///
/// Dropping one may wait: for a lock, or for the thread of a database, which may be in a merge
/// operator of the program and wait for the interpreter. So it is dropped with the interpreter
/// released. In a process that was forked from the one of the handle it is left as it is.
pub struct Owned<T: Send> {
    /// `None` only while it is dropped.
    handle: Option<T>,
    generation: u32,
    /// See [`Owned::quick`].
    is_quick: bool,
}

impl<T: Send> Owned<T> {
    pub fn new(handle: T) -> Owned<T> {
        Owned { handle: Some(handle), generation: fork::generation(), is_quick: false }
    }

    /// A handle that is not the last one of its database when it is dropped, and whose drop takes
    /// a lock that the engine holds for a moment, and while it calls nothing of the program: the
    /// interpreter is kept. That of a follower frees what it has pinned, too.
    pub fn quick(handle: T) -> Owned<T> {
        Owned { handle: Some(handle), generation: fork::generation(), is_quick: true }
    }

    /// The handle, to be finished by a call; none in a process that was forked from its own.
    pub fn into_inner(mut self) -> Option<T> {
        if self.is_inherited() { None } else { self.handle.take() }
    }

    /// Whether the handle is of a process that this one was forked from.
    pub fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }
}

impl<T: Send> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.handle.as_ref().expect("only `drop` takes it")
    }
}

impl<T: Send> DerefMut for Owned<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.handle.as_mut().expect("only `drop` takes it")
    }
}

impl<T: Send> Drop for Owned<T> {
    fn drop(&mut self) {
        let mut handle = self.handle.take();
        if self.is_inherited() {
            std::mem::forget(handle);
            return;
        }
        if self.is_quick {
            return;
        }
        // Where the interpreter is not attached to, or is going away, nothing has to be released.
        let released = Python::try_attach(|py| py.detach(|| drop(handle.take())));
        if released.is_none() {
            drop(handle);
        }
    }
}
