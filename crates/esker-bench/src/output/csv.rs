//! Rows as the fields of CSV lines: the figures, without settings and plots, which are in the JSON
//! lines.

use crate::report::render::csv::Columns;

/// What a line has of a record.
pub const COLUMNS: Columns = Columns(
    "engine engine_version benchmark row repetition threads num ops found bytes wall_s:6 sum_thread_s:6 \
     micros_per_op:4 micros_per_op_wall:4 ops_per_sec:1 mb_per_sec:2 cpu_user_s:6 cpu_sys_s:6 p50_us p90_us p99_us \
     p999_us p9999_us max_us rss_peak_bytes rss_anonymous_peak_bytes disk_bytes counters.comparisons \
     counters.wal_bytes counters.flush_bytes counters.compaction_bytes counters.stall_micros message skipped \
     started_unix_s",
);

#[cfg(test)]
mod tests {
    #[test]
    fn every_column_is_a_field() {
        assert!(super::COLUMNS.are_of(&crate::record::Record::default()));
    }
}
