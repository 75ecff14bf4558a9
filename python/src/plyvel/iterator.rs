//! Iterators.

use super::shared::{Key, Shared};
use crate::arguments::{Limits, after_prefix, prefix_limits};
use crate::call::call;
use crate::cursor::SharedCursor;
use crate::errors;
use crate::open::KeyspaceHandle;
use crate::scan::{Parts, Walker};
use crate::view::{Moment, Pair};
use crate::walk::{Walk, Way};
use pyo3::exceptions::{PyStopIteration, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::ops::Bound as Limit;
use std::sync::Arc;

/// The arguments of an iterator.
pub struct IteratorArguments<'py> {
    pub reverse: bool,
    pub start: Option<Key<'py>>,
    pub stop: Option<Key<'py>>,
    pub include_start: bool,
    pub include_stop: bool,
    pub prefix: Option<Key<'py>>,
    pub include_key: bool,
    pub include_value: bool,
}

impl Default for IteratorArguments<'_> {
    fn default() -> Self {
        IteratorArguments {
            reverse: false,
            start: None,
            stop: None,
            include_start: true,
            include_stop: false,
            prefix: None,
            include_key: true,
            include_value: true,
        }
    }
}

impl IteratorArguments<'_> {
    /// The range of keys as they are stored.
    fn limits(&self, shared: &Shared) -> PyResult<Limits> {
        if let Some(prefix) = &self.prefix {
            if self.start.is_some() || self.stop.is_some() {
                return Err(PyTypeError::new_err("'prefix' cannot be used together with 'start' or 'stop'"));
            }
            return Ok(prefix_limits(&shared.key(prefix.as_bytes())));
        }
        let end = |key: &Key<'_>, included: bool| {
            let key = shared.key(key.as_bytes()).into_owned();
            if included { Limit::Included(key) } else { Limit::Excluded(key) }
        };
        let database = shared.prefix.as_deref();
        let lower = match (&self.start, database) {
            (Some(start), _) => end(start, self.include_start),
            (None, Some(prefix)) => Limit::Included(prefix.to_vec()),
            (None, None) => Limit::Unbounded,
        };
        let upper = match (&self.stop, database.and_then(after_prefix)) {
            (Some(stop), _) => end(stop, self.include_stop),
            (None, Some(after)) => Limit::Excluded(after),
            (None, None) => Limit::Unbounded,
        };
        Ok((lower, upper))
    }
}

/// An iterator over a range, with the names and the meaning of plyvel's.
#[pyclass(frozen, weakref, module = "esker.plyvel")]
pub struct Iterator {
    walker: Walker,
    next: Way,
    prefix: Option<Arc<[u8]>>,
}

/// Makes an iterator.
pub fn iterator(
    py: Python<'_>,
    shared: &Shared,
    moment: Moment,
    arguments: IteratorArguments<'_>,
) -> PyResult<Iterator> {
    let limits = arguments.limits(shared)?;
    let parts = Parts::of(arguments.include_key, arguments.include_value);
    let keyspace = shared.keyspace.get(py)?;
    let cursor = call(py, || moment.cursor(keyspace))?;
    let mut walk = call(py, || Ok(Walk::new(keyspace, cursor, limits, parts.has_value())))?;
    let reverse = arguments.reverse;
    if reverse {
        walk.skip_to_stop();
    }
    let prefix = shared.prefix.clone();
    let skipped = prefix.as_ref().map_or(0, |prefix| prefix.len());
    let walker = Walker::new(Arc::clone(&shared.keyspace.open), walk, parts, skipped);
    Ok(Iterator { walker, next: if reverse { Way::Backward } else { Way::Forward }, prefix })
}

#[pymethods]
impl Iterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.walker.step(py, self.next)
    }

    /// Steps back, and returns what it has stepped over.
    fn prev(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let way = if self.next == Way::Forward { Way::Backward } else { Way::Forward };
        self.walker.step(py, way)?.ok_or_else(|| PyStopIteration::new_err(()))
    }

    /// Goes before the first key of the range.
    fn seek_to_start(&self, py: Python<'_>) -> PyResult<()> {
        self.walker.set(py, Walk::rewind)
    }

    /// Goes behind the last key of the range.
    fn seek_to_stop(&self, py: Python<'_>) -> PyResult<()> {
        self.walker.set(py, Walk::skip_to_stop)
    }

    /// Goes before the first key of the range from `target` on.
    fn seek(&self, target: Key<'_>) -> PyResult<()> {
        let py = target.py();
        let stored;
        let target = match &self.prefix {
            None => target.as_bytes(),
            Some(prefix) => {
                stored = [prefix, target.as_bytes()].concat();
                &stored
            }
        };
        self.walker.run(py, |walk| walk.seek(target))
    }

    /// Frees what the iterator holds.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.walker.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.walker.close(py)?;
        Ok(false)
    }
}

/// An iterator like that of LevelDB, with the names and the meaning of plyvel's.
#[pyclass(frozen, weakref, module = "esker.plyvel")]
pub struct RawIterator(SharedCursor);

/// Makes a raw iterator.
pub fn raw_iterator(py: Python<'_>, keyspace: &KeyspaceHandle, moment: Moment) -> PyResult<RawIterator> {
    let engine = keyspace.get(py)?;
    let cursor = call(py, || moment.cursor(engine))?;
    Ok(RawIterator(SharedCursor::new(Arc::clone(&keyspace.open), cursor)))
}

#[cold]
fn invalid(py: Python<'_>) -> PyErr {
    errors::new(py, "IteratorInvalidError", "the iterator is at no key")
}

#[pymethods]
impl RawIterator {
    /// Whether the iterator is at a key.
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

    /// Goes to the first key from `target` on.
    fn seek(&self, target: Key<'_>) -> PyResult<()> {
        let bytes = target.as_bytes();
        self.0.run(target.py(), false, |cursor| cursor.seek(bytes)).map(drop)
    }

    /// Goes to the next key.
    fn next(&self, py: Python<'_>) -> PyResult<()> {
        if self.0.run(py, true, esker::Cursor::next)? { Ok(()) } else { Err(invalid(py)) }
    }

    /// Goes to the key before.
    fn prev(&self, py: Python<'_>) -> PyResult<()> {
        if self.0.run(py, true, esker::Cursor::prev)? { Ok(()) } else { Err(invalid(py)) }
    }

    /// The key.
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.read(py, |key, _| PyBytes::new(py, key))?.ok_or_else(|| invalid(py))
    }

    /// The value.
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.0.read(py, |_, value| PyBytes::new(py, value))?.ok_or_else(|| invalid(py))
    }

    /// The key and the value.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Pair<'py>> {
        let read = self.0.read(py, |key, value| (PyBytes::new(py, key), PyBytes::new(py, value)))?;
        read.ok_or_else(|| invalid(py))
    }

    /// Frees what the iterator holds.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<bool> {
        self.0.close(py)?;
        Ok(false)
    }
}
