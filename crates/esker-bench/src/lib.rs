//! `esker bench`, `esker study` and `esker report`: engine adapters, workloads, statistics and
//! reports.

pub mod bench;
mod directory;
pub mod engine;
mod exit;
mod expiries;
pub mod filled;
pub mod flags;
mod host;
pub mod import;
mod inserts;
pub mod interrupt;
pub mod judgement;
mod keys;
mod measurements;
mod meter;
mod output;
mod pace;
pub mod process;
pub mod progress;
pub mod published;
pub mod random;
pub mod record;
pub mod reference;
pub mod report;
mod run;
mod schedule;
mod shuffle;
mod stats;
pub mod study;
mod survivors;
pub mod sweep;
mod text;
mod threads;
mod times;
mod values;
pub mod verify;
mod watch;
mod worker;
pub mod workload;
mod zipfian;

pub use bench::bench_main;
pub use report::study::report_main;
pub use study::study_main;
pub use sweep::sweep_main;

/// Every engine of this build: the registry's, the reference engine, and the bare device.
pub fn all_kinds() -> Vec<engine::EngineKind> {
    engine::registry::KINDS.into_iter().chain([reference::KIND, engine::device::KIND]).collect()
}
