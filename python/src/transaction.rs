//! Transactions.

use crate::arguments::{Limits, RangeArguments, datetime, duration, moment, optional_moment, write_options};
use crate::buffer::{Buffer, bytes};
use crate::call::call;
use crate::errors;
use crate::exclusive::Exclusive;
use crate::open::{KeyspaceHandle, Open};
use crate::owned::Owned;
use crate::scan::Parts;
use crate::snapshot::keyspace_of;
use crate::view::{Pair, pair};
use esker::{Expiry, Keyspace, Slice};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::collections::VecDeque;
use std::ops::Bound as Limit;
use std::sync::Arc;
use std::time::SystemTime;

/// How many entries a scan reads ahead at most. What is read ahead counts as read.
const MAX_AHEAD: usize = 64;

/// A transaction that Python objects share, until it is finished.
pub struct SharedTransaction {
    pub open: Arc<Open>,
    transaction: Exclusive<Option<Owned<esker::Transaction>>>,
}

impl SharedTransaction {
    pub fn new(py: Python<'_>, open: Arc<Open>) -> PyResult<Arc<SharedTransaction>> {
        let db = open.db(py)?;
        let transaction = call(py, || Ok(Owned::new(db.transaction())))?;
        let transaction = Exclusive::new(Some(transaction));
        Ok(Arc::new(SharedTransaction { open, transaction }))
    }

    /// Does something with the transaction, with the interpreter released.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut esker::Transaction) -> esker::Result<T> + Send,
    ) -> PyResult<T> {
        self.open.check(py)?;
        let mut held = self.transaction.lock(py)?;
        let transaction: &mut esker::Transaction = held.as_mut().ok_or_else(|| errors::finished("transaction"))?;
        call(py, || work(transaction))
    }

    /// Takes the transaction away, to finish it.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Owned<esker::Transaction>>> {
        self.open.check(py)?;
        Ok(self.transaction.lock(py)?.take())
    }

    /// Gives the transaction up. One that was begun before a fork is left as it is: another thread
    /// may have held its lock then.
    pub fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        if self.open.is_inherited() {
            return Ok(());
        }
        let transaction = self.take(py)?;
        drop(transaction);
        Ok(())
    }

    /// Commits the transaction.
    pub fn commit(&self, py: Python<'_>, options: &esker::WriteOptions) -> PyResult<()> {
        let transaction = self.take(py)?.ok_or_else(|| errors::finished("transaction"))?;
        call(py, || transaction.into_inner().map_or(Ok(()), |transaction| transaction.commit_with(options)))
    }
}

/// A keyspace in a transaction: as it was when the transaction began, with its own writes.
#[pyclass(frozen, subclass, weakref, module = "esker")]
pub struct KeyspaceTransaction {
    keyspace: Arc<KeyspaceHandle>,
    shared: Arc<SharedTransaction>,
}

impl KeyspaceTransaction {
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut esker::Transaction, &Keyspace) -> esker::Result<T> + Send,
    ) -> PyResult<T> {
        let keyspace = self.keyspace.get(py)?;
        self.shared.run(py, |transaction| work(transaction, keyspace))
    }

    fn value(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<Slice>> {
        let py = key.py();
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        self.run(py, |transaction, keyspace| transaction.get(keyspace, key))
    }

    fn scanned(&self, limits: Limits, parts: Parts, reverse: bool) -> TransactionScan {
        let (keyspace, shared) = (Arc::clone(&self.keyspace), Arc::clone(&self.shared));
        let ahead = Ahead { limits, entries: VecDeque::new(), stretch: 1, ended: false };
        TransactionScan { keyspace, shared, ahead: Exclusive::new(ahead), parts, reverse }
    }
}

#[pymethods]
impl KeyspaceTransaction {
    /// The value of `key`, or `default` where it has none.
    #[pyo3(signature = (key, default = None))]
    fn get(&self, key: &Bound<'_, PyAny>, default: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let py = key.py();
        Ok(match self.value(key)? {
            Some(value) => PyBytes::new(py, &value).into_any().unbind(),
            None => default.unwrap_or_else(|| py.None()),
        })
    }

    /// The values of `keys`, in their order; `None` for each that has none. All of them count as
    /// read.
    fn get_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = keys.py();
        let mut copies = Vec::new();
        for key in keys.try_iter()? {
            copies.push(bytes(&key?, "each key")?.to_vec());
        }
        let values = self.run(py, |transaction, keyspace| Ok(transaction.multi_get(keyspace, &copies)))?;
        let list = PyList::empty(py);
        for value in values {
            let value = value.map_err(|error| errors::raise(py, error))?;
            list.append(value.map(|value| PyBytes::new(py, &value)))?;
        }
        Ok(list)
    }

    /// Copies the value of `key` to the beginning of `buffer`, as `Keyspace.get_into` does.
    fn get_into(&self, key: &Bound<'_, PyAny>, buffer: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let mut memory = Buffer::writable(buffer)?;
        let Some(value) = self.value(key)? else { return Ok(None) };
        if value.len() > memory.len() {
            let what = format!("the value has {} bytes, and the buffer has room for {}", value.len(), memory.len());
            return Err(PyValueError::new_err(what));
        }
        memory.fill(&value);
        Ok(Some(value.len()))
    }

    /// When the value of `key` expires, as `Keyspace.expires_at`, as of the beginning of the
    /// transaction. For a key that the transaction has written it raises `InvalidArgumentError`:
    /// times to live count from the commit.
    fn expires_at<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = key.py();
        let argument = key;
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        match self.run(py, |transaction, keyspace| transaction.expires_at(keyspace, key))? {
            Some(Expiry::At(time)) => datetime(py, time).map(Some),
            Some(_) => Ok(None),
            None => Err(PyKeyError::new_err(argument.clone().unbind())),
        }
    }

    /// How many keys of a range have a value. Costs a scan of the range, which counts as read.
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
        self.run(py, |transaction, keyspace| transaction.count(keyspace, &limits))
    }

    fn __getitem__<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        match self.value(key)? {
            Some(value) => Ok(PyBytes::new(key.py(), &value)),
            None => Err(PyKeyError::new_err(key.clone().unbind())),
        }
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.value(key)?.is_some())
    }

    fn __iter__(&self) -> TransactionScan {
        self.scanned((Limit::Unbounded, Limit::Unbounded), Parts::Key, false)
    }

    /// Sets the value of `key`. `ttl`, a `timedelta` from the commit on, or `expires`, an aware
    /// `datetime`, say when it expires.
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
        self.run(py, |transaction, keyspace| match (ttl, expires) {
            (None, None) => transaction.put(keyspace, key, value),
            (Some(ttl), None) => transaction.put_with_ttl(keyspace, key, value, ttl),
            (None, Some(expires)) => transaction.put_until(keyspace, key, value, expires),
            (Some(_), Some(_)) => Err(esker::Error::invalid("`ttl` and `expires` say the same thing twice")),
        })
    }

    fn __setitem__(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(key, value, None, None)
    }

    /// Removes `key`, which need not have a value.
    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        self.run(py, |transaction, keyspace| transaction.delete(keyspace, key))
    }

    fn __delitem__(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.value(key)?.is_none() {
            return Err(PyKeyError::new_err(key.clone().unbind()));
        }
        self.delete(key)
    }

    /// Combines `operand` with the value of `key` by the merge operator. `ttl`, a `timedelta` from
    /// the commit on, says when the value expires.
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
        self.run(py, |transaction, keyspace| match ttl {
            None => transaction.merge(keyspace, key, operand),
            Some(ttl) => transaction.merge_with_ttl(keyspace, key, operand, ttl),
        })
    }

    /// Makes the value of `key` live for `ttl`, a `timedelta`, from the commit on.
    fn touch(&self, key: &Bound<'_, PyAny>, ttl: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        let ttl = duration(ttl, "ttl")?;
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        self.run(py, |transaction, keyspace| transaction.touch(keyspace, key, ttl))
    }

    /// Makes the value of `key` expire at `time`, an aware `datetime`.
    fn expire_at(&self, key: &Bound<'_, PyAny>, #[pyo3(from_py_with = moment)] time: SystemTime) -> PyResult<()> {
        let py = key.py();
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        self.run(py, |transaction, keyspace| transaction.expire_at(keyspace, key, time))
    }

    /// Makes the value of `key` one that never expires.
    fn persist(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = key.py();
        let key = bytes(key, "key")?;
        let key: &[u8] = &key;
        self.run(py, |transaction, keyspace| transaction.persist(keyspace, key))
    }

    /// Removes every key of a range.
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
        self.run(py, |transaction, keyspace| transaction.delete_range(keyspace, &limits))
    }

    /// Iterates over a range, as `Keyspace.scan` does. What it has come past counts as read, and up
    /// to 64 entries that it reads ahead.
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
    ) -> PyResult<TransactionScan> {
        let limits = RangeArguments { start, stop, prefix, include_start, include_stop };
        let limits = limits.limits_in(py, self.keyspace.get(py)?)?;
        Ok(self.scanned(limits, Parts::Both, reverse))
    }

    /// The least key that has a value, with the value; `None` where no key has one.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Pair<'py>>> {
        Ok(pair(py, self.run(py, esker::Transaction::first)?))
    }

    /// The greatest key that has a value, with the value; `None` where no key has one.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Pair<'py>>> {
        Ok(pair(py, self.run(py, esker::Transaction::last)?))
    }

    /// Removes the least key and returns it with its value; `None` where no key has one.
    fn pop_first<'py>(&self, py: Python<'py>) -> PyResult<Option<Pair<'py>>> {
        Ok(pair(py, self.run(py, esker::Transaction::pop_first)?))
    }
}

/// What a scan has read ahead, and what is left of its range.
struct Ahead {
    limits: Limits,
    /// The entries, and the errors of those that cannot be read, each for the step that gets there.
    entries: VecDeque<esker::Result<(Slice, Slice)>>,
    stretch: usize,
    ended: bool,
}

/// An iterator over a range in a transaction.
#[pyclass(frozen, module = "esker")]
pub struct TransactionScan {
    keyspace: Arc<KeyspaceHandle>,
    shared: Arc<SharedTransaction>,
    ahead: Exclusive<Ahead>,
    parts: Parts,
    reverse: bool,
}

/// Reads some more entries. Writes of the transaction between two readings are seen behind the last
/// entry.
fn read_ahead(
    ahead: &mut Ahead,
    transaction: &mut esker::Transaction,
    keyspace: &Keyspace,
    reverse: bool,
) -> esker::Result<()> {
    let mut range = transaction.range(keyspace, &ahead.limits);
    // An error does not tell its key: the next reading can begin behind an entry only.
    while ahead.entries.len() < ahead.stretch || ahead.entries.back().is_some_and(Result::is_err) {
        let entry = if reverse { range.next_back() } else { range.next() };
        let Some(entry) = entry else {
            ahead.ended = true;
            break;
        };
        ahead.entries.push_back(entry);
    }
    ahead.stretch = (ahead.stretch * 2).min(MAX_AHEAD);
    if let Some(Ok((key, _))) = ahead.entries.back() {
        let end = Limit::Excluded(key.to_vec());
        *(if reverse { &mut ahead.limits.1 } else { &mut ahead.limits.0 }) = end;
    }
    Ok(())
}

#[pymethods]
impl TransactionScan {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.shared.open.check(py)?;
        let mut held = self.ahead.lock(py)?;
        if held.entries.is_empty() && !held.ended {
            let keyspace = self.keyspace.get(py)?;
            let ahead: &mut Ahead = &mut held;
            self.shared.run(py, |transaction| read_ahead(ahead, transaction, keyspace, self.reverse))?;
        }
        let Some(entry) = held.entries.pop_front() else { return Ok(None) };
        let (key, value) = entry.map_err(|error| errors::raise(py, error))?;
        self.parts.object(py, (&key, &value), 0).map(Some)
    }
}

/// Reads and writes that take effect together, if nobody else has written what they read.
///
/// A `with` block commits at its end, which raises `ConflictError` where somebody has; and rolls
/// back where it is left by an exception. `Database.transact` runs a function again after a
/// conflict.
///
/// >>> import esker, tempfile
/// >>> with esker.open(tempfile.mkdtemp()) as db:
/// ...     db[b"seat"] = b"free"
/// ...     with db.transaction() as transaction:
/// ...         if transaction[b"seat"] == b"free":
/// ...             transaction[b"seat"] = b"ada"
/// ...     db[b"seat"]
/// b'ada'
#[pyclass(frozen, extends = KeyspaceTransaction, module = "esker")]
pub struct Transaction {
    pub shared: Arc<SharedTransaction>,
}

impl Transaction {
    pub fn parts(shared: Arc<SharedTransaction>, default: Arc<KeyspaceHandle>) -> PyClassInitializer<Transaction> {
        let base = KeyspaceTransaction { keyspace: default, shared: Arc::clone(&shared) };
        PyClassInitializer::from(base).add_subclass(Transaction { shared })
    }
}

#[pymethods]
impl Transaction {
    /// A keyspace in the transaction: by its name, or as a `Keyspace` of the database.
    fn keyspace(&self, keyspace: &Bound<'_, PyAny>) -> PyResult<KeyspaceTransaction> {
        let keyspace = keyspace_of(&self.shared.open, keyspace)?;
        Ok(KeyspaceTransaction { keyspace, shared: Arc::clone(&self.shared) })
    }

    /// Commits the transaction, which is finished then.
    #[pyo3(signature = (*, sync = false, timeout = None))]
    fn commit(&self, py: Python<'_>, sync: bool, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        self.shared.commit(py, &write_options(None, sync, true, timeout)?)
    }

    /// Gives the transaction up. A finished one stays as it is. In a forked process there is nothing
    /// to give up.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.rollback(py)
    }

    /// The number of the last write that the transaction sees.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        self.shared.run(py, |transaction| Ok(transaction.sequence()))
    }

    /// The number of operations that the transaction writes.
    #[getter]
    fn write_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.shared.run(py, |transaction| Ok(transaction.len()))
    }

    /// Whether the transaction was committed or rolled back.
    #[getter]
    fn finished(&self, py: Python<'_>) -> PyResult<bool> {
        self.shared.open.check_process(py)?;
        Ok(self.shared.transaction.lock(py)?.is_none())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (exception, *_more))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyAny>, _more: &Bound<'_, PyTuple>) -> PyResult<()> {
        if !exception.is_none() {
            return errors::unless_closed(py, self.rollback(py));
        }
        if self.finished(py)? { self.rollback(py) } else { self.commit(py, false, None) }
    }
}
