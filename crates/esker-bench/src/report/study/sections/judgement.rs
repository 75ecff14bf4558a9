//! The verdict on every hypothesis.

use crate::judgement::{Judgement, Verdict};
use crate::published::DATA;
use crate::report::blocks::{Block, Field, Line, Look, Section, TableOf};
use crate::report::measured::{distinct, engine_name};

/// The section; none if nothing was judged.
pub fn section(judgements: &[Judgement]) -> Option<Section> {
    if judgements.is_empty() {
        return None;
    }
    let order = [Verdict::Held, Verdict::NotHeld, Verdict::NoDifferenceShown, Verdict::RefutedByArithmetic];
    let counts = order.into_iter().chain([Verdict::NotTestableHere, Verdict::NotMeasured]).map(|verdict| {
        let count = judgements.iter().filter(|judgement| judgement.direction == verdict).count();
        format!("{count} {verdict}")
    });
    let summary = format!(
        "{} hypotheses. Verdicts on their direction, over all engines: {}. The direction is whether the effect is there, the \
         magnitude whether it is as large as was published.",
        distinct(judgements.iter().map(|judgement| judgement.hypothesis.as_str())).len(),
        counts.collect::<Vec<_>>().join(", ")
    );
    let (open, judged): (Vec<&Judgement>, Vec<&Judgement>) =
        judgements.iter().partition(|judgement| judgement.direction == Verdict::NotMeasured);
    let mut blocks = vec![Block::Text(summary), table("Every hypothesis that these runs judge, by engine.", &judged)];
    if !open.is_empty() {
        let line = "Not measured by these runs, and why".to_string();
        blocks.push(Block::Folded(line, vec![table("What these runs do not judge.", &open)]));
    }
    Some(Section::new("hypotheses", "Hypotheses", blocks))
}

/// What a hypothesis claims; empty for one that is not known.
fn claim(hypothesis: &str) -> &'static str {
    DATA.hypotheses.iter().find(|known| known.id == hypothesis).map_or("", |known| &known.claim)
}

fn table(caption: &str, judgements: &[&Judgement]) -> Block {
    let name = |judgement: &&Judgement| Line::of(&judgement.engine, &judgement.hypothesis);
    let table = TableOf::new(caption, "hypothesis", judgements, name)
        .words("claim", |judgement| claim(&judgement.hypothesis))
        .words("engine", |judgement| engine_name(&judgement.engine, ""))
        .words("value", |judgement| judgement.value.clone())
        .words("direction", |judgement| verdict(judgement.direction))
        .words("magnitude", |judgement| verdict(judgement.magnitude))
        .words("why", |judgement| judgement.why.clone());
    Block::Table(table.done())
}

fn verdict(verdict: Verdict) -> Field {
    let look = match verdict {
        Verdict::Held => Look::Good,
        Verdict::NotHeld | Verdict::RefutedByArithmetic => Look::Bad,
        Verdict::NotTestableHere | Verdict::NotMeasured | Verdict::NoDifferenceShown => Look::Quiet,
    };
    Field::looking(look, verdict.to_string())
}
