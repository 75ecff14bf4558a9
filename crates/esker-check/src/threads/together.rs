//! Threads that end together.

use crate::Checked;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

/// Stops everybody when a thread ends, for whatever reason: a failure must not leave the others
/// running.
struct StopAll<'a>(&'a AtomicBool);

impl Drop for StopAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Starts a thread at whose end all are to stop.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    stop: &'scope AtomicBool,
    work: impl FnOnce() -> Checked<()> + Send + 'scope,
) -> ScopedJoinHandle<'scope, Checked<()>> {
    scope.spawn(move || {
        let _stop = StopAll(stop);
        work()
    })
}

/// Waits for the threads; the first failure.
pub(super) fn join(threads: Vec<ScopedJoinHandle<'_, Checked<()>>>) -> Checked<()> {
    let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())));
    // All of them are waited for.
    ended.collect::<Vec<Checked<()>>>().into_iter().collect()
}
