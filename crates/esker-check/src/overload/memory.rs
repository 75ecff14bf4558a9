//! A process that may take only so much memory, with a budget to match: it is not ended by it, and
//! loses nothing.
//!
//! Once the limit is on its addresses (`RLIMIT_AS`), once on its pages (a control group); going
//! beyond the first fails the call that asks, beyond the second ends the process.

use super::acknowledged::Writer;
use super::cgroup::Group;
use super::machine::{limit, mib, status_bytes};
use super::share::{Share, failed};
use crate::Checked;
use crate::state::shown;
use esker::{Db, Error, Keyspace, KeyspaceOptions, Options, ReadMode};
use rustix::process::Resource;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

const BUDGET_BYTES: u64 = 16 << 20;
/// What the limit leaves beside the budget, as in `tests/memory_budget.rs` of the engine.
const CONSTANT_BYTES: u64 = 24 << 20;
/// Addresses of a thread: its stack, and what the allocator sets aside for it.
const ADDRESSES_PER_THREAD: u64 = 4 << 20;
const THREADS: u64 = 6;
const WRITERS: u64 = 2;
const SLOTS: u64 = 200_000;
const VALUE_BYTES: usize = 400;

fn open(path: &Path) -> Checked<(Db, Keyspace)> {
    let options = Options::default().memory_budget_bytes(BUDGET_BYTES as usize).read_mode(ReadMode::Pread);
    let db = Db::open(path, options).map_err(failed("open"))?;
    let keyspace = db.keyspace("k", KeyspaceOptions::default()).map_err(failed("a new keyspace"))?;
    Ok((db, keyspace))
}

/// The system refuses memory, or the engine passes that on: what a process at its limit may be
/// told.
fn says_so(error: &Error) -> bool {
    let text = error.to_string();
    matches!(error, Error::Io { .. } | Error::ReadOnly { .. }) && text.contains("Cannot allocate memory")
}

fn allow(error: Error, call: &str, refused: &AtomicU64) -> Checked<()> {
    refused.fetch_add(1, Relaxed);
    if says_so(&error) { Ok(()) } else { Err(format!("{call}, at the limit of memory: {error} ({error:?})")) }
}

fn scan(keyspace: &Keyspace, stop: &AtomicBool, refused: &AtomicU64) -> Checked<u64> {
    let mut entries = 0;
    while !stop.load(Relaxed) {
        let mut last = Vec::new();
        for pair in keyspace.iter() {
            match pair {
                Ok((key, _)) if key[..] <= last[..] => return Err(format!("{} after {}", shown(&key), shown(&last))),
                Ok((key, _)) => last = key.to_vec(),
                Err(error) => {
                    allow(error, "a scan", refused)?;
                    break;
                }
            }
            entries += 1;
            if stop.load(Relaxed) {
                break;
            }
        }
    }
    Ok(entries)
}

fn write(
    writer: &mut Writer,
    keyspace: &Keyspace,
    share: &Share,
    started: Instant,
    refused: &AtomicU64,
) -> Checked<()> {
    // More than memory in any case.
    let least = 3 * BUDGET_BYTES / 2 / VALUE_BYTES as u64;
    let mut failures = 0;
    while started.elapsed() < share.time || writer.acknowledged < least {
        if let Err(error) = writer.step(keyspace) {
            allow(error, "a write", refused)?;
            failures += 1;
            if failures == 100 {
                break;
            }
        }
    }
    Ok(())
}

fn load(share: &Share) -> Checked<String> {
    let path = share.directory.join("db");
    let (db, keyspace) = open(&path)?;
    let mut writers: Vec<Writer> = (0..WRITERS).map(|id| Writer::new(share.seed, id, SLOTS, VALUE_BYTES)).collect();
    let (stop, refused, started) = (AtomicBool::new(false), AtomicU64::new(0), Instant::now());
    let (wrote, scanned) = std::thread::scope(|scope| {
        let (keyspace, stop, refused) = (&keyspace, &stop, &refused);
        let scanning = scope.spawn(move || scan(keyspace, stop, refused));
        let threads: Vec<_> = writers
            .iter_mut()
            .map(|writer| scope.spawn(move || write(writer, keyspace, share, started, refused)))
            .collect();
        let panicked = |_| Err("a writer panicked".to_string());
        let wrote: Checked<Vec<()>> =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect();
        stop.store(true, Relaxed);
        (wrote, scanning.join().unwrap_or_else(|_| Err("the scan panicked".to_string())))
    });
    wrote?;
    let scanned = scanned?;
    writers.iter().try_for_each(|writer| writer.check_all(&keyspace).map(|_| ()))?;
    drop((keyspace, db));
    let (db, keyspace) = open(&path)?;
    writers.iter().try_for_each(|writer| writer.check_all(&keyspace).map(|_| ()))?;
    let written: u64 = writers.iter().map(|writer| writer.acknowledged).sum();
    Ok(format!(
        "{written} writes acknowledged, all there, {} of tables, {scanned} entries scanned beside them, {} calls refused, {} resident and {} of \
         addresses at most",
        mib(db.stats().table_bytes),
        refused.load(Relaxed),
        mib(status_bytes("VmHWM")?),
        mib(status_bytes("VmPeak")?)
    ))
}

/// Under a limit of addresses. The caller has told the allocator to keep to one arena.
pub(super) fn addresses(share: &Share) -> Checked<String> {
    let most = status_bytes("VmSize")? + BUDGET_BYTES * 115 / 100 + CONSTANT_BYTES + THREADS * ADDRESSES_PER_THREAD;
    limit(Resource::As, Some(most))?;
    Ok(format!("limit {}: {}", mib(most), load(share)?))
}

/// In a control group.
pub(super) fn pages(share: &Share) -> Checked<String> {
    const TMPFS: u64 = 0x0102_1994;
    let file_system = rustix::fs::statfs(&share.directory).map_err(|error| error.to_string())?;
    if u64::try_from(file_system.f_type) == Ok(TMPFS) {
        return Ok("skipped: files there are memory".to_string());
    }
    let most = BUDGET_BYTES * 115 / 100 + CONSTANT_BYTES;
    let group = match Group::enter(most)? {
        Ok(group) => group,
        Err(obstacle) => return Ok(format!("skipped: {obstacle}")),
    };
    let outcome = load(share);
    group.leave()?;
    Ok(format!("limit {}: {}", mib(most), outcome?))
}
