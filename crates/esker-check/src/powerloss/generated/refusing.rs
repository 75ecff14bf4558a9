//! Loads that are refused.

use super::Maker;
use crate::powerloss::script::{Refusal, Step};

/// So many scripts in a hundred have some.
const REFUSING_PERCENT: usize = 35;

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
        let why = Refusal::ALL[self.random.below(Refusal::ALL.len())];
        let mut steps = vec![Step::RefusedIngest(keyspace, pairs, why)];
        steps.extend(self.random.percent(50).then_some(Step::Compare));
        steps.extend(self.random.percent(30).then_some(Step::Compact));
        steps
    }
}
