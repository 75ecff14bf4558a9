//! Single writes: what they change and to what, how long that lives, and how safe it must be.

use super::{Maker, counts};
use crate::model::{Change, FAILING, Life, Operator, PANICKING, Ttl, Write};
use crate::orders::order_of;
use crate::powerloss::script::{FRAGILE, KEYSPACES};
use crate::state::Durability;

impl Maker {
    /// Without log only where nothing expires, and no merge fails: what it makes there depends on
    /// what is lost. Where entries expire, `unlogged.rs` makes some.
    pub(super) fn durability(&mut self, writes: &[Write]) -> Durability {
        let depends = |write: &Write| self.expires(write.keyspace) || write.keyspace == FRAGILE;
        let is_foretold = !writes.iter().any(depends);
        match self.random.below(100) {
            below if below < self.sync_percent => Durability::Sync,
            90.. if self.limits.unlogged && is_foretold => Durability::Unlogged,
            _ => Durability::Async,
        }
    }

    pub(super) fn write(&mut self) -> Write {
        let keyspace = self.keyspace();
        let (operator, _) = self.settings[keyspace];
        let expires = self.expires(keyspace);
        let change = match self.random.below(100) {
            0..=2 => return Write::delete_range(keyspace, self.bound(), self.bound()),
            3 if order_of(KEYSPACES[keyspace].0).has_prefixes() => {
                let mut prefix = self.key();
                prefix.truncate(prefix.len() - prefix.len().min(self.random.below(2)));
                return Write::new(keyspace, [], Change::DeletePrefix(prefix));
            }
            3 => return Write::delete_range(keyspace, self.bound(), self.bound()),
            4..=16 => Change::Delete,
            17..=19 if expires => Change::Expire,
            17..=19 => Change::Delete,
            20..=59 if operator != Operator::None => Change::Merge(self.operand(keyspace)),
            _ => Change::Put(self.value(keyspace)),
        };
        let life = match &change {
            Change::Put(_) | Change::Expire if expires => self.life(true),
            Change::Merge(_) if expires => self.life(false),
            _ => Life::Usual,
        };
        Write::new(keyspace, self.key(), change).living(life)
    }

    pub(super) fn expires(&self, keyspace: usize) -> bool {
        self.settings[keyspace].1 != Ttl::Off
    }

    pub(super) fn life(&mut self, of_put: bool) -> Life {
        match self.random.below(10) {
            0..=3 => Life::For(self.random.between(1, 400) as u64),
            4 => Life::For(self.random.between(1, 5_000_000) as u64),
            5..=6 if of_put => Life::Until(self.now + self.random.below(600) as u64 - 100),
            _ => Life::Usual,
        }
    }

    pub(super) fn operand(&mut self, keyspace: usize) -> Vec<u8> {
        if counts(keyspace) {
            return (self.random.below(1000) as u64).to_le_bytes().to_vec();
        }
        let length = self.random.below(12);
        let mut operand = self.random.bytes(length);
        // Rarely, as the key fails until it is overwritten.
        if keyspace == FRAGILE && self.random.percent(15) {
            operand.insert(0, [FAILING, PANICKING][self.random.below(2)]);
        }
        operand
    }

    pub(super) fn value(&mut self, keyspace: usize) -> Vec<u8> {
        if counts(keyspace) {
            return self.operand(keyspace);
        }
        let length = match self.random.below(40) {
            0..=1 => 0,
            2..=29 => self.random.between(1, 20),
            30..=37 => self.random.between(21, 300),
            _ => self.random.between(301, 3000),
        };
        self.filled(length)
    }

    /// So many bytes, or as many as a value may have, which compress or do not.
    pub(super) fn filled(&mut self, length: usize) -> Vec<u8> {
        let length = length.min(self.limits.value);
        if self.random.percent(50) { vec![self.random.next() as u8; length] } else { self.random.bytes(length) }
    }
}
