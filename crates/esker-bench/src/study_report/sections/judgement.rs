//! The verdict on every hypothesis.

use super::super::blocks::{Block, Column, Field, Line, Look, Section, Table};
use super::super::findings::{Findings, Judgement, Verdict, claim};
use super::super::measured::engine_name;
use crate::report::engine_style::OURS;

/// The section; none if nothing was judged.
pub fn section(findings: &Findings) -> Option<Section> {
    let judgements = &findings.judgements;
    if judgements.is_empty() {
        return None;
    }
    let count = |verdict: Verdict| judgements.iter().filter(|judgement| judgement.direction == verdict).count();
    let mut hypotheses: Vec<&str> = judgements.iter().map(|judgement| judgement.hypothesis.as_str()).collect();
    hypotheses.dedup();
    let counts = [Verdict::Held, Verdict::NotHeld, Verdict::NoDifferenceShown, Verdict::RefutedByArithmetic]
        .into_iter()
        .chain([Verdict::NotTestableHere, Verdict::NotMeasured])
        .map(|verdict| format!("{} {verdict}", count(verdict)));
    let summary = format!(
        "{} hypotheses. Verdicts on their direction, over all engines: {}. The direction is whether the effect is there, the \
         magnitude whether it is as large as was published.",
        hypotheses.len(),
        counts.collect::<Vec<_>>().join(", ")
    );
    let (open, judged): (Vec<&Judgement>, Vec<&Judgement>) =
        judgements.iter().partition(|judgement| judgement.direction == Verdict::NotMeasured);
    let mut blocks =
        vec![Block::Text(summary), Block::Table(table("Every hypothesis that these runs judge, by engine.", &judged))];
    if !open.is_empty() {
        let line = "Not measured by these runs, and why".to_string();
        blocks.push(Block::Folded(line, vec![Block::Table(table("What these runs do not judge.", &open))]));
    }
    Some(Section { id: "hypotheses".into(), title: "Hypotheses".into(), blocks })
}

fn table(caption: &str, judgements: &[&Judgement]) -> Table {
    let columns = ["claim", "engine", "value", "direction", "magnitude", "why"].map(Column::words);
    Table {
        caption: caption.into(),
        head: "hypothesis".into(),
        columns: columns.into(),
        lines: judgements.iter().map(|judgement| line(judgement)).collect(),
    }
}

fn line(judgement: &Judgement) -> Line {
    Line {
        head: judgement.hypothesis.clone(),
        ours: judgement.engine == OURS,
        cells: vec![
            claim(&judgement.hypothesis).into(),
            engine_name(&judgement.engine, "").into(),
            judgement.value.clone().into(),
            verdict(judgement.direction),
            verdict(judgement.magnitude),
            judgement.why.clone().into(),
        ],
    }
}

fn verdict(verdict: Verdict) -> Field {
    let look = match verdict {
        Verdict::Held => Look::Good,
        Verdict::NotHeld | Verdict::RefutedByArithmetic => Look::Bad,
        Verdict::NotTestableHere | Verdict::NotMeasured | Verdict::NoDifferenceShown => Look::Quiet,
    };
    Field { text: verdict.to_string(), look }
}
