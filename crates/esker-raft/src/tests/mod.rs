//! Tests that need more than one module.

mod cluster;
mod determinism;
mod directories;
mod group_commit;
mod history;
mod log_durability;
mod log_pieces;
mod snapshots;
mod state_durability;
mod suite;
mod world;
