//! The table of metrics: name, kind, unit and description of every figure, and where its value
//! comes from. Properties, recorders, the Prometheus text and `doc/metrics.md` are all made from
//! it.
//!
//! Names do not change once they are here.

use crate::base::latency::LatencyHistogram;
use crate::db::maintenance::stats::{KeyspaceStats, Stats};
use crate::db::state::error_state::Health;
use crate::db::state::latencies::Timed;
use crate::db::state::memory::MemoryStats;

/// What a metric is.
///
/// ```
/// use esker::{METRICS, MetricKind};
/// assert!(METRICS.iter().any(|metric| metric.kind == MetricKind::Histogram));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricKind {
    /// It only grows, from 0 at the open.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How calls are distributed over the time that they take.
    Histogram,
}

/// What one is of a metric.
///
/// ```
/// assert_eq!(esker::metric("stall.micros").map(|metric| metric.unit), Some(esker::MetricUnit::Microseconds));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricUnit {
    /// A thing, which the name says.
    One,
    /// A byte.
    Bytes,
    /// A microsecond.
    Microseconds,
    /// A second; of histograms, whose values are durations.
    Seconds,
}

/// A row of the table of metrics.
///
/// ```
/// for metric in esker::METRICS {
///     println!("{}: {}", metric.name, metric.description);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name, with dots between its parts. That of the property is `esker.` and this; of a
    /// keyspace, `esker.keyspace.NAME.` and what is behind `keyspace.` here.
    pub name: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// What one of it is.
    pub unit: MetricUnit,
    /// What it means, in a sentence.
    pub description: &'static str,
    /// Whether each keyspace has one.
    pub per_keyspace: bool,
}

impl Metric {
    /// Its name in the text format of Prometheus: `esker_`, parts joined with underscores, a time
    /// in seconds, and `_total` behind a counter.
    ///
    /// ```
    /// let name = |name| esker::metric(name).map(|metric| metric.prometheus_name());
    /// assert_eq!(name("stall.micros").as_deref(), Some("esker_stall_seconds_total"));
    /// assert_eq!(name("flush.count").as_deref(), Some("esker_flush_total"));
    /// assert_eq!(name("get.latency").as_deref(), Some("esker_get_latency_seconds"));
    /// ```
    pub fn prometheus_name(&self) -> String {
        let plain = self.name.replace('.', "_");
        let plain = match self.unit {
            MetricUnit::Microseconds => format!("{}_seconds", plain.strip_suffix("_micros").unwrap_or(&plain)),
            MetricUnit::Seconds => format!("{plain}_seconds"),
            MetricUnit::One | MetricUnit::Bytes => plain,
        };
        match self.kind {
            MetricKind::Counter => format!("esker_{}_total", plain.strip_suffix("_count").unwrap_or(&plain)),
            MetricKind::Gauge | MetricKind::Histogram => format!("esker_{plain}"),
        }
    }
}

/// What takes the values of all metrics at one moment ([`Db::record`](crate::Db::record)): an
/// exporter. A method that is not there leaves out what it would be given. `keyspace` is the name
/// of the keyspace of a metric that each has; none for the others.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::{Metric, Recorder};
/// /// Adds up what was written to the device.
/// struct Written(u64);
/// impl Recorder for Written {
///     fn counter(&mut self, metric: &'static Metric, _keyspace: Option<&str>, value: u64) {
///         if ["wal.bytes", "flush.bytes", "compaction.bytes", "blob.written_bytes"].contains(&metric.name) {
///             self.0 += value;
///         }
///     }
/// }
/// let mut written = Written(0);
/// db.record(&mut written);
/// # Ok::<(), esker::Error>(())
/// ```
pub trait Recorder {
    /// Takes the value of a counter. Without one of its own, a recorder leaves counters out.
    ///
    /// ```
    /// struct Nothing;
    /// impl esker::Recorder for Nothing {}
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// db.record(&mut Nothing);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn counter(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        let _ = (metric, keyspace, value);
    }

    /// Takes the value of a gauge.
    ///
    /// ```
    /// use esker::{Metric, Recorder};
    /// struct Runs;
    /// impl Recorder for Runs {
    ///     fn gauge(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
    ///         if let (Some(keyspace), "keyspace.runs") = (keyspace, metric.name) {
    ///             println!("{keyspace} has {value} runs");
    ///         }
    ///     }
    /// }
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// db.record(&mut Runs);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn gauge(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
        let _ = (metric, keyspace, value);
    }

    /// Takes the latencies of a kind of call. Only with
    /// [`Options::latency_histograms`](crate::Options::latency_histograms).
    ///
    /// ```
    /// use esker::{LatencyHistogram, Metric, Recorder};
    /// struct Medians;
    /// impl Recorder for Medians {
    ///     fn histogram(&mut self, metric: &'static Metric, latencies: &LatencyHistogram) {
    ///         println!("{}: {:?}", metric.name, latencies.quantile(0.5));
    ///     }
    /// }
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// # let db = esker::Db::open("data", options.latency_histograms(true))?;
    /// db.record(&mut Medians);
    /// # Ok::<(), esker::Error>(())
    /// ```
    fn histogram(&mut self, metric: &'static Metric, latencies: &LatencyHistogram) {
        let _ = (metric, latencies);
    }
}

/// Makes rows, and the function of their values. It takes what the values come from apart as a
/// whole, so that a new figure cannot be forgotten here.
macro_rules! rows {
    ($rows:ident, $values:ident($source:pat => $type:ty), $per_keyspace:literal;
     $($name:literal $kind:ident $unit:ident $value:expr, $description:literal;)*) => {
        const $rows: &[Metric] = &[$(Metric {
            name: $name,
            kind: MetricKind::$kind,
            unit: MetricUnit::$unit,
            description: $description,
            per_keyspace: $per_keyspace,
        }),*];

        /// The values, in the order of the rows.
        fn $values(source: &$type) -> [u64; $rows.len()] {
            let $source = source;
            [$($value),*]
        }
    };
}

rows! {
    OF_HEALTH, health_values(Health { writable, problem: _, stall_reason, failed_merges } => Health), false;
    "health.writable" Gauge One u64::from(*writable), "1 while writes are accepted, else 0.";
    "health.stalled" Gauge One u64::from(stall_reason.is_some()), "1 while writes are delayed or stopped, else 0.";
    "health.failed_merges" Counter One *failed_merges, "Reads that failed because a merge operator did.";
}

rows! {
    OF_DATABASE, database_values(Stats {
        wal_bytes, flush_bytes, compaction_bytes, compaction_read_bytes, tables_dropped, skipped_entries,
        expired_entries, flushes, compactions, memtable_bytes, table_bytes, table_files, cache_bytes, cache_hits,
        cache_misses, tables_searched, filter_and_index_bytes, delays, delay_micros, stall_micros, stalls,
        refused_writes, live_snapshots, last_sequence, wal_segments, kept_wal_bytes, memory: _, longest_merge_chain, blob_files,
        blob_bytes, live_blob_bytes, blob_written_bytes, keyspaces,
    } => Stats), false;
    "memtable.bytes" Gauge Bytes *memtable_bytes, "Memory of all memtables: those that are written to and those that wait.";
    "table.bytes" Gauge Bytes *table_bytes, "Bytes of tables on disk.";
    "table.files" Gauge One *table_files, "Tables on disk.";
    "blob.files" Gauge One *blob_files, "Blob files, which hold large values.";
    "blob.bytes" Gauge Bytes *blob_bytes, "Bytes of blob files on disk.";
    "blob.live_bytes" Gauge Bytes *live_blob_bytes, "Bytes in blob files that tables refer to.";
    "blob.written_bytes" Counter Bytes *blob_written_bytes, "Bytes of large values written, copies included.";
    "table.filter_and_index_bytes" Gauge Bytes *filter_and_index_bytes, "Bytes of memory in filters and indexes.";
    "cache.bytes" Gauge Bytes *cache_bytes, "Bytes of the blocks in the block cache.";
    "cache.hits" Counter One *cache_hits, "Reads of a block that found it in the cache.";
    "cache.misses" Counter One *cache_misses, "Reads of a block that did not.";
    "get.tables_searched" Counter One *tables_searched, "Tables that gets searched: those that range and filter did not rule out.";
    "wal.bytes" Counter Bytes *wal_bytes, "Bytes of log records appended.";
    "wal.segments" Gauge One *wal_segments, "Log segments that may still be needed.";
    "wal.kept_bytes" Gauge Bytes *kept_wal_bytes, "Bytes of log segments kept for readers of changes.";
    "flush.count" Counter One *flushes, "Flushes done.";
    "flush.bytes" Counter Bytes *flush_bytes, "Bytes of tables written by flushes.";
    "compaction.count" Counter One *compactions, "Compactions done.";
    "compaction.bytes" Counter Bytes *compaction_bytes, "Bytes of tables written by compactions.";
    "compaction.read_bytes" Counter Bytes *compaction_read_bytes, "Bytes of tables read by compactions.";
    "compaction.tables_dropped" Counter One *tables_dropped, "Tables dropped without being read.";
    "compaction.expired_entries" Counter One *expired_entries, "Entries whose bytes went because they had expired.";
    "scan.skipped_entries" Counter One *skipped_entries, "Dead entries that scans skipped.";
    "delay.count" Counter One *delays, "Times that a writer slept because its memtable was ahead of its target rate.";
    "delay.micros" Counter Microseconds *delay_micros, "Time of those sleeps.";
    "stall.count" Counter One *stalls, "Times that a writer stopped.";
    "stall.micros" Counter Microseconds *stall_micros, "Time that writers stopped.";
    "stall.refused_writes" Counter One *refused_writes, "Writes that failed instead of waiting.";
    "snapshot.count" Gauge One *live_snapshots, "Sequence numbers that live snapshots and iterators read at.";
    "sequence.last" Counter One *last_sequence, "The sequence number of the last write; it goes on from open to open.";
    "merge.longest_chain" Gauge One *longest_merge_chain, "The most merge operands of one key that a read combined, or a job kept apart.";
    "keyspace.count" Gauge One keyspaces.len() as u64, "Keyspaces.";
}

rows! {
    OF_MEMORY, memory_values(MemoryStats {
        budget_bytes, memtable_bytes, immutable_memtable_bytes, cache_bytes, cache_capacity_bytes, index_bytes,
        filter_bytes, pinned_bytes, unused_pool_bytes,
    } => MemoryStats), false;
    "memory.budget_bytes" Gauge Bytes *budget_bytes, "The memory budget; 0 if there is none.";
    "memory.memtable_bytes" Gauge Bytes *memtable_bytes, "Memory of memtables that are written to.";
    "memory.immutable_memtable_bytes" Gauge Bytes *immutable_memtable_bytes, "Memory of memtables that wait for their flush.";
    "memory.cache_bytes" Gauge Bytes *cache_bytes, "Memory of the block cache, with what is kept for the next blocks.";
    "memory.cache_capacity_bytes" Gauge Bytes *cache_capacity_bytes, "The most that the cache may hold at the moment.";
    "memory.index_bytes" Gauge Bytes *index_bytes, "Memory of the indexes of open tables.";
    "memory.filter_bytes" Gauge Bytes *filter_bytes, "Memory of the filters of open tables.";
    "memory.pinned_bytes" Gauge Bytes *pinned_bytes, "Memory that only readers still hold.";
    "memory.unused_pool_bytes" Gauge Bytes *unused_pool_bytes, "Memory of flushed memtables kept for the next ones.";
}

rows! {
    OF_KEYSPACE, keyspace_values(KeyspaceStats {
        name: _, merge_operator: _, comparator: _, comparator_faults, ttl: _, runs, entries, table_bytes,
        memtable_entries, longest_merge_chain,
    } => KeyspaceStats), true;
    "keyspace.runs" Gauge One runs.len() as u64, "Sorted runs of tables.";
    "keyspace.tables" Gauge One runs.iter().map(|run| run.tables).sum(), "Tables.";
    "keyspace.entries" Gauge One *entries, "Entries in tables: versions, not keys.";
    "keyspace.bytes" Gauge Bytes *table_bytes, "Bytes of tables.";
    "keyspace.memtable_entries" Gauge One *memtable_entries, "Entries in memory.";
    "keyspace.comparator_faults" Counter One *comparator_faults, "Times that the comparator was seen to break its laws, or panicked.";
    "keyspace.longest_merge_chain" Gauge One *longest_merge_chain, "As `merge.longest_chain`, in this keyspace.";
}

const fn latency(name: &'static str, description: &'static str) -> Metric {
    let (kind, unit) = (MetricKind::Histogram, MetricUnit::Seconds);
    Metric { name, kind, unit, description, per_keyspace: false }
}

/// In the order of [`Timed`].
const OF_LATENCIES: &[Metric; Timed::ALL.len()] = &[
    latency("get.latency", "Time of a `get` or `get_into`; of about every 64th."),
    latency("put.latency", "Time of a put, with its wait for room and for the sync; of about every 64th."),
    latency("delete.latency", "Time of a delete of a key; of about every 64th."),
    latency("merge.latency", "Time of a merge; of about every 64th."),
    latency("conditional.latency", "Time of a conditional or returning write; of about every 64th."),
    latency("commit.latency", "Time of the commit of a batch or transaction, range deletes too; of about every 64th."),
    latency("sync.latency", "Time that a write, or `sync`, waited until the log was on the device."),
    latency("flush.latency", "Time of the flush of a memtable."),
    latency("compaction.latency", "Time of a compaction that reads tables."),
];

const COUNT: usize = OF_HEALTH.len() + OF_DATABASE.len() + OF_MEMORY.len() + OF_LATENCIES.len() + OF_KEYSPACE.len();

const ALL: [Metric; COUNT] = {
    let parts: [&[Metric]; 5] = [OF_HEALTH, OF_DATABASE, OF_MEMORY, OF_LATENCIES, OF_KEYSPACE];
    let mut all = [OF_HEALTH[0]; COUNT];
    let (mut part, mut next) = (0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            all[next] = parts[part][at];
            (at, next) = (at + 1, next + 1);
        }
        part += 1;
    }
    all
};

/// Every metric, the ones of keyspaces last.
///
/// ```
/// assert!(esker::METRICS.iter().any(|metric| metric.name == "cache.hits"));
/// ```
pub static METRICS: &[Metric] = &ALL;

/// The metric of that name.
///
/// ```
/// assert!(esker::metric("cache.hits").is_some() && esker::metric("esker.cache.hits").is_none());
/// ```
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// Hands over every metric of these figures, in the order of [`METRICS`]. `latencies` gives those
/// that are measured.
pub fn record(
    stats: &Stats,
    health: &Health,
    latencies: impl Fn(Timed) -> Option<LatencyHistogram>,
    recorder: &mut dyn Recorder,
) {
    let give = |recorder: &mut dyn Recorder, metric: &'static Metric, keyspace: Option<&str>, value| match metric.kind {
        MetricKind::Gauge => recorder.gauge(metric, keyspace, value),
        _ => recorder.counter(metric, keyspace, value),
    };
    let mut metrics = METRICS.iter();
    let of_health = health_values(health);
    let (of_database, of_memory) = (database_values(stats), memory_values(&stats.memory));
    let values = of_health.iter().chain(&of_database).chain(&of_memory);
    // The values first: they end before the metrics do.
    for (value, metric) in values.zip(&mut metrics) {
        give(recorder, metric, None, *value);
    }
    for (timed, metric) in Timed::ALL.iter().zip(&mut metrics) {
        if let Some(latencies) = latencies(*timed) {
            recorder.histogram(metric, &latencies);
        }
    }
    let of_keyspaces: Vec<_> =
        stats.keyspaces.iter().map(|keyspace| (&keyspace.name, keyspace_values(keyspace))).collect();
    // All of one metric together, as the format of Prometheus demands.
    for (at, metric) in metrics.enumerate() {
        for (name, values) in &of_keyspaces {
            give(recorder, metric, Some(name), values[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_stands_for_two_metrics() {
        let names: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        let exported: BTreeSet<_> = METRICS.iter().map(Metric::prometheus_name).collect();
        assert_eq!((names.len(), exported.len()), (METRICS.len(), METRICS.len()));
        for metric in METRICS {
            assert!(metric.description.ends_with('.'), "{metric:?}");
            assert_eq!(metric.per_keyspace, metric.name.starts_with("keyspace.") && metric.name != "keyspace.count");
            let in_bytes = metric.name.ends_with("bytes");
            assert_eq!(metric.unit == MetricUnit::Bytes, in_bytes, "{metric:?}");
            assert_eq!(metric.unit == MetricUnit::Microseconds, metric.name.ends_with("micros"), "{metric:?}");
        }
    }

    #[test]
    fn each_value_goes_to_its_own_metric() {
        struct All(Vec<&'static str>);
        impl Recorder for All {
            fn counter(&mut self, metric: &'static Metric, _keyspace: Option<&str>, value: u64) {
                assert_eq!(metric.kind, MetricKind::Counter);
                assert_eq!(value, u64::from(metric.name == "cache.hits") * 7, "{}", metric.name);
                self.0.push(metric.name);
            }

            fn gauge(&mut self, metric: &'static Metric, keyspace: Option<&str>, value: u64) {
                assert_eq!(metric.kind, MetricKind::Gauge);
                assert_eq!(metric.per_keyspace, keyspace.is_some());
                let expected = match metric.name {
                    "keyspace.count" | "health.writable" => 1,
                    "memory.pinned_bytes" => 5,
                    "keyspace.entries" => 3,
                    _ => 0,
                };
                assert_eq!(value, expected, "{}", metric.name);
                self.0.push(metric.name);
            }

            fn histogram(&mut self, metric: &'static Metric, latencies: &LatencyHistogram) {
                assert_eq!((metric.kind, latencies.count()), (MetricKind::Histogram, 0));
                self.0.push(metric.name);
            }
        }
        let keyspace = KeyspaceStats { name: "k".into(), entries: 3, ..KeyspaceStats::default() };
        let memory = MemoryStats { pinned_bytes: 5, ..MemoryStats::default() };
        let stats = Stats { cache_hits: 7, memory, keyspaces: vec![keyspace], ..Stats::default() };
        let health = Health { writable: true, problem: None, stall_reason: None, failed_merges: 0 };
        let mut all = All(Vec::new());
        record(&stats, &health, |_| Some(LatencyHistogram::default()), &mut all);
        assert_eq!(all.0, METRICS.iter().map(|metric| metric.name).collect::<Vec<_>>());
        for (timed, metric) in Timed::ALL.iter().zip(OF_LATENCIES) {
            assert_eq!(metric.name, format!("{timed:?}.latency").to_lowercase());
        }
    }
}
