//! Every published record beside what was measured of it.

use super::super::findings::{Answer, Compared, Findings};
use crate::published::DATA;
use crate::report::blocks::{Block, Column, Field, Line, Section, Table};
use crate::report::engine_style::{display_name, rank};
use crate::report::measured::distinct;
use crate::report::number;

/// Ratios that differ by more than this do not follow from the figures.
const RATIO_TOLERANCE: f64 = 0.05;

/// The section; none if there are no published records to compare with.
pub fn section(findings: &Findings) -> Option<Section> {
    let compared = &findings.compared;
    if compared.is_empty() {
        return None;
    }
    let measured = compared.iter().filter(|compared| !compared.measured.is_empty()).count();
    let mut blocks = vec![Block::Text(format!(
        "All {} published records; {measured} of them have a figure from these runs beside them, in the same unit. Ratios in \
         brackets are to the baseline. They were measured on other machines in other years: an engine of today beside a figure of \
         2011 says little, its ratio to the baseline more.",
        compared.len()
    ))];
    for study in distinct(compared.iter().map(|one| one.record.study.as_str())) {
        let of_study: Vec<&Compared> = compared.iter().filter(|compared| compared.record.study == study).collect();
        blocks.push(Block::Title(format!("Records of {study}")));
        blocks.push(Block::Table(table(study, &of_study)));
        let notes: Vec<String> = of_study
            .iter()
            .filter(|compared| !compared.note.is_empty())
            .map(|compared| format!("{}: {}", compared.record.id, compared.note))
            .collect();
        if !notes.is_empty() {
            blocks.push(Block::Folded(format!("Notes to the records of {study}"), vec![Block::List(notes)]));
        }
        let is_of_study = |record: &str| of_study.iter().any(|compared| compared.record.id == record);
        let corrections = DATA.consistency_checks.iter().filter(|check| is_of_study(&check.record));
        let corrections: Vec<String> =
            corrections.map(|check| format!("{}: {}", check.record, check.finding)).collect();
        if !corrections.is_empty() {
            let title = format!("What does not fit together in the published figures of {study}");
            blocks.push(Block::Folded(title, vec![Block::List(corrections)]));
        }
    }
    Some(Section::new("published", "Published records", blocks))
}

fn table(study: &str, compared: &[&Compared]) -> Table {
    let measured = compared.iter().flat_map(|compared| &compared.measured);
    let mut engines = distinct(measured.map(|measured| measured.engine.as_str()));
    engines.sort_by_key(|engine| rank(engine));
    let mut columns = vec![Column::words("published with"), Column::number("published"), Column::words("unit")];
    columns.extend(engines.iter().map(|engine| Column::words(display_name(engine))));
    if engines.is_empty() {
        columns.push(Column::words("measured"));
    }
    let caption = format!("Published records of {study}, and what was measured of the same.");
    Table::new(caption, "record", columns, compared.iter().map(|compared| line(compared, &engines)))
}

fn line(compared: &Compared, engines: &[&str]) -> Line {
    let record = &compared.record;
    let published = match (record.published_ratio, record.recomputed_ratio) {
        (Some(one), Some(two)) if (one / two - 1.0).abs() > RATIO_TOLERANCE => {
            format!("{} ({}; recomputed {})", plain(record.figure), number::ratio(one), number::ratio(two))
        }
        (Some(one), _) => format!("{} ({})", plain(record.figure), number::ratio(one)),
        _ => plain(record.figure),
    };
    let mut cells: Vec<Field> = vec![record.engine.clone().into(), published.into(), record.unit.clone().into()];
    for engine in engines {
        let own: Vec<String> =
            compared.measured.iter().filter(|measured| measured.engine == *engine).map(measured_text).collect();
        cells.push(if own.is_empty() { Field::absent() } else { own.join("; ").into() });
    }
    if engines.is_empty() {
        cells.push(Field::absent());
    }
    Line::new(&record.id, cells)
}

/// `4,030,000 [3,900,000 to 4,100,000] (1.08x) after compact`.
fn measured_text(measured: &Answer) -> String {
    let mut text = number::figure(measured.figure);
    if let Some((low, high)) = measured.interval.filter(|(low, high)| low < high) {
        text.push_str(&format!(" [{} to {}]", number::figure(low), number::figure(high)));
    }
    if let Some(to_baseline) = measured.ratio_to_baseline {
        text.push_str(&format!(" ({})", number::ratio(to_baseline)));
    }
    if !measured.variant.is_empty() {
        text.push_str(&format!(" {}", measured.variant));
    }
    text
}

/// Whole numbers as they were printed.
fn plain(figure: f64) -> String {
    if figure.fract() == 0.0 { number::whole(figure) } else { number::figure(figure) }
}
