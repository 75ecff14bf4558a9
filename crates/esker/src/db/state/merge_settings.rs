//! The merge settings of a keyspace: the present ones, and the former ones that readers may need.
//!
//! Merge settings change only when no operand is left in the read states to come
//! (`lifecycle/settings.rs`). A read that loaded its read state before the change may still combine
//! operands of it afterwards, an iterator for as long as it lives. Each read state therefore has
//! the epoch of its settings, and the settings of former epochs are kept.
//!
//! A change takes these steps under the writer lock. It stores the present settings under the
//! present epoch, and gives the keyspace the new ones. It then installs a read state of the next
//! epoch with a new active memtable, so that no reader of the old epoch finds an operand of the new
//! settings. A reader loads the present settings first, and looks for former ones after that: if it
//! finds none, the loaded settings are those of its epoch. If the settings never changed, a reader
//! takes no lock.

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
