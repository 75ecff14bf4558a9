//! Databases.

use crate::arguments::{path, write_options};
use crate::batch::{Batch, SharedBatch};
use crate::call::call;
use crate::changes::Changes;
use crate::errors;
use crate::keyspace::Keyspace;
use crate::open::{KeyspaceHandle, Open};
use crate::options;
use crate::snapshot::{DEFAULT, Snapshot};
use crate::transaction::{SharedTransaction, Transaction};
use crate::view::{KeyspaceView, SharedSnapshot};
use esker::{CheckpointMode, Db, VerifyEvent, VerifyReport};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

/// An open database. It is a mapping too: its keyspace `default`, which the first use makes;
/// where it is opened for reading only, `NotFoundError` says that there is none yet.
///
/// >>> import esker, tempfile
/// >>> with esker.open(tempfile.mkdtemp()) as db:
/// ...     db[b"ada"] = b"1815"
/// ...     db[b"ada"]
/// b'1815'
#[pyclass(frozen, extends = Keyspace, module = "esker")]
pub struct Database {
    open: Arc<Open>,
}

/// Opens a database.
#[pyfunction]
#[pyo3(signature = (path, read_only, options))]
pub fn _open(path: &Bound<'_, PyAny>, read_only: bool, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<Database>> {
    let py = path.py();
    refuse_useless(py)?;
    let directory = crate::arguments::path(path)?;
    let options = options::database(options)?;
    let db =
        call(py, || if read_only { Db::open_read_only(&directory, options) } else { Db::open(&directory, options) })?;
    Database::of(py, if read_only { Open::reader(db, directory) } else { Open::new(db, directory) })
}

/// In a process that was forked beside an open database, nothing of the engine can be used.
pub fn refuse_useless(py: Python<'_>) -> PyResult<()> {
    if crate::fork::is_useless() { Err(errors::forked(py)) } else { Ok(()) }
}

/// Removes a database.
#[pyfunction]
pub fn _destroy(path: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = path.py();
    refuse_useless(py)?;
    let directory = crate::arguments::path(path)?;
    call(py, || Db::destroy(&directory, esker::Options::default()))
}

/// Repairs a database, whose keyspaces may have orders of `comparators`, and returns what was found as a tuple: whether it was healthy, whether
/// entries are lost or may be, the number of entries, warnings, the problems of files, and the
/// directory of what was lost.
#[pyfunction]
pub fn _repair(path: &Bound<'_, PyAny>, comparators: &Bound<'_, PyAny>) -> PyResult<Py<PyTuple>> {
    let py = path.py();
    refuse_useless(py)?;
    let directory = crate::arguments::path(path)?;
    let options = options::with_comparators(esker::Options::default(), comparators)?;
    let report = call(py, || Db::repair(&directory, options))?;
    let problems: Vec<String> =
        report.files.iter().map(|file| format!("{}: {}", file.path.display(), file.problem)).collect();
    let lost = report.lost_directory.as_ref().map(|lost| lost.to_string_lossy().into_owned());
    let fields = (report.healthy, report.lost_entries(), report.entries, report.warnings.clone(), problems, lost);
    Ok(fields.into_pyobject(py)?.unbind())
}

/// Verifies a database in its directory, whose keyspaces may have orders of `comparators`, and
/// returns the number of entries in tables.
#[pyfunction]
pub fn _verify(path: &Bound<'_, PyAny>, comparators: &Bound<'_, PyAny>) -> PyResult<u64> {
    let py = path.py();
    refuse_useless(py)?;
    let directory = crate::arguments::path(path)?;
    let options = options::with_comparators(esker::Options::default(), comparators)?;
    verified(py, |tell| Db::verify_directory(&directory, options, tell))
}

/// The number of entries that a verification has found in tables. Its exception has all that is
/// damaged.
fn verified(
    py: Python<'_>,
    verify: impl FnOnce(&mut dyn FnMut(VerifyEvent<'_>)) -> esker::Result<VerifyReport> + Send,
) -> PyResult<u64> {
    let mut damage: Vec<String> = Vec::new();
    let report = call(py, || {
        verify(&mut |event| {
            if let VerifyEvent::Damage(error) = event {
                damage.push(error.to_string());
            }
        })
    });
    match report {
        Ok(report) => Ok(report.entries),
        Err(error) if damage.is_empty() => Err(error),
        Err(error) => {
            error.value(py).setattr("damage", damage)?;
            Err(error)
        }
    }
}

/// Every value that a database opened with these options would have.
#[pyfunction]
pub fn _explain_options(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
    refuse_useless(py)?;
    let options = options::database(options)?;
    call(py, || {
        options.validate()?;
        Ok(options.explain().to_string())
    })
}

/// Gives the memory that closed databases have left back to the system.
#[pyfunction]
pub fn _release_unused_memory(py: Python<'_>) -> PyResult<()> {
    refuse_useless(py)?;
    call(py, || {
        esker::release_unused_memory();
        Ok(())
    })
}

/// Bytes that are kept for the next memtable or database.
#[pyfunction]
pub fn _unused_memory_bytes(py: Python<'_>) -> PyResult<usize> {
    refuse_useless(py)?;
    call(py, || Ok(esker::unused_memory_bytes()))
}

impl Database {
    /// The object of an open database.
    pub fn of(py: Python<'_>, open: Arc<Open>) -> PyResult<Py<Database>> {
        let default = KeyspaceHandle::unopened(Arc::clone(&open), DEFAULT);
        let db = open.db(py)?;
        // By its name at the first use it would be another one, if it is renamed before that.
        let existing = call(py, || match db.existing_keyspace(DEFAULT) {
            Ok(keyspace) => Ok(Some(keyspace)),
            Err(esker::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        });
        if let Some(keyspace) = existing? {
            default.bind(keyspace);
        }
        Py::new(py, Keyspace::parts(default).add_subclass(Database { open }))
    }

    /// Calls the engine with the interpreter released.
    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Db) -> esker::Result<T> + Send) -> PyResult<T> {
        let db = self.open.db(py)?;
        call(py, || work(db))
    }
}

/// The handle of the default keyspace.
fn default_of(slf: &Bound<'_, Database>) -> Arc<KeyspaceHandle> {
    let view: &KeyspaceView = slf.as_super().as_super().get();
    Arc::clone(&view.keyspace)
}

#[pymethods]
impl Database {
    /// The directory.
    #[getter]
    fn path(&self) -> String {
        self.open.path.to_string_lossy().into_owned()
    }

    /// Whether the database was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.open.is_closed()
    }

    /// The keyspace of that name, which is made if it is missing, unless `create` is false.
    ///
    /// `merge_operator` is the name of a built-in one, or an object like `MergeOperator`. With
    /// `ttl` entries may expire: `True`, or a `timedelta` after which they do by default.
    /// `compaction_style` is "lazy-leveling", "leveled", "tiered" or "fifo", which keeps the newest
    /// `fifo_bytes`. `comparator` is the order of its keys: "reverse-bytewise", or an object like
    /// `Comparator`, which later opens of the database need as well. What a keyspace was made with
    /// is stored, and checked when it is opened. `compaction_filter` is an object like
    /// `CompactionFilter`, which is not stored.
    #[pyo3(signature = (name, *, create = true, merge_operator = None, ttl = None, compaction_style = None,
                        fifo_bytes = None, comparator = None, compaction_filter = None))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the call")]
    fn keyspace(
        slf: &Bound<'_, Self>,
        name: &str,
        create: bool,
        merge_operator: Option<&Bound<'_, PyAny>>,
        ttl: Option<&Bound<'_, PyAny>>,
        compaction_style: Option<&str>,
        fifo_bytes: Option<u64>,
        comparator: Option<&Bound<'_, PyAny>>,
        compaction_filter: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Keyspace>> {
        let (py, this) = (slf.py(), slf.get());
        let options =
            options::keyspace(merge_operator, ttl, compaction_style, fifo_bytes, comparator, compaction_filter)?;
        let keyspace = this.run(py, |db| {
            if !create {
                db.existing_keyspace(name)?;
            }
            db.keyspace(name, options)
        })?;
        if name == DEFAULT {
            // It can be renamed from now on, and stays that of the mapping.
            default_of(slf).bind(keyspace.clone());
        }
        Py::new(py, Keyspace::parts(KeyspaceHandle::opened(Arc::clone(&this.open), keyspace)))
    }

    /// The names of the keyspaces.
    fn keyspace_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.run(py, |db| Ok(db.keyspaces()))
    }

    /// Removes a keyspace and all that is in it, durably.
    fn drop_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.run(py, |db| db.drop_keyspace(name))
    }

    /// The keyspaces as a mapping of names: `db.keyspaces["hits"]` is one that exists, and `del`
    /// drops one.
    #[getter]
    fn keyspaces<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("esker._views")?.getattr("Keyspaces")?.call1((slf,))
    }

    /// All keyspaces at this moment.
    fn snapshot(slf: &Bound<'_, Self>) -> PyResult<Py<Snapshot>> {
        let (py, this) = (slf.py(), slf.get());
        let shared = Arc::new(SharedSnapshot::new(py, Arc::clone(&this.open))?);
        Py::new(py, Snapshot::parts(shared, default_of(slf)))
    }

    /// A batch of writes. With `sync` its commit waits for the device.
    #[pyo3(signature = (*, sync = false))]
    fn batch(slf: &Bound<'_, Self>, sync: bool) -> PyResult<Py<Batch>> {
        let py = slf.py();
        let shared = SharedBatch::new(py, Arc::clone(&slf.get().open))?;
        Py::new(py, Batch::parts(shared, default_of(slf), sync))
    }

    /// Begins a transaction.
    fn transaction(slf: &Bound<'_, Self>) -> PyResult<Py<Transaction>> {
        let py = slf.py();
        let shared = SharedTransaction::new(py, Arc::clone(&slf.get().open))?;
        Py::new(py, Transaction::parts(shared, default_of(slf)))
    }

    /// Runs `body(transaction)` in a transaction and commits it; after a conflict again, in a new
    /// one, `attempts` times at most. Returns what `body` returns. `body` must have no effect but
    /// through the transaction.
    #[pyo3(signature = (body, *, attempts = 10, sync = false))]
    fn transact(slf: &Bound<'_, Self>, body: &Bound<'_, PyAny>, attempts: usize, sync: bool) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let options = write_options(None, sync, true, None)?;
        let mut attempt = 1;
        loop {
            let transaction = Self::transaction(slf)?;
            let result = match body.call1((&transaction,)) {
                Ok(result) => result,
                Err(exception) => {
                    // The exception may keep the transaction for as long as it lives. What goes
                    // wrong here does not replace it.
                    let _ = transaction.get().shared.rollback(py);
                    return Err(exception);
                }
            };
            match transaction.get().shared.commit(py, &options) {
                Ok(()) => return Ok(result.unbind()),
                Err(error) if attempt >= attempts || !errors::is_conflict(py, &error) => return Err(error),
                Err(_) => attempt += 1,
            }
        }
    }

    /// What was written from the write with the number `start` on, in order, where the database was
    /// opened with `keep_changes`; 0 is all that is kept. With `only_durable` it has only what a
    /// power failure cannot take back.
    ///
    /// To keep something in step with the database, take over a snapshot, and go on from its
    /// `sequence` plus 1. `GoneError` if the changes are not kept any more.
    #[pyo3(signature = (start = 0, *, only_durable = false))]
    fn changes(&self, py: Python<'_>, start: u64, only_durable: bool) -> PyResult<Changes> {
        let changes = self.run(py, |db| db.changes(start))?;
        Ok(Changes::new(Arc::clone(&self.open), if only_durable { changes.only_durable() } else { changes }))
    }

    /// Writes everything acknowledged so far into tables.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, Db::flush)
    }

    /// Makes everything acknowledged so far durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, Db::sync)
    }

    /// Compacts all keyspaces, and waits for it.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, Db::compact)
    }

    /// Waits until the work of an idle database is done.
    fn wait_idle(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, Db::wait_idle)
    }

    /// Writes a copy of the database, as of now, to a new or empty directory. Its files are hard
    /// links where the file system has them; with `copy` they are files of their own.
    #[pyo3(signature = (directory, *, copy = false))]
    fn checkpoint(&self, directory: &Bound<'_, PyAny>, copy: bool) -> PyResult<()> {
        let target = path(directory)?;
        let mode = if copy { CheckpointMode::Copy } else { CheckpointMode::Link };
        self.run(directory.py(), |db| db.checkpoint_with(&target, mode))
    }

    /// Reads and checks everything that is stored, and returns the number of entries in tables.
    /// The first damage is raised, as `CorruptionError`; its attribute `damage` lists all.
    fn verify(&self, py: Python<'_>) -> PyResult<u64> {
        let db = self.open.db(py)?;
        verified(py, |tell| db.verify_with(tell))
    }

    /// Statistics under names that do not change, as text.
    fn properties(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        let properties = self.run(py, |db| Ok(db.properties()))?;
        let dict = PyDict::new(py);
        for (name, value) in properties {
            dict.set_item(name, value)?;
        }
        Ok(dict.unbind())
    }

    /// The statistics as a text for people.
    fn stats(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |db| Ok(db.stats().to_string()))
    }

    /// The metrics in the text format of Prometheus.
    fn prometheus(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |db| {
            let mut text = esker::PrometheusText::new();
            db.record(&mut text);
            Ok(text.to_string())
        })
    }

    /// Every option with its value, its origin and its trade-off.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        self.run(py, |db| Ok(db.explain().to_string()))
    }

    /// Whether the database accepts writes, what is wrong if not, why writes are delayed or
    /// stopped, and how many reads found a merge that failed: a `Health`.
    fn health<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let health = self.run(py, |db| Ok(db.health()))?;
        let fields = (health.writable, health.problem, health.stall_reason, health.failed_merges);
        py.import("esker._views")?.getattr("Health")?.call1(fields)
    }

    /// Makes everything durable and closes the database. Its keyspaces, iterators, snapshots,
    /// batches and transactions then raise `ClosedError`. Closing it again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.open.close(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        self.open.shown_as("Database")
    }
}
