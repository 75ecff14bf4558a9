//! What `esker.plyvel` is made of: the classes of plyvel, by their names and with their meaning.
//!
//! A database of plyvel is the keyspace `default` of one of Esker. Keys are `bytes`, as there;
//! values are any buffer.

pub mod batch;
pub mod database;
pub mod iterator;
pub mod prefixed;
pub mod shared;
pub mod snapshot;

use pyo3::prelude::*;

/// Adds the classes to the extension module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<database::DB>()?;
    module.add_class::<prefixed::PrefixedDB>()?;
    module.add_class::<batch::WriteBatch>()?;
    module.add_class::<snapshot::PlyvelSnapshot>()?;
    module.add_class::<iterator::Iterator>()?;
    module.add_class::<iterator::RawIterator>()?;
    module.add_function(wrap_pyfunction!(database::_plyvel_destroy, module)?)?;
    module.add_function(wrap_pyfunction!(database::_plyvel_repair, module)?)
}
