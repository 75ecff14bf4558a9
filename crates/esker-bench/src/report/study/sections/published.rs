//! Every published record beside what was measured of it.

use crate::published::{Compared, DATA, Measured, PublishedRecord};
use crate::report::blocks::{Block, Field, Line, Section, Table, TableOf};
use crate::report::engine_style::{display_name, rank};
use crate::report::measured::distinct;
use crate::text::number;

/// The section; none if there are no published records to compare with.
pub fn section(compared: &[Compared]) -> Option<Section> {
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
    let caption = format!("Published records of {study}, and what was measured of the same.");
    let mut table = TableOf::new(caption, "record", compared, |compared| Line::head(&compared.record.id))
        .words("published with", |compared| compared.record.engine.clone())
        .number("published", |compared| published(&compared.record))
        .words("unit", |compared| compared.record.unit.clone());
    for engine in &engines {
        table = table.words(display_name(engine), |compared| {
            let own = compared.measured.iter().filter(|measured| measured.engine == *engine);
            let own: Vec<String> = own.map(measured_text).collect();
            (!own.is_empty()).then(|| own.join("; "))
        });
    }
    if engines.is_empty() {
        table = table.words("measured", |_| Field::absent());
    }
    table.done()
}

/// The figure with its ratio to the baseline, and what the figures give where that is another.
fn published(record: &PublishedRecord) -> String {
    let figure = plain(record.figure);
    match record.ratios() {
        (Some(one), Some(two)) => format!("{figure} ({}; recomputed {})", number::ratio(one), number::ratio(two)),
        (Some(one), None) => format!("{figure} ({})", number::ratio(one)),
        (None, _) => figure,
    }
}

/// `4,030,000 [3,900,000 to 4,100,000] (1.08x) after compact`.
fn measured_text(measured: &Measured) -> String {
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
