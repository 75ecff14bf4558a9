//! Figures by the authors of a document that it does not have itself, beside what was measured of
//! the same.

use crate::published::{DATA, OtherFigures};
use crate::report::blocks::{Block, Line, Table, TableOf};
use crate::report::measured::{Measured, engine_name, engines};
use crate::text::number;

/// Those of a study, folded; none if there are none.
pub fn block(study: &str, all: &[&Measured<'_>]) -> Option<Block> {
    let of_study = DATA.other_figures.iter().filter(|series| series.study == study);
    let mut blocks = vec![Block::Text(
        "No claim is judged by these. They were measured on other machines: what a setting changes compares with what it changes here, the figures themselves do not.".into(),
    )];
    blocks.extend(of_study.map(|series| Block::Table(table(series, all))));
    let title = "Figures by the same authors that are not in the document".to_string();
    if blocks.len() > 1 { Some(Block::Folded(title, blocks)) } else { None }
}

fn table(series: &OtherFigures, all: &[&Measured<'_>]) -> Table {
    let engines = engines(all.iter().copied().filter(|measured| is_of(series, measured)));
    let with = [series.row.as_str(), series.with.as_str()].into_iter().filter(|part| !part.is_empty());
    let caption = format!("{} ({}), from {}.", with.collect::<Vec<_>>().join("; "), series.unit, series.document);
    let mut table = TableOf::new(caption, &series.by, &series.values, |value| Line::head(&value.value))
        .number("published", |value| number::figure(value.figure));
    for (engine, variant) in engines {
        let own = |measured: &&&Measured<'_>| {
            (measured.key.engine.as_str(), measured.key.variant.as_str()) == (engine, variant)
                && is_of(series, measured)
        };
        table = table.number(engine_name(engine, variant), |value| {
            let mut found = all.iter().filter(own);
            let found = found.find(|measured| measured.key.variable(&series.experiment) == value.value);
            found.and_then(|measured| measured.micros()).map(number::figure)
        });
    }
    table.done()
}

/// Whether the series has a figure of this measurement. Only times have one.
fn is_of(series: &OtherFigures, measured: &Measured<'_>) -> bool {
    let key = &measured.key;
    !series.experiment.is_empty()
        && series.unit == "micros/op"
        && (key.experiment == series.experiment && key.row == series.row)
        && series.values.iter().any(|value| value.value == key.variable(&series.experiment))
}

#[cfg(test)]
mod tests {
    use super::super::super::load::cell_of_records;
    use super::super::super::measured::{broken_rules, measure};
    use super::*;
    use crate::record::Record;
    use crate::sweep::grid::StudyRun;

    #[test]
    fn figures_stand_beside_those_of_the_same_setting() {
        let record = Record { row: "fillrandom".into(), ops: 1, micros_per_op: 1.5, ..Record::default() };
        let mut cell = cell_of_records("filter", "leveldb", vec![record]);
        cell.cell.variables = [("filter".to_string(), "10".to_string())].into();
        let runs = [StudyRun { study: "memtable".into(), finished: vec![cell], ..StudyRun::default() }];
        let all = measure(&runs, &broken_rules(&runs));
        let all: Vec<&Measured<'_>> = all.iter().collect();
        let Some(Block::Folded(_, blocks)) = block("memtable", &all) else { panic!("no block") };
        let tables =
            || blocks.iter().filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None });
        assert_eq!(tables().count(), 10);
        let first = tables().next().unwrap();
        assert_eq!(
            first.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(),
            ["published", "LevelDB"]
        );
        let line = first.lines.iter().find(|line| line.head == "10").unwrap();
        assert_eq!(line.cells.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>(), ["4.486", "1.500"]);
        assert!(block("rmw", &all).is_none() && block("leveldb-2011", &[]).is_some());
    }
}
