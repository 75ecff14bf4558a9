//! Compaction filters, filter policies, clocks and listeners that are Python.
//!
//! They are called as merge operators are: see `merge.rs`. None of them can fail a call of the
//! engine: what one raises is reported by `sys.unraisablehook`, and the engine goes on with the
//! answer that changes nothing.

use crate::callables;
use crate::interrupt;
use crate::merge::attached_unless_ending;
use esker::{Clock, CompactionFilter, Decision, EventListener, FilterPolicy};
use esker_ffi::events::NamedEvents;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList, PyString};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Calls `run`; nothing where it raises, or where the interpreter is ending.
fn told<T>(callable: &Py<PyAny>, run: impl Fn(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
    attached_unless_ending(|py| {
        let callable = callable.bind(py);
        let result = interrupt::callback(py, interrupt::ends_programs, || run(callable));
        result.map_err(|(exception, is_told)| {
            if !is_told {
                exception.write_unraisable(py, Some(callable));
            }
        })
    })?
    .ok()
}

/// A callable of a key and a value.
struct PythonFilter {
    name: String,
    decide: Py<PyAny>,
}

impl CompactionFilter for PythonFilter {
    fn name(&self) -> &str {
        &self.name
    }

    fn decide(&self, key: &[u8], value: &[u8]) -> Decision {
        let decided = told(&self.decide, |decide| {
            let py = decide.py();
            let decision = decide.call1((PyBytes::new(py, key), PyBytes::new(py, value)))?;
            if let Ok(keep) = decision.cast::<PyBool>() {
                return Ok(if keep.is_true() { Decision::Keep } else { Decision::Remove });
            }
            Ok(Decision::Replace(crate::buffer::bytes(&decision, "what decide returns beside a bool")?.to_vec()))
        });
        decided.unwrap_or(Decision::Keep)
    }
}

/// Callables that make filters, and ask them.
struct PythonPolicy {
    name: String,
    create_filter: Py<PyAny>,
    key_may_match: Py<PyAny>,
}

impl FilterPolicy for PythonPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn create_filter(&self, keys: &[&[u8]]) -> Option<Vec<u8>> {
        told(&self.create_filter, |create_filter| {
            let py = create_filter.py();
            let filter = create_filter.call1((PyList::new(py, keys.iter().map(|key| PyBytes::new(py, key)))?,))?;
            if filter.is_none() {
                return Ok(None);
            }
            Ok(Some(crate::buffer::bytes(&filter, "what create_filter returns")?.to_vec()))
        })?
    }

    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        let answer = told(&self.key_may_match, |key_may_match| {
            let py = key_may_match.py();
            key_may_match.call1((PyBytes::new(py, key), PyBytes::new(py, filter)))?.is_truthy()
        });
        answer.unwrap_or(true)
    }
}

/// A callable that returns the time. Where it fails, the time is the last one that it said.
struct PythonClock {
    now: Py<PyAny>,
    last_ms: AtomicU64,
}

impl fmt::Debug for PythonClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a clock of Python")
    }
}

impl Clock for PythonClock {
    fn now_ms(&self) -> u64 {
        let Some(now) = told(&self.now, |now| Ok(milliseconds(now.call0()?.extract()?))) else {
            return self.last_ms.load(Ordering::Relaxed);
        };
        self.last_ms.store(now, Ordering::Relaxed);
        now
    }
}

fn milliseconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A method of an argument, which must have it.
fn method<'py>(argument: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(argument.getattr_opt(name)?.filter(|method| method.is_callable()))
}

/// The name of an argument that is an object with a name.
fn name(argument: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let name = argument.getattr_opt("name")?;
    Ok(name.and_then(|name| name.cast::<PyString>().ok().map(|name| name.to_string())))
}

/// The compaction filter of an object with `name` and `decide`.
pub fn compaction_filter(argument: &Bound<'_, PyAny>) -> PyResult<impl CompactionFilter> {
    let (Some(name), Some(decide)) = (name(argument)?, method(argument, "decide")?) else {
        return Err(PyTypeError::new_err("compaction_filter must be an object with `name` and `decide`"));
    };
    callables::note();
    Ok(PythonFilter { name, decide: decide.unbind() })
}

/// The filter policy of an object with `name`, `create_filter` and `key_may_match`.
pub fn filter_policy(argument: &Bound<'_, PyAny>) -> PyResult<Arc<dyn FilterPolicy>> {
    let (create_filter, key_may_match) = (method(argument, "create_filter")?, method(argument, "key_may_match")?);
    let (Some(name), Some(create_filter), Some(key_may_match)) = (name(argument)?, create_filter, key_may_match) else {
        return Err(PyTypeError::new_err("must be an object with `name`, `create_filter` and `key_may_match`"));
    };
    callables::note();
    let (create_filter, key_may_match) = (create_filter.unbind(), key_may_match.unbind());
    Ok(Arc::new(PythonPolicy { name, create_filter, key_may_match }))
}

/// The clock of a callable.
pub fn clock(argument: &Bound<'_, PyAny>) -> PyResult<Arc<dyn Clock>> {
    if !argument.is_callable() {
        return Err(PyTypeError::new_err("must be a function that returns an aware datetime"));
    }
    callables::note();
    let last_ms = AtomicU64::new(milliseconds(SystemTime::now()));
    Ok(Arc::new(PythonClock { now: argument.clone().unbind(), last_ms }))
}

/// The listener of a callable.
pub fn event_listener(argument: &Bound<'_, PyAny>) -> PyResult<Arc<dyn EventListener>> {
    if !argument.is_callable() {
        return Err(PyTypeError::new_err("must be a function of a name and a text"));
    }
    callables::note();
    let listener = argument.clone().unbind();
    Ok(Arc::new(NamedEvents(move |name: &str, text: String| {
        told(&listener, |listener| listener.call1((name, text.as_str())).map(drop));
    })))
}
