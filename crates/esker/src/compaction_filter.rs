//! Compaction filters: deciding about values while they are merged.

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It stays.
    Keep,
    /// The key goes, as if deleted when the value was written.
    Remove,
    /// The key gets this value, as if that had been written. One longer than 1 GiB is not taken.
    Replace(Vec<u8>),
}

/// Decides about values while compaction has them in hand: to drop what the application knows to be
/// dead, or to rewrite it, for little more than the merge costs anyway.
///
/// When a value is asked about, and whether ever, depends on what is merged; it may be asked about
/// again after each merge. Only values written by puts are asked about, only the newest one of a
/// key among those merged, and only if no snapshot or iterator can see it: what they see does not
/// change. (One made while such a merge is at work, and still alive at its end, makes the merge
/// start again without the filter.) `Remove` never uncovers an older value. A value below merge
/// operands that are not merged with it yet may be asked about, and taken from below them. Flushes
/// ask nothing.
///
/// Called from any thread, from several at once. A panic counts as [`Decision::Keep`]. What a
/// filter may ask of its own database is what a [`crate::MergeOperator`] may ask.
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
