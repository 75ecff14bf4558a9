//! Subcompactions: a compaction is divided among threads, by key.
//!
//! Each thread writes the keys of one part; parts meet at the first keys of tables. The thread that
//! runs the compaction only coordinates: it calls `pause`, which flushes the immutable memtables
//! that wait, and passes an error of any thread on to all.

use crate::error::{Error, Result};
use crate::version::runs::Run;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Keys from `start`, included, to `end`, excluded; without one, from or to where there are any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub start: Option<Vec<u8>>,
    pub end: Option<Vec<u8>>,
}

/// How often the coordinator checks for waiting work.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Parts of about the same size: as many as `most`, if each gets `least_bytes`. One where the order
/// is not to be trusted: parts might leave out entries.
pub fn divide(runs: &[Arc<Run>], most: usize, least_bytes: u64) -> Vec<Part> {
    let mut tables: Vec<(&[u8], u64)> = runs
        .iter()
        .flat_map(|run| &run.tables)
        .map(|table| (table.summary().smallest_key.as_slice(), table.summary().file_bytes))
        .collect();
    let Some(order) = runs.iter().flat_map(|run| &run.tables).map(|table| table.order()).next() else {
        return vec![Part::default()];
    };
    if !order.is_trusted() {
        return vec![Part::default()];
    }
    order.sort(&mut tables, |(key, _)| key);
    let total: u64 = tables.iter().map(|(_, bytes)| bytes).sum();
    let count = (total / least_bytes.max(1)).clamp(1, most.max(1) as u64);
    let mut parts = vec![Part::default()];
    let mut before = 0;
    for window in tables.windows(2) {
        before += window[0].1;
        let key = window[1].0;
        let is_new = key != window[0].0;
        if is_new
            && before * count >= total * parts.len() as u64
            && let Some(last) = parts.last_mut()
        {
            last.end = Some(key.to_vec());
            parts.push(Part { start: Some(key.to_vec()), end: None });
        }
    }
    parts
}

/// The shared state of the threads of a compaction.
#[derive(Default)]
struct Progress {
    /// Entries read.
    read: AtomicU64,
    /// Entries that may be read: the threads wait here when a limit is reached.
    allowed: AtomicU64,
    stop: AtomicBool,
    ended: Mutex<usize>,
    /// Signalled when a thread ends.
    one_ended: Condvar,
}

/// Counts a thread as ended, however it ends.
struct Ending<'a>(&'a Progress);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop.store(true, Relaxed);
        }
        *self.0.ended.lock() += 1;
        self.0.one_ended.notify_all();
    }
}

/// Stops the threads when the coordinator leaves, however it leaves: at a limit they wait for it,
/// and the scope waits for them.
struct Coordinating<'a>(&'a Progress);

impl Drop for Coordinating<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Relaxed);
    }
}

impl Progress {
    /// A thread's pause.
    fn pause(&self, entries: u64) -> Result<()> {
        self.read.fetch_add(entries, Relaxed);
        while self.read.load(Relaxed) > self.allowed.load(Relaxed) && !self.stop.load(Relaxed) {
            std::thread::sleep(LOOK_EVERY);
        }
        if self.stop.load(Relaxed) { Err(stopped()) } else { Ok(()) }
    }

    /// Calls `pause` until all threads have ended.
    fn coordinate(&self, threads: usize, ahead: u64, pause: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        let mut told = 0;
        loop {
            let read = self.read.load(Relaxed);
            pause(read - told)?;
            told = read;
            self.allowed.store(told.saturating_add(ahead), Relaxed);
            let mut ended = self.ended.lock();
            if *ended == threads {
                return Ok(());
            }
            self.one_ended.wait_for(&mut ended, LOOK_EVERY);
        }
    }
}

fn stopped() -> Error {
    Error::ReadOnly { why: "another part of the compaction failed".into() }
}

type Pause<'p> = &'p mut dyn FnMut(u64) -> Result<()>;

/// Does `work` for each part in a thread of its own, and returns the results in the order of the
/// parts.
pub fn in_parallel<T: Send>(
    parts: &[Part],
    work: &(dyn Fn(&Part, Pause<'_>) -> Result<T> + Sync),
    ahead: u64,
    pause: Pause<'_>,
) -> Result<Vec<T>> {
    let progress = Progress::default();
    progress.allowed.store(ahead, Relaxed);
    std::thread::scope(|scope| {
        let progress = &progress;
        let coordinating = Coordinating(progress);
        let mut threads = Vec::new();
        let mut failure = None;
        for part in parts {
            let body = move || {
                let _ending = Ending(progress);
                let result = work(part, &mut |entries| progress.pause(entries));
                if result.is_err() {
                    progress.stop.store(true, Relaxed);
                }
                result
            };
            let builder = std::thread::Builder::new().name("esker-compaction".into());
            match builder.spawn_scoped(scope, body) {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    failure = Some(Error::io("start a thread for", "compaction", source));
                    break;
                }
            }
        }
        if failure.is_none() {
            failure = progress.coordinate(threads.len(), ahead, pause).err();
        }
        // Without a failure all threads have ended, and none is stopped.
        drop(coordinating);
        let mut results = Vec::new();
        let mut errors = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(Ok(result)) => results.push(result),
                Ok(Err(error)) => errors.push(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        // The error that stopped the others, not theirs.
        let own = |error: &Error| !matches!(error, Error::ReadOnly { .. });
        let first = errors.iter().position(own).unwrap_or(0);
        match failure {
            Some(error) => Err(error),
            None if errors.is_empty() => Ok(results),
            None => Err(errors.swap_remove(first)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::channel;

    /// Compacts two parts of many entries, at a limit that lets a thread read one ahead, in a
    /// thread of its own: whether it panicked, or none if it hangs.
    fn panics(
        work: impl Fn(Pause<'_>) -> Result<()> + Send + Sync + 'static,
        pause: fn(u64) -> Result<()>,
    ) -> Option<bool> {
        let (tell, told) = channel();
        std::thread::spawn(move || {
            let parts = [Part::default(), Part::default()];
            let merge = || in_parallel(&parts, &|_, pause| work(pause), 1, &mut |entries| pause(entries));
            let _ = tell.send(catch_unwind(AssertUnwindSafe(merge)).is_err());
        });
        told.recv_timeout(Duration::from_secs(300)).ok()
    }

    fn many_entries(pause: Pause<'_>) -> Result<()> {
        (0..1_000_000).try_for_each(|_| pause(1))
    }

    #[test]
    fn a_coordinator_that_panics_leaves_no_thread_waiting_for_it() {
        let pause = |entries| if entries == 0 { Ok(()) } else { panic!("injected") };
        assert_eq!(panics(many_entries, pause), Some(true));
    }

    #[test]
    fn a_part_that_panics_stops_the_others() {
        let calls = AtomicU64::new(0);
        let work = move |pause: Pause<'_>| match calls.fetch_add(1, Relaxed) {
            0 => panic!("injected"),
            _ => loop {
                pause(0)?;
            },
        };
        assert_eq!(panics(work, |_| Ok(())), Some(true));
    }
}
