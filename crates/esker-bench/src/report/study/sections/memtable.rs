//! The memtable study: latency over write buffer and file size as heat maps, the published one
//! beside those measured here.

use super::generic;
use super::other_figures;
use crate::published::{DATA, GRID_ROWS};
use crate::report::blocks::{Block, HeatMap, Section};
use crate::report::measured::{Key, Measured, compare_values, distinct, engine_name, engines, entry};
use crate::text::number;
use std::collections::BTreeMap;

const STUDY: &str = "memtable";
const GRID: &str = "grid";
const LINE: &str = "write_buffer_mib";
const COLUMN: &str = "max_file_mib";
/// The row whose number of found keys is known in advance.
const FOUND: &str = "readrandom after fillrandom";

/// The section of the study.
pub fn section(all: &[&Measured<'_>]) -> Section {
    let mut blocks = vec![Block::Text(
        "Microseconds per operation over the size of the write buffer (lines) and of the largest file (columns), both in MiB. \
         Each map has its own scale: the stronger its colour, the slower a cell; a map is pale whose figures hardly differ. The published map was measured on another \
         machine, so that its shape compares with those measured here, and its figures do not."
            .into(),
    )];
    let grid: Vec<&Measured> = all.iter().copied().filter(|measured| measured.key.experiment == GRID).collect();
    for row in GRID_ROWS {
        let mut maps: Vec<HeatMap> = published(row).into_iter().collect();
        maps.extend(measured(row, &grid));
        if !maps.is_empty() {
            blocks.extend([Block::Title(row.to_string()), Block::Maps(maps)]);
        }
    }
    blocks.extend(found(&grid));
    let mut rest = distinct(all.iter().map(|measured| measured.key.experiment.clone()));
    rest.retain(|experiment| experiment != GRID);
    for experiment in rest {
        let heading = match experiment.as_str() {
            "why" => "why readrandom is slower after fillrandom",
            other => other,
        };
        blocks.extend(generic::experiment(&experiment, heading, all));
    }
    if !grid.is_empty() {
        blocks.push(Block::Folded("Every figure of the grid".into(), generic::experiment(GRID, "", all)));
    }
    blocks.extend(other_figures::block(STUDY, all));
    Section::new("study-memtable", "Write buffer and file size", blocks)
}

/// The published map of a row.
fn published(row: &str) -> Option<HeatMap> {
    let records = DATA.published(STUDY, GRID).filter(|record| record.row == row && record.unit == "micros/op");
    let cells = records.map(|record| (&record.variables, record.figure));
    map(format!("Published: LevelDB 1.23, {row}"), true, cells)
}

/// A map for each engine.
fn measured(row: &str, grid: &[&Measured<'_>]) -> Vec<HeatMap> {
    let of_row: Vec<&Measured> = grid.iter().copied().filter(|measured| measured.key.row == row).collect();
    let map_of = |(engine, variant): (&str, &str)| {
        let own = |key: &Key| key.engine == engine && key.variant == variant;
        let of_engine: Vec<&&Measured> = of_row.iter().filter(|measured| own(&measured.key)).collect();
        let mark = of_engine.iter().map(|measured| measured.name_marks()).find(|mark| !mark.is_empty());
        let timed = of_engine.iter().filter_map(|measured| Some((&measured.key.variables, measured.micros()?)));
        let title = format!("{}{}, {row}", engine_name(engine, variant), mark.unwrap_or_default());
        map(title, false, timed)
    };
    engines(of_row.iter().copied()).into_iter().filter_map(map_of).collect()
}

/// None without figures; each with the cell that it is of.
fn map<'v>(
    title: String,
    published: bool,
    cells: impl Iterator<Item = (&'v BTreeMap<String, String>, f64)>,
) -> Option<HeatMap> {
    let place = |(variables, figure): (&'v BTreeMap<String, String>, f64)| {
        Some((variables.get(LINE)?.as_str(), variables.get(COLUMN)?.as_str(), figure))
    };
    let cells: Vec<(&str, &str, f64)> = cells.filter_map(place).collect();
    let values = |of: fn(&(&'v str, &'v str, f64)) -> &'v str| {
        let mut values = distinct(cells.iter().map(of));
        values.sort_by(|one, two| compare_values(one, two));
        values.into_iter().map(String::from).collect::<Vec<String>>()
    };
    let (lines, columns) = (values(|cell| cell.0), values(|cell| cell.1));
    let at = |line: &str, column: &str| cells.iter().find(|cell| (cell.0, cell.1) == (line, column)).map(|cell| cell.2);
    let figures = lines.iter().map(|line| columns.iter().map(|column| at(line, column)).collect()).collect();
    let (line_name, column_name) = ("buffer".to_string(), "largest file".to_string());
    let map = HeatMap { title, published, line_name, column_name, lines, columns, figures };
    (!cells.is_empty()).then_some(map)
}

/// How many keys were found, the same number everywhere if the keys and the engines are right.
fn found(grid: &[&Measured<'_>]) -> Option<Block> {
    let mut counts: Vec<(String, Vec<String>)> = Vec::new();
    for measured in grid.iter().filter(|measured| measured.key.row == FOUND) {
        for record in &measured.ran {
            let Some(found) = record.found else { continue };
            let text = format!("{} of {}", number::whole(found as f64), number::whole(record.num as f64));
            let engine = measured.key.engine_name();
            let (_, engines) = entry(&mut counts, |(known, _)| *known == text, || (text.clone(), Vec::new()));
            if !engines.contains(&engine) {
                engines.push(engine);
            }
        }
    }
    let items: Vec<String> =
        counts.into_iter().map(|(count, engines)| format!("{FOUND} found {count}: {}", engines.join(", "))).collect();
    (!items.is_empty()).then_some(Block::List(items))
}
