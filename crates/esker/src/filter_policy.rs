//! Filter policies: which tables a get need not search, as the program says.

/// Says of a table whether it can hold a key, by a filter that it made of the table's keys. It is
/// asked beside the engine's own filter, before a get searches the table: a table that either of
/// them rules out is not searched.
///
/// The filter of a table is made once, when a flush, a compaction or a load writes it, of all its
/// keys, in their order, each once: they are held in memory until then. It is stored in the table
/// with the name of the policy, and stays in memory while the table is open. Where the database is
/// opened without a policy of that name, the filter is not used. Scans ask no filter.
///
/// A policy must answer true for every key that the filter was made of: **a key that it denies is
/// not found**. It is called from any thread, also with locks of the database held, and may do in
/// its own database what a [`crate::MergeOperator`] may. Where it panics, there is no filter, and
/// the table is searched.
///
/// ```
/// use esker::FilterPolicy;
/// /// Rules out keys that begin with a byte that no key of the table begins with.
/// struct FirstBytes;
/// impl FilterPolicy for FirstBytes {
///     fn name(&self) -> &str { "first bytes" }
///     fn create_filter(&self, keys: &[&[u8]]) -> Option<Vec<u8>> {
///         let mut first: Vec<u8> = keys.iter().filter_map(|key| key.first().copied()).collect();
///         first.dedup();
///         Some(first)
///     }
///     fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
///         key.first().is_none_or(|first| filter.contains(first))
///     }
/// }
/// ```
pub trait FilterPolicy: Send + Sync + 'static {
    /// The name that is stored with each filter. Another kind of filter needs another name.
    ///
    /// ```
    /// # use esker::FilterPolicy;
    /// # struct Nothing;
    /// # impl FilterPolicy for Nothing {
    /// #     fn name(&self) -> &str { "nothing" }
    /// #     fn create_filter(&self, _: &[&[u8]]) -> Option<Vec<u8>> { None }
    /// #     fn key_may_match(&self, _: &[u8], _: &[u8]) -> bool { true }
    /// # }
    /// assert_eq!(Nothing.name(), "nothing");
    /// ```
    fn name(&self) -> &str;

    /// The filter of a table with these keys; none for a table that is always searched.
    ///
    /// ```
    /// # use esker::FilterPolicy;
    /// # struct Nothing;
    /// # impl FilterPolicy for Nothing {
    /// #     fn name(&self) -> &str { "nothing" }
    /// #     fn create_filter(&self, _: &[&[u8]]) -> Option<Vec<u8>> { None }
    /// #     fn key_may_match(&self, _: &[u8], _: &[u8]) -> bool { true }
    /// # }
    /// assert!(Nothing.create_filter(&[b"ada", b"bob"]).is_none());
    /// ```
    fn create_filter(&self, keys: &[&[u8]]) -> Option<Vec<u8>>;

    /// Whether the table that the filter was made for may hold a key.
    ///
    /// ```
    /// # use esker::FilterPolicy;
    /// # struct Nothing;
    /// # impl FilterPolicy for Nothing {
    /// #     fn name(&self) -> &str { "nothing" }
    /// #     fn create_filter(&self, _: &[&[u8]]) -> Option<Vec<u8>> { None }
    /// #     fn key_may_match(&self, _: &[u8], _: &[u8]) -> bool { true }
    /// # }
    /// assert!(Nothing.key_may_match(b"ada", b""));
    /// ```
    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool;
}
