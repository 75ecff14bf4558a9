//! What only benchmarks and tests see. Compiled with the feature `internals` only; nothing here is part of the engine's interface, and all of
//! it may change at any time.

pub mod decoders;
mod kernels;

pub use kernels::{CacheKernel, LogKernel, MemtableKernel, MergeKernel, TableKernel};
