//! Flush and compaction: what is next, doing it, and installing the result.
//!
//! One thread does all of it, so that on two cores the other belongs to the caller: flushes first, then the next log segment, then
//! merging. A flush that becomes due during a merge is done inside the merge. With no background thread the same steps run inside the calls that add
//! work, in the same order every time.

use super::freeze::freeze;
use super::inner::{Inner, KeyspaceInner, Signals, View, Writer};
use super::reclaim::reclaim;
use super::snapshot::Readers;
use super::{expiring, files};
use crate::base::key::Sequence;
use crate::error::{Error, Result};
use crate::job::output::{OutputOptions, table_options};
use crate::job::pick::{Plan, RunShape, pick};
use crate::job::retain::Rules;
use crate::job::{compact, flush};
use crate::memtable::Memtable;
use crate::merge_operator::MergeOperator;
use crate::table::Table;
use crate::version::edit::Change;
use crate::version::tree::{Run, Tree};
use parking_lot::MutexGuard;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Without a write for this long the database counts as idle.
const IDLE_AFTER: Duration = Duration::from_millis(50);
/// How long after a failure background work is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// Retired log segments that make a keyspace flush a memtable that is not full.
const MAX_LOG_BUFFERS: u64 = 4;

/// The body of the background thread. A panic in it, which can only be a defect, ends writing and not the process.
pub fn run(inner: &Inner) {
    if catch_unwind(AssertUnwindSafe(|| work_until_stopped(inner))).is_err() {
        inner.condition.refuse_writes("background work panicked");
        inner.signals.lock().busy = false;
        inner.work_done.notify_all();
    }
}

fn work_until_stopped(inner: &Inner) {
    loop {
        let idle = {
            let mut signals = inner.signals.lock();
            if signals.shutting_down {
                return;
            }
            signals.work = false;
            signals.busy = true;
            std::mem::take(&mut signals.hurry) || is_idle(inner)
        };
        let result = run_all(inner, idle);
        match &result {
            Ok(()) => inner.condition.recovered(),
            // Giving up for a close is no failure.
            Err(_) if inner.stopping.load(Relaxed) => {}
            Err(error) => inner.condition.delay(error),
        }
        let mut signals = inner.signals.lock();
        signals.busy = false;
        inner.work_done.notify_all();
        if signals.shutting_down {
            return;
        }
        // Once read-only there is nothing to do but to wait for the end.
        let patience = match (&result, idle) {
            (Err(_), _) if inner.condition.check().is_err() => None,
            (Err(_), _) => Some(RETRY_AFTER),
            (Ok(()), false) => Some(IDLE_AFTER),
            (Ok(()), true) => None,
        };
        if result.is_err() || !(signals.work || signals.hurry) {
            wait(inner, &mut signals, patience);
        }
    }
}

fn wait(inner: &Inner, signals: &mut MutexGuard<'_, Signals>, patience: Option<Duration>) {
    match patience {
        Some(patience) => drop(inner.work_arrived.wait_for(signals, patience)),
        None => inner.work_arrived.wait(signals),
    }
}

/// Whether no write came since the last look, which was long enough ago.
fn is_idle(inner: &Inner) -> bool {
    let now = inner.last_sequence.load(Relaxed);
    let mut last = inner.last_write.lock();
    if last.0 != now {
        *last = (now, Instant::now());
        return false;
    }
    last.1.elapsed() >= IDLE_AFTER
}

/// The right to flush and merge, for a handle that may still write.
fn lock_jobs(inner: &Inner) -> Result<MutexGuard<'_, ()>> {
    let jobs = inner.jobs.lock();
    // Whoever had it before may have closed the database.
    inner.condition.check()?;
    Ok(jobs)
}

/// Does everything that is due, in the calling thread. Others get their turn between two jobs.
pub fn run_all(inner: &Inner, idle: bool) -> Result<()> {
    while !inner.stopping.load(Relaxed) {
        let _jobs = lock_jobs(inner)?;
        flush_all(inner)?;
        freeze_log_holders(inner);
        if idle {
            expiring::freeze_due(inner);
        }
        reclaim_all(inner)?;
        let next = inner.all_keyspaces().into_iter().find_map(|keyspace| {
            let tree = Arc::clone(&keyspace.view.load().tree);
            let shapes: Vec<RunShape> = tree.runs.iter().map(|run| RunShape { bytes: run.bytes() }).collect();
            pick(&shapes, idle).map(|plan| (keyspace, tree, plan))
        });
        match next {
            Some((keyspace, tree, plan)) => merge(inner, &keyspace, tree, plan)?,
            None if inner.all_keyspaces().iter().all(|keyspace| keyspace.view.load().frozen.is_empty()) => break,
            None => {}
        }
    }
    files::sweep(inner);
    Ok(())
}

/// Drops the tables that range tombstones have made useless.
fn reclaim_all(inner: &Inner) -> Result<()> {
    inner.all_keyspaces().iter().try_for_each(|keyspace| {
        reclaim(inner, keyspace, &|numbers| commit(inner, keyspace, Vec::new(), 0, &[], numbers))
    })
}

/// Flushes every memtable that waits for it, oldest first, and prepares the next log segment.
fn flush_all(inner: &Inner) -> Result<()> {
    loop {
        // On a full disk a flush may be what makes room for the segment, so the flush is tried whatever became of it.
        let prepared = match &inner.log {
            Some(log) if !inner.inline_jobs() && log.wants_preparation() => log.prepare_next(),
            _ => Ok(()),
        };
        let waiting = inner.all_keyspaces().into_iter().filter_map(|keyspace| {
            let oldest = keyspace.view.load().frozen.last().cloned();
            oldest.map(|memtable| (keyspace, memtable))
        });
        let Some((keyspace, memtable)) = waiting.min_by_key(|(_, memtable)| memtable.first_sequence()) else {
            return prepared;
        };
        flush_one(inner, &keyspace, &memtable)?;
    }
}

/// A memtable that is seldom written holds back the log: put it aside when that has become long.
fn freeze_log_holders(inner: &Inner) {
    let Some(log) = &inner.log else { return };
    let limit = (inner.options.write_buffer_bytes as u64).max(inner.options.wal_segment_bytes) * MAX_LOG_BUFFERS;
    if log.retired_bytes() <= limit {
        return;
    }
    let oldest = inner.oldest_unflushed(&[]);
    let mut writer = inner.writer.lock();
    for keyspace in inner.all_keyspaces() {
        let active = Arc::clone(&keyspace.view.load().active);
        if !active.is_empty() && active.first_sequence() == oldest {
            freeze(inner, &mut writer, keyspace.id, 0);
        }
    }
}

/// A memtable that waits for its flush, and whose it is.
type Waiting = (Arc<KeyspaceInner>, Arc<Memtable>);

/// Puts aside every memtable that is not empty, all at one point of the order of writes. Returns all that wait then, oldest first.
fn freeze_all(inner: &Inner, writer: &mut Writer) -> Vec<Waiting> {
    let mut waiting: Vec<Waiting> = Vec::new();
    for keyspace in inner.all_keyspaces() {
        if !keyspace.view.load().active.is_empty() {
            freeze(inner, writer, keyspace.id, 0);
        }
        waiting
            .extend(keyspace.view.load().frozen.iter().map(|memtable| (Arc::clone(&keyspace), Arc::clone(memtable))));
    }
    waiting.sort_by_key(|(_, memtable)| memtable.first_sequence());
    waiting
}

fn still_waits((keyspace, memtable): &Waiting) -> bool {
    keyspace.view.load().frozen.iter().any(|frozen| Arc::ptr_eq(frozen, memtable))
}

/// Flushes everything written before the call and nothing else, then calls `then` with the job lock still held: the tables are
/// then the state at one point of the order of writes.
pub fn flush_exactly<T>(inner: &Inner, then: impl FnOnce() -> Result<T>) -> Result<T> {
    let _jobs = lock_jobs(inner)?;
    let waiting = freeze_all(inner, &mut inner.writer.lock());
    for (keyspace, memtable) in waiting.iter().filter(|waiting| still_waits(waiting)) {
        flush_one(inner, keyspace, memtable)?;
    }
    then()
}

/// What a job writes with.
fn with_output<T>(inner: &Inner, job: impl FnOnce(&OutputOptions<'_>) -> Result<T>) -> Result<T> {
    let next_file = || inner.next_file_number();
    job(&OutputOptions {
        env: &*inner.options.env,
        directory: inner.directory.clone(),
        table: table_options(&inner.options),
        target_file_bytes: inner.options.target_file_bytes,
        cache: Arc::clone(&inner.cache),
        use_mapping: inner.options.use_mapping(),
        next_file: &next_file,
    })
}

/// What a job on the keyspace keeps.
fn rules<'a>(
    keyspace: &KeyspaceInner,
    readers: &'a Readers,
    bottom: bool,
    operator: Option<&'a dyn MergeOperator>,
) -> Rules<'a> {
    let Readers { sequences, expired_until_ms, .. } = readers;
    let expires = keyspace.ttl.is_enabled();
    Rules { snapshots: sequences, expired_until_ms: *expired_until_ms, expires, bottom, operator }
}

fn flush_one(inner: &Inner, keyspace: &Arc<KeyspaceInner>, memtable: &Arc<Memtable>) -> Result<()> {
    inner.condition.check()?;
    let tree = Arc::clone(&keyspace.view.load().tree);
    // Taken before the entries are read: whoever registers later reads at or above all of them.
    let readers = inner.readers(keyspace);
    let operator = keyspace.operator();
    let rules = rules(keyspace, &readers, tree.runs.is_empty(), operator.as_deref());
    let tables = with_output(inner, |output| flush::flush(memtable, rules, output)).inspect_err(|_| clean_up(inner))?;
    let bytes = tables.iter().map(|table| table.summary().file_bytes).sum();
    let above = inner.merging.lock().and_then(|(id, newest)| (id == keyspace.id).then_some(newest));
    let run = tree.deepest_free_run(&tables, above).unwrap_or_else(|| inner.next_file_number());

    let sequence = memtable.last_sequence();
    let oldest = inner.oldest_unflushed(std::slice::from_ref(memtable));
    // Other keyspaces may have older writes, or the rest of a batch, only in the log: without them this flush would leave a hole after a power
    // loss.
    if others_have_writes(inner, keyspace) {
        inner.sync_log()?;
    }
    let mut changes = vec![Change::Flushed { keyspace: keyspace.id, sequence }, Change::LastSequence(sequence)];
    let floor = match &inner.log {
        None => None,
        Some(log) => {
            let floor = log.floor(oldest);
            log.sync_link(floor).map_err(|error| inner.condition.poison(error))?;
            changes.push(Change::LogFloor(floor));
            Some(floor)
        }
    };
    commit(inner, keyspace, changes, run, &tables, &[])?;
    keyspace.change_view(|view| View {
        active: Arc::clone(&view.active),
        frozen: view.frozen.iter().filter(|other| !Arc::ptr_eq(other, memtable)).cloned().collect(),
        tree: Arc::new(view.tree.edited(&[], tables.iter().map(|table| (run, Arc::clone(table))))),
    });
    if let Some(floor) = floor {
        files::release_segments(inner, floor, true);
    }
    inner.counters.flushes.fetch_add(1, Relaxed);
    inner.counters.flush_bytes.fetch_add(bytes, Relaxed);
    inner.work_done.notify_all();
    Ok(())
}

fn others_have_writes(inner: &Inner, keyspace: &KeyspaceInner) -> bool {
    inner.all_keyspaces().iter().filter(|other| other.id != keyspace.id).any(|other| {
        let view = other.view.load();
        view.frozen.iter().chain([&view.active]).any(|memtable| !memtable.is_empty())
    })
}

/// Makes a job's result durable.
fn commit(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    mut changes: Vec<Change>,
    run: u64,
    added: &[Arc<Table>],
    removed: &[u64],
) -> Result<()> {
    let id = keyspace.id;
    changes.extend(removed.iter().map(|&number| Change::RemoveTable { keyspace: id, number }));
    changes.extend(added.iter().map(|table| {
        let summary = table.summary();
        Change::AddTable { keyspace: id, run, number: summary.file_number, bytes: summary.file_bytes }
    }));
    changes.push(Change::NextFile(inner.next_file.load(Relaxed)));
    inner.condition.check()?;
    match &mut *inner.manifest.lock() {
        Some(manifest) => manifest.commit(&changes).map_err(|error| inner.condition.poison(error)),
        None => Ok(()),
    }
}

fn merge(inner: &Inner, keyspace: &Arc<KeyspaceInner>, tree: Arc<Tree>, plan: Plan) -> Result<()> {
    inner.condition.check()?;
    let inputs: Vec<Arc<Run>> = tree.runs[plan.first..=plan.last].to_vec();
    let Some(newest) = inputs.first() else { return Ok(()) };
    // Kept until the result is installed.
    let readers = inner.readers(keyspace);
    let operator = keyspace.operator();
    let bottom = plan.last + 1 == tree.runs.len();
    let rules = rules(keyspace, &readers, bottom, operator.as_deref());
    drop(tree);
    let mut pause = || {
        if inner.stopping.load(Relaxed) {
            return Err(Error::ReadOnly { why: "the database is being closed".into() });
        }
        flush_all(inner)
    };
    *inner.merging.lock() = Some((keyspace.id, newest.id));
    let result = with_output(inner, |output| compact::compact(&inputs, rules, output, &mut pause));
    *inner.merging.lock() = None;
    let tables = result.inspect_err(|_| clean_up(inner))?;
    let bytes = tables.iter().map(|table| table.summary().file_bytes).sum();
    let id = newest.id;
    let removed: Vec<Arc<Table>> = inputs.iter().flat_map(|run| run.tables.iter().cloned()).collect();
    let numbers: Vec<u64> = removed.iter().map(|table| table.summary().file_number).collect();
    // The result takes the place of its newest input: newer runs have greater ids, older ones smaller.
    commit(inner, keyspace, Vec::new(), id, &tables, &numbers)?;
    keyspace.change_view(|view| View {
        active: Arc::clone(&view.active),
        frozen: view.frozen.clone(),
        tree: Arc::new(view.tree.edited(&numbers, tables.iter().map(|table| (id, Arc::clone(table))))),
    });
    inner.counters.compactions.fetch_add(1, Relaxed);
    inner.counters.compaction_bytes.fetch_add(bytes, Relaxed);
    let read = removed.iter().map(|table| table.summary().file_bytes).sum();
    inner.counters.compaction_read_bytes.fetch_add(read, Relaxed);
    drop(inputs);
    files::retire_tables(inner, removed);
    inner.work_done.notify_all();
    Ok(())
}

/// Removes what a failed job left. If that fails too, the next open does it.
fn clean_up(inner: &Inner) {
    // Once read-only, the manifest on the device may say something else than the one in memory.
    if inner.condition.check().is_err() {
        return;
    }
    if let Some(manifest) = &*inner.manifest.lock() {
        let _ = files::remove_orphans(&*inner.options.env, &inner.directory, manifest.number(), manifest.state());
    }
}

/// Flushes everything written before the call.
pub fn flush_now(inner: &Inner) -> Result<()> {
    inner.condition.check()?;
    let waiting = freeze_all(inner, &mut inner.writer.lock());
    while waiting.iter().any(still_waits) {
        // Whoever has the job lock flushes too, even in the middle of a merge.
        match inner.jobs.try_lock_for(Duration::from_millis(5)) {
            Some(_jobs) => {
                inner.condition.check()?;
                flush_all(inner)?;
            }
            None => {
                inner.condition.check()?;
                inner.condition.check_background()?;
            }
        }
    }
    Ok(())
}

/// Flushes everything. The caller holds the job lock and the writer lock, so that nothing comes in between.
pub fn flush_locked(inner: &Inner, writer: &mut Writer) -> Result<()> {
    freeze_all(inner, writer);
    flush_all(inner)
}

/// Flushes, then merges the keyspace, or all of them, into one run each.
pub fn compact_now(inner: &Inner, only: Option<u64>) -> Result<()> {
    flush_now(inner)?;
    for keyspace in inner.all_keyspaces() {
        let _jobs = lock_jobs(inner)?;
        reclaim_all(inner)?;
        let tree = Arc::clone(&keyspace.view.load().tree);
        let needed = tree.runs.len() > 1 || tree.runs.first().is_some_and(|run| needs_rewrite(run));
        if only.is_none_or(|id| id == keyspace.id) && needed {
            let plan = Plan { first: 0, last: tree.runs.len() - 1 };
            merge(inner, &keyspace, tree, plan)?;
        }
    }
    files::sweep(inner);
    Ok(())
}

/// Whether a single run holds anything that rewriting it would drop or combine.
fn needs_rewrite(run: &Run) -> bool {
    if run.tables.iter().any(|table| table.summary().expiring_entries > 0) {
        return true;
    }
    let newest: Sequence = run.tables.iter().map(|table| table.summary().largest_sequence).max().unwrap_or(0);
    newest > 0
}

/// Waits until nothing is left to do in the background, as after a long pause.
pub fn wait_idle(inner: &Inner) -> Result<()> {
    inner.condition.check()?;
    if inner.inline_jobs() {
        return run_all(inner, true);
    }
    let mut signals = inner.signals.lock();
    signals.hurry = true;
    inner.work_arrived.notify_one();
    while (signals.hurry || signals.busy || signals.work) && !signals.shutting_down {
        inner.condition.check()?;
        inner.condition.check_background()?;
        inner.work_done.wait_for(&mut signals, Duration::from_millis(100));
    }
    Ok(())
}
