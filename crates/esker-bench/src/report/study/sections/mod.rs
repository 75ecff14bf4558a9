//! The sections of a report, each in its own file; every one of them turns measurements into
//! blocks.

mod about;
mod conditions;
mod fairness;
mod generic;
mod judgement;
mod memtable;
mod other_figures;
mod page_2011;
mod published;
mod rmw;

use super::measured::{broken_rules, measure};
use crate::judgement::judge;
use crate::published::compare;
use crate::report::blocks::Section;
use crate::report::measured::{Measured, distinct};
use crate::sweep::grid::StudyRun;
use std::collections::BTreeSet;

/// All sections, in the order of the page.
pub fn all(runs: &[StudyRun]) -> Vec<Section> {
    let broken = broken_rules(runs);
    let (all, judgements) = (measure(runs, &broken), judge(runs));
    let violations = fairness::with_studies(runs, broken);
    let mut sections = vec![about::section(runs, &all, violations.len())];
    for study in distinct(all.iter().map(|measured| measured.key.study.clone())) {
        let of_study: Vec<&Measured> = all.iter().filter(|measured| measured.key.study == study).collect();
        sections.push(match study.as_str() {
            "memtable" => memtable::section(&of_study),
            "leveldb-2011" => page_2011::section(&of_study),
            "rmw" => rmw::section(&of_study),
            _ => generic::section(&study, title(runs, &study), &of_study),
        });
    }
    sections.extend(judgement::section(&judgements));
    sections.extend(published::section(&compare(runs)));
    sections.extend(fairness::section(&judgements, &violations));
    sections.push(conditions::section(runs, &all));
    // Studies whose names differ only in signs would share an address.
    let mut taken = BTreeSet::new();
    for section in &mut sections {
        while !taken.insert(section.id.clone()) {
            section.id.push_str("-more");
        }
    }
    sections
}

/// The title that a study's run was given.
fn title<'a>(runs: &'a [StudyRun], study: &str) -> &'a str {
    let mut titles = runs.iter().filter(|run| run.study == study).map(|run| run.title.as_str());
    titles.rfind(|title| !title.trim().is_empty()).unwrap_or("Measurements")
}
