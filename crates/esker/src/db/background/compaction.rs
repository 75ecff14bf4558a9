//! Compaction: picking, running, and installing the result. Each of these steps needs the job lock.

use crate::base::key::{MAX_SEQUENCE, Sequence};
use crate::db::background::blob_gc;
use crate::db::background::blob_gc::{Collection, Compressible};
use crate::db::background::commit_version_edit::{commit, lock_jobs, rules, with_output};
use crate::db::background::flush::{flush_all, flush_now};
use crate::db::background::range_del_drop::reclaim_all;
use crate::db::background::yield_point::YieldPoint;
use crate::db::files::remover;
use crate::db::state::events::Event;
use crate::db::state::inner::{Inner, KeyspaceInner, Writer};
use crate::db::state::latencies::Timed;
use crate::db::state::memory;
use crate::db::state::snapshots::Readers;
use crate::db::write_controller::condition;
use crate::error::{Error, Result};
use crate::event_listener::CompactionCompleted;
use crate::job::compact::{Compacted, compact};
use crate::job::compaction_inputs::CompactionInputs;
use crate::job::output::table_options;
use crate::job::parallel::divide;
use crate::job::pick::shape::{Plan, RunShape, Shape, TableShape};
use crate::job::pick::{merge_all, merge_range, next_due, pick, skipped_tombstones_are_due};
use crate::job::version_gc::Rules;
use crate::options::CompactionStyle;
use crate::table::{Table, TableSummary};
use crate::version::edit::Change;
use crate::version::runs::Version;
use parking_lot::MutexGuard;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A job for a keyspace.
pub struct Job {
    keyspace: Arc<KeyspaceInner>,
    version: Arc<Version>,
    plan: Plan,
    /// Nothing older than what the plan reads exists for any of its keys.
    bottom: bool,
    /// A caller requested it and waits: all that can be made smaller is rewritten.
    by_hand: bool,
    /// Those that the plan was made for. Held until it is carried out: what it takes for expired is
    /// expired for readers to come.
    readers: Readers,
}

impl Job {
    fn new(
        keyspace: &Arc<KeyspaceInner>,
        version: &Arc<Version>,
        plan: Plan,
        shape: &Shape<'_>,
        readers: Readers,
    ) -> Job {
        let bottom = shape.is_bottom(&plan);
        Job { keyspace: Arc::clone(keyspace), version: Arc::clone(version), plan, bottom, by_hand: false, readers }
    }
}

/// A table smaller than this part of a full one is written again together with others, although
/// nothing in it changes.
const LEAST_KEPT: u64 = 4;
/// A level of its own is a run of at least this many write buffers.
const LEVEL_BASE_BUFFERS: u64 = 4;
/// How long a compaction that waits for a reader to leave sleeps before it checks again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How often it checks.
const LOOKS_FOR_READERS: u32 = 20;
/// With a rate limit the threads of a compaction may be this many entries ahead of it.
const ENTRIES_AHEAD: u64 = 4096;

fn shape<'a>(inner: &Inner, keyspace: &KeyspaceInner, version: &'a Version, paused: bool) -> (Shape<'a>, Readers) {
    let rewrite_futile = keyspace.compaction.rewrite_futile();
    let readers = inner.readers(keyspace);
    let table = |table: &'a Arc<Table>| {
        let summary = table.summary();
        TableShape::new(summary, rewrite_futile.contains(&summary.file_number))
    };
    let shape = Shape {
        runs: version
            .runs
            .iter()
            .map(|run| RunShape::new_in(keyspace.order.clone(), run.tables.iter().map(table).collect()))
            .collect(),
        paused,
        expired_until_ms: readers.expired_until_ms,
        oldest_snapshot: readers.sequences.first().copied().unwrap_or(MAX_SEQUENCE),
        level_base_bytes: LEVEL_BASE_BUFFERS * inner.options.write_buffer_bytes as u64,
        tombstones_skipped: keyspace.compaction.tombstones_skipped.load(Relaxed),
        high_read_amp: keyspace.read_stats.high_read_amp(),
    };
    (shape, readers)
}

/// The next compaction due, in any keyspace; in one whose last has failed if none is due elsewhere,
/// the longest ago first, so that one for which there is no room does not keep the others from
/// making some. If every due compaction reads a table that was found damaged, that error: reading
/// it again does not mend it. A manual compaction reads it again.
pub fn next_job(inner: &Inner, paused: bool) -> Result<Option<Job>> {
    let mut damage = None;
    let mut keyspaces = inner.all_keyspaces();
    keyspaces.sort_by_key(|keyspace| keyspace.compaction.last_failure());
    let job = keyspaces.iter().find_map(|keyspace| {
        let version = Arc::clone(&keyspace.read_state.load().version);
        let (shape, readers) = shape(inner, keyspace, &version, paused);
        let plan = pick(&shape, keyspace.compaction.style());
        if plan.is_none() && skipped_tombstones_are_due(&shape) {
            keyspace.compaction.forgive_scans();
        }
        let plan = plan?;
        if let Some(error) = CompactionInputs::new(&version, &plan).and_then(|task| known_damage(inner, &task)) {
            damage = Some(error);
            return None;
        }
        Some(Job::new(keyspace, &version, plan, &shape, readers))
    });
    match (job, damage) {
        (None, Some(error)) => Err(error),
        (job, _) => Ok(job),
    }
}

fn known_damage(inner: &Inner, task: &CompactionInputs) -> Option<Error> {
    task.inputs.iter().flat_map(|run| &run.tables).find_map(|table| inner.error_state.damage_of(table.path()))
}

/// The earliest clock time at which something becomes due without a write.
pub fn due_ms(inner: &Inner) -> Option<u64> {
    let due = |keyspace: &Arc<KeyspaceInner>| {
        let version = Arc::clone(&keyspace.read_state.load().version);
        let expires = version.tables().any(|(_, table)| table.summary().expiring_entries > 0);
        expires.then(|| next_due(&shape(inner, keyspace, &version, true).0, keyspace.compaction.style()))?
    };
    inner.all_keyspaces().iter().filter_map(due).min()
}

/// Rewrites one table to empty blob files that are mostly garbage; whether there was one.
/// `drain_requested` by a caller: also if it saves little.
pub fn collect_blobs(inner: &Inner, drain_requested: bool) -> Result<bool> {
    empty_blobs(inner, blob_gc::condemned(inner, drain_requested), drain_requested)
}

/// Rewrites one table so that large values it refers to are compressed; whether there may be more
/// to do. Only values in files with smaller numbers than `before`. `drain_requested`: even if it
/// saves little. If the device gives values no more or there is no room for copies, the values of
/// these files stay as they are; what is damaged is an error.
pub fn compress_blobs(inner: &Inner, before: u64, drain_requested: bool) -> Result<bool> {
    let files = match blob_gc::compressible(inner, before, drain_requested) {
        Compressible::Nothing => return Ok(false),
        Compressible::LookAgain => return Ok(true),
        Compressible::Files(files) => files,
    };
    match empty_blobs(inner, files.clone(), drain_requested) {
        // The next time that file or table is left out.
        Err(error) if is_noted(inner, &error) => Err(error),
        // This work is optional. What failed may have been a flush in between, which is tried again
        // before the next look.
        Err(_) if inner.error_state.check().is_ok() && !inner.stopping.load(Relaxed) => {
            files.iter().for_each(|&number| inner.blobs.leave_as_it_is(number));
            remover::sweep_blobs(inner);
            Ok(true)
        }
        result => result,
    }
}

/// Whether background jobs leave alone what the error says is damaged.
fn is_noted(inner: &Inner, error: &Error) -> bool {
    let is_table = matches!(error, Error::Corruption { path, .. } if inner.error_state.damage_of(path).is_some());
    is_table || inner.blobs.leaves_alone(error)
}

/// Rewrites one table that refers to these blob files, with copies of the values in them, and
/// removes those that nothing refers to; whether there was a table.
fn empty_blobs(inner: &Inner, files: BTreeSet<u64>, drain_requested: bool) -> Result<bool> {
    let Some(Collection { keyspace, version, plan, files }) = blob_gc::next(inner, files, drain_requested) else {
        remover::sweep_blobs(inner);
        return Ok(false);
    };
    let (shape, readers) = shape(inner, &keyspace, &version, false);
    let job = Job::new(&keyspace, &version, plan, &shape, readers);
    drop(shape);
    drop(version);
    carry_out_emptying(inner, job, &files).inspect_err(|_| remover::sweep_blobs(inner))?;
    Ok(true)
}

/// Does it, and installs the result.
pub fn carry_out(inner: &Inner, job: Job) -> Result<()> {
    let keyspace = Arc::clone(&job.keyspace);
    let done = carry_out_emptying(inner, job, &blob_gc::condemned(inner, false));
    let failures = inner.all_keyspaces().into_iter().map(|keyspace| keyspace.compaction.last_failure());
    keyspace.compaction.set_last_failure(if done.is_ok() { 0 } else { failures.max().unwrap_or(0) + 1 });
    done
}

/// As [`carry_out`]; what is written has copies of the values in the blob files `emptied`.
fn carry_out_emptying(inner: &Inner, job: Job, emptied: &BTreeSet<u64>) -> Result<()> {
    inner.error_state.check()?;
    let Job { keyspace, version, plan, bottom, by_hand, readers } = job;
    match CompactionInputs::new(&version, &plan) {
        Some(mut task) => {
            let whole = task.entries() == version.runs.iter().map(|run| run.entries()).sum::<u64>();
            drop(version);
            let rewrite = matches!(plan, Plan::Rewrite { .. });
            if !rewrite && keyspace.compaction.filter().is_none() {
                let into_last = task.into_last;
                let gains = |table: &TableSummary, oldest: bool| {
                    let moves = into_last && !oldest && !same_everywhere(inner);
                    moves || by_hand && table.largest_sequence > 0 || rewriting_helps(inner, table, bottom, &readers)
                };
                let refers = |table: &TableSummary| table.blobs.keys().any(|file| emptied.contains(file));
                task.keep_apart(|table, oldest| !gains(table.summary(), oldest) && !refers(table.summary()));
            }
            let merged = inner.timed(Timed::Compaction, || merge(inner, &keyspace, task, (bottom, rewrite), emptied));
            match merged {
                // Given up: nothing of it is needed.
                Err(Error::KeyspaceDropped { .. }) => {}
                result => result?,
            }
            if whole {
                keyspace.compaction.forgive_scans();
            }
        }
        None => {
            let Plan::Drop { tables } = plan else { return Ok(()) };
            let named = |table: &Arc<Table>| tables.contains(&table.summary().file_number);
            let removed: Vec<Arc<Table>> = version.tables().map(|(_, table)| table).filter(named).collect();
            drop(version);
            let is_fifo = matches!(keyspace.compaction.style(), CompactionStyle::Fifo { .. });
            if is_fifo {
                let newest = removed.iter().map(|table| table.summary().largest_sequence).max();
                keyspace.compaction.note_dropped(newest.unwrap_or(0));
                keyspace.compaction.note_lost_bases(MAX_SEQUENCE);
            }
            inner.counters.tables_dropped.fetch_add(removed.len() as u64, Relaxed);
            let installed = install(inner, &keyspace, 0, &[], &[], &removed);
            if is_fifo {
                // Merges that met what was dropped are written once the lock is free.
                keyspace.compaction.note_lost_bases(inner.lock_writer().last_sequence);
            }
            if installed? {
                remover::retire_tables(inner, removed);
            }
        }
    }
    drop(readers);
    remover::sweep_blobs(inner);
    memory::rebalance(inner);
    inner.tell_waiting();
    Ok(())
}

/// Whether tables of all runs are written in the same way.
fn same_everywhere(inner: &Inner) -> bool {
    table_options(&inner.options, true) == table_options(&inner.options, false)
}

/// Whether anything would be gained by writing a table again that overlaps nothing.
fn rewriting_helps(inner: &Inner, table: &TableSummary, bottom: bool, readers: &Readers) -> bool {
    // Small tables are worth putting together.
    table.file_bytes < inner.options.target_file_bytes / LEAST_KEPT
        || bottom && table.deletes + table.merges > 0
        || table.expiring_entries > 0 && table.smallest_expiry_ms <= readers.expired_until_ms
}

/// Makes `added` take the place of `removed`, and puts them and `moved` into run `run`, durably and
/// then for readers. False if the keyspace was dropped meanwhile: the drop takes care of `removed`,
/// and what was added has no use.
fn install(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    run: u64,
    added: &[Arc<Table>],
    moved: &[Arc<Table>],
    removed: &[Arc<Table>],
) -> Result<bool> {
    let id = keyspace.id;
    let moves = moved.iter().map(|table| table.summary()).flat_map(|table| {
        let number = table.file_number;
        let add = Change::AddTable { keyspace: id, run, number, bytes: table.file_bytes };
        [Change::RemoveTable { keyspace: id, number }, add]
    });
    let mut numbers: Vec<u64> = removed.iter().map(|table| table.summary().file_number).collect();
    let is_committed = commit(inner, keyspace, moves.collect(), run, added, &numbers)?;
    numbers.extend(moved.iter().map(|table| table.summary().file_number));
    if is_committed && keyspace.read_state.replace_tables(&numbers, run, added.iter().chain(moved)) {
        return Ok(true);
    }
    remover::retire_tables(inner, added.iter().cloned());
    Ok(false)
}

fn merge(
    inner: &Inner,
    keyspace: &Arc<KeyspaceInner>,
    task: CompactionInputs,
    (bottom, rewrite): (bool, bool),
    emptied: &BTreeSet<u64>,
) -> Result<()> {
    let removed: Vec<Arc<Table>> = task.inputs.iter().flat_map(|run| run.tables.iter().cloned()).collect();
    let elsewhere = task.kept.iter().filter(|(run, _)| *run != task.run);
    let moved: Vec<Arc<Table>> = elsewhere.map(|(_, table)| Arc::clone(table)).collect();
    if removed.is_empty() {
        return if moved.is_empty() { Ok(()) } else { install(inner, keyspace, task.run, &[], &moved, &[]).map(drop) };
    }
    let mut filter = keyspace.compaction.filter();
    let tables = loop {
        // Held until the result is installed.
        let readers = inner.readers(keyspace);
        let operator = keyspace.operator();
        let rules = Rules { filter: filter.as_deref(), ..rules(keyspace, &readers, bottom, operator.as_deref()) };
        let Compacted { tables, filtered, expired } = write(inner, keyspace, &task, rules, emptied)?;
        let mut quiet = None;
        if filtered > 0 {
            quiet = lock_without_new_readers(inner, readers.sequences.last().copied().unwrap_or(0));
            if quiet.is_none() {
                remover::retire_tables(inner, tables);
                filter = None;
                continue;
            }
        }
        if !install(inner, keyspace, task.run, &tables, &moved, &removed)? {
            return Ok(());
        }
        if let Some(writer) = &quiet {
            keyspace.compaction.note_lost_bases(writer.last_sequence);
        }
        drop(quiet);
        inner.counters.expired_entries.fetch_add(expired, Relaxed);
        break tables;
    };
    let sum = |tables: &[Arc<Table>]| tables.iter().map(|table| table.summary().file_bytes).sum();
    inner.counters.compactions.fetch_add(1, Relaxed);
    inner.counters.compaction_bytes.fetch_add(sum(&tables), Relaxed);
    inner.counters.compaction_read_bytes.fetch_add(sum(&removed), Relaxed);
    let compacted = || CompactionCompleted {
        keyspace: keyspace.name().to_string(),
        input_tables: removed.len() as u64,
        input_bytes: sum(&removed),
        output_tables: tables.len() as u64,
        output_bytes: sum(&tables),
    };
    inner.events.note(|| Event::Compaction(compacted()));
    // A rewrite for large values says nothing about the dead entries of the table.
    if rewrite && emptied.is_empty() && weight(&tables) == weight(&removed) {
        let numbers = tables.iter().map(|table| table.summary().file_number);
        keyspace.compaction.settle(numbers, &keyspace.read_state.load().version);
    }
    drop(task);
    remover::retire_tables(inner, removed);
    Ok(())
}

/// What a rewrite is to make less.
fn weight(tables: &[Arc<Table>]) -> (u64, u64) {
    let summaries = || tables.iter().map(|table| table.summary());
    (summaries().map(|summary| summary.entries).sum(), summaries().map(|summary| summary.expiring_entries).sum())
}

/// The number of threads that a compaction beginning now may be divided among.
pub fn merge_threads(inner: &Inner, keyspace: &KeyspaceInner) -> usize {
    let options = &inner.options;
    let threads = options.background_threads;
    if threads != 1 || !options.is_free("background_threads") || !condition::compaction_is_behind(keyspace) {
        return threads;
    }
    // A memory budget reserves memory for one thread, a rate limit leaves no work for two, and the
    // system may refuse a thread.
    if options.memory_budget_bytes > 0
        || options.compaction_bytes_per_second > 0
        || keyspace.compaction.division_failed()
    {
        return threads;
    }
    // One thread leaves the other processors to callers. Here writers are delayed for the
    // compaction.
    std::thread::available_parallelism().map_or(1, |processors| processors.get().min(2))
}

/// Writes the tables of a compaction, and flushes the immutable memtables that wait meanwhile.
fn write(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    task: &CompactionInputs,
    rules: Rules<'_>,
    emptied: &BTreeSet<u64>,
) -> Result<Compacted> {
    let parts = divide(&task.inputs, merge_threads(inner, keyspace), inner.options.target_file_bytes);
    let mut yield_point = YieldPoint::new(inner);
    let ahead = if yield_point.is_limited() { ENTRIES_AHEAD } else { u64::MAX };
    let (bytes, entries) = (u128::from(task.bytes()), u128::from(task.entries().max(1)));
    let mut pause = |read: u64| {
        let bytes = u64::try_from(u128::from(read) * bytes / entries).unwrap_or(u64::MAX);
        keyspace.check_exists()?;
        yield_point.pass(bytes)
    };
    *inner.merging.lock() = Some((keyspace.id, task.newest));
    let result = with_output(inner, keyspace, (0, task.into_last), emptied, false, |output| {
        compact(&task.inputs, rules, output, &task.splitter, &parts, ahead, &mut pause)
    });
    *inner.merging.lock() = None;
    keyspace.compaction.note_failed_division(parts.len() > inner.options.background_threads && result.is_err());
    if result.is_ok() {
        let inputs = task.inputs.iter().flat_map(|run| &run.tables);
        inputs.for_each(|table| inner.error_state.forget_damage(table.path()));
    }
    result.inspect_err(|error| note_damage(inner, task, error))
}

/// Notes that one of the inputs is damaged, if that is the error. What is damaged in blob files is
/// noted where it is read.
fn note_damage(inner: &Inner, task: &CompactionInputs, error: &Error) {
    let Error::Corruption { path, .. } = error else { return };
    if task.inputs.iter().flat_map(|run| &run.tables).any(|table| table.path() == path) {
        inner.error_state.note_damage(error);
    }
}

/// The writer lock, with no reader at a sequence number above `newest`: no reader sees what a
/// filter has just changed, and none can before it is installed. `None` if such a reader does not
/// leave.
fn lock_without_new_readers(inner: &Inner, newest: Sequence) -> Option<MutexGuard<'_, Writer>> {
    for _ in 0..LOOKS_FOR_READERS {
        let writer = inner.writer.lock();
        if inner.snapshots.newest() <= newest {
            return Some(writer);
        }
        drop(writer);
        if inner.inline_jobs() {
            // It may be this thread's own.
            return None;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    None
}

/// Manual work, repeated without the blob file that it found damaged, as often as it finds one. The
/// first error about one goes to `damage`.
fn past_damage<T>(inner: &Inner, damage: &mut Option<Error>, mut work: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match work() {
            Err(error) if inner.blobs.leaves_alone(&error) => drop(damage.get_or_insert(error)),
            result => return result,
        }
    }
}

/// Flushes, then compacts the keyspace, or all of them, into one run each. For all keyspaces,
/// unused log files are given back too. A damaged large value is an error only when all else is
/// done.
pub fn compact_now(inner: &Inner, only: Option<u64>) -> Result<()> {
    inner.blobs.try_damaged_again();
    flush_now(inner)?;
    let mut damage = None;
    for keyspace in inner.all_keyspaces() {
        if only.is_none_or(|id| id == keyspace.id) {
            past_damage(inner, &mut damage, || compact_keyspace(inner, &keyspace, merge_all))?;
        }
    }
    let before = inner.next_file.load(Relaxed);
    loop {
        let _jobs = lock_jobs(inner)?;
        flush_all(inner)?;
        let mut next = || Ok(collect_blobs(inner, true)? || only.is_none() && compress_blobs(inner, before, true)?);
        if !past_damage(inner, &mut damage, &mut next)? {
            break;
        }
    }
    if only.is_none() {
        let _jobs = lock_jobs(inner)?;
        remover::reclaim_log(inner)?;
    }
    remover::sweep(inner);
    damage.or_else(|| damage_met(inner, only)).map_or(Ok(()), Err)
}

/// What jobs have found wrong since with a large value of the keyspace, or of any: a merge over a
/// damaged one does not fail, but leaves both as they are.
fn damage_met(inner: &Inner, only: Option<u64>) -> Option<Error> {
    let keyspaces = inner.all_keyspaces();
    let meant = keyspaces.iter().filter(|keyspace| only.is_none_or(|id| id == keyspace.id));
    let versions: Vec<_> = meant.map(|keyspace| Arc::clone(&keyspace.read_state.load().version)).collect();
    let refers =
        |number| versions.iter().flat_map(|it| it.tables()).any(|(_, it)| it.summary().blobs.contains_key(&number));
    inner.blobs.damage_met(refers)
}

/// Flushes, then compacts the keyspace's entries in a range of keys into its last run.
pub fn compact_range(inner: &Inner, keyspace: &Arc<KeyspaceInner>, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<()> {
    inner.refuse_in_callback()?;
    // One key too many does no harm.
    let smallest = match range.0 {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => &[],
    };
    if keyspace.order.is_empty_range(range.0, range.1) {
        return inner.error_state.check();
    }
    inner.blobs.try_damaged_again();
    flush_now(inner)?;
    let mut damage = None;
    let choose = |shape: &Shape<'_>, anyway| merge_range(shape, smallest, range.1, anyway);
    past_damage(inner, &mut damage, || compact_keyspace(inner, keyspace, choose))?;
    remover::sweep(inner);
    damage.or_else(|| damage_met(inner, Some(keyspace.id))).map_or(Ok(()), Err)
}

/// Runs the choice of `choose` once; its argument says whether a compaction may help although the
/// shape of the tables does not show it.
fn compact_keyspace(
    inner: &Inner,
    keyspace: &Arc<KeyspaceInner>,
    choose: impl FnOnce(&Shape<'_>, bool) -> Option<Plan>,
) -> Result<()> {
    let _jobs = lock_jobs(inner)?;
    reclaim_all(inner)?;
    let job = {
        let version = Arc::clone(&keyspace.read_state.load().version);
        let (shape, readers) = shape(inner, keyspace, &version, false);
        let plan = match keyspace.compaction.style() {
            // A compacted table would have no age: only what is due anyway is done.
            style @ CompactionStyle::Fifo { .. } => pick(&shape, style),
            _ => choose(&shape, keyspace.compaction.filter().is_some()),
        };
        plan.map(|plan| Job { by_hand: true, ..Job::new(keyspace, &version, plan, &shape, readers) })
    };
    job.map_or(Ok(()), |job| carry_out(inner, job).inspect_err(|_| remover::sweep_blobs(inner)))
}
