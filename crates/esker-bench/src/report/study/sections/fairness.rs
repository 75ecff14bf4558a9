//! What broke a rule of fairness, each where the page marks it.

use crate::judgement::Judgement;
use crate::report::blocks::{Block, Line, Section, Table, TableOf};
use crate::report::engine_style::display_name;
use crate::report::measured::{distinct, engine_name, entry, setting};
use crate::sweep::fairness::Violation;
use crate::sweep::grid::StudyRun;
use std::collections::BTreeSet;

/// What broke a rule in each run, with its study.
pub fn with_studies(runs: &[StudyRun], broken: Vec<Vec<Violation>>) -> Vec<(String, Violation)> {
    let of_run = |(run, broken): (&StudyRun, Vec<Violation>)| {
        let study = run.study.clone();
        broken.into_iter().map(move |violation| (study.clone(), violation))
    };
    runs.iter().zip(broken).flat_map(of_run).collect()
}

/// The section; none if nothing was measured that could break a rule.
pub fn section(judgements: &[Judgement], violations: &[(String, Violation)]) -> Option<Section> {
    // Every claim is judged for every engine of the runs, whether it has been measured or not.
    let engines: BTreeSet<&str> = judgements.iter().map(|judgement| judgement.engine.as_str()).collect();
    let mut blocks = Vec::new();
    if let (Some(only), 1) = (engines.first(), engines.len()) {
        let nobody = format!(
            "There was only one engine, {}, so nothing was compared: whether its durability, memory, compression and data are those of \
             others is not known here.",
            display_name(only)
        );
        blocks.push(Block::Text(nobody));
    } else if violations.is_empty() {
        blocks.push(Block::Text(
            "Nothing broke a rule: durability, memory, compression, data, the keys that lookups found and the samples verified after each \
             run were those of the other engines wherever they were recorded."
                .into(),
        ));
    }
    if !violations.is_empty() {
        let table = table(&alike(violations));
        let warning = format!(
            "{} figures are marked with \u{2021}: what they were measured under is not what the others were.",
            violations.len()
        );
        blocks.extend([Block::Warning(warning), Block::Table(table)]);
    }
    Some(Section::new("fairness", "Fairness", blocks))
}

/// Violations that say the same of the same engine in the same experiment.
struct Alike<'v> {
    study: &'v str,
    first: &'v Violation,
    rows: Vec<&'v str>,
    settings: Vec<String>,
}

impl<'v> Alike<'v> {
    fn what(&self) -> [&'v str; 5] {
        let first = self.first;
        [self.study, &first.experiment, &first.engine, &first.variant, &first.reason]
    }
}

/// All of them, in the order of the first of each.
fn alike(violations: &[(String, Violation)]) -> Vec<Alike<'_>> {
    let mut found: Vec<Alike> = Vec::new();
    for (study, first) in violations {
        let new = Alike { study, first, rows: Vec::new(), settings: Vec::new() };
        let what = new.what();
        let alike = entry(&mut found, |alike| alike.what() == what, || new);
        alike.rows.push(&first.row);
        alike.settings.push(setting(&first.variables));
    }
    found
}

fn table(alike: &[Alike<'_>]) -> Table {
    let name = |Alike { first, .. }: &Alike| Line::of(&first.engine, engine_name(&first.engine, &first.variant));
    let setting = |alike: &Alike| match distinct(&alike.settings).as_slice() {
        [one] => one.to_string(),
        many => format!("{} settings", many.len()),
    };
    TableOf::new("What broke a rule, and in how many figures.", "engine", alike, name)
        .words("study", |alike| alike.study)
        .words("experiment", |alike| alike.first.experiment.as_str())
        .words("what", |alike| alike.first.reason.as_str())
        .words("rows", |alike| distinct(alike.rows.iter().copied()).join(", "))
        .words("setting", setting)
        .number("figures", |alike| alike.rows.len().to_string())
        .done()
}

#[cfg(test)]
mod tests {
    use super::super::super::load::cell_of_records;
    use super::super::super::measured::broken_rules;
    use super::*;
    use crate::judgement::judge;
    use crate::record::Record;
    use crate::report::render::markdown;

    /// What the section says of a run of these engines.
    fn said(engines: &[&str], message: &str) -> String {
        let record = Record { ops: 10, row: "fillseq".into(), message: message.into(), ..Record::default() };
        let finished = engines.iter().map(|engine| cell_of_records("", engine, vec![record.clone()])).collect();
        let runs = [StudyRun { study: "sweep".into(), finished, ..StudyRun::default() }];
        let section = section(&judge(&runs), &with_studies(&runs, broken_rules(&runs))).unwrap();
        let mut text = String::new();
        markdown::blocks(&section.blocks, &mut text);
        text
    }

    #[test]
    fn one_engine_is_compared_with_nobody() {
        let alone = said(&["esker"], "");
        assert!(alone.contains("only one engine, Esker, so nothing was compared"), "{alone}");
        assert!(!alone.contains("Nothing broke a rule"), "{alone}");
        let two = said(&["esker", "lmdb"], "");
        assert!(two.contains("Nothing broke a rule") && !two.contains("only one engine"), "{two}");
        // It may break a rule by itself, which is told as ever.
        let early = said(&["esker"], "(ended early after 0.5 s)");
        assert!(early.contains("only one engine") && early.contains("it ended early"), "{early}");
    }
}
