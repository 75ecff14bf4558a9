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
        let line = |(study, violation): &(String, Violation)| Line {
            head: engine_name(&violation.engine, &violation.variant),
            ours: violation.engine == OURS,
            cells: vec![
                study.clone().into(),
                violation.experiment.clone().into(),
                setting(&violation.variables).into(),
                violation.row.clone().into(),
                violation.repetition.to_string().into(),
                violation.reason.clone().into(),
            ],
        };
        let table = Table {
            caption: "What broke a rule, with the rows it broke it in.".into(),
            head: "engine".into(),
            columns: vec![
                Column::words("study"),
                Column::words("experiment"),
                Column::words("setting"),
                Column::words("row"),
                Column::number("repetition"),
                Column::words("what"),
            ],
            lines: violations.iter().map(line).collect(),
        };
        let warning = format!(
            "{} figures are marked with \u{2021}: what they were measured under is not what the others were.",
            violations.len()
        );
        vec![Block::Warning(warning), Block::Table(table)]
    };
    Some(Section { id: "fairness".into(), title: "Fairness".into(), blocks })
}
