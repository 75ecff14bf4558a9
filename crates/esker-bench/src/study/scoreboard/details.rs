//! The scoreboard's further tables: latencies, writers beside readers, disk and memory.

use super::summary::{Line, Means};
use super::table::{aligned, figure, find};
use crate::pace::kept_up;

/// The tables, one after the other.
pub fn text(lines: &[Line], means: &[Means]) -> String {
    let engines: Vec<&str> = means.iter().map(|mean| mean.engine.as_str()).collect();
    let tables = [
        by_row("latency: p99 / p99.9 / max us", lines, &engines, latency),
        by_row("writer beside the readers, per second", lines, &engines, writer),
        by_row("memory: peak RSS / without mapped files, MiB", lines, &engines, memory),
        by_row("disk of loads: settled / peak MiB", lines, &engines, disk),
        totals(lines, &engines),
    ];
    tables.into_iter().flatten().collect::<Vec<String>>().join("\n\n")
}

fn with_head<'a>(head: &str, cells: impl Iterator<Item = String> + 'a) -> Vec<String> {
    let mut row = vec![head.to_string()];
    row.extend(cells);
    row
}

/// One line for each row that any engine has a cell in; no table without one.
fn by_row(title: &str, lines: &[Line], engines: &[&str], cell: fn(&Line) -> Option<String>) -> Option<String> {
    let mut rows: Vec<&str> = lines.iter().map(|line| line.row.as_str()).collect();
    rows.dedup();
    let mut cells = vec![with_head(title, engines.iter().map(|engine| engine.to_string()))];
    for row in rows {
        let found: Vec<Option<String>> = engines.iter().map(|engine| find(lines, row, engine).and_then(cell)).collect();
        if found.iter().any(Option::is_some) {
            cells.push(with_head(row, found.into_iter().map(|cell| cell.unwrap_or_else(|| "-".into()))));
        }
    }
    (cells.len() > 1).then(|| aligned(&cells, false))
}

fn latency(line: &Line) -> Option<String> {
    (line.max_us > 0.0).then(|| [line.p99_us, line.p999_us, line.max_us].map(figure).join(" / "))
}

/// The rate of the writer, marked where it fell behind.
fn writer(line: &Line) -> Option<String> {
    let rate = line.writer_ops_per_sec?;
    let behind = line.writer_wanted_per_sec.is_some_and(|wanted| !kept_up(rate, wanted));
    Some(format!("{rate:.0}{}", if behind { " (behind)" } else { "" }))
}

fn disk(line: &Line) -> Option<String> {
    let settled = mebibytes(line.settled_disk_bytes?);
    Some(format!("{settled} / {}", mebibytes(line.peak_disk_bytes as f64)))
}

fn memory(line: &Line) -> Option<String> {
    let peaks = [line.rss_peak_bytes, line.rss_anonymous_peak_bytes];
    (line.rss_peak_bytes > 0).then(|| peaks.map(|bytes| mebibytes(bytes as f64)).join(" / "))
}

fn mebibytes(bytes: f64) -> String {
    figure(bytes / 1_048_576.0)
}

/// The most that each engine took in any row.
fn totals(lines: &[Line], engines: &[&str]) -> Option<String> {
    let most = |of: fn(&Line) -> u64| {
        let of_engine = move |engine: &&str| {
            let bytes = lines.iter().filter(|line| line.engine == *engine).map(of).max().unwrap_or(0);
            mebibytes(bytes as f64)
        };
        engines.iter().map(of_engine)
    };
    let cells = [
        with_head("most of all rows, MiB", engines.iter().map(|engine| engine.to_string())),
        with_head("memory (peak RSS)", most(|line| line.rss_peak_bytes)),
        with_head("disk (peak)", most(|line| line.peak_disk_bytes)),
    ];
    let measured = lines.iter().any(|line| line.rss_peak_bytes > 0 || line.peak_disk_bytes > 0);
    measured.then(|| aligned(&cells, false))
}

#[cfg(test)]
mod tests {
    use super::super::summary::{means, summarize};
    use super::*;
    use crate::record::Record;

    #[test]
    fn every_table_has_its_rows() {
        let record = |engine: &str, row: &str| Record {
            engine: engine.into(),
            row: row.into(),
            threads: 1,
            micros_per_op_wall: 1.0,
            ops: 1,
            rss_peak_bytes: 5 << 20,
            rss_anonymous_peak_bytes: 4 << 20,
            peak_disk_bytes: 2 << 20,
            ..Record::default()
        };
        let load = Record { settled_disk_bytes: Some(1 << 20), ..record("esker", "fillseq") };
        let read = Record { p99_us: 3.0, p999_us: 20.0, max_us: 400.0, ..record("esker", "readseq") };
        let wanted = Some(100.0);
        let paced =
            Record { writer_ops_per_sec: Some(90.0), writer_wanted_per_sec: wanted, ..record("lmdb", "zipfian") };
        let lines = summarize(&[load, read, paced]);
        let text = text(&lines, &means(&lines));
        for part in ["3.00 / 20.0 / 400", "90 (behind)", "5.00 / 4.00", "1.00 / 2.00", "memory (peak RSS)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.matches("latency:").count(), 1);
        assert!(super::text(&[], &[]).is_empty());
    }
}
