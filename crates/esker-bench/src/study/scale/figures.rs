//! From the rows of a part to the figures it is about, and to text.

use super::arguments::Part;
use crate::record::Record;
use crate::report::blocks::{Block, Column, Field, Line, Table};
use crate::report::measured::distinct;
use crate::report::render::text;
use crate::stats::median;
use crate::text::number::short;
use serde::Serialize;
use std::collections::BTreeSet;

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
                    add("median ms", median(of_row.iter().map(|record| record.latency.p50_us / 1e3)));
                    add("longest ms", of_row.iter().map(|record| record.latency.max_us / 1e3).max_by(f64::total_cmp));
                }
                Part::Dataset => {
                    let worst = |record: &&Record| ratio(record.worst_second_ops, record.median_second_ops);
                    add("worst second over the median one", median(of_row.iter().filter_map(worst)));
                    if row == "load" {
                        add("write amplification", write_amplification(records, engine));
                    }
                }
            }
        }
    }
    figures
}

/// Bytes that flushes and compactions wrote until everything had settled, over the bytes of the
/// user; `None` if the engine does not say.
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
    let keys: BTreeSet<u64> = records.iter().map(|record| key(record)).collect();
    let of_key = |wanted: u64| {
        let values = records.iter().filter(|record| key(record) == wanted).map(|record| value(record));
        median(values).map(|middle| (wanted, middle))
    };
    keys.into_iter().filter_map(of_key).collect()
}

fn engines(records: &[Record]) -> Vec<&str> {
    distinct(records.iter().map(|record| record.engine.as_str()))
}

fn rows<'a>(records: &'a [Record], engine: &str) -> Vec<&'a str> {
    distinct(records.iter().filter(|record| record.engine == engine).map(|record| record.row.as_str()))
}

fn of_row<'a>(records: &'a [Record], engine: &'a str, row: &'a str) -> impl Iterator<Item = &'a Record> {
    let counts = |record: &&Record| record.skipped.is_none() && record.ops > 0;
    records.iter().filter(move |record| record.engine == engine && record.row == row).filter(counts)
}

/// A column of a table.
type Shown = (&'static str, fn(&Record) -> String);

const NAMES: [Shown; 2] = [("engine", |record| record.engine.clone()), ("entries", |record| record.num.to_string())];

const WORKING: [Shown; 10] = [
    ("threads", |record| record.threads.to_string()),
    ("us/op", |record| short(record.micros_per_op_wall)),
    ("op/s", |record| format!("{:.0}", record.ops_per_sec)),
    ("p99 us", |record| short(record.latency.p99_us)),
    ("max ms", |record| short(record.latency.max_us / 1e3)),
    ("stalled s", |record| short(record.counters.stall_micros as f64 / 1e6)),
    ("worst s/median", |record| {
        ratio(record.worst_second_ops, record.median_second_ops).map_or_else(|| "-".into(), short)
    }),
    ("disk MiB", |record| mebibytes(record.settled_disk_bytes.unwrap_or(record.disk_bytes))),
    ("peak MiB", |record| mebibytes(record.peak_disk_bytes)),
    ("RSS MiB", |record| mebibytes(record.rss_peak_bytes)),
];

const OPENING: [Shown; 3] = [
    ("median ms", |record| short(record.latency.p50_us / 1e3)),
    ("max ms", |record| short(record.latency.max_us / 1e3)),
    ("RSS MiB", |record| mebibytes(record.rss_peak_bytes)),
];

fn mebibytes(bytes: u64) -> String {
    short(bytes as f64 / 1_048_576.0)
}

/// The rows and figures of a part as text.
pub fn text(part: Part, records: &[Record], figures: &[Figure]) -> String {
    let (title, shown) = match part {
        Part::Grow => ("More entries", &WORKING[..]),
        Part::Threads => ("More threads, the same work", &WORKING[..]),
        Part::Open => ("Opening", &OPENING[..]),
        Part::Dataset => ("More data", &WORKING[..]),
    };
    let shown = || NAMES.iter().chain(shown);
    let line = |record: &Record| Line::new(&record.row, shown().map(|(_, text)| Field::from(text(record))).collect());
    let columns: Vec<Column> = shown().map(|(name, _)| Column::number(*name)).collect();
    let table = Table::new(title, "row", columns, records.iter().map(line));
    let figure =
        |Figure { engine, row, name, value, .. }: &Figure| format!("{engine}, {row}: {name}: {}", short(*value));
    let figures: Vec<String> = figures.iter().map(figure).collect();
    format!("{}\n", text::blocks(&[Block::Table(table), Block::Text(figures.join("\n"))]))
}
