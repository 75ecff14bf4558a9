//! Atomics, locks and pointers that threads share: the real ones, or those of loom, which tries
//! every interleaving (`make interleavings`, `db/interleavings`). Code without a loom model imports
//! the real ones directly.

#[cfg(not(all(test, esker_loom)))]
mod real;
#[cfg(all(test, esker_loom))]
mod tried;

#[cfg(not(all(test, esker_loom)))]
pub use real::*;
#[cfg(all(test, esker_loom))]
pub use tried::*;
