//! Rows as CSV: the figures, without settings and plots, which are in the JSON lines.
//!
//! ```text
//! file  = header line, row lines
//! field = text without `,` `"` and line ends | `"` text with `"` doubled `"`
//! ```

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
    ("p50_us", |r| r.p50_us.to_string()),
    ("p90_us", |r| r.p90_us.to_string()),
    ("p99_us", |r| r.p99_us.to_string()),
    ("p999_us", |r| r.p999_us.to_string()),
    ("p9999_us", |r| r.p9999_us.to_string()),
    ("max_us", |r| r.max_us.to_string()),
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

/// The first line.
pub fn header() -> String {
    COLUMNS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",")
}

/// The line of one row.
pub fn row(record: &Record) -> String {
    join(COLUMNS.iter().map(|(_, value)| value(record)))
}

/// Joins fields, quoting where needed.
pub fn join(fields: impl Iterator<Item = String>) -> String {
    fields.map(|field| quote(&field)).collect::<Vec<_>>().join(",")
}

fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_columns_of_the_header() {
        let record = Record { engine: "esker".into(), message: "a, \"b\"".into(), found: Some(7), ..Record::default() };
        let line = row(&record);
        assert!(line.contains("\"a, \"\"b\"\"\""));
        assert_eq!(line.replace("\"a, \"\"b\"\"\"", "m").split(',').count(), header().split(',').count());
        assert!(line.starts_with("esker,"));
    }
}
