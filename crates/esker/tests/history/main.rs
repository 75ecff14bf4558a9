//! Defects that the engine once had, and promises that were once broken or nearly so. Each test
//! says what was seen, what it took to see it, and what it would have cost.
#![allow(clippy::unwrap_used)]

mod closing;
mod common;
mod compaction;
mod counts;
mod damage;
mod forged;
mod health;
mod limits;
mod log;
mod manifests;
mod names;
mod operators;
mod panics;
mod readers;
mod recovery;
mod repair;
mod scans;
mod stalls;
mod unreadable;
mod versions;
