//! What the operands of a keyspace are combined by, now and before.
//!
//! Settings by which operands are combined change only where no operand is left in what reads find
//! from then on (`lifecycle/settings.rs`). But a read may have loaded its read state before, with
//! operands in it, and combine them afterwards; an iterator does so as long as it lives. So each
//! read state has the epoch of its settings, and those of before are kept.
//!
//! The order, for one that changes them under the writer lock: the present settings are kept under
//! the present epoch; then the keyspace has the new ones; then a read state of the next epoch takes
//! the place of the present one, and with it another active memtable, so that no operand of the new
//! settings comes to be where a reader of the old epoch searches. A reader loads the present
//! settings first and looks for kept ones then: if it finds none, those that it has loaded were in
//! force in its epoch. Where nothing was ever changed, it takes no lock.

use crate::base::sync::{AtomicBool, Guard, Mutex};
use crate::merge_operator::MergeOperator;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// Which settings a read state is read with: all those with these settings share it.
pub type MergeEpoch = Arc<()>;

/// What operands are combined by. No counter that threads share is touched for the present ones.
pub enum MergeSettings {
    Present { operator: Guard<Option<Arc<Arc<dyn MergeOperator>>>>, expires: bool },
    Former(FormerSettings),
}

/// Those of before.
#[derive(Clone)]
pub struct FormerSettings {
    pub operator: Option<Arc<dyn MergeOperator>>,
    pub operator_name: Option<Arc<str>>,
    pub expires: bool,
}

impl MergeSettings {
    /// None if the keyspace has none, or if it was not supplied.
    pub fn operator(&self) -> Option<&dyn MergeOperator> {
        match self {
            MergeSettings::Present { operator, .. } => operator.as_deref().map(|operator| &**operator),
            MergeSettings::Former(former) => former.operator.as_deref(),
        }
    }

    /// Entries can expire: an operand without anything below it is what is left of a value that has
    /// expired.
    pub fn expires(&self) -> bool {
        match self {
            MergeSettings::Present { expires, .. } => *expires,
            MergeSettings::Former(former) => former.expires,
        }
    }
}

/// Those of before, by their epoch, as long as a read state has it.
#[derive(Default)]
pub struct FormerMergeSettings {
    /// Whether there ever were any: set before the present ones are changed for the first time.
    are_any: AtomicBool,
    former: Mutex<Vec<(Weak<()>, FormerSettings)>>,
}

impl FormerMergeSettings {
    /// Those of this epoch, if they are not the present ones.
    #[inline]
    pub fn of(&self, epoch: &MergeEpoch) -> Option<FormerSettings> {
        if self.are_any.load(Ordering::Acquire) { self.find(epoch) } else { None }
    }

    #[cold]
    fn find(&self, epoch: &MergeEpoch) -> Option<FormerSettings> {
        let former = self.former.lock();
        let found = former.iter().find(|(of, _)| of.as_ptr() == Arc::as_ptr(epoch));
        found.map(|(_, settings)| settings.clone())
    }

    /// Keeps the present ones under their epoch; the next one.
    pub fn add(&self, epoch: &MergeEpoch, settings: FormerSettings) -> MergeEpoch {
        let mut former = self.former.lock();
        former.retain(|(of, _)| of.strong_count() > 0);
        if former.iter().all(|(of, _)| of.as_ptr() != Arc::as_ptr(epoch)) {
            former.push((Arc::downgrade(epoch), settings));
        }
        self.are_any.store(true, Ordering::Release);
        MergeEpoch::default()
    }
}
