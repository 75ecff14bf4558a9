//! Writes without log where entries expire.
//!
//! "The decision is logged, and never made again": what a logged merge or a change of an expiry
//! makes of a key there is what the key held when it was made, also where a loss takes that. So
//! nothing could be said of it. These writes have keys of their own, to which logged steps put, or
//! which they delete, and do nothing else: whatever is lost, what is logged comes to the same.

use super::Maker;
use crate::model::{Change, Life, Operator, Write};
use crate::powerloss::script::{KEYSPACES, Step};
use crate::state::Durability;

/// So many of the scripts in a hundred that may write without log do so where entries expire.
const UNLOGGED_PERCENT: usize = 60;

/// How many keys there are for it.
const UNLOGGED_KEYS: usize = 4;

/// A key that no other step writes to alone.
fn own_key(number: usize) -> Vec<u8> {
    format!("unlogged-{number}").into_bytes()
}

impl Maker {
    /// Some such writes, and logged ones to the same keys, in one keyspace.
    pub(super) fn unlogged_steps(&mut self) -> Vec<Vec<Step>> {
        let is_allowed = self.limits.unlogged && self.limits.expiring_unlogged;
        if !is_allowed || !self.random.percent(UNLOGGED_PERCENT) {
            return Vec::new();
        }
        let expiring: Vec<usize> = (0..KEYSPACES.len()).filter(|&keyspace| self.expires(keyspace)).collect();
        let in_use: Vec<usize> = expiring.iter().copied().filter(|keyspace| self.cast.contains(keyspace)).collect();
        let suitable = if in_use.is_empty() { expiring } else { in_use };
        let keyspace = suitable[self.random.below(suitable.len())];
        let count = self.random.between(2, 6);
        (0..count).map(|_| vec![self.unlogged_step(keyspace)]).collect()
    }

    fn unlogged_step(&mut self, keyspace: usize) -> Step {
        let count = self.random.between(1, 4);
        match self.random.below(10) {
            0..=2 => {
                let writes = (0..count).map(|_| self.logged_write(keyspace)).collect();
                Step::Batch(writes, [Durability::Async, Durability::Sync][self.random.below(2)])
            }
            3..=4 => match self.unlogged_write(keyspace) {
                // Alone, a change of an expiry is logged.
                write if write.change == Change::Expire => Step::Batch(vec![write], Durability::Unlogged),
                write => Step::Single(write, Durability::Unlogged),
            },
            _ => {
                let writes = (0..count).map(|_| self.unlogged_write(keyspace)).collect();
                Step::Batch(writes, Durability::Unlogged)
            }
        }
    }

    fn unlogged_write(&mut self, keyspace: usize) -> Write {
        let has_operator = self.settings[keyspace].0 != Operator::None;
        let change = match self.random.below(10) {
            0 => Change::Delete,
            1..=2 => Change::Expire,
            3..=5 if has_operator => Change::Merge(self.operand(keyspace)),
            _ => Change::Put(self.value(keyspace)),
        };
        self.own_write(keyspace, change)
    }

    fn logged_write(&mut self, keyspace: usize) -> Write {
        let change = if self.random.percent(30) { Change::Delete } else { Change::Put(self.value(keyspace)) };
        self.own_write(keyspace, change)
    }

    fn own_write(&mut self, keyspace: usize, change: Change) -> Write {
        let life = match &change {
            Change::Put(_) | Change::Expire => self.life(true),
            Change::Merge(_) => self.life(false),
            _ => Life::Usual,
        };
        Write::new(keyspace, own_key(self.random.below(UNLOGGED_KEYS)), change).living(life)
    }
}
