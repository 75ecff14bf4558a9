//! Orders of keys: the built-in ones by name, and Python objects.
//!
//! A comparator is called as a merge operator is, and more often: see `merge.rs`.

use crate::callables;
use crate::interrupt;
use crate::merge;
use esker::{Comparator, ReverseBytewise};
use pyo3::exceptions::{PyMemoryError, PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::cmp::Ordering;
use std::panic::resume_unwind;
use std::sync::Arc;

/// A callable of two keys, whose result is below, at or above zero.
struct PythonComparator {
    name: String,
    compare: Py<PyAny>,
}

impl Comparator for PythonComparator {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let compared = merge::attached_unless_ending(|py| {
            let compare = self.compare.bind(py);
            let sign = || -> PyResult<Ordering> {
                let result = compare.call1((PyBytes::new(py, a), PyBytes::new(py, b)))?;
                Ok(if result.lt(0)? {
                    Ordering::Less
                } else if result.gt(0)? {
                    Ordering::Greater
                } else {
                    Ordering::Equal
                })
            };
            interrupt::callback(py, says_nothing_of_order, sign).map_err(|(exception, is_told)| {
                if !is_told {
                    exception.write_unraisable(py, Some(compare));
                }
            })
        });
        match compared {
            // Keys that the program calls equal are different ones for the engine, in the order of
            // their bytes.
            Some(Ok(order)) => order.then_with(|| a.cmp(b)),
            // The engine counts it as a fault, and orders the two by itself.
            Some(Err(())) => resume_unwind(Box::new("the comparator has raised an exception")),
            None => resume_unwind(Box::new("the interpreter is ending")),
        }
    }
}

/// Whether an exception comes from where the call was made, and not from the two keys. It must not
/// decide about their places.
fn says_nothing_of_order(py: Python<'_>, exception: &PyErr) -> bool {
    interrupt::ends_programs(py, exception)
        || exception.is_instance_of::<PyMemoryError>(py)
        || exception.is_instance_of::<PyRecursionError>(py)
}

/// The comparator of a callable.
pub fn of_callable(name: String, compare: &Bound<'_, PyAny>) -> Arc<dyn Comparator> {
    callables::note();
    Arc::new(PythonComparator { name, compare: compare.clone().unbind() })
}

/// The comparator that an argument stands for: a name, or an object with `name` and `compare`.
pub fn comparator(argument: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Comparator>> {
    if let Ok(name) = argument.cast::<PyString>() {
        return match &*name.to_string_lossy() {
            "reverse-bytewise" => Ok(Arc::new(ReverseBytewise)),
            other => Err(PyValueError::new_err(format!(
                "there is no built-in comparator {other:?} beside \"reverse-bytewise\" and the default"
            ))),
        };
    }
    let wrong = || PyTypeError::new_err("comparator must be a name, or an object with `name` and `compare`");
    let name = argument.getattr_opt("name")?.ok_or_else(wrong)?;
    let compare = argument.getattr_opt("compare")?.filter(|compare| compare.is_callable()).ok_or_else(wrong)?;
    Ok(of_callable(name.cast::<PyString>().map_err(|_| wrong())?.to_string(), &compare))
}
