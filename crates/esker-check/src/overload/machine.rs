//! What the system counts to this process, and what it lets it have.

use crate::Checked;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::path::Path;

/// A size from `/proc/self/status`, in bytes.
pub fn status_bytes(name: &str) -> Checked<u64> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|error| format!("/proc/self/status: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| format!("no {name} in /proc/self/status"))
}

/// Sets the soft limit; the hard one stays, so that it can be raised again.
pub fn limit(resource: Resource, amount: Option<u64>) -> Checked<()> {
    let mut limits = getrlimit(resource);
    limits.current = match (amount, limits.maximum) {
        (Some(amount), Some(most)) => Some(amount.min(most)),
        (amount, most) => amount.or(most),
    };
    setrlimit(resource, limits).map_err(|error| format!("the limit of {resource:?} cannot be set: {error}"))
}

/// Bytes of the files in a directory whose names end so.
pub fn bytes_ending(directory: &Path, end: &str) -> Checked<u64> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut sum = 0;
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().ends_with(end) {
            // A file may go between the two calls.
            sum += entry.metadata().map_or(0, |data| data.len());
        }
    }
    Ok(sum)
}

/// A number of bytes for people.
pub fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
