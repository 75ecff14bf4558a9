//! Esker for Python: the extension module `esker._esker`.
//!
//! A thin layer: arguments are checked and converted, and the engine is called with the interpreter
//! released, but for the shortest calls. Modules, each importing only from those above it: `fork`, `callables`, `owned`, `interrupt`,
//! `merge` with `buffer`, `errors`, `call`; `exclusive`, `open`, `arguments`, `walk`; `scan`,
//! `cursor`, `changes`; `keyspace`, `snapshot`, `batch`, `transaction`, `database`, `follower`; `plyvel`.

mod arguments;
mod arrow;
mod batch;
mod buffer;
mod call;
mod callables;
mod changes;
mod comparator;
mod cursor;
mod database;
mod errors;
mod exclusive;
mod follower;
mod fork;
mod interrupt;
mod keyspace;
mod merge;
mod observers;
mod open;
mod options;
mod owned;
mod plyvel;
mod scan;
mod snapshot;
mod transaction;
mod view;
mod walk;

use pyo3::prelude::*;

/// The extension module of the package `esker`.
#[pymodule]
fn _esker(module: &Bound<'_, PyModule>) -> PyResult<()> {
    fork::watch();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<scan::Scan>()?;
    module.add_class::<cursor::Cursor>()?;
    module.add_class::<changes::Changes>()?;
    module.add_class::<changes::Watch>()?;
    module.add_class::<view::KeyspaceView>()?;
    module.add_class::<keyspace::Keyspace>()?;
    module.add_class::<database::Database>()?;
    module.add_class::<snapshot::Snapshot>()?;
    module.add_class::<batch::KeyspaceBatch>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<transaction::KeyspaceTransaction>()?;
    module.add_class::<transaction::Transaction>()?;
    module.add_class::<transaction::TransactionScan>()?;
    module.add_function(wrap_pyfunction!(database::_open, module)?)?;
    module.add_class::<follower::Follower>()?;
    module.add_function(wrap_pyfunction!(follower::_open_follower, module)?)?;
    module.add_function(wrap_pyfunction!(database::_destroy, module)?)?;
    module.add_function(wrap_pyfunction!(database::_release_unused_memory, module)?)?;
    module.add_function(wrap_pyfunction!(database::_unused_memory_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(database::_explain_options, module)?)?;
    module.add_function(wrap_pyfunction!(database::_repair, module)?)?;
    module.add_function(wrap_pyfunction!(database::_verify, module)?)?;
    plyvel::add(module)?;
    module.add_function(wrap_pyfunction!(open::_close_all, module)?)?;
    Ok(())
}
