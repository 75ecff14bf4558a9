//! Batches. A batch of plyvel can be written several times, appended to another, and asked for its
//! size, so that it is kept here and handed to the engine when it is written.

use super::shared::{Key, Shared};
use crate::buffer::bytes;
use crate::call::call;
use crate::errors;
use crate::exclusive::Exclusive;
use esker::{Keyspace, WriteOptions};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ops::Range;

/// An operation: its key, and the value of a put.
#[derive(Clone)]
struct Operation {
    key: Range<usize>,
    value: Option<Range<usize>>,
}

/// Operations in their order.
#[derive(Clone, Default)]
struct Operations {
    bytes: Vec<u8>,
    list: Vec<Operation>,
    /// What LevelDB has beside these bytes: a byte for each operation, and the lengths.
    more_bytes: usize,
}

/// How many bytes LevelDB takes for a length: each has seven bits of it.
fn bytes_of_length(length: usize) -> usize {
    (usize::BITS - (length | 1).leading_zeros()).div_ceil(7) as usize
}

impl Operations {
    fn add(&mut self, prefix: &[u8], key: &[u8], value: Option<&[u8]>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(prefix);
        self.bytes.extend_from_slice(key);
        let key = start..self.bytes.len();
        self.more_bytes += 1 + bytes_of_length(key.len());
        let value = value.map(|value| {
            self.more_bytes += bytes_of_length(value.len());
            self.bytes.extend_from_slice(value);
            key.end..self.bytes.len()
        });
        self.list.push(Operation { key, value });
    }

    fn append(&mut self, other: &Operations) {
        let offset = self.bytes.len();
        let moved = |range: &Range<usize>| range.start + offset..range.end + offset;
        self.bytes.extend_from_slice(&other.bytes);
        self.more_bytes += other.more_bytes;
        let operations = other.list.iter();
        self.list.extend(
            operations.map(|Operation { key, value }| Operation { key: moved(key), value: value.as_ref().map(moved) }),
        );
    }

    /// Puts the operations into a batch of the engine.
    fn put_into(&self, batch: &mut esker::Batch, keyspace: &Keyspace) -> esker::Result<()> {
        for Operation { key, value } in &self.list {
            let key = &self.bytes[key.clone()];
            match value {
                Some(value) => batch.put(keyspace, key, &self.bytes[value.clone()])?,
                None => batch.delete(keyspace, key)?,
            }
        }
        Ok(())
    }
}

/// A batch of writes, with the names and the meaning of plyvel's.
#[pyclass(frozen, weakref, module = "esker.plyvel")]
pub struct WriteBatch {
    shared: Shared,
    operations: Exclusive<Operations>,
    transaction: bool,
    sync: bool,
}

impl WriteBatch {
    pub fn new(py: Python<'_>, shared: Shared, transaction: bool, sync: bool) -> PyResult<WriteBatch> {
        shared.keyspace.open.check(py)?;
        let operations = Exclusive::new(Operations::default());
        Ok(WriteBatch { shared, operations, transaction, sync })
    }

    fn add(&self, key: &Key<'_>, value: Option<&[u8]>) -> PyResult<()> {
        let py = key.py();
        self.shared.keyspace.open.check(py)?;
        let prefix = self.shared.prefix.as_deref().unwrap_or_default();
        self.operations.lock(py)?.add(prefix, key.as_bytes(), value);
        Ok(())
    }
}

#[pymethods]
impl WriteBatch {
    /// Adds a put.
    fn put(&self, key: Key<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = bytes(value, "value")?;
        self.add(&key, Some(&value))
    }

    /// Adds a delete.
    fn delete(&self, key: Key<'_>) -> PyResult<()> {
        self.add(&key, None)
    }

    /// Empties the batch.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.keyspace.open.check(py)?;
        *self.operations.lock(py)? = Operations::default();
        Ok(())
    }

    /// Writes the batch, which keeps its operations.
    fn write(&self, py: Python<'_>) -> PyResult<()> {
        let (keyspace, db) = (self.shared.keyspace.get(py)?, self.shared.keyspace.open.db(py)?);
        let held = self.operations.lock(py)?;
        let operations: &Operations = &held;
        let options = WriteOptions::new().sync(self.sync);

        call(py, || {
            let mut batch = db.batch();
            operations.put_into(&mut batch, keyspace)?;
            batch.commit_with(&options)
        })
    }

    /// The bytes that LevelDB would have for the batch.
    fn approximate_size(&self, py: Python<'_>) -> PyResult<usize> {
        self.shared.keyspace.open.check(py)?;
        let held = self.operations.lock(py)?;
        // LevelDB's head comes first.
        Ok(12 + held.bytes.len() + held.more_bytes)
    }

    /// Adds the operations of another batch.
    fn append(&self, source: &Bound<'_, WriteBatch>) -> PyResult<()> {
        let py = source.py();
        self.shared.keyspace.open.check(py)?;
        let copy = source.get().operations.lock(py)?.clone();
        self.operations.lock(py)?.append(&copy);
        Ok(())
    }

    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        slf.get().shared.keyspace.open.check(py)?;
        Ok(slf)
    }

    #[pyo3(signature = (exception, *_more))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyAny>, _more: &Bound<'_, PyTuple>) -> PyResult<()> {
        if self.transaction && !exception.is_none() {
            return errors::unless_closed(py, self.clear(py));
        }
        let written = self.write(py).and_then(|()| self.clear(py));
        if exception.is_none() { written } else { errors::unless_closed(py, written) }
    }
}
