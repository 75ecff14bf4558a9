//! Loads that are refused.

use super::Maker;
use crate::powerloss::script::{Refusal, Step};

/// So many scripts in a hundred have some.
const REFUSING_PERCENT: usize = 35;

const REFUSALS: [Refusal; 4] = [Refusal::Twice, Refusal::OutOfOrder, Refusal::TooLong, Refusal::Panic];

impl Maker {
    /// One such load, or two, each often with what would show that something of it has stayed.
    pub(super) fn refused_loads(&mut self) -> Vec<Vec<Step>> {
        if !self.limits.refusals || !self.random.percent(REFUSING_PERCENT) {
            return Vec::new();
        }
        let count = self.random.between(1, 2);
        (0..count).map(|_| self.refused_load()).collect()
    }

    fn refused_load(&mut self) -> Vec<Step> {
        let Step::Ingest(keyspace, pairs) = self.ingest() else { return Vec::new() };
        let mut steps = vec![Step::RefusedIngest(keyspace, pairs, REFUSALS[self.random.below(REFUSALS.len())])];
        steps.extend(self.random.percent(50).then_some(Step::Compare));
        steps.extend(self.random.percent(30).then_some(Step::Compact));
        steps
    }
}
