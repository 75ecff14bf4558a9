//! The length of operand chains that are not yet combined with the value of their key.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Operands of one key in a memtable from which on the write that makes one more of them combines
/// them all with what lies below (`db/write/collapse_operands.rs`), and up to which long values are
/// not copied for each operand (`memtable/writer.rs`).
pub const LONG_CHAIN: u32 = 64;

/// The longest chain seen. In the common case, a chain no longer than the longest so far, noting
/// one is a load of memory that no thread writes.
#[derive(Debug, Default)]
pub struct LongestChain(AtomicU64);

impl LongestChain {
    #[inline]
    pub fn note(&self, operands: usize) {
        if operands as u64 > self.get() {
            self.0.fetch_max(operands as u64, Relaxed);
        }
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
