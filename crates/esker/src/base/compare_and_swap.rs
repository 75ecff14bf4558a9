//! The answer of a compare-and-swap.

use super::slice::Slice;

/// What became of [`crate::Keyspace::compare_and_swap`].
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let names = db.keyspace("names", Default::default())?;
/// use esker::CompareAndSwap;
/// match names.compare_and_swap("ada", None, Some(b"1815"))? {
///     CompareAndSwap::Swapped => println!("it was the first value"),
///     CompareAndSwap::Unequal { current } => println!("there was {current:?}"),
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "a swap that did not take place has written nothing"]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CompareAndSwap {
    /// The key had the expected value, and has the new one.
    Swapped,
    /// The key had another value, and keeps it.
    Unequal {
        /// What it has; none if it has no value.
        current: Option<Slice>,
    },
}

impl CompareAndSwap {
    /// Whether the new value was written.
    ///
    /// ```
    /// use esker::CompareAndSwap;
    /// assert!(CompareAndSwap::Swapped.is_swapped());
    /// assert!(!CompareAndSwap::Unequal { current: None }.is_swapped());
    /// ```
    pub fn is_swapped(&self) -> bool {
        *self == CompareAndSwap::Swapped
    }
}
