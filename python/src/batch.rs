//! Batches.

use crate::arguments::{RangeArguments, duration, moment, optional_moment, write_options};
use crate::buffer::bytes;
use crate::call::call;
use crate::errors;
use crate::exclusive::Exclusive;
use crate::open::{KeyspaceHandle, Open};
use crate::owned::Owned;
use crate::snapshot::keyspace_of;
use esker::Keyspace;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;
use std::time::SystemTime;

/// A batch that Python objects share.
pub struct SharedBatch {
    pub open: Arc<Open>,
    batch: Exclusive<Owned<esker::Batch>>,
}

impl SharedBatch {
    pub fn new(py: Python<'_>, open: Arc<Open>) -> PyResult<Arc<SharedBatch>> {
        let batch = Exclusive::new(Owned::new(open.db(py)?.batch()));
        Ok(Arc::new(SharedBatch { open, batch }))
    }

    /// Does something with the batch, with the interpreter released.
    pub fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut esker::Batch) -> esker::Result<T> + Send,
    ) -> PyResult<T> {
        self.open.check(py)?;
        let mut held = self.batch.lock(py)?;
        let batch: &mut esker::Batch = &mut held;
        call(py, || work(batch))
    }
}

/// What a batch writes to one keyspace.
#[pyclass(frozen, subclass, weakref, module = "esker")]
pub struct KeyspaceBatch {
    keyspace: Arc<KeyspaceHandle>,
    shared: Arc<SharedBatch>,
}

impl KeyspaceBatch {
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut esker::Batch, &Keyspace) -> esker::Result<T> + Send,
    ) -> PyResult<T> {
        let keyspace = self.keyspace.get(py)?;
        self.shared.run(py, |batch| work(batch, keyspace))
    }
}

#[pymethods]
impl KeyspaceBatch {
    /// Adds a put. `ttl`, a `timedelta` from the commit on, or `expires`, an aware `datetime`, say
    /// when it expires.
    #[pyo3(signature = (key, value, *, ttl = None, expires = None))]
    fn put(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = optional_moment)] expires: Option<SystemTime>,
    ) -> PyResult<()> {
        let py = key.py();
        let ttl = ttl.map(|ttl| duration(ttl, "ttl")).transpose()?;
        let (key, value) = (bytes(key, "key")?, bytes(value, "value")?);
        let (key, value): (&[u8], &[u8]) = (&key, &value);
        self.run(py, |batch, keyspace| match (ttl, expires) {
            (None, None) => batch.put(keyspace, key, value),
            (Some(ttl), None) => batch.put_with_ttl(keyspace, key, value, ttl),
            (None, Some(expires)) => batch.put_until(keyspace, key, value, expires),
            (Some(_), Some(_)) => Err(esker::Error::invalid("`ttl` and `expires` say the same thing twice")),
        })
    }

    /// Adds a delete.
    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        self.run(py, |batch, keyspace| batch.delete(keyspace, key))
    }

    /// Adds a merge.
    #[pyo3(signature = (key, operand, *, ttl = None))]
    fn merge(
        &self,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = key.py();
        let ttl = ttl.map(|ttl| duration(ttl, "ttl")).transpose()?;
        let (key, operand) = (bytes(key, "key")?, bytes(operand, "operand")?);
        let (key, operand): (&[u8], &[u8]) = (&key, &operand);
        self.run(py, |batch, keyspace| match ttl {
            None => batch.merge(keyspace, key, operand),
            Some(ttl) => batch.merge_with_ttl(keyspace, key, operand, ttl),
        })
    }

    /// Adds that the value of `key` lives for `ttl`, a `timedelta`, from the commit on.
    fn touch(&self, key: &Bound<'_, PyAny>, ttl: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        let ttl = duration(ttl, "ttl")?;
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        self.run(py, |batch, keyspace| batch.touch(keyspace, key, ttl))
    }

    /// Adds that the value of `key` expires at `time`, an aware `datetime`.
    fn expire_at(&self, key: &Bound<'_, PyAny>, #[pyo3(from_py_with = moment)] time: SystemTime) -> PyResult<()> {
        let py = key.py();
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        self.run(py, |batch, keyspace| batch.expire_at(keyspace, key, time))
    }

    /// Adds that the value of `key` never expires.
    fn persist(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        self.run(py, |batch, keyspace| batch.persist(keyspace, key))
    }

    /// Adds the removal of a range.
    #[pyo3(signature = (start = None, stop = None, *, prefix = None, include_start = true, include_stop = false))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
        include_start: bool,
        include_stop: bool,
    ) -> PyResult<()> {
        let limits = RangeArguments { start, stop, prefix, include_start, include_stop };
        let limits = limits.limits_in(py, self.keyspace.get(py)?)?;
        self.run(py, |batch, keyspace| batch.delete_range(keyspace, &limits))
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(key, value, None, None)
    }

    /// Adds a delete. A batch does not know what is stored: the key need not have a value.
    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        self.delete(key)
    }
}

/// Writes that are made together: all of them, or none.
///
/// The calls on the batch itself write to the default keyspace. A `with` block commits at its end,
/// and discards the batch where it is left by an exception.
///
/// >>> import esker, tempfile
/// >>> with esker.open(tempfile.mkdtemp()) as db:
/// ...     names = db.keyspace("names")
/// ...     with db.batch() as batch:
/// ...         batch[b"count"] = b"1"
/// ...         batch.keyspace(names)[b"ada"] = b"1815"
/// ...     db[b"count"], names[b"ada"]
/// (b'1', b'1815')
#[pyclass(frozen, extends = KeyspaceBatch, module = "esker")]
pub struct Batch {
    shared: Arc<SharedBatch>,
    sync: bool,
}

impl Batch {
    pub fn parts(shared: Arc<SharedBatch>, default: Arc<KeyspaceHandle>, sync: bool) -> PyClassInitializer<Batch> {
        let base = KeyspaceBatch { keyspace: default, shared: Arc::clone(&shared) };
        PyClassInitializer::from(base).add_subclass(Batch { shared, sync })
    }
}

#[pymethods]
impl Batch {
    /// What the batch writes to a keyspace: by its name, or as a `Keyspace` of the database.
    fn keyspace(&self, keyspace: &Bound<'_, PyAny>) -> PyResult<KeyspaceBatch> {
        let keyspace = keyspace_of(&self.shared.open, keyspace)?;
        Ok(KeyspaceBatch { keyspace, shared: Arc::clone(&self.shared) })
    }

    /// Writes the batch, and empties it. After an error of a write with a timeout it has what it
    /// had. With `sync`, or where the batch was made so, it is on the device then.
    #[pyo3(signature = (*, sync = false, wal = true, timeout = None))]
    fn commit(&self, py: Python<'_>, sync: bool, wal: bool, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let options = write_options(None, sync || self.sync, wal, timeout)?;
        self.shared.run(py, |batch| batch.commit_and_clear(&options))
    }

    /// Empties the batch.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.run(py, |batch| {
            batch.clear();
            Ok(())
        })
    }

    /// The number of operations.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.shared.run(py, |batch| Ok(batch.len()))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (exception, *_more))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyAny>, _more: &Bound<'_, PyTuple>) -> PyResult<()> {
        if exception.is_none() {
            return self.commit(py, false, true, None);
        }
        errors::unless_closed(py, self.clear(py))
    }
}
