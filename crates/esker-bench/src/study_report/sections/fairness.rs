//! What broke a rule of fairness, each where the page marks it.

use super::super::blocks::{Block, Column, Line, Section, Table};
use super::super::findings::{Findings, Violation};
use super::super::measured::{engine_name, setting};
use crate::report::engine_style::OURS;

/// The section; none if nothing was measured that could break a rule.
pub fn section(findings: &Findings) -> Option<Section> {
    let violations = &findings.violations;
    let blocks = if violations.is_empty() {
        vec![Block::Text(
            "Nothing broke a rule: durability, memory, compression, data and the samples verified after each run were those of \
             the other engines wherever they were recorded."
                .into(),
        )]
    } else {
        let table = Table {
            caption: "What broke a rule, and in how many figures.".into(),
            head: "engine".into(),
            columns: vec![
                Column::words("study"),
                Column::words("experiment"),
                Column::words("what"),
                Column::words("rows"),
                Column::words("setting"),
                Column::number("figures"),
            ],
            lines: alike(violations).iter().map(|alike| line(alike)).collect(),
        };
        let warning = format!(
            "{} figures are marked with \u{2021}: what they were measured under is not what the others were.",
            violations.len()
        );
        vec![Block::Warning(warning), Block::Table(table)]
    };
    Some(Section { id: "fairness".into(), title: "Fairness".into(), blocks })
}

/// Violations that say the same of the same engine in the same experiment, in the order of the first of each.
fn alike(violations: &[(String, Violation)]) -> Vec<Vec<&(String, Violation)>> {
    let mut found: Vec<Vec<&(String, Violation)>> = Vec::new();
    let what = |(study, v): &(String, Violation)| {
        (study.clone(), v.experiment.clone(), v.engine.clone(), v.variant.clone(), v.reason.clone())
    };
    for violation in violations {
        match found.iter_mut().find(|alike| what(alike[0]) == what(violation)) {
            Some(alike) => alike.push(violation),
            None => found.push(vec![violation]),
        }
    }
    found
}

fn line(alike: &[&(String, Violation)]) -> Line {
    let (study, first) = alike[0];
    let distinct = |of: &dyn Fn(&Violation) -> String| {
        let mut found: Vec<String> = Vec::new();
        for (_, violation) in alike {
            let value = of(violation);
            if !found.contains(&value) {
                found.push(value);
            }
        }
        found
    };
    let settings = distinct(&|violation| setting(&violation.variables));
    Line {
        head: engine_name(&first.engine, &first.variant),
        ours: first.engine == OURS,
        cells: vec![
            study.clone().into(),
            first.experiment.clone().into(),
            first.reason.clone().into(),
            distinct(&|violation| violation.row.clone()).join(", ").into(),
            match settings.as_slice() {
                [one] => one.clone().into(),
                many => format!("{} settings", many.len()).into(),
            },
            alike.len().to_string().into(),
        ],
    }
}
