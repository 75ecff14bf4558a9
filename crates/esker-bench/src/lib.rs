//! `esker bench` and `esker study`: engine adapters, workloads, statistics and reports.

pub mod engine;
pub mod record;
