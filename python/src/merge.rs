//! Merge operators: the built-in ones by name, and Python objects.
//!
//! The engine calls an operator in any of its threads and of the program's, with locks held. The
//! call attaches to the interpreter. No thread that is attached waits for such a lock: calls of the
//! engine release the interpreter, but for those that look at memory alone and those of
//! `callables.rs`. So the two cannot wait for each other.

use crate::callables;
use crate::interrupt;
use esker::{MergeError, MergeOperator};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set when the interpreter begins to end: operators fail from then on, and their operands stay as
/// they are.
static ENDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The last exception of an operator in this thread, with the reason that the engine was told.
    static LAST: RefCell<Option<(String, PyErr)>> = const { RefCell::new(None) };
}

/// No operator is called any more.
pub fn end() {
    ENDING.store(true, Ordering::SeqCst);
}

/// The exception behind an error with this message, if an operator raised it in this thread.
pub fn cause(message: &str) -> Option<PyErr> {
    let (told, exception) = LAST.take()?;
    message.ends_with(&told).then_some(exception)
}

/// A Python object with `name` and `full_merge`, and perhaps `partial_merge` and `check_operand`.
struct PythonOperator {
    name: String,
    full_merge: Py<PyAny>,
    partial_merge: Option<Py<PyAny>>,
    check_operand: Option<Py<PyAny>>,
}

/// Runs `call` attached, unless the interpreter is ending.
pub fn attached_unless_ending<T>(call: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    if ENDING.load(Ordering::SeqCst) { None } else { Python::try_attach(call) }
}

/// Runs `call` attached.
fn attached<T>(run: impl Fn(Python<'_>) -> PyResult<T>) -> Result<T, MergeError> {
    let result = attached_unless_ending(|py| {
        interrupt::callback(py, interrupt::ends_programs, || run(py)).map_err(|(exception, _)| {
            let reason = exception.to_string();
            // A reference of the thread to an exception outlives the call; it is replaced by the
            // next one, and taken by whoever reports it.
            LAST.set(Some((reason.clone(), exception)));
            MergeError(reason)
        })
    });
    result.unwrap_or_else(|| Err(MergeError("the interpreter is ending".to_owned())))
}

/// The bytes that an operator has returned; none for `None`.
fn returned(result: &Bound<'_, PyAny>, function: &str) -> PyResult<Option<Vec<u8>>> {
    if result.is_none() {
        return Ok(None);
    }
    let bytes = crate::buffer::bytes(result, &format!("what {function} returns"))?;
    Ok(Some(bytes.to_vec()))
}

impl MergeOperator for PythonOperator {
    fn name(&self) -> &str {
        &self.name
    }

    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError> {
        attached(|py| {
            let operands = PyList::new(py, operands.iter().map(|operand| PyBytes::new(py, operand)))?;
            let existing = existing.map(|existing| PyBytes::new(py, existing));
            let result = self.full_merge.bind(py).call1((PyBytes::new(py, key), existing, operands))?;
            returned(&result, "full_merge")
        })
    }

    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let partial_merge = self.partial_merge.as_ref()?;
        // Where it raises, it declines; `full_merge` then meets the same operands, and says why.
        let merged = attached(|py| {
            let arguments = (PyBytes::new(py, key), PyBytes::new(py, older), PyBytes::new(py, newer));
            returned(&partial_merge.bind(py).call1(arguments)?, "partial_merge")
        });
        merged.unwrap_or(None)
    }

    fn check_operand(&self, operand: &[u8]) -> Result<(), MergeError> {
        let Some(check_operand) = &self.check_operand else { return Ok(()) };
        attached(|py| check_operand.bind(py).call1((PyBytes::new(py, operand),)).map(drop))
    }
}

/// The operator that an argument `merge_operator` stands for.
pub fn operator(argument: &Bound<'_, PyAny>) -> PyResult<Arc<dyn MergeOperator>> {
    if let Ok(name) = argument.cast::<PyString>() {
        let name = name.to_string();
        return esker::merge::built_in(&name).ok_or_else(|| {
            PyValueError::new_err(format!(
                "there is no built-in merge operator {name:?}; there are uint64add, int64add, max, min, put, bytesxor, \
                 bitor and stringappend:HEX"
            ))
        });
    }
    let method = |name: &str| -> PyResult<Option<Py<PyAny>>> {
        match argument.getattr_opt(name)? {
            Some(method) if method.is_callable() => Ok(Some(method.unbind())),
            Some(method) if !method.is_none() => Err(PyTypeError::new_err(format!("{name} is not callable"))),
            _ => Ok(None),
        }
    };
    let wrong = || PyTypeError::new_err("merge_operator must be a name, or an object with `name` and `full_merge`");
    let name = argument.getattr_opt("name")?.ok_or_else(wrong)?;
    callables::note();
    Ok(Arc::new(PythonOperator {
        name: name.cast::<PyString>().map_err(|_| wrong())?.to_string(),
        full_merge: method("full_merge")?.ok_or_else(wrong)?,
        partial_merge: method("partial_merge")?,
        check_operand: method("check_operand")?,
    }))
}
