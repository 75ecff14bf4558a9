//! The options of a keyspace.

use super::CompactionStyle;
use crate::base::comparator::Comparator;
use crate::base::expiry::Ttl;
use crate::compaction_filter::CompactionFilter;
use crate::merge_operator::MergeOperator;
use std::fmt;
use std::sync::Arc;

/// Options of a keyspace. Merge operator, comparator and time to live are stored, the first two by
/// their names, when the keyspace is created, and checked at every later open. The compaction style
/// is stored, and may be another one at each open; a compaction filter is not stored.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// use esker::{KeyspaceOptions, merge::UInt64Add};
/// let hits = db.keyspace("hits", KeyspaceOptions::default().merge_operator(UInt64Add))?;
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "each setting returns the changed options"]
pub struct KeyspaceOptions {
    pub(crate) merge_operator: Option<Arc<dyn MergeOperator>>,
    pub(crate) comparator: Option<Arc<dyn Comparator>>,
    pub(crate) ttl: Option<Ttl>,
    pub(crate) compaction_style: Option<CompactionStyle>,
    pub(crate) compaction_filter: Option<Arc<dyn CompactionFilter>>,
}

impl fmt::Debug for KeyspaceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.merge_operator.as_ref().map(|operator| operator.name().to_owned());
        let filter = self.compaction_filter.as_ref().map(|filter| filter.name().to_owned());
        f.debug_struct("KeyspaceOptions")
            .field("merge_operator", &name)
            .field("comparator", &self.comparator.as_ref().map(|comparator| comparator.name().to_owned()))
            .field("ttl", &self.ttl)
            .field("compaction_style", &self.compaction_style)
            .field("compaction_filter", &filter)
            .finish()
    }
}

impl KeyspaceOptions {
    /// The merge operator of the keyspace. Default: none, so that merges are refused.
    ///
    /// ```
    /// let options = esker::KeyspaceOptions::default().merge_operator(esker::merge::UInt64Add);
    /// ```
    pub fn merge_operator(self, operator: impl MergeOperator) -> KeyspaceOptions {
        self.shared_merge_operator(Arc::new(operator))
    }

    /// As [`KeyspaceOptions::merge_operator`], with an operator that is shared already.
    ///
    /// ```
    /// let operator = esker::merge::built_in("max").expect("a built-in operator");
    /// let options = esker::KeyspaceOptions::default().shared_merge_operator(operator);
    /// ```
    pub fn shared_merge_operator(mut self, operator: Arc<dyn MergeOperator>) -> KeyspaceOptions {
        self.merge_operator = Some(operator);
        self
    }

    /// The order of the keyspace's keys. Default: unsigned bytes, shorter before longer, at no
    /// price; an existing keyspace keeps what it was created with. Its name is stored, and another
    /// one is refused at a later open. Give the comparator to [`crate::Options::comparator`] as
    /// well, for the opens to come.
    ///
    /// Trade-off: a call for each comparison; a byte more for each key, of which the longest has
    /// 1,048,575 bytes; and what else [`crate::Comparator`] says.
    ///
    /// ```
    /// use esker::{KeyspaceOptions, ReverseBytewise};
    /// let options = KeyspaceOptions::default().comparator(ReverseBytewise);
    /// ```
    pub fn comparator(self, comparator: impl Comparator) -> KeyspaceOptions {
        self.shared_comparator(Arc::new(comparator))
    }

    /// As [`KeyspaceOptions::comparator`], with a comparator that is shared already.
    ///
    /// ```
    /// let comparator = std::sync::Arc::new(esker::ReverseBytewise);
    /// let options = esker::KeyspaceOptions::default().shared_comparator(comparator);
    /// ```
    pub fn shared_comparator(mut self, comparator: Arc<dyn Comparator>) -> KeyspaceOptions {
        self.comparator = Some(comparator);
        self
    }

    /// Whether entries can expire, and after what time by default. Default: they cannot, and
    /// nothing is paid for it; an existing keyspace keeps what it has
    /// ([`Keyspace::set_ttl`](crate::Keyspace::set_ttl) changes that). Costs nine
    /// bytes for each entry that expires, and a reading of the clock for each read.
    ///
    /// ```
    /// use esker::{KeyspaceOptions, Ttl};
    /// let half_an_hour = std::time::Duration::from_secs(1800);
    /// let options = KeyspaceOptions::default().ttl(Ttl::Enabled { default: Some(half_an_hour) });
    /// ```
    pub fn ttl(mut self, ttl: Ttl) -> KeyspaceOptions {
        self.ttl = Some(ttl);
        self
    }

    /// How the keyspace's tables are compacted. Default: as stored;
    /// [`CompactionStyle::LazyLeveling`] for a new keyspace. Stored, and changed when it is given
    /// at a later open: existing tables are then compacted by the new style.
    ///
    /// ```
    /// use esker::{CompactionStyle, KeyspaceOptions};
    /// let week = KeyspaceOptions::default().compaction_style(CompactionStyle::Fifo { max_bytes: 10 << 30 });
    /// ```
    pub fn compaction_style(mut self, style: CompactionStyle) -> KeyspaceOptions {
        self.compaction_style = Some(style);
        self
    }

    /// Decides about values while they are compacted: see [`CompactionFilter`]. Default: none. Not
    /// stored: give it at every open. Given again while the keyspace is open, it replaces the one
    /// before.
    ///
    /// ```
    /// # use esker::{CompactionFilter, Decision};
    /// # struct DropEmpty;
    /// # impl CompactionFilter for DropEmpty {
    /// #     fn name(&self) -> &str { "drop-empty" }
    /// #     fn decide(&self, _key: &[u8], value: &[u8]) -> Decision { if value.is_empty() { Decision::Remove } else { Decision::Keep } }
    /// # }
    /// let options = esker::KeyspaceOptions::default().compaction_filter(DropEmpty);
    /// ```
    pub fn compaction_filter(mut self, filter: impl CompactionFilter) -> KeyspaceOptions {
        self.compaction_filter = Some(Arc::new(filter));
        self
    }

    /// Whether compaction drops values by these options for other reasons than that they were
    /// deleted, overwritten or have expired: a compaction filter, or [`CompactionStyle::Fifo`].
    /// When it does depends on how a database was compacted, so that two databases with the same
    /// writes differ.
    ///
    /// ```
    /// use esker::{CompactionStyle, KeyspaceOptions};
    /// assert!(!KeyspaceOptions::default().drops_values_in_compaction());
    /// let week = KeyspaceOptions::default().compaction_style(CompactionStyle::Fifo { max_bytes: 10 << 30 });
    /// assert!(week.drops_values_in_compaction());
    /// ```
    #[must_use]
    pub fn drops_values_in_compaction(&self) -> bool {
        matches!(self.compaction_style, Some(CompactionStyle::Fifo { .. })) || self.compaction_filter.is_some()
    }
}
