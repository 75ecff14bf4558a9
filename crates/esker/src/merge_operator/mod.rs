//! Merge operators: how an operand combines with what a key holds, without reading it at the time
//! of the write.

use std::any::TypeId;
use std::fmt;

mod bitwise;
mod built_in;
pub(crate) mod chain;
pub(crate) mod contained;
mod int64_add;
mod laws;

pub use bitwise::{BitOr, BytesXor};
pub(crate) use built_in::UINT64_ADD;
pub(crate) use built_in::is_impostor;
pub use built_in::{Max, Min, Put, StringAppend, UInt64Add, built_in};
pub(crate) use int64_add::INT64_ADD;
pub use int64_add::Int64Add;
pub use laws::{LawViolation, Outcome, check_laws};

/// Why an operator could not combine what it was given.
///
/// ```
/// use esker::MergeError;
/// let refuse = |operand: &[u8]| match operand.len() {
///     8 => Ok(()),
///     other => Err(MergeError(format!("{other} bytes, not 8"))),
/// };
/// assert_eq!(refuse(b"ada").unwrap_err().to_string(), "3 bytes, not 8");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MergeError(pub String);

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MergeError {}

/// Combines operands with values.
///
/// Both merges must be deterministic and agree with each other: merging operands first with
/// `partial_merge` and then with `full_merge` must give what `full_merge` gives for all of them in
/// order. The engine calls them from any thread, at write, read, flush and compaction. A failing or
/// panicking operator harms reads of that key only. [`crate::merge::check_laws`] tests all of this.
///
/// The engine holds locks during a call, at a write the one that all writes of the database take:
/// other threads wait as long as the call lasts, so it should be short. An operator may read single
/// keys and statistics of its own database. Writes, snapshots, iterators, transactions and calls
/// that wait for work are refused with [`crate::Error::InCallback`]; other threads can do that, but
/// the operator must not wait for them. An operator that calls itself, by reading a key that needs
/// it, fails after a few times.
///
/// ```
/// use esker::{MergeError, MergeOperator};
/// /// Keeps the longest value seen.
/// struct Longest;
/// impl MergeOperator for Longest {
///     fn name(&self) -> &str { "longest" }
///     fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
///         Ok(existing.into_iter().chain(operands.iter().copied()).max_by_key(|v| v.len()).map(<[u8]>::to_vec))
///     }
///     fn partial_merge(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
///         Some(if newer.len() >= older.len() { newer } else { older }.to_vec())
///     }
/// }
/// ```
pub trait MergeOperator: Send + Sync + 'static {
    /// The name stored with the keyspace: 1 to 1024 bytes without control characters, always the
    /// same. Change it when the meaning of stored operands changes. The names of built-in operators
    /// ([`crate::merge::built_in`]) are theirs: a keyspace is not opened with another operator of
    /// such a name.
    ///
    /// ```
    /// # use esker::{MergeOperator, merge::{Max, UInt64Add}};
    /// assert_eq!(UInt64Add.name(), "uint64add");
    /// ```
    fn name(&self) -> &str;

    /// The value of `key` after all `operands`, oldest first, on top of `existing`. `None` deletes
    /// the key.
    ///
    /// # Errors
    /// When the operator cannot take an operand or the existing value; reads of the key then fail
    /// with [`crate::Error::MergeFailed`].
    ///
    /// ```
    /// # use esker::{MergeOperator, merge::{Max, UInt64Add}};
    /// let merged = Max.full_merge(b"key", Some(b"5"), &[b"4", b"7"])?;
    /// assert_eq!(merged.as_deref(), Some(&b"7"[..]));
    /// # Ok::<(), esker::MergeError>(())
    /// ```
    fn full_merge(
        &self,
        key: &[u8],
        existing: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, MergeError>;

    /// One operand that does what `older` followed by `newer` does on every value there could be,
    /// or `None` to keep both. Where it declines, operands are kept one by one until they meet
    /// their value, which costs memory and time at reads.
    ///
    /// ```
    /// # use esker::{MergeOperator, merge::{Max, UInt64Add}};
    /// assert_eq!(Max.partial_merge(b"key", b"4", b"7").as_deref(), Some(&b"7"[..]));
    /// ```
    fn partial_merge(&self, key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>>;

    /// Whether `full_merge` may ever answer `None`. `true`, the default, is always right; `false`
    /// saves merges into keyspaces with a time to live a lookup of the key.
    ///
    /// ```
    /// # use esker::{MergeOperator, merge::{Max, UInt64Add}};
    /// assert!(!Max.may_delete()); // there is always a largest
    /// ```
    fn may_delete(&self) -> bool {
        true
    }

    /// Refuses operands that are visibly wrong (of the wrong size, say) before anything is written.
    ///
    /// # Errors
    /// When `full_merge` could never take this operand.
    ///
    /// ```
    /// # use esker::{MergeOperator, merge::{Max, UInt64Add}};
    /// assert!(UInt64Add.check_operand(b"three").is_err());
    /// ```
    fn check_operand(&self, operand: &[u8]) -> Result<(), MergeError> {
        let _ = operand;
        Ok(())
    }

    /// The type behind a `dyn MergeOperator`. The argument's type cannot be named outside the
    /// crate, so that no other crate overrides it.
    ///
    /// ```
    /// # use esker::{KeyspaceOptions, merge::Max};
    /// // The operator of this name is of this type; one of another type is refused.
    /// let best = KeyspaceOptions::default().merge_operator(Max);
    /// ```
    #[doc(hidden)]
    fn operator_type(&self, _: internal::OnlyHere) -> TypeId {
        TypeId::of::<Self>()
    }
}

pub(crate) mod internal {
    /// See [`super::MergeOperator::operator_type`].
    #[derive(Debug)]
    pub struct OnlyHere;
}
