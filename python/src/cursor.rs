//! Cursors.

use crate::buffer::bytes;
use crate::call::call;
use crate::errors;
use crate::exclusive::Exclusive;
use crate::open::Open;
use crate::owned::Owned;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::sync::Arc;

/// A cursor that Python objects use, until it is closed.
pub struct SharedCursor {
    open: Arc<Open>,
    cursor: Exclusive<Option<Owned<esker::Cursor>>>,
}

impl SharedCursor {
    pub fn new(open: Arc<Open>, cursor: esker::Cursor) -> SharedCursor {
        SharedCursor { open, cursor: Exclusive::new(Some(Owned::new(cursor))) }
    }

    /// Moves the cursor, with the interpreter released; only from a key, where `from_key` is set.
    /// Whether it was moved.
    pub fn run(
        &self,
        py: Python<'_>,
        from_key: bool,
        work: impl FnOnce(&mut esker::Cursor) -> esker::Result<()> + Send,
    ) -> PyResult<bool> {
        self.open.check(py)?;
        let mut held = self.cursor.lock(py)?;
        let cursor: &mut esker::Cursor = held.as_mut().ok_or_else(|| errors::closed(py, "the iterator"))?;
        if from_key && !cursor.valid() {
            return Ok(false);
        }
        call(py, || work(cursor))?;
        Ok(true)
    }

    /// Reads the entry of the cursor, if it stands at one.
    pub fn read<T>(&self, py: Python<'_>, look: impl FnOnce(&[u8], &[u8]) -> T) -> PyResult<Option<T>> {
        self.open.check(py)?;
        let held = self.cursor.lock(py)?;
        let cursor = held.as_ref().ok_or_else(|| errors::closed(py, "the iterator"))?;
        Ok(cursor.valid().then(|| look(cursor.key(), cursor.value())))
    }

    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        // Another thread may have held the lock when this process was forked.
        if self.open.is_inherited() {
            return Ok(());
        }
        let cursor = self.cursor.lock(py)?.take();
        drop(cursor);
        Ok(())
    }
}

/// A position at a key, as of the moment it was made. It is at no key at first.
///
/// >>> import esker, tempfile
/// >>> with esker.open(tempfile.mkdtemp()) as db:
/// ...     db[b"ada"], db[b"eve"] = b"1815", b"1820"
/// ...     cursor = db.cursor()
/// ...     cursor.seek(b"b")
/// ...     cursor.item()
/// (b'eve', b'1820')
#[pyclass(frozen, weakref, module = "esker")]
pub struct Cursor(pub SharedCursor);

#[pymethods]
impl Cursor {
    /// Whether the cursor is at a key.
    #[getter]
    fn valid(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.read(py, |_, _| ())?.is_some())
    }

    /// Goes to the first key.
    fn seek_to_first(&self, py: Python<'_>) -> PyResult<()> {
        self.0.run(py, false, esker::Cursor::seek_to_first).map(drop)
    }

    /// Goes to the last key.
    fn seek_to_last(&self, py: Python<'_>) -> PyResult<()> {
        self.0.run(py, false, esker::Cursor::seek_to_last).map(drop)
    }

    /// Goes to the first key at or after `target`.
    fn seek(&self, target: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, target) = (target.py(), bytes(target, "target")?);
        let target: &[u8] = &target;
        self.0.run(py, false, |cursor| cursor.seek(target)).map(drop)
    }

    /// Goes to the last key at or before `target`.
    fn seek_for_prev(&self, target: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, target) = (target.py(), bytes(target, "target")?);
        let target: &[u8] = &target;
        self.0.run(py, false, |cursor| cursor.seek_for_prev(target)).map(drop)
    }

    /// Goes to the next key. At no key it does nothing.
    fn next(&self, py: Python<'_>) -> PyResult<()> {
        self.0.run(py, true, esker::Cursor::next).map(drop)
    }

    /// Goes to the key before. At no key it does nothing.
    fn prev(&self, py: Python<'_>) -> PyResult<()> {
        self.0.run(py, true, esker::Cursor::prev).map(drop)
    }

    /// The key; `None` at no key.
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.0.read(py, |key, _| PyBytes::new(py, key))
    }

    /// The value of the key; `None` at no key.
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.0.read(py, |_, value| PyBytes::new(py, value))
    }

    /// The key and its value; `None` at no key.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        self.0.read(py, |key, value| (PyBytes::new(py, key), PyBytes::new(py, value)))
    }

    /// Frees what the cursor holds. A later call raises `ClosedError`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
