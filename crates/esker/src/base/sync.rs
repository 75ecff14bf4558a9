//! Atomics, locks and pointers that threads share: the ones in use, or those of loom, which try
//! every order of what threads do (`make interleavings`, `db/interleavings`). What is not tried
//! takes them from where they are.

#[cfg(not(all(test, esker_loom)))]
mod real;
#[cfg(all(test, esker_loom))]
mod tried;

#[cfg(not(all(test, esker_loom)))]
pub use real::*;
#[cfg(all(test, esker_loom))]
pub use tried::*;
