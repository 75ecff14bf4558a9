//! Databases with a prefix before each key.

use super::batch::WriteBatch;
use super::iterator::{self, Iterator, IteratorArguments};
use super::shared::{Key, Shared, delete, get, put, truth};
use super::snapshot::PlyvelSnapshot;
use crate::view::Moment;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A database with a prefix before each key, with the names and the meaning of plyvel's.
#[pyclass(frozen, weakref, module = "esker.plyvel")]
pub struct PrefixedDB {
    shared: Shared,
    /// The database without a prefix.
    #[pyo3(get)]
    db: Py<PyAny>,
    /// The prefix.
    #[pyo3(get)]
    prefix: Py<PyBytes>,
}

impl PrefixedDB {
    pub fn new(db: Py<PyAny>, shared: Shared, prefix: Py<PyBytes>) -> PrefixedDB {
        PrefixedDB { shared, db, prefix }
    }
}

#[pymethods]
impl PrefixedDB {
    /// The value of `key`, or `default`.
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
        get(key.py(), &self.shared.keyspace, &Moment::Newest, &stored, default)
    }

    /// Sets the value of `key`.
    #[pyo3(signature = (key, value, *, sync = false))]
    fn put(&self, key: Key<'_>, value: &Bound<'_, PyAny>, #[pyo3(from_py_with = truth)] sync: bool) -> PyResult<()> {
        put(&self.shared, &key, value, sync)
    }

    /// Removes `key`.
    #[pyo3(signature = (key, *, sync = false))]
    fn delete(&self, key: Key<'_>, #[pyo3(from_py_with = truth)] sync: bool) -> PyResult<()> {
        delete(&self.shared, &key, sync)
    }

    /// A batch of writes.
    #[pyo3(signature = (*, transaction = false, sync = false))]
    fn write_batch(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = truth)] transaction: bool,
        #[pyo3(from_py_with = truth)] sync: bool,
    ) -> PyResult<WriteBatch> {
        WriteBatch::new(py, self.shared.clone(), transaction, sync)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Iterator> {
        iterator::iterator(py, &self.shared, Moment::Newest, IteratorArguments::default())
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
        iterator::iterator(py, &self.shared, Moment::Newest, arguments)
    }

    /// A snapshot.
    fn snapshot(&self, py: Python<'_>) -> PyResult<PlyvelSnapshot> {
        PlyvelSnapshot::new(py, self.shared.clone())
    }

    /// This database, with one more prefix.
    fn prefixed_db(&self, py: Python<'_>, prefix: Key<'_>) -> PrefixedDB {
        let shared = self.shared.prefixed(prefix.as_bytes());
        let whole = PyBytes::new(py, shared.prefix.as_deref().unwrap_or_default());
        PrefixedDB::new(self.db.clone_ref(py), shared, whole.unbind())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<plyvel.PrefixedDB with prefix {}>", self.prefix.bind(py).repr()?))
    }
}
