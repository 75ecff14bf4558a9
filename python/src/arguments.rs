//! Arguments that several calls take: ranges, options of writes, paths, times.

use crate::buffer::bytes;
use crate::errors;
use esker::{StallPolicy, WriteOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDelta, PyDict, PyString};
use std::ops::Bound as Limit;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The two ends of a range of keys.
pub type Limits = (Limit<Vec<u8>>, Limit<Vec<u8>>);

/// A bytes argument that may be absent.
type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// What a range is given by.
pub struct RangeArguments<'a, 'py> {
    pub start: Given<'a, 'py>,
    pub stop: Given<'a, 'py>,
    pub prefix: Given<'a, 'py>,
    pub include_start: bool,
    pub include_stop: bool,
}

impl<'a, 'py> RangeArguments<'a, 'py> {
    /// From `start`, included, to `stop`, excluded.
    pub fn half_open(start: Given<'a, 'py>, stop: Given<'a, 'py>) -> RangeArguments<'a, 'py> {
        RangeArguments { start, stop, prefix: None, include_start: true, include_stop: false }
    }

    /// The two ends in a keyspace. Keys that share a prefix are neighbours in the order of bytes,
    /// and in its reverse.
    pub fn limits_in(self, py: Python<'_>, keyspace: &esker::Keyspace) -> PyResult<Limits> {
        let (order, is_prefix) = (keyspace.comparator(), self.prefix.is_some());
        let limits = self.limits()?;
        if !is_prefix || order == "bytewise" {
            return Ok(limits);
        }
        if order == "reverse-bytewise" {
            return Ok((limits.1, limits.0));
        }
        let what = format!("keys that share a prefix need not be neighbours in the order {order:?}; use a range");
        Err(errors::new(py, "InvalidArgumentError", &what))
    }

    /// The two ends in the order of bytes.
    pub fn limits(self) -> PyResult<Limits> {
        if let Some(prefix) = self.prefix {
            if self.start.is_some() || self.stop.is_some() {
                return Err(PyTypeError::new_err("'prefix' cannot be used together with 'start' or 'stop'"));
            }
            return Ok(prefix_limits(&bytes(prefix, "prefix")?));
        }
        let end = |given: Given<'a, 'py>, name, included: bool| -> PyResult<Limit<Vec<u8>>> {
            let Some(key) = given else { return Ok(Limit::Unbounded) };
            let key = bytes(key, name)?.to_vec();
            Ok(if included { Limit::Included(key) } else { Limit::Excluded(key) })
        };
        Ok((end(self.start, "start", self.include_start)?, end(self.stop, "stop", self.include_stop)?))
    }
}

/// The ends of the range of all keys that begin with `prefix`.
pub fn prefix_limits(prefix: &[u8]) -> Limits {
    let upper = after_prefix(prefix).map_or(Limit::Unbounded, Limit::Excluded);
    (Limit::Included(prefix.to_vec()), upper)
}

/// The least key above all that begin with `prefix`, if there is one.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut upper = prefix[..=last].to_vec();
    upper[last] += 1;
    Some(upper)
}

/// The two items of an iterable, as `dict` takes pairs.
pub fn two_of<'py>(pair: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let mut items = pair.try_iter()?;
    if let (Some(first), Some(second)) = (items.next().transpose()?, items.next().transpose()?)
        && items.next().transpose()?.is_none()
    {
        return Ok((first, second));
    }
    Err(PyValueError::new_err("a pair must have two items"))
}

/// The time that a `timedelta` is.
pub fn duration(time: &Bound<'_, PyAny>, name: &str) -> PyResult<Duration> {
    if time.cast::<PyDelta>().is_err() {
        return Err(PyTypeError::new_err(format!("{name} must be a timedelta")));
    }
    time.extract().map_err(|_| PyValueError::new_err(format!("{name} must not be negative")))
}

/// A time: an aware `datetime`, from 1970 on.
pub fn moment(time: &Bound<'_, PyAny>) -> PyResult<SystemTime> {
    let offset = time.getattr("utcoffset").and_then(|utcoffset| utcoffset.call0());
    if !offset.is_ok_and(|offset| !offset.is_none()) {
        return Err(PyTypeError::new_err("a time must be an aware datetime, as datetime.now(timezone.utc)"));
    }
    time.extract().map_err(|_| PyValueError::new_err("a time must not be before 1970"))
}

/// The same where there may be none.
pub fn optional_moment(time: &Bound<'_, PyAny>) -> PyResult<Option<SystemTime>> {
    if time.is_none() { Ok(None) } else { moment(time).map(Some) }
}

/// A `timedelta`; the longest one for a time that is longer.
pub fn timedelta(py: Python<'_>, time: Duration) -> PyResult<Bound<'_, PyAny>> {
    const LONGEST: Duration = Duration::from_secs(999_999_999 * 24 * 60 * 60);
    Ok(time.min(LONGEST).into_pyobject(py)?.into_any())
}

/// The options of a write.
pub fn write_options(
    ttl: Option<&Bound<'_, PyAny>>,
    sync: bool,
    wal: bool,
    timeout: Option<&Bound<'_, PyAny>>,
) -> PyResult<WriteOptions> {
    let mut options = WriteOptions::new().sync(sync).disable_wal(!wal);
    if let Some(ttl) = ttl {
        options = options.ttl(duration(ttl, "ttl")?);
    }
    if let Some(timeout) = timeout {
        let timeout = duration(timeout, "timeout")?;
        options = options.stall(if timeout.is_zero() { StallPolicy::Fail } else { StallPolicy::For(timeout) });
    }
    Ok(options)
}

/// A path: `str`, `bytes` or an object with `__fspath__`. One with a zero byte is refused, as the
/// system would end it there, and an empty one, which would be the current directory.
pub fn path(argument: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let py = argument.py();
    let os = py.import("os")?;
    let plain = os.call_method1("fspath", (argument,))?;
    let has_zero = match plain.cast::<PyString>() {
        Ok(text) => text.to_string_lossy().contains('\0'),
        Err(_) => plain.cast::<PyBytes>().is_ok_and(|bytes| bytes.as_bytes().contains(&0)),
    };
    if has_zero {
        return Err(PyValueError::new_err("embedded null byte in the path"));
    }
    let path: PathBuf = os.call_method1("fsdecode", (plain,))?.extract()?;
    if path.as_os_str().is_empty() {
        return Err(PyValueError::new_err("the path is empty"));
    }
    Ok(path)
}

/// A time as an aware `datetime`. One that no `datetime` can hold is the last one.
pub fn datetime<'py>(py: Python<'py>, time: SystemTime) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(time) = time.into_pyobject(py) {
        return Ok(time.into_any());
    }
    let module = py.import("datetime")?;
    let utc = PyDict::new(py);
    utc.set_item("tzinfo", module.getattr("timezone")?.getattr("utc")?)?;
    module.getattr("datetime")?.getattr("max")?.call_method("replace", (), Some(&utc))
}
