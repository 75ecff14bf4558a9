//! Rows as the fields of CSV lines: the figures, without settings and plots, which are in the JSON
//! lines.

use crate::record::Record;

type Column = (&'static str, fn(&Record) -> String);

const COLUMNS: &[Column] = &[
    ("engine", |r| r.engine.clone()),
    ("engine_version", |r| r.engine_version.clone()),
    ("benchmark", |r| r.benchmark.clone()),
    ("row", |r| r.row.clone()),
    ("repetition", |r| r.repetition.to_string()),
    ("threads", |r| r.threads.to_string()),
    ("num", |r| r.num.to_string()),
    ("ops", |r| r.ops.to_string()),
    ("found", |r| r.found.map_or_else(String::new, |found| found.to_string())),
    ("bytes", |r| r.bytes.to_string()),
    ("wall_s", |r| format!("{:.6}", r.wall_s)),
    ("sum_thread_s", |r| format!("{:.6}", r.sum_thread_s)),
    ("micros_per_op", |r| format!("{:.4}", r.micros_per_op)),
    ("micros_per_op_wall", |r| format!("{:.4}", r.micros_per_op_wall)),
    ("ops_per_sec", |r| format!("{:.1}", r.ops_per_sec)),
    ("mb_per_sec", |r| format!("{:.2}", r.mb_per_sec)),
    ("cpu_user_s", |r| format!("{:.6}", r.cpu_user_s)),
    ("cpu_sys_s", |r| format!("{:.6}", r.cpu_sys_s)),
    ("p50_us", |r| r.latency.p50_us.to_string()),
    ("p90_us", |r| r.latency.p90_us.to_string()),
    ("p99_us", |r| r.latency.p99_us.to_string()),
    ("p999_us", |r| r.latency.p999_us.to_string()),
    ("p9999_us", |r| r.latency.p9999_us.to_string()),
    ("max_us", |r| r.latency.max_us.to_string()),
    ("rss_peak_bytes", |r| r.rss_peak_bytes.to_string()),
    ("rss_anonymous_peak_bytes", |r| r.rss_anonymous_peak_bytes.to_string()),
    ("disk_bytes", |r| r.disk_bytes.to_string()),
    ("comparisons", |r| r.counters.comparisons.map_or_else(String::new, |count| count.to_string())),
    ("wal_bytes", |r| r.counters.wal_bytes.to_string()),
    ("flush_bytes", |r| r.counters.flush_bytes.to_string()),
    ("compaction_bytes", |r| r.counters.compaction_bytes.to_string()),
    ("stall_micros", |r| r.counters.stall_micros.to_string()),
    ("message", |r| r.message.clone()),
    ("skipped", |r| r.skipped.clone().unwrap_or_default()),
    ("started_unix_s", |r| r.started_unix_s.to_string()),
];

/// The fields of the first line.
pub fn header() -> impl Iterator<Item = String> {
    COLUMNS.iter().map(|(name, _)| name.to_string())
}

/// The fields of one row.
pub fn row(record: &Record) -> impl Iterator<Item = String> + '_ {
    COLUMNS.iter().map(|(_, value)| value(record))
}
