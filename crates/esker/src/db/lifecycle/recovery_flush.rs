//! Writing what was replayed from the log into tables, before the database is opened.
//!
//! A log that was not closed may hold less than it shows: after a failed sync the system can still
//! hand out bytes that the device will never get, and another sync does not miss them. So nothing
//! is promised on top of such a log. What it holds is written to tables, and the manifest that
//! names all of them takes the log's place in one step.

use crate::base::key_order::KeyOrder;
use crate::base::memory::MemoryPool;
use crate::blob::BlobStore;
use crate::db::lifecycle::recovery::Recovering;
use crate::db::state::memory::new_memtable;
use crate::error::{Error, Result};
use crate::job::blob_values::{BlobValues, Copies, Copy};
use crate::job::flush::flush;
use crate::job::output::{OutputOptions, table_options};
use crate::job::version_gc::Rules;
use crate::memtable::Memtable;
use crate::options::Options;
use crate::table::{BlockCache, TableKeyspace};
use crate::version::edit::{Change, ManifestState};
use crate::version::file_name::CURRENT;
use crate::version::runs::Version;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How and where a keyspace is written, which the caller then names in it. Large values go by
/// `large`.
pub fn output<'a>(
    (directory, options): (&Path, &'a Options),
    cache: &Arc<BlockCache>,
    next_file: &'a (dyn Fn() -> u64 + Sync),
    large: BlobValues<'a>,
) -> OutputOptions<'a> {
    OutputOptions {
        env: &*options.env,
        directory: directory.to_path_buf(),
        table: table_options(options, true),
        order: KeyOrder::default(),
        filter_policy: options.filter_policy.clone(),
        keyspace: TableKeyspace::default(),
        flushed: 0,
        target_file_bytes: options.target_file_bytes,
        cache: Arc::clone(cache),
        read_mode: options.read_mode,
        next_file,
        large,
    }
}

/// Writes the memtables of the keyspace that `output` names, oldest first, and returns its new
/// version and what the manifest must say.
pub fn write(
    memtables: &[Arc<Memtable>],
    version: &Version,
    rules: Rules<'_>,
    output: &mut OutputOptions<'_>,
) -> Result<(Version, Vec<Change>)> {
    let mut version = version.clone();
    let mut changes = Vec::new();
    let keyspace = output.keyspace.id;
    for memtable in memtables {
        let rules = Rules { bottom: version.runs.is_empty(), ..rules };
        output.flushed = memtable.last_sequence();
        let tables = flush(memtable, rules, output, &mut || ())?.tables;
        let run = version.deepest_free_run(&tables, None).unwrap_or_else(output.next_file);
        for table in &tables {
            let summary = table.summary();
            let (number, bytes) = (summary.file_number, summary.file_bytes);
            changes.push(Change::AddTable { keyspace, run, number, bytes });
        }
        output.keyspace.flushed = memtable.last_sequence();
        changes.push(Change::Flushed { keyspace, sequence: memtable.last_sequence() });
        version = version.edited(&[], tables.into_iter().map(|table| (run, table)));
    }
    Ok((version, changes))
}

/// Writes every memtable to tables (`recovery_flush.rs` says why), and notes that in `state`, which
/// is in no manifest yet. Large values are copied, unless they are known to be on the device,
/// because the log was closed. After an error `state` and `recovering` are as before.
pub fn write_replayed(
    directory: &Path,
    options: &Options,
    state: &mut ManifestState,
    recovering: &mut BTreeMap<u64, Recovering>,
    (cache, memory): (&Arc<BlockCache>, &Arc<MemoryPool>),
    (blobs, is_closed): (&BlobStore, bool),
) -> Result<()> {
    let next = AtomicU64::new(state.next_file);
    let next_file = || next.fetch_add(1, Relaxed);
    let copies = Copies::default();
    let copy = if is_closed { Copy::From(&|_| false) } else { Copy::All(&copies) };
    let large = BlobValues { store: blobs, threshold: options.blob_threshold(), copy, one_by_one: true };
    let mut output = output((directory, options), cache, &next_file, large);
    let mut written = Vec::new();
    for (&id, recovered) in recovering.iter() {
        output.keyspace = recovered.record.label(id);
        output.order.clone_from(&recovered.order);
        output.table = table_options(options, recovered.version.runs.is_empty());
        let newest = Some(&recovered.memtable).filter(|memtable| !memtable.is_empty());
        let memtables: Vec<Arc<Memtable>> = recovered.immutable.iter().rev().chain(newest).cloned().collect();
        // No entry is dropped here because it has expired: the clock may have been wrong since the
        // machine started. Reads hide expired entries, and later compactions drop them. Nor is
        // anything merged into a large value: many keys may refer to one.
        let operator = recovered.operator.as_deref();
        let rules = Rules { expires: recovered.expires, operator, leaves_large: true, ..Rules::default() };
        let (version, changes) = write(&memtables, &recovered.version, rules, &mut output)?;
        written.push((id, version, changes));
    }
    // Only now that all is written: after a failure the caller may go on with the memtables.
    for (id, version, changes) in written {
        let Some(recovered) = recovering.get_mut(&id) else { continue };
        for change in &changes {
            state.apply(change).map_err(|what| Error::corruption(directory.join(CURRENT), 0, what))?;
        }
        recovered.version = Arc::new(version);
        recovered.immutable.clear();
        (recovered.memtable, recovered.writer) = new_memtable(&recovered.order, options, 0, 0, memory);
    }
    state.next_file = next.into_inner();
    Ok(())
}
