//! Internals for benchmarks and tests. Compiled with the feature `internals` only; nothing here is
//! part of the engine's interface, and all of it may change at any time.

pub mod decoders;
mod kernels;

pub use crate::base::random::Random;
pub use crate::version::manifest::intact_records as manifest_records;
pub use kernels::{CacheKernel, LogKernel, MemtableKernel, MergeKernel, TableKernel};
