//! Operations, exactly: each test is named after what an engine could get wrong.

mod common;
mod ttl;
mod ttl_merge;
