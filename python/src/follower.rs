//! Followers.

use crate::call::call;
use crate::database::{Database, refuse_useless};
use crate::errors;
use crate::exclusive::Exclusive;
use crate::open::Open;
use crate::options;
use crate::owned::Owned;
use esker::Db;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// A database that another process writes, or this one, read as of the last `catch_up`. Made by
/// `esker.open_follower`.
///
/// It takes no lock and writes nothing, and its writer never waits for it.
///
/// >>> import esker, tempfile
/// >>> directory = tempfile.mkdtemp()
/// >>> with esker.open(directory) as writer:
/// ...     writer[b"ada"] = b"1815"
/// ...     with esker.open_follower(directory) as follower:
/// ...         writer[b"eve"] = b"1820"
/// ...         before = b"eve" in follower.db
/// ...         number = follower.catch_up()
/// ...         before, follower.db[b"eve"], number == writer.snapshot().sequence
/// (False, b'1820', True)
#[pyclass(frozen, weakref, module = "esker")]
pub struct Follower {
    open: Arc<Open>,
    database: Py<Database>,
    follower: Exclusive<Option<Arc<Owned<esker::Follower>>>>,
}

/// Opens a database for reading behind its writer.
#[pyfunction]
#[pyo3(signature = (path, options))]
pub fn _open_follower(path: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Follower>> {
    let py = path.py();
    refuse_useless(py)?;
    let directory = crate::arguments::path(path)?;
    let options = options::database(options)?;
    let follower = Owned::new(call(py, || Db::open_follower(&directory, options))?);
    let open = Open::reader(follower.db().clone(), directory);
    let database = Database::of(py, Arc::clone(&open))?;
    Py::new(py, Follower { open, database, follower: Exclusive::new(Some(Arc::new(follower))) })
}

#[pymethods]
impl Follower {
    /// The database, to be read. It ends with the follower.
    #[getter]
    fn db(&self, py: Python<'_>) -> Py<Database> {
        self.database.clone_ref(py)
    }

    /// Whether the follower was closed, or its database.
    #[getter]
    fn closed(&self) -> bool {
        self.open.is_closed()
    }

    /// Reads what the writer has written since, and returns the number of the last write that the
    /// follower has. What was acknowledged before the call is there when it returns, but for writes
    /// without log, which come with their flush. Snapshots and iterators see what they saw.
    fn catch_up(&self, py: Python<'_>) -> PyResult<u64> {
        self.open.check(py)?;
        // A close waits for no call.
        let follower = self.follower.lock(py)?.as_ref().map(Arc::clone);
        let follower = follower.ok_or_else(|| errors::closed(py, "the follower"))?;
        let caught_up = call(py, || follower.catch_up());
        // The close of the database is the reason of an error, where it is one.
        caught_up.map(|progress| progress.sequence).map_err(|error| self.open.check(py).err().unwrap_or(error))
    }

    /// How far the follower is behind what the writer has written: a `FollowerLag`. It stays where it
    /// is. Reads the log from there on; `None` if that is gone, because it is in tables, which the
    /// next `catch_up` reads.
    fn lag<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.open.check(py)?;
        let follower = self.follower.lock(py)?.as_ref().map(Arc::clone);
        let follower = follower.ok_or_else(|| errors::closed(py, "the follower"))?;
        let lag = call(py, || follower.lag()).map_err(|error| self.open.check(py).err().unwrap_or(error))?;
        let Some(lag) = lag else { return Ok(None) };
        let fields = (lag.batches, lag.log_bytes, lag.sequence);
        py.import("esker._views")?.getattr("FollowerLag")?.call1(fields).map(Some)
    }

    /// Ends the follower and its database, all of whose objects then raise `ClosedError`. Closing it
    /// again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.open.close(py)?;
        // Another thread may have held the lock when this process was forked.
        if !self.open.is_inherited() {
            let follower = self.follower.lock(py)?.take();
            drop(follower);
        }
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        self.open.shown_as("Follower")
    }
}
