//! The scoreboard's arithmetic: from records to one line per row and engine.

use crate::record::Record;
use crate::report::engine_style::OURS;
use crate::report::groups::{Group, Groups, Peer, REFERENCE_PEER};
use crate::report::measured::Measured;
use crate::stats;
use crate::sweep::scoreboard as rows;
use serde::{Deserialize, Serialize};

/// One row on one engine over all repetitions; a JSON line of `--json`.
/// Fields that came later are 0 or absent in older files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// `row`; other kinds of lines are other structs.
    pub kind: String,
    /// The row's name.
    pub row: String,
    /// The engine.
    pub engine: String,
    /// Its version.
    pub engine_version: String,
    /// Client threads.
    pub threads: u32,
    /// Median over the repetitions of wall microseconds per operation.
    pub micros_per_op: f64,
    /// The fastest repetition.
    pub min: f64,
    /// The slowest repetition.
    pub max: f64,
    /// Lower end of the 95 % bootstrap interval of the median.
    pub interval_low: f64,
    /// Its upper end.
    pub interval_high: f64,
    /// The best peer's median divided by this engine's: above 1, this engine is faster than every
    /// peer. A peer is any engine but Esker whose writes are as durable as Esker's; none for an
    /// engine whose writes are not.
    pub ratio_to_best_peer: Option<f64>,
    /// The fastest peer.
    pub best_peer: Option<String>,
    /// RocksDB's median divided by this engine's.
    pub ratio_to_rocksdb: Option<f64>,
    /// Repetitions.
    pub repetitions: usize,
    /// Operations of the last repetition.
    pub ops: u64,
    /// Median over the repetitions of the 99th percentile of latency, in microseconds.
    pub p99_us: f64,
    /// Of the 99.9th percentile.
    #[serde(default)]
    pub p999_us: f64,
    /// The longest operation of all repetitions.
    #[serde(default)]
    pub max_us: f64,
    /// Bytes on the device after the last repetition.
    pub disk_bytes: u64,
    /// The most bytes there in any repetition.
    #[serde(default)]
    pub peak_disk_bytes: u64,
    /// Bytes there after the load once background work was done, in the median repetition.
    #[serde(default)]
    pub settled_disk_bytes: Option<f64>,
    /// The most memory resident in any repetition.
    #[serde(default)]
    pub rss_peak_bytes: u64,
    /// The most of that which no file was mapped to, as far as was seen.
    #[serde(default)]
    pub rss_anonymous_peak_bytes: u64,
    /// Median rate of the thread that wrote beside the readers.
    #[serde(default)]
    pub writer_ops_per_sec: Option<f64>,
    /// The rate that was requested.
    #[serde(default)]
    pub writer_wanted_per_sec: Option<f64>,
    /// Durability of the writes, where the row writes.
    pub durability: Option<esker_engines::Durability>,
    /// The message of the last repetition.
    pub message: String,
    /// The load that ended early, if one did: the row was measured on fewer entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_load: Option<String>,
}

/// The rows of some records, as far as they did anything.
pub fn groups(records: &[Record]) -> Groups<'_> {
    Groups::of(records.iter().filter(|record| record.skipped.is_none() && record.ops > 0))
}

/// What tables call a row.
pub fn label(group: &Group) -> String {
    rows::label(group.row, group.threads)
}

/// Sums the records up, rows in the order of their first record, engines likewise within each.
pub fn summarize(groups: &Groups) -> Vec<Line> {
    let lines = groups.groups.iter().flat_map(|group| group.cells.iter().filter_map(|cell| line(group, cell)));
    lines.collect()
}

fn line(group: &Group, cell: &Measured) -> Option<Line> {
    let records = &cell.ran;
    let micros: Vec<f64> = records.iter().map(|record| record.micros_per_op_wall).collect();
    let median = |of: fn(&Record) -> Option<f64>| stats::median(records.iter().filter_map(|record| of(record)));
    let most = |of: fn(&Record) -> u64| records.iter().map(|record| of(record)).max().unwrap_or(0);
    let (min, max) = stats::extent(&micros)?;
    let (interval_low, interval_high) = stats::bootstrap_interval(&micros, 1)?;
    let last = records.last()?;
    let ratio = |to| group.ratio(&cell.key.engine, to);
    Some(Line {
        kind: "row".into(),
        row: label(group),
        engine: cell.key.engine.clone(),
        engine_version: last.engine_version.clone(),
        threads: last.threads,
        micros_per_op: stats::median(&micros)?,
        min,
        max,
        interval_low,
        interval_high,
        ratio_to_best_peer: ratio(Peer::Best).map(|ratio| ratio.value),
        best_peer: ratio(Peer::Best).map(|ratio| ratio.peer.to_string()),
        ratio_to_rocksdb: ratio(Peer::Named(REFERENCE_PEER)).map(|ratio| ratio.value),
        repetitions: micros.len(),
        ops: last.ops,
        p99_us: median(|record| Some(record.latency.p99_us))?,
        p999_us: median(|record| Some(record.latency.p999_us))?,
        max_us: records.iter().map(|record| record.latency.max_us).fold(0.0, f64::max),
        disk_bytes: last.disk_bytes,
        peak_disk_bytes: most(|record| record.peak_disk_bytes),
        settled_disk_bytes: median(|record| record.settled_disk_bytes.map(|bytes| bytes as f64)),
        rss_peak_bytes: most(|record| record.rss_peak_bytes),
        rss_anonymous_peak_bytes: most(|record| record.rss_anonymous_peak_bytes),
        writer_ops_per_sec: median(|record| record.writer_ops_per_sec),
        writer_wanted_per_sec: last.writer_wanted_per_sec,
        durability: last.durability,
        message: last.message.clone(),
        short_load: cell.short_load.map(String::from),
    })
}

/// The geometric means of an engine over the rows it has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Means {
    /// Always `mean`.
    pub kind: &'static str,
    /// Always `geometric mean`.
    pub row: &'static str,
    /// The engine.
    pub engine: String,
    /// Mean of the medians.
    pub micros_per_op: f64,
    /// Mean of the ratios to the best peer.
    pub ratio_to_best_peer: Option<f64>,
    /// Mean of the ratios to RocksDB.
    pub ratio_to_rocksdb: Option<f64>,
    /// Rows that the mean of the medians is over.
    pub rows: usize,
    /// Rows that the mean of the ratios to the best peer is over: those in which its writes are as
    /// durable as Esker's.
    pub rows_compared: usize,
}

/// The means of every engine, in the order of the lines.
pub fn means(groups: &Groups) -> Vec<Means> {
    let of_engine = |engine: &&str| {
        let cells = groups.groups.iter().filter_map(|group| group.cell(engine)?.micros());
        let micros: Vec<f64> = cells.collect();
        let to_best = groups.mean_ratio(engine, Peer::Best);
        Some(Means {
            kind: "mean",
            row: "geometric mean",
            engine: engine.to_string(),
            micros_per_op: stats::geometric_mean(&micros)?,
            ratio_to_best_peer: to_best.map(|mean| mean.value),
            ratio_to_rocksdb: groups.mean_ratio(engine, Peer::Named(REFERENCE_PEER)).map(|mean| mean.value),
            rows: micros.len(),
            rows_compared: to_best.map_or(0, |mean| mean.rows),
        })
    };
    groups.engines.iter().filter_map(of_engine).collect()
}

/// The rows in which Esker's ratio to the best peer is below `least`.
pub fn behind(lines: &[Line], least: f64) -> Vec<&Line> {
    let subject = lines.iter().filter(|line| line.engine == OURS);
    subject.filter(|line| line.ratio_to_best_peer.is_some_and(|ratio| ratio < least)).collect()
}
