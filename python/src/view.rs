//! What can be read of a keyspace: as of now, or of a snapshot.

use crate::arguments::{Limits, RangeArguments, datetime};
use crate::arrow::ArrowBatch;
use crate::buffer::{Buffer, bytes};
use crate::call::call;
use crate::callables;
use crate::cursor::{Cursor, SharedCursor};
use crate::errors;
use crate::open::{KeyspaceHandle, Open};
use crate::owned::Owned;
use crate::scan::{Parts, Scan};
use crate::walk::{Walk, Way};
use esker::{Expiry, Keyspace, Slice, Snapshot};
use parking_lot::Mutex;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice};
use std::sync::Arc;

/// A snapshot that Python objects share, until it is closed.
pub struct SharedSnapshot {
    /// Locked for as long as it takes to copy a reference, with the interpreter attached.
    snapshot: Mutex<Option<Arc<Owned<Snapshot>>>>,
    /// Behind the snapshot, which is dropped first: the last handle of a database closes it.
    pub open: Arc<Open>,
}

impl SharedSnapshot {
    /// A snapshot of now.
    pub fn new(py: Python<'_>, open: Arc<Open>) -> PyResult<SharedSnapshot> {
        let db = open.db(py)?;
        let snapshot = match callables::are_any() {
            true => call(py, || Ok(db.snapshot()))?,
            // See `callables.rs`.
            false => db.snapshot(),
        };
        Ok(SharedSnapshot { snapshot: Mutex::new(Some(Arc::new(Owned::quick(snapshot)))), open })
    }

    /// The snapshot, to be used now.
    pub fn get(&self, py: Python<'_>) -> PyResult<Arc<Owned<Snapshot>>> {
        self.open.check(py)?;
        // Not in one statement: making the exception runs code of Python, with the lock held.
        let snapshot = self.snapshot.lock().clone();
        snapshot.ok_or_else(|| errors::closed(py, "the snapshot"))
    }

    pub fn is_closed(&self) -> bool {
        self.snapshot.lock().is_none()
    }

    pub fn close(&self) {
        // Another thread may have held the lock when this process was forked.
        if self.open.is_inherited() {
            return;
        }
        // Not in one statement: it is dropped behind the lock.
        let last = self.snapshot.lock().take();
        drop(last);
    }
}

/// What a read is of.
pub enum Moment {
    Newest,
    Snapshot(Arc<Owned<Snapshot>>),
}

impl Moment {
    pub fn get(&self, keyspace: &Keyspace, key: &[u8]) -> esker::Result<Option<Slice>> {
        match self {
            Moment::Newest => keyspace.get(key),
            Moment::Snapshot(snapshot) => snapshot.get(keyspace, key),
        }
    }

    pub fn cursor(&self, keyspace: &Keyspace) -> esker::Result<esker::Cursor> {
        match self {
            Moment::Newest => keyspace.cursor(),
            Moment::Snapshot(snapshot) => snapshot.cursor(keyspace),
        }
    }
}

/// An entry as a pair of `bytes`.
pub type Pair<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// A pair of the engine as one of Python.
pub fn pair<'py>(py: Python<'py>, pair: Option<(Slice, Slice)>) -> Option<Pair<'py>> {
    pair.map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value)))
}

/// The entries of a keyspace, as a mapping that can be read.
#[pyclass(frozen, subclass, weakref, module = "esker")]
pub struct KeyspaceView {
    pub keyspace: Arc<KeyspaceHandle>,
    pub snapshot: Option<Arc<SharedSnapshot>>,
}

impl KeyspaceView {
    /// The keyspace and what to read of it, to be used now.
    #[inline]
    pub fn source(&self, py: Python<'_>) -> PyResult<(&Keyspace, Moment)> {
        let moment = match &self.snapshot {
            None => Moment::Newest,
            Some(snapshot) => Moment::Snapshot(snapshot.get(py)?),
        };
        Ok((self.keyspace.get(py)?, moment))
    }

    #[inline]
    fn value(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<Slice>> {
        let py = key.py();
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        let (keyspace, moment) = self.source(py)?;
        call(py, || moment.get(keyspace, key))
    }

    /// A walk over a range.
    pub fn walk(&self, py: Python<'_>, limits: Limits, values: bool) -> PyResult<Walk> {
        let (keyspace, moment) = self.source(py)?;
        let cursor = call(py, || moment.cursor(keyspace))?;
        call(py, || Ok(Walk::new(keyspace, cursor, limits, values)))
    }

    fn scanned(&self, py: Python<'_>, limits: Limits, parts: Parts, reverse: bool) -> PyResult<Scan> {
        let walk = self.walk(py, limits, parts.has_value())?;
        Ok(Scan::new(Arc::clone(&self.keyspace.open), walk, parts, reverse))
    }
}

/// The view class of that name, on a mapping.
fn dictionary_view<'py>(slf: &Bound<'py, KeyspaceView>, class: &str) -> PyResult<Bound<'py, PyAny>> {
    slf.py().import("esker._views")?.getattr(class)?.call1((slf,))
}

/// The range that a slice of keys is.
pub fn slice_limits(slice: &Bound<'_, PySlice>) -> PyResult<Limits> {
    if !slice.getattr("step")?.is_none() {
        return Err(PyTypeError::new_err("a slice of keys has no step; scan(reverse=True) goes backward"));
    }
    let (start, stop) = (slice.getattr("start")?, slice.getattr("stop")?);
    let given = |end: &Bound<'_, PyAny>| !end.is_none();
    RangeArguments::half_open(given(&start).then_some(&start), given(&stop).then_some(&stop)).limits()
}

#[pymethods]
impl KeyspaceView {
    /// The name of the keyspace.
    #[getter]
    fn name(&self) -> String {
        self.keyspace.name()
    }

    /// The value of `key`, or `default` where it has none.
    ///
    /// >>> import esker, tempfile
    /// >>> with esker.open(tempfile.mkdtemp()) as db:
    /// ...     db.put(b"ada", b"1815")
    /// ...     db.get(b"ada"), db.get(b"bob"), db.get(b"bob", b"?")
    /// (b'1815', None, b'?')
    #[pyo3(signature = (key, default = None))]
    fn get(&self, key: &Bound<'_, PyAny>, default: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let py = key.py();
        Ok(match self.value(key)? {
            Some(value) => PyBytes::new(py, &value).into_any().unbind(),
            None => default.unwrap_or_else(|| py.None()),
        })
    }

    /// The values of `keys`, all of one moment, in their order; `None` for each that has none.
    ///
    /// >>> import esker, tempfile
    /// >>> with esker.open(tempfile.mkdtemp()) as db:
    /// ...     db[b"ada"] = b"1815"
    /// ...     db.get_many([b"ada", b"bob"])
    /// [b'1815', None]
    fn get_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = keys.py();
        let mut copies = Vec::new();
        for key in keys.try_iter()? {
            copies.push(bytes(&key?, "each key")?.to_vec());
        }
        let (keyspace, moment) = self.source(py)?;
        let values = call(py, || match &moment {
            Moment::Newest => Ok(keyspace.multi_get(&copies)),
            Moment::Snapshot(snapshot) => snapshot.multi_get(keyspace, &copies),
        });
        let list = PyList::empty(py);
        for value in values? {
            let value = value.map_err(|error| errors::raise(py, error))?;
            list.append(value.map(|value| PyBytes::new(py, &value)))?;
        }
        Ok(list)
    }

    /// Copies the value of `key` to the beginning of `buffer`, a writable object such as a
    /// `bytearray` or a NumPy array, without making a `bytes` of it. Returns the length of the
    /// value, or `None` where the key has none. A value that is longer than the buffer raises
    /// `ValueError`, which has the length, and the buffer stays as it is.
    ///
    /// >>> import esker, tempfile
    /// >>> buffer = bytearray(8)
    /// >>> with esker.open(tempfile.mkdtemp()) as db:
    /// ...     db[b"ada"] = b"1815"
    /// ...     length = db.get_into(b"ada", buffer)
    /// >>> bytes(buffer[:length])
    /// b'1815'
    fn get_into(&self, key: &Bound<'_, PyAny>, buffer: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let mut memory = Buffer::writable(buffer)?;
        let Some(value) = self.value(key)? else { return Ok(None) };
        if value.len() > memory.len() {
            let what = format!("the value has {} bytes, and the buffer has room for {}", value.len(), memory.len());
            return Err(pyo3::exceptions::PyValueError::new_err(what));
        }
        memory.fill(&value);
        Ok(Some(value.len()))
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if let Ok(slice) = key.cast::<PySlice>() {
            let scan = this.scanned(py, slice_limits(slice)?, Parts::Both, false)?;
            return Ok(Bound::new(py, scan)?.into_any());
        }
        match this.value(key)? {
            Some(value) => Ok(PyBytes::new(py, &value).into_any()),
            None => Err(pyo3::exceptions::PyKeyError::new_err(key.clone().unbind())),
        }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = key.py();
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        let (keyspace, moment) = self.source(py)?;

        call(py, || match &moment {
            Moment::Newest => keyspace.contains_key(key),
            Moment::Snapshot(snapshot) => snapshot.contains_key(keyspace, key),
        })
    }

    /// When the value of `key` expires, as an aware `datetime`; `None` where it never does. A time
    /// that no `datetime` can hold is the last one. A key without value raises `KeyError`.
    fn expires_at<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = key.py();
        let argument = key;
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        let (keyspace, moment) = self.source(py)?;
        let found = call(py, || match &moment {
            Moment::Newest => keyspace.expires_at(key),
            Moment::Snapshot(snapshot) => snapshot.expires_at(keyspace, key),
        });
        match found? {
            Some(Expiry::At(time)) => datetime(py, time).map(Some),
            Some(_) => Ok(None),
            None => Err(pyo3::exceptions::PyKeyError::new_err(argument.clone().unbind())),
        }
    }

    /// The least key that has a value, with the value; `None` where no key has one.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Pair<'py>>> {
        let (keyspace, moment) = self.source(py)?;
        let found = call(py, || match &moment {
            Moment::Newest => keyspace.first(),
            Moment::Snapshot(snapshot) => snapshot.first(keyspace),
        });
        Ok(pair(py, found?))
    }

    /// The greatest key that has a value, with the value; `None` where no key has one.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Pair<'py>>> {
        let (keyspace, moment) = self.source(py)?;
        let found = call(py, || match &moment {
            Moment::Newest => keyspace.last(),
            Moment::Snapshot(snapshot) => snapshot.last(keyspace),
        });
        Ok(pair(py, found?))
    }

    /// How many keys of a range have a value. Costs a scan of the range.
    #[pyo3(signature = (start = None, stop = None, *, prefix = None, include_start = true, include_stop = false))]
    fn count(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        include_start: bool,
        include_stop: bool,
    ) -> PyResult<u64> {
        let limits = RangeArguments { start, stop, prefix, include_start, include_stop };
        let limits = limits.limits_in(py, self.keyspace.get(py)?)?;
        let (keyspace, moment) = self.source(py)?;

        call(py, || match &moment {
            Moment::Newest => keyspace.count(&limits),
            Moment::Snapshot(snapshot) => snapshot.count(keyspace, &limits),
        })
    }

    /// The number of keys. Costs a scan of the keyspace.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.count(py, None, None, None, true, false)? as usize)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.first(py)?.is_some())
    }

    /// Iterates over the entries of a range in the order of their keys, or backward, as of the
    /// moment of the call. Yields pairs of key and value.
    ///
    /// The range is that of the keys from `start` on and below `stop`, or of those that begin with
    /// `prefix`. `include_start` and `include_stop` say whether its ends belong to it.
    ///
    /// >>> import esker, tempfile
    /// >>> with esker.open(tempfile.mkdtemp()) as db:
    /// ...     db.update({b"a1": b"x", b"a2": b"y", b"b1": b"z"})
    /// ...     list(db.scan(prefix=b"a", reverse=True)), list(db.scan(b"a2"))
    /// ([(b'a2', b'y'), (b'a1', b'x')], [(b'a2', b'y'), (b'b1', b'z')])
    #[pyo3(signature = (start = None, stop = None, *, prefix = None, reverse = false, include_start = true,
                        include_stop = false))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the call")]
    fn scan(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        reverse: bool,
        include_start: bool,
        include_stop: bool,
    ) -> PyResult<Scan> {
        let limits = RangeArguments { start, stop, prefix, include_start, include_stop };
        let limits = limits.limits_in(py, self.keyspace.get(py)?)?;
        self.scanned(py, limits, Parts::Both, reverse)
    }

    /// As `scan`, and yields keys only. Values are not read.
    #[pyo3(signature = (start = None, stop = None, *, prefix = None, reverse = false, include_start = true,
                        include_stop = false))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the call")]
    fn scan_keys(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        reverse: bool,
        include_start: bool,
        include_stop: bool,
    ) -> PyResult<Scan> {
        let limits = RangeArguments { start, stop, prefix, include_start, include_stop };
        let limits = limits.limits_in(py, self.keyspace.get(py)?)?;
        self.scanned(py, limits, Parts::Key, reverse)
    }

    /// As `scan`, and yields values only.
    #[pyo3(signature = (start = None, stop = None, *, prefix = None, reverse = false, include_start = true,
                        include_stop = false))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the call")]
    fn scan_values(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        reverse: bool,
        include_start: bool,
        include_stop: bool,
    ) -> PyResult<Scan> {
        let limits = RangeArguments { start, stop, prefix, include_start, include_stop };
        let limits = limits.limits_in(py, self.keyspace.get(py)?)?;
        self.scanned(py, limits, Parts::Value, reverse)
    }

    /// The entries of a range as a `pyarrow.Table` with the columns `key` and `value`, in order. It
    /// needs pyarrow, version 14 or later. Nothing is copied between the two.
    #[pyo3(signature = (start = None, stop = None, *, prefix = None, reverse = false, include_start = true,
                        include_stop = false))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the call")]
    fn scan_to_arrow<'py>(
        &self,
        py: Python<'py>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        reverse: bool,
        include_start: bool,
        include_stop: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arrow = py.import("pyarrow").map_err(|error| {
            let hint =
                pyo3::exceptions::PyImportError::new_err("scan_to_arrow needs pyarrow: pip install esker[arrow]");
            hint.set_cause(py, Some(error));
            hint
        })?;
        let limits = RangeArguments { start, stop, prefix, include_start, include_stop };
        let limits = limits.limits_in(py, self.keyspace.get(py)?)?;
        let mut walk = Owned::new(self.walk(py, limits, true)?);
        let way = if reverse { Way::Backward } else { Way::Forward };
        if reverse {
            walk.skip_to_stop();
        }
        let batches = PyList::empty(py);
        loop {
            self.keyspace.open.check(py)?;
            let read = call(py, || ArrowBatch::read(&mut walk, way))?;
            let ended = read.is_none();
            if ended && !batches.is_empty() {
                break;
            }
            let batch = Bound::new(py, read.unwrap_or_else(ArrowBatch::empty))?;
            batches.append(arrow.call_method1("record_batch", (batch,))?)?;
            if ended {
                break;
            }
        }
        arrow.getattr("Table")?.call_method1("from_batches", (batches,))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Scan> {
        self.scanned(py, (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded), Parts::Key, false)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Scan> {
        self.scanned(py, (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded), Parts::Key, true)
    }

    /// The keys, as a view like that of `dict`.
    fn keys<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        dictionary_view(slf, "KeysView")
    }

    /// The values, as a view like that of `dict`.
    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        dictionary_view(slf, "ValuesView")
    }

    /// The entries, as a view like that of `dict`.
    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        dictionary_view(slf, "ItemsView")
    }

    /// A cursor, as of the moment of the call.
    fn cursor(&self, py: Python<'_>) -> PyResult<Cursor> {
        let (keyspace, moment) = self.source(py)?;
        let cursor = call(py, || moment.cursor(keyspace))?;
        Ok(Cursor(SharedCursor::new(Arc::clone(&self.keyspace.open), cursor)))
    }
}
