//! Readers of changes, and watches.

use crate::arguments::{datetime, duration, timedelta};
use crate::call::call;
use crate::errors;
use crate::exclusive::Exclusive;
use crate::open::Open;
use crate::owned::Owned;
use esker::{Change as EngineChange, ChangeOperation, Expiry, Ttl};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyTuple};
use std::ops::Bound as Limit;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Signals, and the close of the database by another thread, are looked for so often in a wait.
const PIECE: Duration = Duration::from_millis(100);

/// Waits in pieces, no longer than `timeout`, or for as long as it takes.
fn in_pieces(
    py: Python<'_>,
    open: &Open,
    timeout: Option<&Bound<'_, PyAny>>,
    mut wait: impl FnMut(Duration) -> PyResult<bool>,
) -> PyResult<bool> {
    let timeout = timeout.map(|timeout| duration(timeout, "timeout")).transpose()?;
    // Too far away to be a time: for as long as it takes.
    let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        open.check(py)?;
        let left = end.map_or(PIECE, |end| end.saturating_duration_since(Instant::now()));
        match wait(left.min(PIECE)) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            // The close of the database is the reason, where it is one.
            Err(error) => return Err(open.check(py).err().unwrap_or(error)),
        }
        if left < PIECE {
            return Ok(false);
        }
        py.check_signals()?;
    }
}

/// What was written, in order: an iterator over the committed batches, each a list of `Change`.
///
/// It ends where it has caught up, and goes on after further writes: `wait` waits for them.
///
/// >>> import esker, tempfile
/// >>> with esker.open(tempfile.mkdtemp(), keep_changes=1 << 20) as db:
/// ...     changes = db.changes()
/// ...     db[b"ada"] = b"1815"
/// ...     [(change.kind, change.key, change.value) for batch in changes for change in batch]
/// [('put', b'ada', b'1815')]
#[pyclass(frozen, weakref, module = "esker")]
pub struct Changes {
    open: Arc<Open>,
    changes: Exclusive<Option<Owned<esker::Changes>>>,
}

impl Changes {
    pub fn new(open: Arc<Open>, changes: esker::Changes) -> Changes {
        Changes { open, changes: Exclusive::new(Some(Owned::new(changes))) }
    }

    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut esker::Changes) -> esker::Result<T> + Send,
    ) -> PyResult<T> {
        self.open.check(py)?;
        let mut held = self.changes.lock(py)?;
        let changes: &mut esker::Changes = held.as_mut().ok_or_else(|| errors::closed(py, "the reader of changes"))?;
        call(py, || work(changes))
    }
}

#[pymethods]
impl Changes {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let Some(batch) = self.run(py, |changes| changes.next().transpose())? else { return Ok(None) };
        let class = py.import("esker._views")?.getattr("Change")?;
        batch.changes.iter().map(|change| object(&class, change)).collect::<PyResult<_>>().map(Some)
    }

    /// The number to go on from with `Database.changes`.
    #[getter]
    fn position(&self, py: Python<'_>) -> PyResult<u64> {
        self.run(py, |changes| Ok(esker::Changes::position(changes)))
    }

    /// What the keyspace with that number, the `keyspace_id` of a change, was behind the write
    /// `sequence`: a `KeyspaceSettings`. `None` if it is not known: the keyspace was dropped before
    /// the changes that are kept, or there never was one. What it was when it was created is taken
    /// for what it was before that.
    ///
    /// >>> import esker, tempfile
    /// >>> with esker.open(tempfile.mkdtemp(), keep_changes=1 << 20) as db:
    /// ...     names = db.keyspace("names")
    /// ...     names[b"ada"] = b"1815"
    /// ...     names.rename("people")
    /// ...     changes = db.changes()
    /// ...     put, rename = [change for batch in changes for change in batch]
    /// ...     changes.keyspace_settings(put.keyspace_id, rename.sequence).name
    /// 'people'
    fn keyspace_settings<'py>(
        &self,
        py: Python<'py>,
        keyspace_id: u64,
        sequence: u64,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let settings = self.run(py, |changes| changes.keyspace_settings(keyspace_id, sequence))?;
        let Some(settings) = settings else { return Ok(None) };
        let ttl = time_to_live(py, settings.ttl)?;
        let fields = (&*settings.name, &*settings.comparator, settings.merge_operator.as_deref(), ttl);
        py.import("esker._views")?.getattr("KeyspaceSettings")?.call1(fields).map(Some)
    }

    /// Waits for a write, no longer than `timeout`, a `timedelta`. Whether there may be more to read.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        in_pieces(py, &self.open, timeout, |piece| self.run(py, |changes| changes.wait(piece)))
    }

    /// Frees what the reader holds. A later call raises `ClosedError`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        // Another thread may have held the lock when this process was forked.
        if self.open.is_inherited() {
            return Ok(());
        }
        let changes = self.changes.lock(py)?.take();
        drop(changes);
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}

/// The `Change` of a change.
fn object<'py>(class: &Bound<'py, PyAny>, change: &EngineChange) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let fields = PyDict::new(py);
    let set_expiry = |expiry: &Expiry| match expiry {
        Expiry::At(time) => fields.set_item("expires", datetime(py, *time)?),
        _ => Ok(()),
    };
    let kind = match &change.operation {
        ChangeOperation::Put { key, value, expiry } => {
            fields.set_item("key", PyBytes::new(py, key))?;
            fields.set_item("value", PyBytes::new(py, value))?;
            set_expiry(expiry)?;
            "put"
        }
        ChangeOperation::Delete { key } => {
            fields.set_item("key", PyBytes::new(py, key))?;
            "delete"
        }
        ChangeOperation::Merge { key, operand, expiry, is_first } => {
            fields.set_item("key", PyBytes::new(py, key))?;
            fields.set_item("value", PyBytes::new(py, operand))?;
            fields.set_item("is_first", *is_first)?;
            set_expiry(expiry)?;
            "merge"
        }
        ChangeOperation::DeleteRange { start, end } => {
            for (name, included, limit) in [("start", "include_start", start), ("stop", "include_stop", end)] {
                if let Limit::Included(key) | Limit::Excluded(key) = limit {
                    fields.set_item(name, PyBytes::new(py, key))?;
                    fields.set_item(included, matches!(limit, Limit::Included(_)))?;
                }
            }
            "delete_range"
        }
        ChangeOperation::Load => "load",
        ChangeOperation::DropKeyspace => "drop_keyspace",
        ChangeOperation::AlterKeyspace { former_name, merge_operator, ttl } => {
            fields.set_item("former_name", &**former_name)?;
            fields.set_item("merge_operator", merge_operator.as_deref())?;
            fields.set_item("ttl", time_to_live(py, *ttl)?)?;
            "alter_keyspace"
        }
        _ => "other",
    };
    fields.set_item("keyspace_id", change.keyspace_id)?;
    class.call((change.sequence, &*change.keyspace, kind), Some(&fields))
}

/// A time to live as the argument `ttl` of a keyspace has it.
fn time_to_live(py: Python<'_>, ttl: Ttl) -> PyResult<Bound<'_, PyAny>> {
    match ttl {
        Ttl::Enabled { default: Some(default) } => timedelta(py, default),
        Ttl::Enabled { default: None } => Ok(PyBool::new(py, true).to_owned().into_any()),
        Ttl::Disabled => Ok(PyBool::new(py, false).to_owned().into_any()),
    }
}

/// Waits for writes to keys that begin with a prefix. Made by `Keyspace.watch`.
///
/// >>> import datetime, esker, tempfile
/// >>> with esker.open(tempfile.mkdtemp()) as db:
/// ...     watch = db.watch(b"mail/")
/// ...     db[b"mail/1"] = b"to ada"
/// ...     watch.wait(), watch.wait(datetime.timedelta(0))
/// (True, False)
#[pyclass(frozen, weakref, module = "esker")]
pub struct Watch {
    open: Arc<Open>,
    watch: Exclusive<Option<Arc<Owned<esker::Watch>>>>,
}

impl Watch {
    pub fn new(open: Arc<Open>, watch: esker::Watch) -> Watch {
        Watch { open, watch: Exclusive::new(Some(Arc::new(Owned::new(watch)))) }
    }
}

#[pymethods]
impl Watch {
    /// Waits for a write to such a key, no longer than `timeout`, a `timedelta`. Whether there was
    /// one since the last wait that returned true, or since the watch was made.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        in_pieces(py, &self.open, timeout, |piece| {
            // Any number of threads may wait, and a close waits for none of them.
            let watch = self.watch.lock(py)?.as_ref().map(Arc::clone);
            let watch = watch.ok_or_else(|| errors::closed(py, "the watch"))?;
            call(py, || watch.wait(piece))
        })
    }

    /// Ends it, and with it what writes do for it. A later call raises `ClosedError`.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.open.is_inherited() {
            return Ok(());
        }
        let watch = self.watch.lock(py)?.take();
        drop(watch);
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}
