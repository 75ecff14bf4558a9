//! Changes of the names and the settings of keyspaces.

use super::{Maker, counts};
use crate::model::{Operator, Ttl};
use crate::powerloss::script::{FRAGILE, HOUR_MS, Step, WINDOW, WINDOW_BYTES, is_fading};
use esker::CompactionStyle;

impl Maker {
    pub(super) fn alteration(&mut self) -> Step {
        let index = self.keyspace();
        let (operator, ttl) = self.settings[index];
        match self.random.below(12) {
            0..=3 => Step::Rename(index),
            10..=11 => self.style(index),
            _ if is_fading(index) => self.style(index),
            // What a merge makes of what expires depends on what is lost, and whether what fails
            // has expired cannot be read.
            4..=5 if !self.limits.unlogged && index != FRAGILE => {
                let ttl = Ttl::On([None, Some(HOUR_MS), Some(300)][self.random.below(3)]);
                self.settings[index] = (operator, ttl);
                Step::Ttl(index, ttl)
            }
            _ => {
                let others = operators_for(index);
                let operator = others[self.random.below(others.len())];
                self.settings[index] = (operator, ttl);
                Step::Operator(index, operator)
            }
        }
    }

    fn style(&mut self, keyspace: usize) -> Step {
        // But for the one that is to keep little, all that there is.
        let max_bytes = if keyspace == WINDOW { WINDOW_BYTES } else { 1 << 40 };
        let fifo = CompactionStyle::Fifo { max_bytes };
        let styles = [CompactionStyle::LazyLeveling, CompactionStyle::Leveled, CompactionStyle::Tiered, fifo];
        Step::Style(keyspace, styles[self.random.below(styles.len())])
    }
}

/// The operators that the values and operands of a keyspace suit.
fn operators_for(keyspace: usize) -> &'static [Operator] {
    match keyspace {
        FRAGILE => &[Operator::Fragile, Operator::Longest, Operator::StringAppend],
        _ if counts(keyspace) => {
            &[Operator::UInt64Add, Operator::Int64Add, Operator::Max, Operator::Min, Operator::BytesXor, Operator::Put]
        }
        _ => &[
            Operator::StringAppend,
            Operator::Max,
            Operator::Min,
            Operator::Put,
            Operator::BytesXor,
            Operator::BitOr,
            Operator::Longest,
        ],
    }
}
