//! The scoreboard as text and as CSV.

use super::summary::{Line, Means, SUBJECT};
use crate::output::csv;

/// Wall microseconds per operation of every engine, spread, and Esker's ratios.
pub fn text(lines: &[Line], means: &[Means]) -> String {
    let engines: Vec<&str> = means.iter().map(|mean| mean.engine.as_str()).collect();
    let mut header = vec!["row".to_string()];
    header.extend(engines.iter().map(|engine| engine.to_string()));
    header.extend(["vs best peer".to_string(), "vs rocksdb".to_string()]);
    let mut cells = vec![header];
    let mut rows: Vec<&str> = lines.iter().map(|line| line.row.as_str()).collect();
    rows.dedup();
    for row in rows {
        let mut line = vec![row.to_string()];
        for engine in &engines {
            line.push(find(lines, row, engine).map_or_else(|| "-".into(), cell));
        }
        let subject = find(lines, row, SUBJECT);
        line.push(subject.map_or_else(|| "-".into(), best_ratio));
        line.push(ratio(subject.and_then(|line| line.ratio_to_rocksdb)));
        cells.push(line);
    }
    let mut last = vec!["geometric mean".to_string()];
    last.extend(means.iter().map(|mean| figure(mean.micros_per_op)));
    let subject = means.iter().find(|mean| mean.engine == SUBJECT);
    last.push(ratio(subject.and_then(|mean| mean.ratio_to_best_peer)));
    last.push(ratio(subject.and_then(|mean| mean.ratio_to_rocksdb)));
    cells.push(last);
    let note = "Median wall microseconds per operation, with the spread (slowest - fastest) / median of the repetitions.\n\
                Ratios are Esker's: above 1, Esker is faster.\n\n";
    format!("{note}{}", aligned(&cells, true))
}

/// The line of a row and an engine.
pub fn find<'a>(lines: &'a [Line], row: &str, engine: &str) -> Option<&'a Line> {
    lines.iter().find(|line| line.row == row && line.engine == engine)
}

fn cell(line: &Line) -> String {
    if line.repetitions < 2 {
        return figure(line.micros_per_op);
    }
    let spread = (line.max - line.min) / line.micros_per_op.max(f64::MIN_POSITIVE) * 100.0;
    format!("{} ~{spread:.0}%", figure(line.micros_per_op))
}

fn best_ratio(line: &Line) -> String {
    match &line.best_peer {
        Some(peer) => format!("{} ({peer})", ratio(line.ratio_to_best_peer)),
        None => "-".into(),
    }
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.2}x"))
}

/// Three significant digits or so.
pub fn figure(micros: f64) -> String {
    match micros {
        large if large >= 100.0 => format!("{large:.0}"),
        middle if middle >= 10.0 => format!("{middle:.1}"),
        small if small >= 1.0 => format!("{small:.2}"),
        tiny => format!("{tiny:.3}"),
    }
}

/// Columns as wide as their widest cell; the first aligned left, the others right. The first line is ruled off, with `totals` the last one too.
pub fn aligned(cells: &[Vec<String>], totals: bool) -> String {
    let columns = cells.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| cells.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, row) in cells.iter().enumerate() {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            text.push_str(&if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") });
        }
        text.push('\n');
        if number == 0 || (totals && number + 2 == cells.len()) {
            text.push_str(&"-".repeat(widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1)));
            text.push('\n');
        }
    }
    text.trim_end().to_string()
}

/// The lines as CSV, with a header.
pub fn comma_separated(lines: &[Line]) -> String {
    let mut text = String::from(
        "row,engine,engine_version,threads,repetitions,ops,micros_per_op,min,max,interval_low,interval_high,\
         ratio_to_best_peer,best_peer,ratio_to_rocksdb,p99_us,p999_us,max_us,disk_bytes,peak_disk_bytes,settled_disk_bytes,rss_peak_bytes,rss_anonymous_peak_bytes,writer_ops_per_sec,message\n",
    );
    let optional = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.4}"));
    for line in lines {
        let fields = [
            line.row.clone(),
            line.engine.clone(),
            line.engine_version.clone(),
            line.threads.to_string(),
            line.repetitions.to_string(),
            line.ops.to_string(),
            format!("{:.4}", line.micros_per_op),
            format!("{:.4}", line.min),
            format!("{:.4}", line.max),
            format!("{:.4}", line.interval_low),
            format!("{:.4}", line.interval_high),
            optional(line.ratio_to_best_peer),
            line.best_peer.clone().unwrap_or_default(),
            optional(line.ratio_to_rocksdb),
            line.p99_us.to_string(),
            line.p999_us.to_string(),
            line.max_us.to_string(),
            line.disk_bytes.to_string(),
            line.peak_disk_bytes.to_string(),
            line.settled_disk_bytes.map_or_else(String::new, |bytes| format!("{bytes:.0}")),
            line.rss_peak_bytes.to_string(),
            line.rss_anonymous_peak_bytes.to_string(),
            line.writer_ops_per_sec.map_or_else(String::new, |rate| format!("{rate:.0}")),
            line.message.clone(),
        ];
        text.push_str(&csv::join(fields.into_iter()));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::summary::{means, summarize};
    use super::*;
    use crate::record::Record;

    #[test]
    fn the_table_shows_ratios() {
        let record = |engine: &str, row: &str, micros: f64| Record {
            engine: engine.into(),
            row: row.into(),
            threads: 1,
            micros_per_op_wall: micros,
            ops: 1,
            ..Record::default()
        };
        let records = [
            record("esker", "fillseq", 0.25),
            record("rocksdb", "fillseq", 1.5),
            record("esker", "fillseq", 0.27),
            record("esker", "readseq", 123.4),
        ];
        let lines = summarize(&records);
        let table = text(&lines, &means(&lines));
        assert!(table.contains("0.260 ~8%"), "{table}");
        assert!(table.contains("5.77x (rocksdb)"), "{table}");
        assert!(table.lines().any(|line| line.starts_with("readseq") && line.contains("123")), "{table}");
        assert_eq!(comma_separated(&lines).lines().count(), 4);
    }
}
