//! Changes that are kept, or for another time, from one open to the next.

use super::Maker;
use crate::feed::RETENTIONS;
use crate::powerloss::script::Step;

/// So many scripts in a hundred have such opens.
const KEEPING_PERCENT: usize = 40;

impl Maker {
    /// Up to three such opens, and as many looks at what readers of changes are told.
    pub(super) fn keeping_steps(&mut self) -> Vec<Vec<Step>> {
        if !self.limits.retentions || !self.random.percent(KEEPING_PERCENT) {
            return Vec::new();
        }
        let count = self.random.between(1, 3);
        let mut opens: Vec<Vec<Step>> = (0..count).map(|_| vec![self.keep()]).collect();
        opens.resize(2 * count, vec![Step::Compare]);
        opens
    }

    fn keep(&mut self) -> Step {
        // In two of seven as at first, which is not at all in most option sets.
        Step::Keep(RETENTIONS.get(self.random.below(RETENTIONS.len() + 2)).copied())
    }
}
