//! Operations, exactly: each test is named after what an engine could get wrong.
#![allow(clippy::unwrap_used)]

mod checkpoint;
mod checkpoint_beside_work;
mod common;
mod compact_range;
mod compaction_power_loss;
mod compaction_support;
mod compaction_work;
mod events;
mod examples;
mod failed_open;
mod fifo;
mod filters;
mod get_into;
mod in_place;
mod ingest;
mod interplay;
mod large_accidents;
mod large_values;
mod log_space;
mod memory;
mod merge_chains;
mod merge_failures;
mod merge_names;
mod merge_random;
mod merge_support;
mod properties;
mod range_delete;
mod repair;
mod repair_cut_short;
mod scan_walks;
mod sizes;
mod styles;
mod transactions;
mod ttl;
mod ttl_merge;
