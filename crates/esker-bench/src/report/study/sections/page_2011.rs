//! The benchmark page that LevelDB's authors published in 2011, as it is laid out there: every
//! section and every chart, the published bars beside those measured here.

use super::generic;
use super::other_figures;
use crate::published::{DATA, PublishedRecord};
use crate::report::blocks::{Bar, Block, Chart, Section, Whose};
use crate::report::engine_style::display_name;
use crate::report::measured::{Measured, distinct, order};
use crate::stats::bootstrap_ratio_interval;
use crate::text::number;
use serde::Deserialize;

const STUDY: &str = "leveldb-2011";
const BASELINE: &str = "baseline";
const SEED: u32 = 301;

/// A group of charts under a heading, as `data/page_2011.json` has them in the order of the page.
#[derive(Deserialize)]
struct Part {
    /// The chapter it opens, if it opens one.
    #[serde(default)]
    chapter: String,
    heading: String,
    experiment: String,
    #[serde(default)]
    about: String,
    charts: Vec<Drawn>,
}

/// One chart: what it is called, its row, and the row of the baseline that it is a ratio to.
type Drawn = (String, String, String);

fn page() -> Vec<Part> {
    serde_json::from_str(include_str!("../../../../data/page_2011.json")).expect("the tests read the file")
}

/// The section of the study.
pub fn section(all: &[&Measured<'_>]) -> Section {
    let mut blocks = vec![Block::Text(
        "On the left what was published in July 2011, on the right what was measured here. The bars of a chart are to the \
         scale of its longest. Disks, processors and versions differ, so that the order of the engines and the ratios to the \
         baseline compare, and the figures do not. Where both sides of a ratio were measured more than once, its 95 % interval by \
         the bootstrap stands in square brackets. Chapters, charts and order are those of the published page."
            .into(),
    )];
    for part in &page() {
        if !part.chapter.is_empty() {
            blocks.push(Block::Title(part.chapter.clone()));
        }
        blocks.push(Block::Subtitle(part.heading.clone()));
        if !part.about.is_empty() {
            blocks.push(Block::Text(part.about.clone()));
        }
        let before = blocks.len();
        let mut more = Vec::new();
        for drawn in &part.charts {
            match (published(part, drawn), measured(part, drawn, all)) {
                (None, measured) => more.extend(measured),
                (published, measured) => blocks.push(Block::Charts(published.into_iter().chain(measured).collect())),
            }
        }
        if !more.is_empty() {
            blocks.push(Block::Charts(more));
        }
        if blocks.len() == before {
            blocks.push(Block::Text("Not measured.".into()));
        }
    }
    let experiments = distinct(all.iter().map(|measured| measured.key.experiment.clone()));
    let tables = experiments.iter().flat_map(|experiment| generic::experiment(experiment, experiment, all));
    blocks.push(Block::Folded("Every row of the study with its figures".into(), tables.collect()));
    blocks.extend(other_figures::block(STUDY, all));
    Section::new("study-leveldb2011", "LevelDB benchmarks of 2011, then and now", blocks)
}

/// The published chart: bars as long as they were drawn.
fn published(part: &Part, drawn: &Drawn) -> Option<Chart> {
    let records = DATA.published(STUDY, &part.experiment).filter(|record| record.row == drawn.1);
    let bars: Vec<Bar> = records.map(published_bar).collect();
    (!bars.is_empty()).then(|| Chart { title: format!("{}, published in 2011", drawn.0), bars, full: None })
}

fn published_bar(record: &PublishedRecord) -> Bar {
    Bar {
        name: display_name(record.answering()).to_string(),
        of: Whose::Published,
        length: record.bar_px.map(f64::from).or(Some(record.figure)),
        text: format!("{} {}", number::whole(record.figure), record.unit),
        note: published_note(record),
        ..Bar::default()
    }
}

/// `(0.003x baseline; the figures give 0.0001x)`.
fn published_note(record: &PublishedRecord) -> String {
    match record.ratios() {
        (Some(one), Some(two)) => format!("({} baseline; the figures give {})", number::ratio(one), number::ratio(two)),
        (one, _) => one
            .or(record.recomputed_ratio)
            .map_or_else(String::new, |ratio| format!("({} baseline)", number::ratio(ratio))),
    }
}

/// The chart of what was measured here.
fn measured(part: &Part, drawn: &Drawn, all: &[&Measured<'_>]) -> Option<Chart> {
    let (title, row, baseline) = drawn;
    let wanted = |measured: &&&Measured| measured.key.experiment == part.experiment && measured.key.row == *row;
    let mut chosen: Vec<&Measured> = all.iter().filter(wanted).copied().collect();
    chosen.sort_by(|one, two| order(&one.key, &two.key));
    let unit = if part.experiment == "batches" { "entries/sec" } else { "ops/sec" };
    let bar = |measured: &&Measured| {
        let name = measured.key.engine_name() + &measured.name_marks();
        let base = baseline_of(measured, baseline, all);
        measured.bar(name, unit, base.map_or_else(String::new, |base| note(measured, base)))
    };
    (!chosen.is_empty()).then(|| Chart {
        title: format!("{title}, measured here"),
        bars: chosen.iter().map(bar).collect(),
        full: None,
    })
}

/// `(0.82x baseline [0.79x to 0.86x])`; one repetition on either side says nothing of the spread.
fn note(measured: &Measured<'_>, base: &Measured<'_>) -> String {
    let Some((rate, base_rate)) = measured.rate().zip(base.rate()) else { return String::new() };
    let rates = |of: &Measured<'_>| of.figures(|record| record.ops_per_sec);
    let interval = bootstrap_ratio_interval(&rates(measured), &rates(base), SEED)
        .map_or_else(String::new, |interval| format!(" [{}]", number::interval(interval)));
    format!("({} baseline{interval})", number::ratio(rate / base_rate))
}

/// The same engine in a row of the baseline.
fn baseline_of<'r, 'a>(measured: &Measured<'_>, row: &str, all: &[&'r Measured<'a>]) -> Option<&'r Measured<'a>> {
    let (engine, variant) = (&measured.key.engine, &measured.key.variant);
    let same = |other: &&&Measured| {
        let key = &other.key;
        key.experiment == BASELINE && key.row == row && key.engine == *engine && key.variant == *variant
    };
    all.iter().find(same).copied()
}

#[cfg(test)]
mod tests {
    use super::super::super::load::cell_of_records;
    use super::super::super::measured::{broken_rules, measure};
    use super::*;
    use crate::record::Record;
    use crate::sweep::grid::StudyRun;

    /// The note beside the bar of an engine with more memory, where the rates of each side are
    /// these.
    fn noted(rates: &[f64], base_rates: &[f64]) -> String {
        let cell = |experiment: &str, rates: &[f64]| {
            let record =
                |rate: &f64| Record { row: "fillrandom".into(), ops: 1, ops_per_sec: *rate, ..Record::default() };
            cell_of_records(experiment, "leveldb", rates.iter().map(record).collect())
        };
        let finished = vec![cell("more memory", rates), cell(BASELINE, base_rates)];
        let runs = [StudyRun { study: STUDY.into(), finished, ..StudyRun::default() }];
        let all = measure(&runs, &broken_rules(&runs));
        let all: Vec<&Measured<'_>> = all.iter().collect();
        let page = page();
        let part = page.iter().find(|part| part.experiment == "more memory").unwrap();
        measured(part, &part.charts[1], &all).unwrap().bars[0].note.clone()
    }

    #[test]
    fn repetitions_give_the_ratio_an_interval() {
        assert_eq!(noted(&[20.0, 20.0, 20.0], &[10.0, 10.0, 10.0]), "(2.00\u{d7} baseline [2.00\u{d7} to 2.00\u{d7}])");
        let spread = noted(&[20.0, 22.0, 24.0], &[10.0, 11.0, 12.0]);
        assert_eq!(spread, "(2.00\u{d7} baseline [1.67\u{d7} to 2.40\u{d7}])");
        for (rates, base_rates) in [(vec![20.0], vec![10.0, 10.0]), (vec![20.0, 20.0], vec![10.0])] {
            assert_eq!(noted(&rates, &base_rates), "(2.00\u{d7} baseline)");
        }
        assert_eq!(noted(&[20.0], &[]), "");
    }
}
