//! From the rows of a part to the figures it is about, and to text.

use super::arguments::Part;
use crate::record::Record;
use crate::stats::median;
use crate::study::scoreboard::table::{aligned, figure};
use serde::Serialize;

/// One number that a part is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The part.
    pub part: Part,
    /// The engine.
    pub engine: String,
    /// The row it is of.
    pub row: String,
    /// What it is.
    pub name: &'static str,
    /// The number.
    pub value: f64,
}

/// The figures of a part.
pub fn of(part: Part, records: &[Record]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for engine in engines(records) {
        for row in rows(records, engine) {
            let of_row: Vec<&Record> = of_row(records, engine, row).collect();
            let mut add = |name: &'static str, value: Option<f64>| {
                let (engine, row) = (engine.to_string(), row.to_string());
                figures.extend(value.map(|value| Figure { part, engine, row, name, value }));
            };
            match part {
                Part::Grow => {
                    let costs = series(&of_row, |record| record.num, |record| record.micros_per_op_wall);
                    add("cost at the most entries over that at the fewest", last_over_first(&costs));
                }
                Part::Threads => {
                    let rates = series(&of_row, |record| u64::from(record.threads), |record| record.ops_per_sec);
                    let least = rates.iter().map(|(_, rate)| *rate).min_by(f64::total_cmp);
                    let first = rates.first().map(|(_, rate)| *rate);
                    add("least rate over that of the fewest threads", ratio(least, first));
                }
                Part::Open => {
                    add("median ms", median(&of_row.iter().map(|record| record.p50_us / 1e3).collect::<Vec<_>>()));
                    add("longest ms", of_row.iter().map(|record| record.max_us / 1e3).max_by(f64::total_cmp));
                }
                Part::Dataset => {
                    let worst = |record: &&Record| ratio(record.worst_second_ops, record.median_second_ops);
                    let worst: Vec<f64> = of_row.iter().filter_map(worst).collect();
                    add("worst second over the median one", median(&worst));
                    if row == "load" {
                        add("write amplification", write_amplification(records, engine));
                    }
                }
            }
        }
    }
    figures
}

/// Bytes that flushes and compactions wrote until everything had settled, over the bytes of the user; `None` if the engine does not say.
fn write_amplification(records: &[Record], engine: &str) -> Option<f64> {
    let of = |row| of_row(records, engine, row);
    let written =
        of("load").chain(of("settle")).map(|record| record.counters.flush_bytes + record.counters.compaction_bytes);
    let written: u64 = written.sum();
    let user: u64 = of("load").map(|record| record.bytes).sum();
    (written > 0 && user > 0).then(|| written as f64 / user as f64)
}

fn ratio(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).filter(|(_, b)| *b > 0.0).map(|(a, b)| a / b)
}

fn last_over_first(series: &[(u64, f64)]) -> Option<f64> {
    ratio(series.last().map(|(_, value)| *value), series.first().map(|(_, value)| *value))
}

/// The median of `value` for each `key`, ascending.
fn series(records: &[&Record], key: fn(&Record) -> u64, value: fn(&Record) -> f64) -> Vec<(u64, f64)> {
    let mut keys: Vec<u64> = records.iter().map(|record| key(record)).collect();
    keys.sort_unstable();
    keys.dedup();
    let of_key = |wanted: u64| {
        let values = records.iter().filter(|record| key(record) == wanted).map(|record| value(record));
        median(&values.collect::<Vec<f64>>()).map(|middle| (wanted, middle))
    };
    keys.into_iter().filter_map(of_key).collect()
}

fn engines(records: &[Record]) -> Vec<&str> {
    distinct(records.iter().map(|record| record.engine.as_str()))
}

fn rows<'a>(records: &'a [Record], engine: &str) -> Vec<&'a str> {
    distinct(records.iter().filter(|record| record.engine == engine).map(|record| record.row.as_str()))
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn of_row<'a>(records: &'a [Record], engine: &'a str, row: &'a str) -> impl Iterator<Item = &'a Record> {
    let counts = |record: &&Record| record.skipped.is_none() && record.ops > 0;
    records.iter().filter(move |record| record.engine == engine && record.row == row).filter(counts)
}

/// The rows and figures of a part as text.
pub fn text(part: Part, records: &[Record], figures: &[Figure]) -> String {
    let head: &[&str] = match part {
        Part::Grow | Part::Threads | Part::Dataset => &[
            "row",
            "engine",
            "entries",
            "threads",
            "us/op",
            "op/s",
            "p99 us",
            "max ms",
            "stalled s",
            "worst s/median",
            "disk MiB",
            "peak MiB",
            "RSS MiB",
        ],
        Part::Open => &["row", "engine", "entries", "median ms", "max ms", "RSS MiB"],
    };
    let mut cells = vec![head.iter().map(|cell| cell.to_string()).collect::<Vec<String>>()];
    for record in records {
        cells.push(match part {
            Part::Open => opening(record),
            _ => working(record),
        });
    }
    let mut text = format!("{}\n\n{}\n", title(part), aligned(&cells, false));
    for Figure { engine, row, name, value, .. } in figures {
        text.push_str(&format!("\n{engine}, {row}: {name}: {}", figure(*value)));
    }
    text.push('\n');
    text
}

fn title(part: Part) -> &'static str {
    match part {
        Part::Grow => "More entries",
        Part::Threads => "More threads, the same work",
        Part::Open => "Opening",
        Part::Dataset => "More data",
    }
}

fn mebibytes(bytes: u64) -> String {
    figure(bytes as f64 / 1_048_576.0)
}

fn working(record: &Record) -> Vec<String> {
    let worst = ratio(record.worst_second_ops, record.median_second_ops);
    vec![
        record.row.clone(),
        record.engine.clone(),
        record.num.to_string(),
        record.threads.to_string(),
        figure(record.micros_per_op_wall),
        format!("{:.0}", record.ops_per_sec),
        figure(record.p99_us),
        figure(record.max_us / 1e3),
        figure(record.counters.stall_micros as f64 / 1e6),
        worst.map_or_else(|| "-".into(), figure),
        mebibytes(record.settled_disk_bytes.unwrap_or(record.disk_bytes)),
        mebibytes(record.peak_disk_bytes),
        mebibytes(record.rss_peak_bytes),
    ]
}

fn opening(record: &Record) -> Vec<String> {
    let (median, longest) = (figure(record.p50_us / 1e3), figure(record.max_us / 1e3));
    let name = (record.row.clone(), record.engine.clone());
    vec![name.0, name.1, record.num.to_string(), median, longest, mebibytes(record.rss_peak_bytes)]
}
