//! Rows as db_bench prints them, so that whatever parses its output parses this.
//!
//! ```text
//! row = name padded to 12, " : ", micros/op in %11.3f, " micros/op", rate, ";", [" ", MB/s in %6.1f, " MB/s"], [" ", message]
//! rate = "", or in the form of RocksDB's of 2013, whose micros/op are of wall time: " ", ops/sec, " ops/sec"
//! ```

use crate::flags::config::{Config, RowForm};
use crate::record::{Percentiles, Record};
use esker_engines::Counters;

const MEBIBYTE: f64 = 1_048_576.0;

/// The lines above the first row of an engine.
pub fn header(config: &Config) -> String {
    let (key, value) = (config.key_bytes(), config.value_size);
    let compressed = value as f64 * config.compression_ratio;
    let raw = (key + value) as f64 * config.num as f64 / MEBIBYTE;
    let stored = (key as f64 + compressed) * config.num as f64 / MEBIBYTE;
    let mut text = format!(
        "Keys:       {key} bytes each\n\
         Values:     {value} bytes each ({} bytes after compression)\n\
         Entries:    {}\n\
         RawSize:    {raw:.1} MB (estimated)\n\
         FileSize:   {stored:.1} MB (estimated)\n",
        (compressed + 0.5) as u64,
        config.num,
    );
    if cfg!(debug_assertions) {
        text.push_str("WARNING: Assertions are enabled; benchmarks unnecessarily slow\n");
    }
    text.push_str(&"-".repeat(48));
    text
}

/// The line of one row.
pub fn row(record: &Record, form: RowForm) -> String {
    if let Some(reason) = &record.skipped {
        return format!("{:<12} : skipped ({reason})", record.benchmark);
    }
    let name = &record.benchmark;
    let mut line = match form {
        RowForm::LevelDb => format!("{name:<12} : {:11.3} micros/op;", record.micros_per_op),
        RowForm::RocksDb => {
            format!(
                "{name:<12} : {:11.3} micros/op {:.0} ops/sec;",
                record.micros_per_op_wall,
                record.ops_per_sec.floor()
            )
        }
    };
    if record.bytes > 0 {
        line.push_str(&format!(" {:6.1} MB/s", record.mb_per_sec));
    }
    if !record.message.is_empty() {
        line.push_str(&format!(" {}", record.message));
    }
    if record.threads > 1 && form == RowForm::LevelDb {
        let (threads, ops) = (record.threads, record.ops);
        line.push_str(&format!(" ({threads} threads, {ops} ops, {:.0} ops/sec)", record.ops_per_sec));
    }
    line
}

/// The lines below a row that `--histogram`, `--comparisons` and `--statistics` ask for.
pub fn details(record: &Record, config: &Config) -> String {
    let mut lines = Vec::new();
    if record.skipped.is_some() {
        return String::new();
    }
    if config.comparisons {
        lines.push(format!("Comparisons: {}", shown(record.counters.comparisons)));
    }
    if config.print_histogram && !record.histogram.is_empty() {
        lines.push(histogram(record));
    }
    if config.statistics {
        lines.push(counters(&record.counters));
    }
    lines.join("\n")
}

fn histogram(record: &Record) -> String {
    let count: u64 = record.histogram.iter().map(|(_, operations)| operations).sum();
    let Percentiles { p50_us, p90_us, p99_us, p999_us, p9999_us, max_us } = record.latency;
    let mut text = format!(
        "Microseconds per op:\nCount: {count}  Median: {p50_us:.4}  Max: {max_us:.4}\n\
         Percentiles: P50: {p50_us:.3} P90: {p90_us:.3} P99: {p99_us:.3} P99.9: {p999_us:.3} P99.99: {p9999_us:.3}"
    );
    let mut cumulated = 0;
    for (bound, operations) in &record.histogram {
        cumulated += operations;
        let share = *operations as f64 * 100.0 / count.max(1) as f64;
        let marks = "#".repeat((share / 5.0).round() as usize);
        let total = cumulated as f64 * 100.0 / count.max(1) as f64;
        text.push_str(&format!("\n[..{bound:>14.3} ) {operations:>9} {share:7.3}% {total:7.3}% {marks}"));
    }
    text
}

fn shown(count: Option<u64>) -> String {
    count.map_or("not counted".into(), |count| count.to_string())
}

fn counters(counters: &Counters) -> String {
    let counted = [
        ("comparisons", counters.comparisons),
        ("flushes", counters.flushes),
        ("compactions", counters.compactions),
        ("files_probed", counters.files_probed),
    ];
    let values = [
        ("wal_bytes", counters.wal_bytes),
        ("flush_bytes", counters.flush_bytes),
        ("compaction_bytes", counters.compaction_bytes),
        ("read_bytes", counters.read_bytes),
        ("cache_hits", counters.cache_hits),
        ("cache_misses", counters.cache_misses),
        ("stall_micros", counters.stall_micros),
    ];
    let counted = counted.iter().map(|(name, value)| format!("  {name} : {}", shown(*value)));
    let lines = values.iter().map(|(name, value)| format!("  {name} : {value}"));
    std::iter::once("Counters:".to_string()).chain(counted).chain(lines).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Given;

    #[test]
    fn lines_have_the_form_of_db_bench() {
        let mut record = Record { benchmark: "fillseq".into(), micros_per_op: 1.2345, threads: 1, ..Record::default() };
        assert_eq!(row(&record, RowForm::LevelDb), "fillseq      :       1.234 micros/op;");
        record.bytes = 1;
        record.mb_per_sec = 89.6;
        assert_eq!(row(&record, RowForm::LevelDb), "fillseq      :       1.234 micros/op;   89.6 MB/s");
        (record.micros_per_op_wall, record.ops_per_sec, record.threads) = (0.3127, 3_197_953.9, 10);
        assert_eq!(row(&record, RowForm::RocksDb), "fillseq      :       0.313 micros/op 3197953 ops/sec;   89.6 MB/s");
        record.threads = 1;
        record.bytes = 0;
        record.benchmark = "readwhilewriting".into();
        record.message = "(5 of 10 found)".into();
        assert_eq!(row(&record, RowForm::LevelDb), "readwhilewriting :       1.234 micros/op; (5 of 10 found)");
        record.skipped = Some("engine has no X".into());
        assert_eq!(row(&record, RowForm::LevelDb), "readwhilewriting : skipped (engine has no X)");
    }

    #[test]
    fn the_header_is_that_of_db_bench() {
        let config = Config::new(&Given::parse(&[]).unwrap()).unwrap();
        let text = header(&config);
        assert!(text.starts_with("Keys:       16 bytes each\nValues:     100 bytes each (50 bytes after compression)\nEntries:    1000000\nRawSize:    110.6 MB (estimated)\nFileSize:   62.9 MB (estimated)\n"));
        assert!(text.ends_with(&"-".repeat(48)));
    }

    #[test]
    fn details_follow_the_flags() {
        let config = Config::new(&Given::parse(&["--histogram=1".into(), "--comparisons".into()]).unwrap()).unwrap();
        let record = Record { histogram: vec![(1.0, 3), (2.0, 1)], ..Record::default() };
        let text = details(&record, &config);
        assert!(text.contains("Comparisons: not counted") && text.contains("Count: 4") && text.contains("75.000%"));
    }
}
