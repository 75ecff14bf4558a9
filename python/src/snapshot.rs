//! Snapshots.

use crate::call::call;
use crate::open::{KeyspaceHandle, Open};
use crate::view::{KeyspaceView, SharedSnapshot};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use std::sync::Arc;

/// The default keyspace of a database.
pub const DEFAULT: &str = "default";

/// The keyspace that an argument stands for: a `Keyspace` of the same database, or a name.
pub fn keyspace_of(open: &Arc<Open>, argument: &Bound<'_, PyAny>) -> PyResult<Arc<KeyspaceHandle>> {
    if let Ok(view) = argument.cast::<KeyspaceView>() {
        let keyspace = &view.get().keyspace;
        if !Arc::ptr_eq(&keyspace.open, open) {
            let what = format!("the keyspace {:?} belongs to another database", keyspace.name());
            return Err(crate::errors::new(argument.py(), "InvalidArgumentError", &what));
        }
        return Ok(Arc::clone(keyspace));
    }
    let Ok(name) = argument.cast::<PyString>() else {
        return Err(pyo3::exceptions::PyTypeError::new_err("a keyspace is given by its name, or as a Keyspace"));
    };
    let (py, name) = (argument.py(), name.to_string());
    let db = open.db(py)?;
    let keyspace = call(py, || db.existing_keyspace(&name))?;
    Ok(KeyspaceHandle::opened(Arc::clone(open), keyspace))
}

/// All keyspaces of a database at one moment. It is a mapping too: the default keyspace then.
///
/// >>> import esker, tempfile
/// >>> with esker.open(tempfile.mkdtemp()) as db:
/// ...     db[b"ada"] = b"1815"
/// ...     with db.snapshot() as snapshot:
/// ...         del db[b"ada"]
/// ...         b"ada" in db, snapshot[b"ada"]
/// (False, b'1815')
#[pyclass(frozen, extends = KeyspaceView, module = "esker")]
pub struct Snapshot(());

impl Snapshot {
    pub fn parts(shared: Arc<SharedSnapshot>, default: Arc<KeyspaceHandle>) -> PyClassInitializer<Snapshot> {
        let view = KeyspaceView { keyspace: default, snapshot: Some(shared) };
        PyClassInitializer::from(view).add_subclass(Snapshot(()))
    }

    /// Kept by the view alone: a second reference would cost a tenth of what a snapshot takes.
    fn shared<'a>(slf: &'a Bound<'_, Self>) -> &'a Arc<SharedSnapshot> {
        slf.as_super().get().snapshot.as_ref().expect("`parts` has put it there")
    }
}

#[pymethods]
impl Snapshot {
    /// A keyspace as it was then: by its name, or as a `Keyspace` of the database.
    fn keyspace(slf: &Bound<'_, Self>, keyspace: &Bound<'_, PyAny>) -> PyResult<KeyspaceView> {
        let shared = Self::shared(slf);
        let keyspace = keyspace_of(&shared.open, keyspace)?;
        Ok(KeyspaceView { keyspace, snapshot: Some(Arc::clone(shared)) })
    }

    /// The number of the last write that the snapshot sees.
    #[getter]
    fn sequence(slf: &Bound<'_, Self>) -> PyResult<u64> {
        Ok(Self::shared(slf).get(slf.py())?.sequence())
    }

    /// Whether the snapshot was closed.
    #[getter]
    fn closed(slf: &Bound<'_, Self>) -> bool {
        let shared = Self::shared(slf);
        shared.is_closed() || shared.open.is_closed()
    }

    /// Frees what the snapshot holds. A later read raises `ClosedError`.
    fn close(slf: &Bound<'_, Self>) {
        Self::shared(slf).close();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(slf: &Bound<'_, Self>, _exception: &Bound<'_, PyTuple>) {
        Self::close(slf);
    }
}
