//! Compaction filters: decisions about values while they are compacted.

/// What a [`CompactionFilter`] decides about a value.
///
/// ```
/// use esker::Decision;
/// // Truncates what is too long for its readers.
/// let decide = |value: &[u8]| match value.get(..80) {
///     Some(start) => Decision::Replace(start.to_vec()),
///     None => Decision::Keep,
/// };
/// assert_eq!(decide(b"short"), Decision::Keep);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decision {
    /// It stays.
    Keep,
    /// The key goes, as if deleted when the value was written.
    Remove,
    /// The key gets this value, as if that had been written. One longer than 1 GiB is not taken.
    Replace(Vec<u8>),
}

/// Decides about values while they are compacted: drops values that the application knows to be
/// dead, or rewrites them, for little more than the cost of the compaction.
///
/// When a value is passed to the filter, and whether ever, depends on what is compacted; it may be
/// passed again by each compaction. Large values, of [`Options::min_blob_size`](crate::Options) and
/// more, are never passed. Only values written by puts are passed, only the newest one of
/// a key among the inputs, and only if no snapshot or iterator can see it: what they see does not
/// change. (One made while such a compaction runs, and still alive at its end, makes the compaction
/// start again without the filter.) `Remove` never uncovers an older value. A value below merge
/// operands that are not combined with it yet may be passed, and removed from below them: they then
/// start from nothing, or, in a keyspace in which entries can expire, go with it. Flushes do not
/// call the filter.
///
/// Called from any thread, from several at once. A panic counts as [`Decision::Keep`]. A filter may
/// call its own database as far as a [`crate::MergeOperator`] may.
///
/// ```
/// use esker::{CompactionFilter, Decision};
/// /// Forgets sessions that ended before a certain day; a value begins with its day.
/// struct Forget { before: u32 }
/// impl CompactionFilter for Forget {
///     fn name(&self) -> &str { "forget" }
///     fn decide(&self, _key: &[u8], value: &[u8]) -> Decision {
///         let day = value.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
///         if day.is_some_and(|day| day < self.before) { Decision::Remove } else { Decision::Keep }
///     }
/// }
/// ```
pub trait CompactionFilter: Send + Sync + 'static {
    /// Its name, for messages.
    ///
    /// ```
    /// # use esker::{CompactionFilter, Decision};
    /// # struct DropEmpty;
    /// # impl CompactionFilter for DropEmpty {
    /// #     fn name(&self) -> &str { "drop-empty" }
    /// #     fn decide(&self, _key: &[u8], value: &[u8]) -> Decision { if value.is_empty() { Decision::Remove } else { Decision::Keep } }
    /// # }
    /// assert_eq!(DropEmpty.name(), "drop-empty");
    /// ```
    fn name(&self) -> &str;

    /// What becomes of this value.
    ///
    /// ```
    /// # use esker::{CompactionFilter, Decision};
    /// # struct DropEmpty;
    /// # impl CompactionFilter for DropEmpty {
    /// #     fn name(&self) -> &str { "drop-empty" }
    /// #     fn decide(&self, _key: &[u8], value: &[u8]) -> Decision { if value.is_empty() { Decision::Remove } else { Decision::Keep } }
    /// # }
    /// assert_eq!(DropEmpty.decide(b"ada", b""), Decision::Remove);
    /// ```
    fn decide(&self, key: &[u8], value: &[u8]) -> Decision;
}
