//! What databases and prefixed databases do alike.

use crate::buffer::bytes;
use crate::call::call;
use crate::open::KeyspaceHandle;
use crate::view::Moment;
use esker::WriteOptions;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// A key, which must be `bytes`.
pub type Key<'py> = Bound<'py, PyBytes>;

/// A flag: any object, by its truth, of which plyvel takes `True`, `False` and `None` alone.
pub fn truth(flag: &Bound<'_, PyAny>) -> PyResult<bool> {
    flag.is_truthy()
}

/// What a database, and what is made of it, share.
#[derive(Clone)]
pub struct Shared {
    pub keyspace: Arc<KeyspaceHandle>,
    /// What precedes each key of a prefixed database.
    pub prefix: Option<Arc<[u8]>>,
}

impl Shared {
    /// The key as it is stored.
    pub fn key<'a>(&self, key: &'a [u8]) -> std::borrow::Cow<'a, [u8]> {
        match &self.prefix {
            None => key.into(),
            Some(prefix) => [prefix, key].concat().into(),
        }
    }

    /// As this, with more before each key.
    pub fn prefixed(&self, prefix: &[u8]) -> Shared {
        Shared { keyspace: Arc::clone(&self.keyspace), prefix: Some(self.key(prefix).into_owned().into()) }
    }
}

/// The value of a key, or the default.
pub fn get(
    py: Python<'_>,
    keyspace: &KeyspaceHandle,
    moment: &Moment,
    key: &[u8],
    default: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let keyspace = keyspace.get(py)?;
    let found = call(py, || moment.get(keyspace, key))?;
    Ok(match found {
        Some(value) => PyBytes::new(py, &value).into_any().unbind(),
        None => default.unwrap_or_else(|| py.None()),
    })
}

/// Sets a value.
pub fn put(shared: &Shared, key: &Key<'_>, value: &Bound<'_, PyAny>, sync: bool) -> PyResult<()> {
    let py = key.py();
    let keyspace = shared.keyspace.get(py)?;
    let (key, value) = (shared.key(key.as_bytes()), bytes(value, "value")?);
    let (key, value): (&[u8], &[u8]) = (&key, &value);
    let options = WriteOptions::new().sync(sync);
    call(py, || keyspace.put_with(key, value, &options))
}

/// Removes a key.
pub fn delete(shared: &Shared, key: &Key<'_>, sync: bool) -> PyResult<()> {
    let py = key.py();
    let keyspace = shared.keyspace.get(py)?;
    let key = shared.key(key.as_bytes());
    let key: &[u8] = &key;
    let options = WriteOptions::new().sync(sync);
    call(py, || keyspace.delete_with(key, &options))
}
