//! Databases.

use super::batch::WriteBatch;
use super::iterator::{self, Iterator, IteratorArguments, RawIterator};
use super::prefixed::PrefixedDB;
use super::shared::{Key, Shared, delete, get, put, truth};
use super::snapshot::PlyvelSnapshot;
use crate::arguments::{RangeArguments, two_of};
use crate::call::call;
use crate::comparator;
use crate::database::refuse_useless;
use crate::errors;
use crate::open::{KeyspaceHandle, Open};
use crate::snapshot::DEFAULT;
use crate::view::Moment;
use esker::{Comparator, Compression, Db, KeyspaceOptions, Options};
use esker_ffi::directory::is_without_database;
use esker_ffi::levels::tables_at;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use std::path::PathBuf;
use std::sync::Arc;

/// Options that plyvel has, those that mean nothing to Esker among them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PlyvelOptions<'py> {
    write_buffer_size: Option<usize>,
    lru_cache_size: Option<usize>,
    block_size: Option<usize>,
    max_file_size: Option<u64>,
    compression: Option<Bound<'py, PyAny>>,
    bloom_filter_bits: i32,
    comparator: Option<Bound<'py, PyAny>>,
    comparator_name: Option<Bound<'py, PyBytes>>,
    // Checked, and then of no use: Esker always checks checksums, and has its own ways with files
    // and blocks.
    #[expect(dead_code, reason = "their types are checked")]
    #[pyo3(from_py_with = truth)]
    paranoid_checks: bool,
    #[expect(dead_code, reason = "their types are checked")]
    max_open_files: Option<i32>,
    #[expect(dead_code, reason = "their types are checked")]
    block_restart_interval: Option<i32>,
}

/// The sizes that the engine takes.
const BUFFER: std::ops::RangeInclusive<usize> = (64 << 10)..=(8 << 30);
const BLOCK: std::ops::RangeInclusive<usize> = 256..=(16 << 20);
const FILE: std::ops::RangeInclusive<u64> = (64 << 10)..=(8 << 30);

impl<'py> PlyvelOptions<'py> {
    /// The options in a dictionary that has all of them.
    fn of(options: &Bound<'py, PyAny>) -> PyResult<PlyvelOptions<'py>> {
        let py = options.py();
        // The cause is what is wrong with the value.
        options.extract().map_err(|error: PyErr| error.cause(py).unwrap_or(error))
    }

    /// As options of the engine. Sizes are hints: those beyond what it takes count as the nearest.
    fn options(&self) -> PyResult<Options> {
        let mut options = Options::default();
        if let Some(bytes) = self.write_buffer_size {
            options = options.write_buffer_bytes(bytes.clamp(*BUFFER.start(), *BUFFER.end()));
        }
        if let Some(bytes) = self.lru_cache_size {
            options = options.block_cache_bytes(bytes.min(*BUFFER.end()));
        }
        if let Some(bytes) = self.block_size {
            options = options.block_bytes(bytes.clamp(*BLOCK.start(), *BLOCK.end()));
        }
        if let Some(bytes) = self.max_file_size {
            options = options.target_file_bytes(bytes.clamp(*FILE.start(), *FILE.end()));
        }
        if self.bloom_filter_bits > 0 {
            options = options.filter_bits_per_key(self.bloom_filter_bits.unsigned_abs().min(32));
        }
        Ok(options.compression(self.compression()?))
    }

    fn compression(&self) -> PyResult<Compression> {
        let Some(given) = &self.compression else { return Ok(Compression::None) };
        let name = match given.cast::<PyBytes>() {
            Ok(name) => String::from_utf8_lossy(name.as_bytes()).into_owned(),
            Err(_) => match given.cast::<PyString>() {
                Ok(name) => name.to_string_lossy().into_owned(),
                Err(_) => return Err(PyTypeError::new_err("'compression' must be None or a string")),
            },
        };
        // LZ4 is what stands in for it.
        if name == "snappy" {
            Ok(Compression::Lz4)
        } else {
            Err(PyValueError::new_err("'compression' must be None or 'snappy'"))
        }
    }

    /// The order of the keys, where it is not that of bytes.
    fn order(&self) -> PyResult<Option<Arc<dyn Comparator>>> {
        match (&self.comparator, &self.comparator_name) {
            (None, None) => Ok(None),
            (Some(compare), Some(_)) if !compare.is_callable() => {
                Err(PyTypeError::new_err("custom comparator object must be callable"))
            }
            (Some(compare), Some(name)) => {
                let name = std::str::from_utf8(name.as_bytes())
                    .map_err(|_| PyValueError::new_err("'comparator_name' must be text in UTF-8"))?;
                Ok(Some(comparator::of_callable(name.to_owned(), compare)))
            }
            _ => Err(PyValueError::new_err("'comparator' and 'comparator_name' must be specified together")),
        }
    }

    /// The options of the database and of its keyspace.
    fn both(&self) -> PyResult<(Options, KeyspaceOptions)> {
        let (options, keyspace) = (self.options()?, KeyspaceOptions::default());
        Ok(match self.order()? {
            None => (options, keyspace),
            Some(order) => (options.comparator(Arc::clone(&order)), keyspace.shared_comparator(order)),
        })
    }
}

/// The name as a path: text, or bytes as the system has them.
fn file_name(name: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    if name.cast::<PyString>().is_err() && name.cast::<PyBytes>().is_err() {
        return Err(PyTypeError::new_err("'name' arg must be a byte string or a unicode string"));
    }
    crate::arguments::path(name)
}

/// A database, with the names and the meaning of plyvel's.
#[pyclass(frozen, weakref, name = "DB", module = "esker.plyvel")]
pub struct DB {
    shared: Shared,
    name: Py<PyAny>,
}

impl DB {
    fn open(&self) -> &Arc<Open> {
        &self.shared.keyspace.open
    }
}

/// Repairs a database.
#[pyfunction]
pub fn _plyvel_repair(name: &Bound<'_, PyAny>, options: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = name.py();
    refuse_useless(py)?;
    let directory = file_name(name)?;
    let given = PlyvelOptions::of(options)?;
    let (options, _) = given.both()?;
    call(py, || Db::repair(&directory, options)).map(drop)
}

/// Removes a database, and its directory if that is empty then. Where there is none, files stay.
#[pyfunction]
pub fn _plyvel_destroy(name: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = name.py();
    refuse_useless(py)?;
    let directory = file_name(name)?;
    call(py, || {
        if !is_without_database(&directory) {
            Db::destroy(&directory, Options::default())?;
        }
        // It stays where something else is in it, or where it is no directory of this program's.
        let _ = std::fs::remove_dir(&directory);
        Ok(())
    })
}

#[pymethods]
impl DB {
    #[new]
    #[pyo3(signature = (name, *, create_if_missing = false, error_if_exists = false, **options))]
    fn new(
        name: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = truth)] create_if_missing: bool,
        #[pyo3(from_py_with = truth)] error_if_exists: bool,
        options: Option<&Bound<'_, pyo3::types::PyDict>>,
    ) -> PyResult<DB> {
        let py = name.py();
        refuse_useless(py)?;
        let directory = file_name(name)?;
        // The signature, with the defaults and the errors of unknown names, is that of the function.
        let options = py.import("esker.plyvel")?.getattr("_options")?.call((), options)?;
        let given = PlyvelOptions::of(&options)?;
        let (engine_options, keyspace_options) = given.both()?;
        let engine_options = engine_options.create_if_missing(create_if_missing).error_if_exists(error_if_exists);
        let opened = call(py, || {
            let db = match Db::open(&directory, engine_options) {
                Err(esker::Error::AlreadyExists { .. }) => return Ok(None),
                opened => opened?,
            };
            let keyspace = db.keyspace(DEFAULT, keyspace_options)?;
            Ok(Some((db, keyspace)))
        });
        let Some((db, keyspace)) = opened? else {
            // In the words that programs of plyvel know.
            let what = format!("Invalid argument: {}: exists (error_if_exists is true)", directory.display());
            return Err(errors::new(py, "AlreadyExistsError", &what));
        };
        let keyspace = KeyspaceHandle::opened(Open::new(db, directory), keyspace);
        Ok(DB { shared: Shared { keyspace, prefix: None }, name: name.clone().unbind() })
    }

    /// The name that the database was opened by.
    #[getter]
    fn name(&self, py: Python<'_>) -> Py<PyAny> {
        self.name.clone_ref(py)
    }

    /// Whether the database was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.open().is_closed()
    }

    /// Closes the database.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.open().close(py)
    }

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
        get(key.py(), &self.shared.keyspace, &Moment::Newest, key.as_bytes(), default)
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

    /// An iterator like that of LevelDB.
    #[pyo3(signature = (*, verify_checksums = false, fill_cache = true))]
    fn raw_iterator(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = truth)] verify_checksums: bool,
        #[pyo3(from_py_with = truth)] fill_cache: bool,
    ) -> PyResult<RawIterator> {
        let _ = (verify_checksums, fill_cache);
        iterator::raw_iterator(py, &self.shared.keyspace, Moment::Newest)
    }

    /// A snapshot.
    fn snapshot(&self, py: Python<'_>) -> PyResult<PlyvelSnapshot> {
        PlyvelSnapshot::new(py, self.shared.clone())
    }

    /// A property of LevelDB, or of Esker, as bytes; `None` if there is none of that name.
    fn get_property<'py>(&self, name: Key<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let py = name.py();
        // A look at what is in memory, shorter than to release the interpreter for it.
        if let Some(level) = name.as_bytes().strip_prefix(b"leveldb.num-files-at-level") {
            let tables = tables_at(self.shared.keyspace.get(py)?, level);
            return Ok(tables.map(|tables| PyBytes::new(py, tables.as_bytes())));
        }
        let db = self.open().db(py)?;
        let Ok(name) = std::str::from_utf8(name.as_bytes()) else { return Ok(None) };
        let property = call(py, || Ok(property(db, name)))?;
        Ok(property.map(|property| PyBytes::new(py, property.as_bytes())))
    }

    /// Compacts a range, or all.
    #[pyo3(signature = (*, start = None, stop = None))]
    fn compact_range(&self, py: Python<'_>, start: Option<Key<'_>>, stop: Option<Key<'_>>) -> PyResult<()> {
        let start = start.as_ref().map(|key| key.as_any());
        let stop = stop.as_ref().map(|key| key.as_any());
        let arguments = RangeArguments { start, stop, prefix: None, include_start: true, include_stop: true };
        let limits = arguments.limits()?;
        let keyspace = self.shared.keyspace.get(py)?;
        call(py, || keyspace.compact_range(&limits))
    }

    /// About how many bytes a range takes.
    fn approximate_size(&self, py: Python<'_>, start: Key<'_>, stop: Key<'_>) -> PyResult<u64> {
        let limits = RangeArguments::half_open(Some(start.as_any()), Some(stop.as_any())).limits()?;
        let keyspace = self.shared.keyspace.get(py)?;
        call(py, || keyspace.approximate_size(&limits))
    }

    /// About how many bytes each of some ranges takes, which are pairs of `start` and `stop`.
    #[pyo3(signature = (*ranges))]
    fn approximate_sizes<'py>(&self, py: Python<'py>, ranges: &Bound<'py, PyTuple>) -> PyResult<Vec<u64>> {
        self.open().check(py)?;
        let each = ranges.iter().map(|range| {
            let (start, stop) = two_of(&range)?;
            let key = |end: Bound<'py, PyAny>| {
                end.cast_into().map_err(|_| PyTypeError::new_err("Start and stop of range must be byte strings"))
            };
            let (start, stop): (Key<'_>, Key<'_>) = (key(start)?, key(stop)?);
            self.approximate_size(py, start, stop)
        });
        each.collect()
    }

    /// This database, with a prefix before each key.
    fn prefixed_db(slf: &Bound<'_, Self>, prefix: Key<'_>) -> PrefixedDB {
        PrefixedDB::new(slf.as_any().clone().unbind(), slf.get().shared.prefixed(prefix.as_bytes()), prefix.unbind())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let closed = if self.closed() { " (closed)" } else { "" };
        Ok(format!("<plyvel.DB with name {}{closed}>", self.name.bind(py).repr()?))
    }
}

/// The other properties that LevelDB documents, in the terms of Esker; any other name is one of
/// Esker's.
fn property(db: &Db, name: &str) -> Option<String> {
    match name {
        "leveldb.stats" => Some(db.stats().to_string()),
        "leveldb.sstables" => {
            let stats = db.stats();
            let runs = stats.keyspaces.iter().flat_map(|keyspace| {
                let name = &keyspace.name;
                keyspace.runs.iter().enumerate().map(move |(index, run)| {
                    format!(
                        "{name}: run {index}: {} tables, {} entries, {} bytes\n",
                        run.tables, run.entries, run.bytes
                    )
                })
            });
            Some(runs.collect())
        }
        "leveldb.approximate-memory-usage" => {
            let stats = db.stats();
            Some((stats.memtable_bytes + stats.cache_bytes).to_string())
        }
        other => db.property(other),
    }
}
