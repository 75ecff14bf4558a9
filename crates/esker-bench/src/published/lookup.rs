//! What was measured, beside what was published.
//!
//! LevelDB r39 is answered by today's LevelDB, Kyoto Cabinet's TreeDB by itself, SQLite 3.7 by
//! today's with row ids (as in 2011; the table without row ids stands beside it), RocksDB 2.6 by
//! today's. All other engines of the run stand beside them.

use super::data::{DATA, PublishedRecord};
use crate::measurements::{Measurements, Query, Row};
use crate::record::Record;
use crate::stats::{bootstrap_interval, median};
use crate::sweep::grid::StudyRun;
use esker_engines::registry;
use serde::Serialize;
use std::collections::BTreeMap;

const SEED: u32 = 301;

/// A published figure and what was measured for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The published figure.
    pub record: PublishedRecord,
    /// The engine that answers it first, then the others; empty if nothing was measured.
    pub measured: Vec<Measured>,
    /// What a reader should know, or why there is nothing.
    pub note: String,
}

/// What one engine did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The engine.
    pub engine: String,
    /// Its configuration, and where the row differs from the published one (`after compact`, `scale
    /// 1/10`); empty if neither.
    pub variant: String,
    /// The median over repetitions, in the unit of the published figure.
    pub figure: f64,
    /// The 95 % interval of the median by the bootstrap; none with a single repetition.
    pub interval: Option<(f64, f64)>,
    /// How many there were.
    pub repetitions: u32,
    /// The figure over the same engine's baseline, where the published figure has one.
    pub ratio_to_baseline: Option<f64>,
}

/// Puts the figures of `runs` beside every published one, in the order of [`DATA`]; none is left
/// out.
pub fn compare(runs: &[StudyRun]) -> Vec<Compared> {
    let measurements = Measurements::of(runs);
    DATA.records.iter().map(|record| compared(record, &measurements)).collect()
}

/// Experiment and row that a figure of the 2011 page is a ratio to.
fn baseline(record: &PublishedRecord) -> (&'static str, Option<&str>) {
    let row = match (record.experiment.as_str(), record.row.as_str()) {
        ("batches", "fillseqbatch") | ("sync", "fillseqsync") => Some("fillseq"),
        ("batches", "fillrandbatch") | ("sync", "fillrandsync") => Some("fillrandom"),
        ("no compression" | "more memory" | "larger caches" | "no compression reads", row) => Some(row),
        _ => None,
    };
    ("baseline", row)
}

/// Engines without compression have no run of their own in the experiment without: as on the page,
/// it is their baseline.
fn experiment_of<'p>(engine: &str, place: &Place<'p>) -> &'p str {
    let cannot = || registry::row(engine).is_some_and(|kind| !kind.capabilities.compression);
    match place.experiment {
        "no compression" | "no compression reads" if cannot() => "baseline",
        experiment => experiment,
    }
}

/// Where a figure is looked up.
struct Place<'p> {
    experiment: &'p str,
    /// Rows, each with what it is called beside the published one.
    rows: Vec<(String, &'static str)>,
    variables: Vec<(&'p str, &'p str)>,
}

fn place(record: &PublishedRecord) -> Place<'_> {
    let row = record.row.clone();
    let mut rows = vec![(row.clone(), "")];
    let is_read = row.starts_with("read");
    if record.study == "leveldb-2011" && is_read {
        // The page does not say which it measured.
        rows.push((format!("{row} after fillrandom"), "after fillrandom"));
        rows.push((format!("{row} after compact"), "after compact"));
    }
    let experiment = match record.experiment.as_str() {
        "environment" | "header" | "example command" => "grid",
        "ext4" => "sync",
        other => other,
    };
    let variables = match record.experiment.as_str() {
        "environment" | "example command" => vec![("write_buffer_mib", "2"), ("max_file_mib", "2")],
        "header" => vec![("write_buffer_mib", "2"), ("max_file_mib", "32")],
        // Other sizes are shown too, with their scale.
        "seed" => vec![("threads", "10")],
        _ => record.variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
    };
    Place { experiment, rows, variables }
}

fn compared(record: &PublishedRecord, measurements: &Measurements<'_>) -> Compared {
    let place = place(record);
    let query = |engine, row| {
        let (study, experiment, variables) = (&record.study, experiment_of(engine, &place), &place.variables);
        Query { study, experiment, engine, row, variables }
    };
    let engine = record.answering();
    let variant = if engine == "sqlite" { "rowid" } else { "" };
    let mut measured = Vec::new();
    for candidate in measurements.engines() {
        for (row, called) in &place.rows {
            measured.extend(of_query(record, &query(candidate, row), called, measurements));
        }
    }
    let rank = |m: &Measured| (m.engine != engine, m.engine == engine && !m.variant.starts_with(variant));
    measured.sort_by_key(rank);
    let query = query(engine, &record.row);
    let mut note = vec![record.note.clone()];
    if measured.iter().any(|m| m.engine == engine) {
        note.extend(about(record, &query, measurements));
    } else {
        note.push(format!("Not measured: {}.", missing(record, &query, measurements)));
    }
    note.retain(|part| !part.is_empty());
    Compared { record: record.clone(), measured, note: note.join(" ") }
}

/// The rows of one engine, one result for each of its variants.
fn of_query(record: &PublishedRecord, query: &Query<'_>, called: &str, all: &Measurements<'_>) -> Vec<Measured> {
    let mut by_variant: BTreeMap<&str, Vec<&Row<'_>>> = BTreeMap::new();
    for row in all.select(query) {
        // An experiment on another file system answers nothing about ext4.
        if record.experiment != "ext4" || row.record.host.file_system == "ext4" {
            by_variant.entry(row.cell.variant.as_str()).or_default().push(row);
        }
    }
    let (base_experiment, base_row) = baseline(record);
    let base_row = base_row.map(|row| if called.is_empty() { row.to_owned() } else { format!("{row} {called}") });
    let mut found = Vec::new();
    for (variant, rows) in by_variant {
        let values: Vec<f64> = rows.iter().filter_map(|row| figure(record, row.record)).collect();
        let Some(figure) = median(&values) else { continue };
        let base = base_row.as_ref().and_then(|row| {
            let base = Query { experiment: base_experiment, row, variables: &[], ..*query };
            let rates = all.select(&base).into_iter().filter(|row| row.cell.variant == variant);
            median(rates.map(|row| row.record.ops_per_sec))
        });
        let scale = rows.first().and_then(|row| row.cell.variables.get("scale"));
        let scale = scale.filter(|scale| record.study == "rmw" && scale.as_str() != "1");
        let parts = [variant.to_owned(), called.to_owned(), scale.map_or_else(String::new, |s| format!("scale {s}"))];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        found.push(Measured {
            engine: query.engine.to_owned(),
            variant: parts.join(", "),
            figure,
            interval: if values.len() > 1 { bootstrap_interval(&values, SEED) } else { None },
            repetitions: values.len() as u32,
            ratio_to_baseline: base.filter(|base| *base > 0.0).map(|base| figure / base),
        });
    }
    found
}

/// What a row says in the unit of the published figure.
fn figure(record: &PublishedRecord, row: &Record) -> Option<f64> {
    let value = match record.unit.as_str() {
        "ops/sec" | "entries/sec" => row.ops_per_sec,
        "micros/op" => row.micros_per_op,
        "wall micros/op" => row.micros_per_op_wall,
        "MB/s" => row.mb_per_sec,
        "seconds" => row.wall_s,
        "updates" => row.ops as f64 / f64::from(row.threads.max(1)),
        "found" => row.found? as f64,
        "comparisons" => row.counters.comparisons? as f64,
        _ => setting(row, record.variables.get("setting")?)?,
    };
    value.is_finite().then_some(value)
}

/// What a row ran with.
fn setting(row: &Record, name: &str) -> Option<f64> {
    let flag = |name: &str| match row.flags.get(name)?.as_str() {
        "true" => Some(1.0),
        "false" => Some(0.0),
        number => number.parse::<f64>().ok(),
    };
    const MIB: f64 = 1_048_576.0;
    match name {
        // Not given, latencies are taken but not printed, which is what the flag of that name
        // requests.
        "histogram" if row.flags.get(name).is_none_or(String::is_empty) => Some(0.0),
        "num" => Some(row.num as f64),
        "reads" if row.found.is_some() => Some(row.ops as f64),
        "compressed_value_size" => Some((flag("value_size")? * flag("compression_ratio")?).round()),
        "raw_size" => Some((flag("key_size")? + flag("value_size")?) * row.num as f64 / MIB),
        "file_size" => {
            let value = flag("value_size")? * flag("compression_ratio")?;
            Some((flag("key_size")? + value) * row.num as f64 / MIB)
        }
        other => flag(other),
    }
}

fn missing(record: &PublishedRecord, query: &Query<'_>, all: &Measurements<'_>) -> String {
    let rows = all.select(query);
    if rows.is_empty() {
        return all.reason(query);
    }
    match record.unit.as_str() {
        "comparisons" => format!("{} does not report key comparisons", query.engine),
        "flag" => format!("the program here has no such flag, or its runs were made without it ({})", record.row),
        _ if record.experiment == "ext4" => {
            let systems = rows.iter().map(|row| row.record.host.file_system.as_str()).next().unwrap_or_default();
            format!("these runs were on {systems}")
        }
        unit => format!("{} does not report {unit} here", query.engine),
    }
}

/// Which version answered, and in what it differs from the published one.
fn about(record: &PublishedRecord, query: &Query<'_>, all: &Measurements<'_>) -> Vec<String> {
    let rows = all.select(query);
    let Some(first) = rows.first() else { return Vec::new() };
    let mut parts = Vec::new();
    if !first.record.engine_version.is_empty() {
        parts.push(format!("Answered by {} {}.", query.engine, first.record.engine_version));
    }
    let same_size = !matches!(record.unit.as_str(), "found" | "updates" | "seconds" | "comparisons");
    match first.cell.variables.get("scale") {
        Some(scale) if scale != "1" && same_size => parts.push(format!("Measured at scale {scale}.")),
        Some(scale) if scale != "1" => parts.push(format!("Measured at scale {scale}, so the number is smaller too.")),
        _ => {}
    }
    match record.experiment.as_str() {
        "sync" | "ext4" => parts.push(format!(
            "The device here is not that disk ({} on {}): only ratios between engines compare.",
            first.record.host.file_system, first.record.host.cpu
        )),
        "seed" if record.unit == "seconds" => parts.push("Measured without opening and closing.".into()),
        _ => {}
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ratio_has_a_baseline() {
        for record in DATA.records.iter().filter(|record| record.published_ratio.is_some()) {
            let (experiment, row) = baseline(record);
            let is_it = |r: &PublishedRecord| r.experiment == experiment && Some(r.row.as_str()) == row;
            assert!(DATA.records.iter().any(is_it), "{}", record.id);
        }
    }

    #[test]
    fn settings_are_read_from_flags() {
        let mut row = Record { num: 5_000_000, ..Record::default() };
        for (name, value) in
            [("key_size", "16"), ("value_size", "100"), ("compression_ratio", "1"), ("histogram", "true")]
        {
            row.flags.insert(name.into(), value.into());
        }
        assert_eq!(setting(&row, "raw_size").map(|size| (size * 10.0).round()), Some(5531.0));
        assert_eq!(setting(&row, "compressed_value_size"), Some(100.0));
        assert_eq!(setting(&row, "histogram"), Some(1.0));
        assert_eq!(setting(&row, "nothing"), None);
        row.flags.insert("histogram".into(), String::new());
        assert_eq!(setting(&row, "histogram"), Some(0.0), "not given");
        row.flags.remove("histogram");
        assert_eq!(setting(&row, "histogram"), Some(0.0), "not recorded");
    }

    #[test]
    fn ratios_follow_from_the_figures_or_are_listed() {
        let mut stale = Vec::new();
        for record in &DATA.records {
            let (Some(published), Some(recomputed)) = (record.published_ratio, record.recomputed_ratio) else {
                continue;
            };
            let (_, baseline) = baseline(record);
            let of = record.id.rsplit('/').next().unwrap();
            let id = format!("ldb2011/baseline/{}/{of}", baseline.unwrap());
            let base = DATA.records.iter().find(|other| other.id == id).unwrap();
            let ratio = record.figure / base.figure;
            assert!((ratio / recomputed - 1.0).abs() < 2e-3, "{}: {ratio}", record.id);
            // Printed with one to three digits.
            if (published / ratio - 1.0).abs() > 0.12 {
                stale.push(record.id.as_str());
            }
        }
        let listed: Vec<&str> =
            DATA.consistency_checks.iter().filter(|c| c.kind == "ratio").map(|c| c.record.as_str()).collect();
        assert_eq!(stale, listed);
    }
}
