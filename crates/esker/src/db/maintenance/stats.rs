//! Statistics.

use crate::base::comparator::BYTEWISE;
use crate::base::expiry::Ttl;
use crate::db::background::blob_gc::live_bytes;
use crate::db::state::inner::Inner;
use crate::db::state::memory;
use crate::db::state::memory::MemoryStats;
use crate::version::runs::{Run, Version};
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

/// Statistics of an open database. All counts are since open.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// let stats = db.stats();
/// println!("{} flushes, {} bytes of tables", stats.flushes, stats.table_bytes);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes of log records appended.
    pub wal_bytes: u64,
    /// Bytes of tables written by flushes.
    pub flush_bytes: u64,
    /// Bytes of tables written by compactions.
    pub compaction_bytes: u64,
    /// Bytes of tables read by compactions.
    pub compaction_read_bytes: u64,
    /// Flushes done.
    pub flushes: u64,
    /// Compactions done.
    pub compactions: u64,
    /// Tables dropped without being read: expired, deleted, or beyond the size of a FIFO.
    pub tables_dropped: u64,
    /// Memory of all memtables: [`MemoryStats::memtable_bytes`] and
    /// [`MemoryStats::immutable_memtable_bytes`] together.
    pub memtable_bytes: u64,
    /// Bytes of tables on disk.
    pub table_bytes: u64,
    /// Tables on disk.
    pub table_files: u64,
    /// Blob files, which hold large values.
    pub blob_files: u64,
    /// Bytes of them on disk.
    pub blob_bytes: u64,
    /// Bytes in them that tables refer to. The rest is garbage, or referred to only by memory.
    pub live_blob_bytes: u64,
    /// Bytes of large values written to blob files, copies included.
    pub blob_written_bytes: u64,
    /// Bytes of the blocks in the block cache. [`MemoryStats::cache_bytes`] counts memory kept for
    /// the next ones too.
    pub cache_bytes: u64,
    /// Reads of a block that found it in the cache.
    pub cache_hits: u64,
    /// Reads of a block that did not.
    pub cache_misses: u64,
    /// Tables that gets searched: those whose range and filter did not rule the key out. Per get it
    /// is their read amplification.
    pub tables_searched: u64,
    /// Bytes of memory in the filters and indexes of all tables.
    pub filter_and_index_bytes: u64,
    /// Memory by part, and the budget for it.
    pub memory: MemoryStats,
    /// Times that a writer slept because its memtable was ahead of the rate of flushes and
    /// compactions.
    pub delays: u64,
    /// Microseconds of those sleeps, of at most 10,000 each.
    pub delay_micros: u64,
    /// Microseconds that writers stopped for background work: flushes, compactions, or the next
    /// segment of the log.
    pub stall_micros: u64,
    /// Times that a writer stopped.
    pub stalls: u64,
    /// Writes that failed with [`Error::WriteStalled`](crate::Error::WriteStalled) instead of
    /// waiting, or after waiting for as long as they were to.
    pub refused_writes: u64,
    /// Dead entries that scans skipped: deletes, expired entries, and what they hide.
    pub skipped_entries: u64,
    /// Entries whose bytes flushes and compactions gave back because they had expired.
    pub expired_entries: u64,
    /// Sequence numbers that live snapshots and iterators read at.
    pub live_snapshots: u64,
    /// The sequence number of the last write.
    pub last_sequence: u64,
    /// Log segments that may still be needed.
    pub wal_segments: u64,
    /// Bytes of log segments that are kept for readers of changes, beyond those that may still be
    /// needed.
    pub kept_wal_bytes: u64,
    /// The most merge operands of one key that a read had to combine, or that a flush or compaction
    /// kept apart. More than a few dozen: the operator declines partial merges or fails, many
    /// snapshots live, or an operator was missing.
    pub longest_merge_chain: u64,
    /// The keyspaces, by name.
    pub keyspaces: Vec<KeyspaceStats>,
}

/// Statistics of one keyspace.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let names = db.keyspace("names", Default::default())?;
/// names.put("ada", "1815")?;
/// let figures = &db.stats().keyspaces[0];
/// assert_eq!((figures.name.as_str(), figures.memtable_entries), ("names", 1));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceStats {
    /// Its name.
    pub name: String,
    /// The stored name of its merge operator.
    pub merge_operator: Option<String>,
    /// The stored name of its comparator: the order of its keys.
    pub comparator: String,
    /// How often that comparator was seen to break its laws, or panicked: see
    /// [`crate::Comparator`]. Together for all keyspaces with the same one.
    pub comparator_faults: u64,
    /// Whether its entries expire.
    pub ttl: Ttl,
    /// Its runs of tables, newest first.
    pub runs: Vec<RunStats>,
    /// Entries in tables: versions, not keys.
    pub entries: u64,
    /// Bytes of its tables.
    pub table_bytes: u64,
    /// Entries in memory.
    pub memtable_entries: u64,
    /// As [`Stats::longest_merge_chain`], in this keyspace.
    pub longest_merge_chain: u64,
}

/// Statistics of one sorted run.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let names = db.keyspace("names", Default::default())?;
/// names.put("ada", "1815")?;
/// db.flush()?;
/// for run in &db.stats().keyspaces[0].runs {
///     println!("{} tables, {} bytes", run.tables, run.bytes);
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunStats {
    /// Its tables.
    pub tables: u64,
    /// Entries in them.
    pub entries: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// The statistics of this moment.
pub fn collect(inner: &Inner) -> Stats {
    let counters = &inner.counters;
    let memory = memory::collect(inner);
    let mut stats = Stats {
        wal_bytes: inner.log.as_ref().map_or(0, |log| log.appended_bytes()),
        flush_bytes: counters.flush_bytes.load(Relaxed),
        compaction_bytes: counters.compaction_bytes.load(Relaxed),
        compaction_read_bytes: counters.compaction_read_bytes.load(Relaxed),
        flushes: counters.flushes.load(Relaxed),
        compactions: counters.compactions.load(Relaxed),
        tables_dropped: counters.tables_dropped.load(Relaxed),
        cache_bytes: inner.cache.usage_bytes() as u64,
        cache_hits: inner.cache.hits(),
        cache_misses: inner.cache.misses(),
        blob_written_bytes: inner.blobs.written_bytes(),
        memtable_bytes: memory.memtable_bytes + memory.immutable_memtable_bytes,
        memory,
        delays: counters.delays.count(),
        delay_micros: counters.delays.micros(),
        stall_micros: counters.stops.micros() + inner.log.as_ref().map_or(0, |log| log.stalls.micros()),
        stalls: counters.stops.count() + inner.log.as_ref().map_or(0, |log| log.stalls.count()),
        refused_writes: counters.refused_writes.load(Relaxed),
        skipped_entries: counters.skipped_entries.load(Relaxed),
        expired_entries: counters.expired_entries.load(Relaxed),
        live_snapshots: inner.snapshots.all().len() as u64,
        last_sequence: inner.last_sequence.load(Relaxed),
        wal_segments: inner.log_segments(),
        kept_wal_bytes: inner.log.as_ref().map_or(0, |log| log.archived_bytes()),
        ..Stats::default()
    };
    if !inner.blobs.is_empty() {
        let lengths = inner.blobs.lengths();
        (stats.blob_files, stats.blob_bytes) = (lengths.len() as u64, lengths.values().sum());
        stats.live_blob_bytes = live_bytes(inner).values().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    }
    let (keyspaces, searched_before) = inner.keyspaces_and_searched_before();
    stats.tables_searched = searched_before;
    for keyspace in keyspaces {
        let read_state = keyspace.read_state.load();
        let memtables = || read_state.memtables();
        let runs = runs(&read_state.version);
        stats.table_files += runs.iter().map(|run| run.tables).sum::<u64>();
        stats.filter_and_index_bytes +=
            read_state.version.tables().map(|(_, table)| table.memory_bytes() as u64).sum::<u64>();
        let table_bytes = runs.iter().map(|run| run.bytes).sum();
        stats.table_bytes += table_bytes;
        let longest_merge_chain = keyspace.longest_chain.get();
        stats.longest_merge_chain = stats.longest_merge_chain.max(longest_merge_chain);
        stats.tables_searched += keyspace.read_stats.tables();
        stats.keyspaces.push(KeyspaceStats {
            name: keyspace.name().to_string(),
            merge_operator: keyspace.operator_name().as_deref().map(str::to_owned),
            comparator: keyspace.order.name().to_owned(),
            comparator_faults: keyspace.order.faults(),
            ttl: keyspace.ttl(),
            entries: runs.iter().map(|run| run.entries).sum(),
            runs,
            table_bytes,
            memtable_entries: memtables().map(|memtable| memtable.live() as u64).sum(),
            longest_merge_chain,
        });
    }
    stats
}

/// The runs of a keyspace.
pub fn runs(version: &Version) -> Vec<RunStats> {
    let stats = |run: &Run| RunStats { tables: run.tables.len() as u64, entries: run.entries(), bytes: run.bytes() };
    version.runs.iter().map(|run| stats(run)).collect()
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        writeln!(f, "log: {:.1} MiB appended, {} segments", mib(self.wal_bytes), self.wal_segments)?;
        writeln!(f, "flushes: {}, {:.1} MiB written", self.flushes, mib(self.flush_bytes))?;
        writeln!(
            f,
            "compactions: {}, {:.1} MiB read, {:.1} MiB written; {} tables dropped",
            self.compactions,
            mib(self.compaction_read_bytes),
            mib(self.compaction_bytes),
            self.tables_dropped
        )?;
        writeln!(f, "memory: {}", self.memory)?;
        writeln!(f, "block cache: {} hits, {} misses", self.cache_hits, self.cache_misses)?;
        if self.blob_files > 0 {
            let (all, live) = (mib(self.blob_bytes), mib(self.live_blob_bytes));
            writeln!(
                f,
                "large values: {} blob files, {all:.1} MiB, {live:.1} MiB of it in use by tables",
                self.blob_files
            )?;
        }
        writeln!(f, "delays: {}, {:.3} s", self.delays, self.delay_micros as f64 / 1e6)?;
        writeln!(f, "stalls: {}, {:.3} s", self.stalls, self.stall_micros as f64 / 1e6)?;
        writeln!(f, "writes refused instead of stalled: {}", self.refused_writes)?;
        writeln!(
            f,
            "scans passed {} dead entries; {} expired entries were removed",
            self.skipped_entries, self.expired_entries
        )?;
        writeln!(f, "live snapshots: {}, last sequence number: {}", self.live_snapshots, self.last_sequence)?;
        writeln!(f, "longest chain of merge operands: {}", self.longest_merge_chain)?;
        for keyspace in &self.keyspaces {
            let operator = keyspace.merge_operator.as_deref().unwrap_or("none");
            let order = match keyspace.comparator.as_str() {
                BYTEWISE => String::new(),
                name => format!(", comparator {name}"),
            };
            writeln!(
                f,
                "keyspace {:?} (merge operator {operator}{order}): {} entries in tables, {} in memory, {:.1} MiB",
                keyspace.name,
                keyspace.entries,
                keyspace.memtable_entries,
                mib(keyspace.table_bytes)
            )?;
            for (at, run) in keyspace.runs.iter().enumerate() {
                writeln!(f, "  run {at}: {} tables, {} entries, {:.1} MiB", run.tables, run.entries, mib(run.bytes))?;
            }
        }
        Ok(())
    }
}
