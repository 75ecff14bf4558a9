//! Iterators over the entries of a range.

use crate::call::call;
use crate::errors;
use crate::exclusive::Exclusive;
use crate::open::Open;
use crate::owned::Owned;
use crate::walk::{Walk, Way};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::sync::Arc;

/// Which parts of an entry an iterator yields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    Both,
    Key,
    Value,
    Neither,
}

impl Parts {
    pub fn of(key: bool, value: bool) -> Parts {
        match (key, value) {
            (true, true) => Parts::Both,
            (true, false) => Parts::Key,
            (false, true) => Parts::Value,
            (false, false) => Parts::Neither,
        }
    }

    pub fn has_value(self) -> bool {
        matches!(self, Parts::Both | Parts::Value)
    }

    /// The object of an entry, with so many bytes of the key left out.
    #[inline]
    pub fn object(self, py: Python<'_>, (key, value): (&[u8], &[u8]), skipped: usize) -> PyResult<Py<PyAny>> {
        let key_object = || PyBytes::new(py, key.get(skipped..).unwrap_or_default());
        Ok(match self {
            Parts::Both => PyTuple::new(py, [key_object(), PyBytes::new(py, value)])?.into_any().unbind(),
            Parts::Key => key_object().into_any().unbind(),
            Parts::Value => PyBytes::new(py, value).into_any().unbind(),
            Parts::Neither => py.None(),
        })
    }
}

/// A walk that Python objects use, until it is closed.
pub struct Walker {
    open: Arc<Open>,
    walk: Exclusive<Option<Owned<Walk>>>,
    parts: Parts,
    /// How many bytes of each key are left out.
    skipped: usize,
}

impl Walker {
    pub fn new(open: Arc<Open>, walk: Walk, parts: Parts, skipped: usize) -> Walker {
        Walker { open, walk: Exclusive::new(Some(Owned::new(walk))), parts, skipped }
    }

    /// The next entry that way.
    #[inline]
    pub fn step(&self, py: Python<'_>, way: Way) -> PyResult<Option<Py<PyAny>>> {
        self.open.check(py)?;
        let mut held = self.walk.lock(py)?;
        let walk: &mut Walk = held.as_mut().ok_or_else(|| errors::closed(py, "the iterator"))?;
        if let Some(entry) = walk.read(way) {
            return self.parts.object(py, entry, self.skipped).map(Some);
        }
        call(py, || walk.fill(way))?;
        walk.read(way).map(|entry| self.parts.object(py, entry, self.skipped)).transpose()
    }

    /// Does something with the walk, with the interpreter released.
    pub fn run(&self, py: Python<'_>, work: impl FnOnce(&mut Walk) -> esker::Result<()> + Send) -> PyResult<()> {
        self.open.check(py)?;
        let mut held = self.walk.lock(py)?;
        let walk: &mut Walk = held.as_mut().ok_or_else(|| errors::closed(py, "the iterator"))?;
        call(py, || work(walk))
    }

    /// Moves the position without reading.
    pub fn set(&self, py: Python<'_>, work: impl FnOnce(&mut Walk)) -> PyResult<()> {
        self.open.check(py)?;
        let mut held = self.walk.lock(py)?;
        let walk: &mut Walk = held.as_mut().ok_or_else(|| errors::closed(py, "the iterator"))?;
        work(walk);
        Ok(())
    }

    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        // Another thread may have held the lock when this process was forked.
        if self.open.is_inherited() {
            return Ok(());
        }
        let walk = self.walk.lock(py)?.take();
        drop(walk);
        Ok(())
    }
}

/// An iterator over the entries of a range, as of the moment it was made.
///
/// It is made by `Keyspace.scan` and its like, and iterates once. Closing it, or dropping it, frees
/// what it holds.
#[pyclass(frozen, weakref, module = "esker")]
pub struct Scan {
    walker: Walker,
    way: Way,
}

impl Scan {
    pub fn new(open: Arc<Open>, mut walk: Walk, parts: Parts, reverse: bool) -> Scan {
        let way = if reverse { Way::Backward } else { Way::Forward };
        if reverse {
            walk.skip_to_stop();
        }
        Scan { walker: Walker::new(open, walk, parts, 0), way }
    }
}

#[pymethods]
impl Scan {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.walker.step(py, self.way)
    }

    /// Frees what the iterator holds. A later step raises `ClosedError`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.walker.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
