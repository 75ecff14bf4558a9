//! The order of keys that a program supplies, and the ones that are built in.

use std::any::Any;
use std::cmp::Ordering;

/// The name of the order of keyspaces that were created without a comparator: unsigned bytes,
/// shorter before longer.
pub const BYTEWISE: &str = "bytewise";

/// The name of [`ReverseBytewise`].
pub const REVERSE_BYTEWISE: &str = "reverse-bytewise";

/// An order of the keys of a keyspace, in the place of the bytewise one.
///
/// It must be a total order of all byte strings, the same for ever, in which only equal bytes are
/// equal:
///
/// * `compare(a, b)` is `Equal` if and only if `a == b`, and the reverse of `compare(b, a)`;
/// * if `a` comes before `b` and `b` before `c`, then `a` comes before `c`.
///
/// A comparator that breaks these laws makes reads and writes of its keyspace wrong: a key may not
/// be found, or may be returned twice. Other keyspaces are not affected, and the database still
/// opens. [`crate::KeyspaceStats::comparator_faults`] counts the violations that the engine
/// detects.
///
/// It is called from any thread, any number of times, also with locks of the database held. A
/// panic in it counts as a fault, and the two keys are compared as bytes. What it may do with the
/// database is in the documentation of semantics, under callbacks; a call that would wait for a
/// lock, or scan, is refused with `InCallback`.
///
/// Comparisons make up much of the work of searches, merges and sorts: a keyspace with a comparator
/// compares keys in full through a virtual call, where the bytewise order needs few instructions.
///
/// ```
/// use esker::{Comparator, Db, KeyspaceOptions, Options};
/// use std::cmp::Ordering;
/// use std::sync::Arc;
/// # let env = Arc::new(esker::env::mem::MemEnv::new());
///
/// /// Shorter keys first.
/// struct ByLength;
///
/// impl Comparator for ByLength {
///     fn name(&self) -> &str {
///         "example.by-length"
///     }
///
///     fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
///         a.len().cmp(&b.len()).then_with(|| a.cmp(b))
///     }
/// }
///
/// let options = Options::default().comparator(Arc::new(ByLength));
/// # let options = options.env(env);
/// let db = Db::open("words", options)?;
/// let words = db.keyspace("words", KeyspaceOptions::default().comparator(ByLength))?;
/// for word in ["pear", "fig", "banana"] {
///     words.put(word, "")?;
/// }
/// let first = words.first()?.expect("there are three");
/// assert_eq!(&*first.0, b"fig");
/// # Ok::<(), esker::Error>(())
/// ```
pub trait Comparator: Any + Send + Sync {
    /// Its name: 1 to 255 bytes without control characters, and none of a built-in order. It is
    /// stored when a keyspace is created, and compared at every open. Another order needs another
    /// name.
    ///
    /// ```
    /// use esker::{Comparator, ReverseBytewise};
    /// assert_eq!(ReverseBytewise.name(), "reverse-bytewise");
    /// ```
    fn name(&self) -> &str;

    /// How `a` and `b` are ordered.
    ///
    /// ```
    /// use esker::{Comparator, ReverseBytewise};
    /// assert!(ReverseBytewise.compare(b"b", b"a").is_lt());
    /// ```
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;
}

/// The reverse of the bytewise order, built in: the greatest key comes first. Every open knows it,
/// without [`crate::Options::comparator`].
///
/// ```
/// use esker::{KeyspaceOptions, ReverseBytewise};
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// let latest = db.keyspace("latest", KeyspaceOptions::default().comparator(ReverseBytewise))?;
/// latest.put("2026-11-24", "")?;
/// latest.put("2026-11-25", "")?;
/// assert_eq!(latest.first()?.as_ref().map(|(key, _)| &**key), Some(&b"2026-11-25"[..]));
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReverseBytewise;

impl Comparator for ReverseBytewise {
    fn name(&self) -> &str {
        REVERSE_BYTEWISE
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }
}
