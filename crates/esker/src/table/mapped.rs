//! The mapping of a table's file, and the verified blocks in it.

use crate::env::{ReadFile, mapping_fault_seen};
use crate::error::Result;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that may be mapped.
#[derive(Clone)]
pub(super) struct MappedFile(pub(super) Arc<dyn ReadFile>);

impl MappedFile {
    /// The mapping; nothing without one. After a fault under it, some of it is zeroes.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.mapping().unwrap_or_default()
    }

    /// Returns the result of `read`, unless a page of the mapping was unavailable meanwhile: then
    /// the result is discarded. A read that begins after that goes to the file, and returns the
    /// bytes that are readable.
    #[inline]
    pub(super) fn guarded<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        let was_lost = self.has_lost_mapping();
        let result = read();
        if mapping_fault_seen() && !was_lost {
            self.0.check_mapping()?;
        }
        result
    }

    /// Whether there was a fault under the mapping.
    #[inline]
    pub(super) fn has_lost_mapping(&self) -> bool {
        mapping_fault_seen() && self.0.check_mapping().is_err()
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What was found out about blocks in the mapping since the table was opened.
#[derive(Debug)]
pub(super) struct Verified {
    /// They can be read in place, and were checked. What is not remembered is not in here.
    pub(super) good: Bits,
    /// They cannot be read in place: they are compressed.
    pub(super) packed: Bits,
    /// Of those, the ones that were checked. In a set of their own: a reader that has found one not
    /// yet in `packed` must not then find it good.
    pub(super) unpacked: Bits,
}

impl Verified {
    /// Without `remembers` no block was ever checked: it is at each read.
    pub(super) fn new(blocks: usize, remembers: bool) -> Verified {
        let checked = || Bits::new(if remembers { blocks } else { 0 });
        Verified { good: checked(), packed: Bits::new(blocks), unpacked: checked() }
    }
}

/// A set of block numbers that only grows.
#[derive(Debug)]
pub(super) struct Bits(Box<[AtomicU64]>);

impl Bits {
    fn new(blocks: usize) -> Bits {
        Bits((0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    pub(super) fn contains(&self, block: usize) -> bool {
        self.0.get(block / 64).is_some_and(|word| (word.load(Ordering::Relaxed) >> (block % 64)) & 1 != 0)
    }

    pub(super) fn insert(&self, block: usize) {
        if let Some(word) = self.0.get(block / 64) {
            word.fetch_or(1 << (block % 64), Ordering::Relaxed);
        }
    }
}
