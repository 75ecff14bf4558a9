//! Recomputing on all processors: each takes a consecutive part of the keys and plays every
//! thread's sequence, leaving out what is not its own. Drawing a number costs far less than the
//! memory it leads to, so drawing it on every processor is cheaper than handing it over, and no
//! processor ever touches another's counters.

use esker_engines::{EngineError, Result};
use std::thread;

/// Bytes that a check takes for each key, at most.
pub const BYTES_PER_KEY: u64 = 20;

/// Zeros, one for each key. An error if there is no memory for them.
pub fn zeros<T: Default + Clone>(keys: u64) -> Result<Vec<T>> {
    let mut zeros = Vec::new();
    let count = usize::try_from(keys).unwrap_or(usize::MAX);
    let reserved = zeros.try_reserve_exact(count);
    reserved.map_err(|_| EngineError(format!("no memory to recompute {keys} keys; use fewer with --num")))?;
    zeros.resize(count, T::default());
    Ok(zeros)
}

/// Keys of one processor's part.
pub fn part_size(keys: u64) -> usize {
    const MOST_THREADS: usize = 16;
    let processors = thread::available_parallelism().map_or(1, |count| count.get()).min(MOST_THREADS);
    usize::try_from(keys).unwrap_or(usize::MAX).div_ceil(processors).max(1)
}

/// Runs `work` on all parts at the same time. True if every call returns true, which means that it
/// was not interrupted.
pub fn on_each<P: Send>(parts: impl Iterator<Item = P>, work: impl Fn(P) -> Result<bool> + Sync) -> Result<bool> {
    let work = &work;
    thread::scope(|scope| {
        let mut handles = Vec::new();
        let mut result = Ok(true);
        for part in parts {
            match thread::Builder::new().spawn_scoped(scope, move || work(part)) {
                Ok(handle) => handles.push(handle),
                Err(error) => result = Err(EngineError(format!("cannot start a thread to recompute: {error}"))),
            }
        }
        for handle in handles {
            let done = handle.join().unwrap_or_else(|_| Err(EngineError("a recomputing thread panicked".into())));
            result = result.and_then(|all| Ok(all & done?));
        }
        result
    })
}
