//! `esker bench`, `esker study` and `esker report`: workloads, statistics, judgements and reports.

pub mod bench;
mod directory;
mod exit;
mod expiries;
pub mod filled;
pub mod flags;
mod host;
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
pub fn all_kinds() -> Vec<esker_engines::EngineKind> {
    esker_engines::registry::KINDS.into_iter().chain([reference::KIND, esker_engines::device::KIND]).collect()
}
