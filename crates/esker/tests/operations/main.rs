//! Operations, exactly: each test is named after what an engine could get wrong.
#![allow(clippy::unwrap_used)]

mod common;
mod range_delete;
mod transactions;
mod ttl;
mod ttl_merge;
