//! What the operands of a keyspace are combined by, now and before.
//!
//! Settings by which operands are combined change only where no operand is left in what reads find
//! from then on (`lifecycle/settings.rs`). But a read may have loaded its read state before, with
//! operands in it, and combine them afterwards; an iterator does so as long as it lives. So each
//! read state has the number of its settings, and those of before are kept.
//!
//! The order, for one that changes them under the writer lock: the present settings are kept under
//! the present number; then the keyspace has the new ones; then a read state with the next number
//! takes the place of the present one, and with it another active memtable, so that no operand of
//! the new settings comes to be where a reader with the old number searches. A reader loads the
//! present settings first and looks for kept ones then: if it finds none, those that it has loaded
//! were in force for its number.

use crate::base::sync::Mutex;
use crate::merge_operator::MergeOperator;
use std::sync::Arc;

/// What operands are combined by.
#[derive(Clone)]
pub struct MergeSettings {
    /// None if the keyspace has none, or if it was not supplied.
    pub operator: Option<Arc<dyn MergeOperator>>,
    /// None if the keyspace has none.
    pub operator_name: Option<Arc<str>>,
    /// Entries can expire: an operand without anything below it is what is left of a value that has
    /// expired.
    pub expires: bool,
}

/// Those of before, by their number.
#[derive(Default)]
pub struct FormerMergeSettings(Mutex<Vec<(u64, MergeSettings)>>);

impl FormerMergeSettings {
    /// Those with this number, if they are not the present ones.
    pub fn of(&self, epoch: u64) -> Option<MergeSettings> {
        let former = self.0.lock();
        former.iter().find(|(number, _)| *number == epoch).map(|(_, settings)| settings.clone())
    }

    /// Keeps the present ones under their number; the next number.
    pub fn add(&self, epoch: u64, settings: MergeSettings) -> u64 {
        let mut former = self.0.lock();
        if former.iter().all(|(number, _)| *number != epoch) {
            former.push((epoch, settings));
        }
        epoch + 1
    }
}
