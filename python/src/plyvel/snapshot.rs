//! Snapshots.

use super::iterator::{self, Iterator, IteratorArguments, RawIterator};
use super::shared::{Key, Shared, get, truth};
use crate::view::{Moment, SharedSnapshot};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// A snapshot, with the names and the meaning of plyvel's.
#[pyclass(frozen, weakref, name = "PlyvelSnapshot", module = "esker.plyvel")]
pub struct PlyvelSnapshot {
    shared: Shared,
    snapshot: SharedSnapshot,
}

impl PlyvelSnapshot {
    pub fn new(py: Python<'_>, shared: Shared) -> PyResult<PlyvelSnapshot> {
        let open = Arc::clone(&shared.keyspace.open);
        let snapshot = SharedSnapshot::new(py, open)?;
        Ok(PlyvelSnapshot { shared, snapshot })
    }

    fn moment(&self, py: Python<'_>) -> PyResult<Moment> {
        Ok(Moment::Snapshot(self.snapshot.get(py)?))
    }
}

#[pymethods]
impl PlyvelSnapshot {
    /// The value of `key` then, or `default`.
    #[pyo3(signature = (key, default = None, *, verify_checksums = false, fill_cache = true))]
    fn get(
        &self,
        key: Key<'_>,
        default: Option<Py<PyAny>>,
        #[pyo3(from_py_with = truth)] verify_checksums: bool,
        #[pyo3(from_py_with = truth)] fill_cache: bool,
    ) -> PyResult<Py<PyAny>> {
        let _ = (verify_checksums, fill_cache);
        let stored = self.shared.key(key.as_bytes());
        get(key.py(), &self.shared.keyspace, &self.moment(key.py())?, &stored, default)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Iterator> {
        iterator::iterator(py, &self.shared, self.moment(py)?, IteratorArguments::default())
    }

    /// An iterator over a range.
    #[pyo3(signature = (*, reverse = false, start = None, stop = None, include_start = true, include_stop = false,
                        prefix = None, include_key = true, include_value = true, verify_checksums = false,
                        fill_cache = true))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the call")]
    fn iterator<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = truth)] reverse: bool,
        start: Option<Key<'py>>,
        stop: Option<Key<'py>>,
        #[pyo3(from_py_with = truth)] include_start: bool,
        #[pyo3(from_py_with = truth)] include_stop: bool,
        prefix: Option<Key<'py>>,
        #[pyo3(from_py_with = truth)] include_key: bool,
        #[pyo3(from_py_with = truth)] include_value: bool,
        #[pyo3(from_py_with = truth)] verify_checksums: bool,
        #[pyo3(from_py_with = truth)] fill_cache: bool,
    ) -> PyResult<Iterator> {
        let _ = (verify_checksums, fill_cache);
        let arguments =
            IteratorArguments { reverse, start, stop, include_start, include_stop, prefix, include_key, include_value };
        iterator::iterator(py, &self.shared, self.moment(py)?, arguments)
    }

    /// An iterator like that of LevelDB.
    #[pyo3(signature = (*, verify_checksums = false, fill_cache = true))]
    fn raw_iterator(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = truth)] verify_checksums: bool,
        #[pyo3(from_py_with = truth)] fill_cache: bool,
    ) -> PyResult<RawIterator> {
        let _ = (verify_checksums, fill_cache);
        iterator::raw_iterator(py, &self.shared.keyspace, self.moment(py)?)
    }

    /// Frees what the snapshot holds.
    fn close(&self) {
        self.snapshot.close();
    }

    /// Frees what the snapshot holds.
    fn release(&self) {
        self.snapshot.close();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> bool {
        self.snapshot.close();
        false
    }
}
