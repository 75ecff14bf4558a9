//! Keyspaces.

use crate::arguments::{RangeArguments, duration, moment, optional_moment, timedelta, two_of, write_options};
use crate::buffer::bytes;
use crate::call::call;
use crate::changes::Watch;
use crate::merge;
use crate::open::KeyspaceHandle;
use crate::options::time_to_live;
use crate::view::{KeyspaceView, Pair, pair, slice_limits};
use esker::{Keyspace as EngineKeyspace, Ttl};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PySlice};
use std::sync::Arc;
use std::time::SystemTime;

/// An ordered mapping of bytes to bytes, in a database.
///
/// >>> import esker, tempfile
/// >>> with esker.open(tempfile.mkdtemp()) as db:
/// ...     names = db.keyspace("names")
/// ...     names[b"ada"] = b"1815"
/// ...     names[b"eve"] = b"1820"
/// ...     list(names), names[b"ada"], b"bob" in names
/// ([b'ada', b'eve'], b'1815', False)
#[pyclass(frozen, subclass, extends = KeyspaceView, module = "esker")]
pub struct Keyspace;

impl Keyspace {
    /// The parts of the class, to be made a Python object.
    pub fn parts(keyspace: Arc<KeyspaceHandle>) -> PyClassInitializer<Keyspace> {
        PyClassInitializer::from(KeyspaceView { keyspace, snapshot: None }).add_subclass(Keyspace)
    }
}

/// What a keyword argument of writes may be.
type Option_<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Calls the engine's keyspace with the interpreter released.
fn run<T: Send>(
    slf: &Bound<'_, Keyspace>,
    work: impl FnOnce(&EngineKeyspace) -> esker::Result<T> + Send,
) -> PyResult<T> {
    let py = slf.py();
    let keyspace = slf.as_super().get().keyspace.get(py)?;
    call(py, || work(keyspace))
}

fn missing(key: &Bound<'_, PyAny>) -> PyErr {
    PyKeyError::new_err(key.clone().unbind())
}

/// The pairs of a mapping, or of an iterable of pairs, one after the other.
pub fn each_pair(
    pairs: &Bound<'_, PyAny>,
    mut take: impl FnMut(&Bound<'_, PyAny>, &Bound<'_, PyAny>) -> PyResult<()>,
) -> PyResult<()> {
    if pairs.cast::<PyDict>().is_err() && pairs.hasattr("keys")? {
        for key in pairs.call_method0("keys")?.try_iter()? {
            let key = key?;
            take(&key, &pairs.get_item(&key)?)?;
        }
        return Ok(());
    }
    let items = if pairs.cast::<PyDict>().is_ok() { pairs.call_method0("items")? } else { pairs.clone() };
    for item in items.try_iter()? {
        let (key, value) = two_of(&item?)?;
        take(&key, &value)?;
    }
    Ok(())
}

#[pymethods]
impl Keyspace {
    /// The number of the keyspace, which no other keyspace of the database ever has, and which a
    /// rename does not change: the `keyspace_id` of its changes.
    #[getter]
    fn id(slf: &Bound<'_, Self>) -> PyResult<u64> {
        run(slf, |keyspace| Ok(keyspace.id()))
    }

    /// The name of the merge operator; `None` if there is none.
    #[getter]
    fn merge_operator(slf: &Bound<'_, Self>) -> PyResult<Option<String>> {
        run(slf, |keyspace| Ok(keyspace.merge_operator()))
    }

    /// The name of the order of the keys: "bytewise" if it is the default one.
    #[getter]
    fn comparator(slf: &Bound<'_, Self>) -> PyResult<String> {
        run(slf, |keyspace| Ok(keyspace.comparator().to_owned()))
    }

    /// Whether entries can expire.
    #[getter]
    fn expires(slf: &Bound<'_, Self>) -> PyResult<bool> {
        run(slf, |keyspace| Ok(matches!(keyspace.ttl(), Ttl::Enabled { .. })))
    }

    /// The time after which entries expire that are put without a time; `None` if they do not.
    #[getter]
    fn default_ttl<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let default =
            run(slf, |keyspace| Ok(if let Ttl::Enabled { default } = keyspace.ttl() { default } else { None }))?;
        default.map(|default| timedelta(slf.py(), default)).transpose()
    }

    /// Sets the value of `key`.
    ///
    /// `ttl`, a `timedelta`, says after what time it expires, in a keyspace with times to live;
    /// `expires`, an aware `datetime`, when. With `sync` the write is on the device when the call
    /// returns; with `wal=False` it is lost if the process dies before the next flush. With
    /// `timeout`, a `timedelta`, it raises `WriteStalledError` rather than wait longer for the work
    /// of the engine.
    #[pyo3(signature = (key, value, *, ttl = None, expires = None, sync = false, wal = true, timeout = None))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the call")]
    fn put(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        ttl: Option_<'_, '_>,
        #[pyo3(from_py_with = optional_moment)] expires: Option<SystemTime>,
        sync: bool,
        wal: bool,
        timeout: Option_<'_, '_>,
    ) -> PyResult<()> {
        let (key, value) = (bytes(key, "key")?, bytes(value, "value")?);
        let (key, value): (&[u8], &[u8]) = (&key, &value);
        if let Some(expires) = expires {
            if ttl.is_some() || sync || !wal || timeout.is_some() {
                return Err(pyo3::exceptions::PyTypeError::new_err("'expires' takes no other option beside it"));
            }
            return run(slf, |keyspace| keyspace.put_until(key, value, expires));
        }
        let options = write_options(ttl, sync, wal, timeout)?;
        run(slf, |keyspace| keyspace.put_with(key, value, &options))
    }

    /// Removes `key`, which need not have a value.
    #[pyo3(signature = (key, *, sync = false, wal = true, timeout = None))]
    fn delete(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        sync: bool,
        wal: bool,
        timeout: Option_<'_, '_>,
    ) -> PyResult<()> {
        let options = write_options(None, sync, wal, timeout)?;
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        run(slf, |keyspace| keyspace.delete_with(key, &options))
    }

    /// Combines `operand` with the value of `key` by the merge operator of the keyspace. Reads
    /// nothing.
    ///
    /// >>> import esker, tempfile
    /// >>> with esker.open(tempfile.mkdtemp()) as db:
    /// ...     hits = db.keyspace("hits", merge_operator="uint64add")
    /// ...     for _ in range(3):
    /// ...         hits.merge(b"/", (1).to_bytes(8, "little"))
    /// ...     int.from_bytes(hits[b"/"], "little")
    /// 3
    #[pyo3(signature = (key, operand, *, ttl = None, sync = false, wal = true, timeout = None))]
    fn merge(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
        ttl: Option_<'_, '_>,
        sync: bool,
        wal: bool,
        timeout: Option_<'_, '_>,
    ) -> PyResult<()> {
        let options = write_options(ttl, sync, wal, timeout)?;
        let (key, operand) = (bytes(key, "key")?, bytes(operand, "operand")?);
        let (key, operand): (&[u8], &[u8]) = (&key, &operand);
        run(slf, |keyspace| keyspace.merge_with(key, operand, &options))
    }

    /// As `merge`, and returns what the key has then: one step, that no other write comes between.
    #[pyo3(signature = (key, operand, *, ttl = None, sync = false, timeout = None))]
    fn merge_and_get<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        operand: &Bound<'py, PyAny>,
        ttl: Option_<'_, 'py>,
        sync: bool,
        timeout: Option_<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let options = write_options(ttl, sync, true, timeout)?;
        let (key, operand) = (bytes(key, "key")?, bytes(operand, "operand")?);
        let (key, operand): (&[u8], &[u8]) = (&key, &operand);
        let value = run(slf, |keyspace| keyspace.merge_and_get_with(key, operand, &options))?;
        Ok(value.map(|value| PyBytes::new(slf.py(), &value)))
    }

    /// Sets the value of `key` if it has none, and returns `None`; otherwise returns the value that
    /// is there, and writes nothing.
    #[pyo3(signature = (key, value, *, ttl = None, sync = false, timeout = None))]
    fn put_if_absent<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        value: &Bound<'py, PyAny>,
        ttl: Option_<'_, 'py>,
        sync: bool,
        timeout: Option_<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let options = write_options(ttl, sync, true, timeout)?;
        let (key, value) = (bytes(key, "key")?, bytes(value, "value")?);
        let (key, value): (&[u8], &[u8]) = (&key, &value);
        let there = run(slf, |keyspace| keyspace.put_if_absent_with(key, value, &options))?;
        Ok(there.map(|value| PyBytes::new(slf.py(), &value)))
    }

    /// Writes `new` if the value of `key` is `expected`, and returns whether it did. `None` stands
    /// for no value: expected, that the key has none; new, that it is deleted.
    #[pyo3(signature = (key, expected, new, *, ttl = None, sync = false, timeout = None))]
    fn compare_and_swap(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        expected: Option_<'_, '_>,
        new: Option_<'_, '_>,
        ttl: Option_<'_, '_>,
        sync: bool,
        timeout: Option_<'_, '_>,
    ) -> PyResult<bool> {
        let options = write_options(ttl, sync, true, timeout)?;
        let key = bytes(key, "key")?;
        let expected = expected.map(|value| bytes(value, "expected")).transpose()?;
        let new = new.map(|value| bytes(value, "new")).transpose()?;
        let key: &[u8] = &key;
        let (expected, new): (Option<&[u8]>, Option<&[u8]>) = (expected.as_deref(), new.as_deref());
        run(slf, |keyspace| Ok(keyspace.compare_and_swap_with(key, expected, new, &options)?.is_swapped()))
    }

    /// Removes `key` and returns its value. Where it has none, returns `default`, or raises
    /// `KeyError` if there is none either.
    #[pyo3(signature = (key, /, *default))]
    fn pop(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        default: &Bound<'_, pyo3::types::PyTuple>,
    ) -> PyResult<Py<PyAny>> {
        if default.len() > 1 {
            return Err(pyo3::exceptions::PyTypeError::new_err("pop takes a key and at most one default"));
        }
        let argument = key;
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        match run(slf, |keyspace| keyspace.take(key))? {
            Some(value) => Ok(PyBytes::new(slf.py(), &value).into_any().unbind()),
            None => default.iter().next().map(Bound::unbind).ok_or_else(|| missing(argument)),
        }
    }

    /// Removes the least key and returns it with its value; `None` where no key has one. Of any
    /// number of callers each gets another key.
    fn pop_first<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Pair<'py>>> {
        Ok(pair(slf.py(), run(slf, EngineKeyspace::pop_first)?))
    }

    /// As `pop_first`, and raises `KeyError` where no key has a value.
    fn popitem<'py>(slf: &Bound<'py, Self>) -> PyResult<Pair<'py>> {
        Self::pop_first(slf)?.ok_or_else(|| PyKeyError::new_err("the keyspace is empty"))
    }

    /// The value of `key`; sets it to `default` where it has none.
    #[pyo3(signature = (key, default))]
    fn setdefault<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let value = Self::put_if_absent(slf, key, default, None, false, None)?;
        match value {
            Some(value) => Ok(value),
            None => Ok(PyBytes::new(slf.py(), &bytes(default, "default")?)),
        }
    }

    /// Sets what a mapping, or an iterable of pairs, has: one atomic write.
    #[pyo3(signature = (pairs, *, sync = false))]
    fn update(slf: &Bound<'_, Self>, pairs: &Bound<'_, PyAny>, sync: bool) -> PyResult<()> {
        let py = slf.py();
        let view = slf.as_super().get();
        let mut batch = view.keyspace.open.db(py)?.batch();
        each_pair(pairs, |key, value| {
            let keyspace = view.keyspace.get(py)?;
            let (key, value) = (bytes(key, "key")?, bytes(value, "value")?);
            let (key, value): (&[u8], &[u8]) = (&key, &value);
            call(py, || batch.put(keyspace, key, value))
        })?;
        let options = write_options(None, sync, true, None)?;
        call(py, || batch.commit_with(&options))
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key, value) = (bytes(key, "key")?, bytes(value, "value")?);
        let (key, value): (&[u8], &[u8]) = (&key, &value);
        run(slf, |keyspace| keyspace.put(key, value))
    }

    fn __delitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let limits = slice_limits(slice)?;
            return run(slf, |keyspace| keyspace.delete_range(&limits));
        }
        let argument = key;
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        run(slf, |keyspace| keyspace.take(key))?.map(drop).ok_or_else(|| missing(argument))
    }

    /// Removes every key of a range, as one write, at the price of one, whatever it removes.
    #[pyo3(signature = (start = None, stop = None, *, prefix = None, include_start = true, include_stop = false,
                        sync = false))]
    fn delete_range(
        slf: &Bound<'_, Self>,
        start: Option_<'_, '_>,
        stop: Option_<'_, '_>,
        prefix: Option_<'_, '_>,
        include_start: bool,
        include_stop: bool,
        sync: bool,
    ) -> PyResult<()> {
        let limits = RangeArguments { start, stop, prefix, include_start, include_stop };
        let limits = limits.limits_in(slf.py(), slf.as_super().get().keyspace.get(slf.py())?)?;
        let options = write_options(None, sync, true, None)?;
        run(slf, |keyspace| keyspace.delete_range_with(&limits, &options))
    }

    /// Removes every key.
    fn clear(slf: &Bound<'_, Self>) -> PyResult<()> {
        run(slf, EngineKeyspace::clear)
    }

    /// Makes the value of `key` expire after `ttl` from now on, and returns whether there is one.
    fn touch(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, ttl: &Bound<'_, PyAny>) -> PyResult<bool> {
        let ttl = duration(ttl, "ttl")?;
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        run(slf, |keyspace| keyspace.touch(key, ttl))
    }

    /// Makes the value of `key` expire at `time`, an aware `datetime`, and returns whether there is
    /// one.
    fn expire_at(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = moment)] time: SystemTime,
    ) -> PyResult<bool> {
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        run(slf, |keyspace| keyspace.expire_at(key, time))
    }

    /// Makes the value of `key` expire never, and returns whether there is one.
    fn persist(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        run(slf, |keyspace| keyspace.persist(key))
    }

    /// Loads pairs that come in ascending order of their keys, from an iterable or a mapping: they
    /// become visible and durable together. Returns their number. They are in memory at first.
    fn ingest(slf: &Bound<'_, Self>, pairs: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut copies = Vec::new();
        each_pair(pairs, |key, value| {
            copies.push((bytes(key, "key")?.to_vec(), bytes(value, "value")?.to_vec()));
            Ok(())
        })?;
        run(slf, |keyspace| Ok(keyspace.ingest(copies)?.entries))
    }

    /// About how many bytes a range takes, on disk and in memory.
    #[pyo3(signature = (start = None, stop = None))]
    fn approximate_size(slf: &Bound<'_, Self>, start: Option_<'_, '_>, stop: Option_<'_, '_>) -> PyResult<u64> {
        let limits = RangeArguments::half_open(start, stop).limits()?;
        run(slf, |keyspace| keyspace.approximate_size(&limits))
    }

    /// About how many keys a range has; with versions that are overwritten or deleted, and not yet
    /// merged away, it says too many. Costs no scan, as `count` does.
    #[pyo3(signature = (start = None, stop = None))]
    fn approximate_count(slf: &Bound<'_, Self>, start: Option_<'_, '_>, stop: Option_<'_, '_>) -> PyResult<u64> {
        let limits = RangeArguments::half_open(start, stop).limits()?;
        run(slf, |keyspace| keyspace.approximate_count(&limits))
    }

    /// Gives the keyspace another name, durably, in one atomic step. All objects go on; the old name
    /// is free at once. `AlreadyExistsError` if a keyspace has that name.
    ///
    /// Of a database it is the name of the keyspace `default`, which then is no more that of the
    /// databases that are opened later.
    ///
    /// >>> import esker, tempfile
    /// >>> with esker.open(tempfile.mkdtemp()) as db:
    /// ...     drafts = db.keyspace("drafts")
    /// ...     drafts.rename("letters")
    /// ...     drafts.name, db.keyspace_names()
    /// ('letters', ['letters'])
    fn rename(slf: &Bound<'_, Self>, name: &str) -> PyResult<()> {
        run(slf, |keyspace| keyspace.rename(name))
    }

    /// From now on entries may expire: `True`, or a `timedelta` after which they do by default. What
    /// was written before keeps the expiry that it has, or has none.
    ///
    /// >>> import datetime, esker, tempfile
    /// >>> with esker.open(tempfile.mkdtemp()) as db:
    /// ...     names = db.keyspace("names")
    /// ...     names.set_ttl(datetime.timedelta(days=1))
    /// ...     names.expires, names.default_ttl
    /// (True, datetime.timedelta(days=1))
    fn set_ttl(slf: &Bound<'_, Self>, ttl: &Bound<'_, PyAny>) -> PyResult<()> {
        let ttl = time_to_live(ttl)?;
        run(slf, |keyspace| keyspace.set_ttl(ttl))
    }

    /// Gives the keyspace a merge operator: the name of a built-in one, or an object like
    /// `MergeOperator`. In the place of another one it takes the time to rewrite the keyspace.
    ///
    /// >>> import esker, tempfile
    /// >>> with esker.open(tempfile.mkdtemp()) as db:
    /// ...     best = db.keyspace("best")
    /// ...     best[b"ada"] = b"5"
    /// ...     best.set_merge_operator("max")
    /// ...     best.merge(b"ada", b"7")
    /// ...     best[b"ada"]
    /// b'7'
    fn set_merge_operator(slf: &Bound<'_, Self>, merge_operator: &Bound<'_, PyAny>) -> PyResult<()> {
        let operator = merge::operator(merge_operator)?;
        run(slf, |keyspace| keyspace.set_shared_merge_operator(operator))
    }

    /// Notes from here on whether keys that begin with `prefix` are written.
    fn watch(slf: &Bound<'_, Self>, prefix: &Bound<'_, PyAny>) -> PyResult<Watch> {
        let prefix = bytes(prefix, "prefix")?;
        let prefix: &[u8] = &prefix;
        let watch = run(slf, |keyspace| keyspace.watch(prefix))?;
        Ok(Watch::new(Arc::clone(&slf.as_super().get().keyspace.open), watch))
    }

    /// Compacts what is stored of a range, or of the whole keyspace, and waits for it.
    #[pyo3(signature = (start = None, stop = None))]
    fn compact_range(slf: &Bound<'_, Self>, start: Option_<'_, '_>, stop: Option_<'_, '_>) -> PyResult<()> {
        let limits = RangeArguments::half_open(start, stop).limits()?;
        run(slf, |keyspace| keyspace.compact_range(&limits))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let keyspace = &slf.as_super().get().keyspace;
        let closed = if keyspace.open.is_closed() { " (closed)" } else { "" };
        format!("<esker.Keyspace {:?} of {:?}{closed}>", keyspace.name(), keyspace.open.path)
    }
}
