//! Loading sorted pairs straight into tables, past log and memtable.
//!
//! 1. Reserve a sequence number far above those in use, and write the pairs with it to tables that
//!    nothing names yet. Writes go on meanwhile, with numbers below it.
//! 2. With the job lock: flush what the keyspace's memtables hold of the same keys, so that
//!    everything in a newer source stays newer.
//! 3. With the writer lock: see that the number is still above all others, make the log durable,
//!    name the tables in the manifest and in the read state, and let the numbers go on behind the
//!    reserved one. A reader registered before reads below it and does not see the pairs.
//!
//! If the numbers in use have overtaken the reserved one, the tables are written again with
//! another. Until step 3 is done, the files are in `Inner::in_progress`: who looks for blob files
//! out of use leaves them alone. No file is made or removed by name unless the lock on the
//! directory is held at that moment: the database may be closed, and opened by another process,
//! between two pairs.

use crate::base::expiry::Life;
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, Sequence};
use crate::base::range_tombstone::RangeTombstones;
use crate::db::background::rotate::rotate;
use crate::db::background::{commit_version_edit, flush, run};
use crate::db::files::remover;
use crate::db::state::events::Event;
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::db::write_controller::stop;
use crate::error::{Error, Result, escape_key};
use crate::event_listener::IngestCompleted;
use crate::iter::Cursor;
use crate::job::blob_values::{BlobValues, Copy};
use crate::job::output::{Output, OutputOptions, table_options};
use crate::job::output_splitter::OutputSplitter;
use crate::table::Table;
use crate::version::edit::Change;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Writes that may come while the pairs are written, at the first attempt, without those that the
/// number of pairs suggests.
const FIRST_DISTANCE: u64 = 1 << 24;
/// Writes that may come for each pair.
const WRITES_PER_PAIR: u64 = 16;
/// Each further attempt allows this many times as many.
const DISTANCE_GROWTH: u64 = 64;

/// What was loaded.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let names = db.keyspace("names", Default::default())?;
/// let report = names.ingest([("ada", "1815"), ("bob", "1923")])?;
/// assert_eq!((report.entries, report.tables), (2, 1));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IngestReport {
    /// Pairs loaded.
    pub entries: u64,
    /// Tables written.
    pub tables: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// Files being written. What is not kept is removed at the end.
struct Making<'a> {
    inner: &'a Inner,
    numbers: Mutex<Vec<u64>>,
    /// Files of tables that were written again.
    retired: Mutex<Vec<u64>>,
}

impl Making<'_> {
    fn next_file(&self) -> u64 {
        let number = self.inner.next_file_number();
        self.inner.in_progress.lock().insert(number);
        self.numbers.lock().push(number);
        number
    }

    /// Does what makes or removes files, with the lock on the directory.
    fn in_directory<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let lock = self.inner.lock.lock();
        self.inner.error_state.check()?;
        match &*lock {
            Some(_) => work(),
            None => Err(Error::ReadOnly { why: "it was closed".into() }),
        }
    }

    /// The files made so far; they are not this value's any more.
    fn take(&self) -> Vec<u64> {
        std::mem::take(&mut self.numbers.lock())
    }

    fn forget(&self, numbers: &[u64]) {
        let mut in_progress = self.inner.in_progress.lock();
        in_progress.retain(|number| !numbers.contains(number));
    }

    /// Removes the tables among these files. Large values in the others may still be referred to.
    fn retire(&self, numbers: Vec<u64>) {
        let _ = self.in_directory(|| {
            remover::remove_unnamed_tables(self.inner, &numbers);
            Ok(())
        });
        self.retired.lock().extend(numbers);
    }

    fn remove(&self, numbers: &[u64]) {
        // Once read-only, the manifest on the device may name them.
        let _ = self.in_directory(|| {
            remover::remove_unnamed_tables(self.inner, numbers);
            Ok(())
        });
        self.forget(numbers);
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.remove(&self.take());
        self.forget(&self.retired.lock());
    }
}

/// Loads `pairs`, which must ascend strictly by key: all of them or none.
pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    inner: &Inner,
    keyspace: &Arc<KeyspaceInner>,
    pairs: impl Iterator<Item = (K, V)>,
) -> Result<IngestReport> {
    inner.refuse_in_callback()?;
    inner.error_state.check()?;
    keyspace.check_exists()?;
    stop::wait_if_behind(inner, keyspace)?;
    let expected = pairs.size_hint().0 as u64;
    let mut distance = FIRST_DISTANCE.saturating_add(expected.saturating_mul(WRITES_PER_PAIR)).min(1 << 40);
    let making = Making { inner, numbers: Mutex::default(), retired: Mutex::default() };
    let mut sequence = reserve(inner, distance)?;
    let mut tables = write(&making, keyspace, sequence, pairs)?;
    while !tables.is_empty() && !install(inner, keyspace, &tables, sequence)? {
        distance = distance.saturating_mul(DISTANCE_GROWTH).min(1 << 48);
        sequence = reserve(inner, distance)?;
        let old = making.take();
        let again = rewrite(&making, keyspace, sequence, &tables);
        // What the new tables refer to stays.
        making.retire(old);
        tables = again?;
    }
    making.forget(&making.take());
    making.forget(&std::mem::take(&mut *making.retired.lock()));
    let bytes = tables.iter().map(|table| table.summary().file_bytes).sum();
    let entries = tables.iter().map(|table| table.summary().entries).sum();
    let report = IngestReport { entries, tables: tables.len() as u64, bytes };
    if entries > 0 {
        let (keyspace, tables) = (keyspace.name().to_string(), report.tables);
        inner.events.note(|| Event::Ingest(IngestCompleted { keyspace, entries, tables, bytes }));
        // The pairs are loaded, whatever becomes of the compactions that are due now: one that
        // fails is tried again, and reported, by the next write that fills a memtable, or the next
        // load.
        let _ = run::work_was_added(inner);
    }
    Ok(report)
}

/// A number that `distance` writes will not reach.
fn reserve(inner: &Inner, distance: u64) -> Result<Sequence> {
    let sequence = inner.last_sequence.load(Ordering::Acquire).saturating_add(distance);
    // Half of the numbers remain for single writes.
    if sequence > MAX_SEQUENCE / 2 {
        return Err(Error::invalid("the database has no sequence numbers left for this; put the pairs in batches"));
    }
    Ok(sequence)
}

fn with_output<T>(
    making: &Making<'_>,
    keyspace: &KeyspaceInner,
    work: impl FnOnce(Output<'_>) -> Result<T>,
) -> Result<T> {
    let inner = making.inner;
    let next_file = || making.next_file();
    let options = OutputOptions {
        env: &*inner.options.env,
        directory: inner.directory.clone(),
        table: table_options(&inner.options, true),
        order: keyspace.order.clone(),
        filter_policy: inner.options.filter_policy.clone(),
        keyspace: commit_version_edit::label(inner, keyspace.id),
        flushed: 0,
        target_file_bytes: inner.options.target_file_bytes,
        cache: Arc::clone(&inner.cache),
        read_mode: inner.options.read_mode,
        next_file: &next_file,
        large: BlobValues {
            store: &inner.blobs,
            threshold: inner.options.blob_threshold(),
            copy: Copy::From(&|_| false),
            // Until the tables are installed only `in_progress` lists the files of the values,
            // which are the load's own.
            one_by_one: false,
        },
    };
    work(Output::new(&options, RangeTombstones::default(), &OutputSplitter::default()))
}

fn write<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    making: &Making<'_>,
    keyspace: &KeyspaceInner,
    sequence: Sequence,
    pairs: impl Iterator<Item = (K, V)>,
) -> Result<Vec<Arc<Table>>> {
    // The default of the keyspace counts from the beginning of the load.
    let expiry_ms = keyspace.ttl().expiry_ms(Life::Default, making.inner.now_ms(keyspace));
    with_output(making, keyspace, |mut output| {
        let mut last: Option<Vec<u8>> = None;
        for (key, value) in pairs {
            let (key, value) = (&*keyspace.order.stored(key.as_ref()), value.as_ref());
            match &mut last {
                Some(last) if !keyspace.order.less(last, key) => {
                    return Err(Error::invalid(format!(
                        "keys to ingest must ascend, but {} does not come after {}; nothing was loaded",
                        escape_key(keyspace.order.key_of(key)),
                        escape_key(keyspace.order.key_of(last))
                    )));
                }
                Some(last) => {
                    last.clear();
                    last.extend_from_slice(key);
                }
                None => last = Some(key.to_vec()),
            }
            let entry = Entry { key, sequence, kind: Kind::Put, expiry_ms, value };
            making.in_directory(|| output.add(entry))?;
        }
        making.in_directory(|| output.finish())
    })
}

/// The same entries in other tables, with another number. Nothing else is in them: no range is
/// deleted by a load.
fn rewrite(
    making: &Making<'_>,
    keyspace: &KeyspaceInner,
    sequence: Sequence,
    tables: &[Arc<Table>],
) -> Result<Vec<Arc<Table>>> {
    with_output(making, keyspace, |mut output| {
        for table in tables {
            let mut cursor = table.cursor(false);
            cursor.seek_to_first()?;
            while cursor.valid() {
                making.in_directory(|| output.add(Entry { sequence, ..cursor.entry() }))?;
                cursor.next()?;
            }
        }
        making.in_directory(|| output.finish())
    })
}

/// Whether a memtable of the keyspace has a key between those of the tables, or a range tombstone
/// there. Exact if no write comes meanwhile.
fn overlaps_memory(keyspace: &KeyspaceInner, tables: &[Arc<Table>]) -> bool {
    let (Some(first), Some(last)) = (tables.first(), tables.last()) else { return false };
    let (smallest, largest) = (&first.summary().smallest_key, &last.summary().largest_key);
    let read_state = keyspace.read_state.load();
    read_state.memtables().any(|memtable| memtable.touches(smallest, largest))
}

/// Makes the tables part of the keyspace; false if writes have reached their sequence number.
fn install(inner: &Inner, keyspace: &KeyspaceInner, tables: &[Arc<Table>], sequence: Sequence) -> Result<bool> {
    let _jobs = commit_version_edit::lock_jobs(inner)?;
    // Most of the work before writers have to wait.
    if overlaps_memory(keyspace, tables) {
        rotate(inner, &mut inner.writer.lock(), keyspace.id, 0);
        flush::flush_all(inner)?;
    }
    inner.sync_log()?;
    let mut writer = inner.writer.lock();
    inner.error_state.check()?;
    // Under the lock no drop begins, and none that has begun is taken back.
    keyspace.check_exists()?;
    if writer.last_sequence >= sequence {
        return Ok(false);
    }
    if overlaps_memory(keyspace, tables) {
        flush::flush_locked(inner, &mut writer)?;
    }
    // The manifest will hold this write before any older one that is only in the log.
    inner.sync_log()?;
    let version = Arc::clone(&keyspace.read_state.load().version);
    let run = version.deepest_free_run(tables, None).unwrap_or_else(|| inner.next_file_number());
    let mut changes = vec![Change::LastSequence(sequence)];
    if inner.keeps_changes() {
        changes.push(Change::Loaded { sequence, keyspace: keyspace.id });
    }
    if !commit_version_edit::commit(inner, keyspace, changes, run, tables, &[])? {
        return Err(keyspace.was_dropped());
    }
    // Under the writer lock, so that a snapshot has either all of the pairs at or below its number,
    // or none: a transaction that read one of these keys before finds the entry above its snapshot.
    keyspace.tombstone_skip_cache.clear();
    writer.last_sequence = sequence;
    inner.last_sequence.store(sequence, Ordering::Release);
    let is_there = keyspace.read_state.replace_tables(&[], run, tables);
    drop(writer);
    inner.watchers.note_keyspace(keyspace.id);
    if !is_there {
        return Err(keyspace.was_dropped());
    }
    // The pairs are nowhere else.
    commit_version_edit::renew_manifest(inner, &[])?;
    Ok(true)
}
