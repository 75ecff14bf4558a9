//! What follows from kept runs, as every section takes it: verdicts on the hypotheses, published
//! figures beside the measured ones, and broken rules of fairness.

use crate::judgement::judge;
use crate::published::{DATA, compare};
use crate::study::fairness::violations;
use crate::study::grid::StudyRun;

pub use crate::judgement::{Judgement, Verdict};
pub use crate::published::{Compared, Measured as Answer};
pub use crate::study::fairness::Violation;

/// All that follows.
#[derive(Debug, Default)]
pub struct Findings {
    /// The verdict on every hypothesis, by engine.
    pub judgements: Vec<Judgement>,
    /// Every published record with what was measured of it.
    pub compared: Vec<Compared>,
    /// What broke a rule, with its study.
    pub violations: Vec<(String, Violation)>,
}

impl Findings {
    /// Finds out.
    pub fn of(runs: &[StudyRun]) -> Findings {
        Findings {
            judgements: judge(runs),
            compared: compare(runs),
            violations: runs
                .iter()
                .flat_map(|run| violations(&run.finished).into_iter().map(|violation| (run.study.clone(), violation)))
                .collect(),
        }
    }

    /// The published records of an experiment.
    pub fn published<'a>(&'a self, study: &'a str, experiment: &'a str) -> impl Iterator<Item = &'a Compared> {
        let wanted =
            move |compared: &&Compared| compared.record.study == study && compared.record.experiment == experiment;
        self.compared.iter().filter(wanted)
    }
}

/// What a hypothesis claims; empty for one that is not known.
pub fn claim(hypothesis: &str) -> &'static str {
    DATA.hypotheses.iter().find(|known| known.id == hypothesis).map_or("", |known| &known.claim)
}

/// The name that this program has for the engine of a published record, whose version is part of
/// its name there.
pub fn engine_of(published: &str) -> Option<&'static str> {
    let name = published.to_ascii_lowercase();
    crate::engine::ENGINES.into_iter().find(|engine| name.starts_with(engine))
}
