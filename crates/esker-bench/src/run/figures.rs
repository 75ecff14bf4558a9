//! From counts and times to the figures of a record.

use crate::engine::Counters;
use crate::process::Consumption;
use crate::record::Record;
use crate::threads::CrewResult;
use crate::total::Total;
use std::time::Duration;

/// The result of what is no work of client threads.
pub(super) fn single_result(ops: u64, seconds: f64) -> CrewResult {
    let total = Total { ops, wall_s: seconds, sum_thread_s: seconds, ..Total::default() };
    CrewResult { total, ..CrewResult::default() }
}

/// What an opening took.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Opened {
    pub(super) time: Duration,
    pub(super) consumed: Consumption,
}

/// What was counted between two looks.
pub(super) fn difference(after: Counters, before: Counters) -> Counters {
    let counted = |after: Option<u64>, before: Option<u64>| after.map(|a| a.saturating_sub(before.unwrap_or(0)));
    Counters {
        comparisons: counted(after.comparisons, before.comparisons),
        flushes: counted(after.flushes, before.flushes),
        compactions: counted(after.compactions, before.compactions),
        files_probed: counted(after.files_probed, before.files_probed),
        wal_bytes: after.wal_bytes.saturating_sub(before.wal_bytes),
        flush_bytes: after.flush_bytes.saturating_sub(before.flush_bytes),
        compaction_bytes: after.compaction_bytes.saturating_sub(before.compaction_bytes),
        read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
        cache_hits: after.cache_hits.saturating_sub(before.cache_hits),
        cache_misses: after.cache_misses.saturating_sub(before.cache_misses),
        stall_micros: after.stall_micros.saturating_sub(before.stall_micros),
    }
}

/// Derives a record's figures from the threads' counts and times.
pub fn fill_in(record: &mut Record, total: &Total) {
    // A benchmark without operations (a scan of an empty database) shows its duration as that of
    // one, as db_bench does.
    let ops = total.ops.max(1) as f64;
    let wall = total.wall_s.max(1e-9);
    record.ops = total.ops;
    record.bytes = total.bytes;
    record.wall_s = total.wall_s;
    record.sum_thread_s = total.sum_thread_s;
    record.micros_per_op = total.sum_thread_s * 1e6 / ops;
    record.micros_per_op_wall = total.wall_s * 1e6 / ops;
    record.ops_per_sec = total.ops as f64 / wall;
    record.mb_per_sec = total.bytes as f64 / 1_048_576.0 / wall;
    record.latency = total.latency();
    record.service = total.service();
    record.histogram = total.buckets();
    record.series = total.series.clone();
    record.series_interval_s = total.series_interval_s;
    record.worst_second_ops = total.seconds.map(|(worst, _)| worst);
    record.median_second_ops = total.seconds.map(|(_, median)| median);
}
