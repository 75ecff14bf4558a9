//! `esker bench`, `esker study` and `esker report`: engine adapters, workloads, statistics and
//! reports.

pub mod bench;
pub mod directory;
pub mod engine;
pub mod expiries;
pub mod filled;
pub mod flags;
pub mod histogram;
pub mod host;
pub mod import;
pub mod inserts;
pub mod interrupt;
pub mod judgement;
pub mod keys;
pub mod measurements;
pub mod meter;
pub mod output;
pub mod pace;
pub mod process;
pub mod progress;
pub mod published;
pub mod random;
pub mod record;
pub mod reference;
pub mod report;
pub mod run;
pub mod schedule;
pub mod shuffle;
pub mod stats;
pub mod study;
pub mod study_report;
pub mod survivors;
pub mod sweep;
pub mod threads;
pub mod total;
pub mod values;
pub mod verification;
pub mod verify;
pub mod watch;
pub mod worker;
pub mod workload;
pub mod zipfian;

pub use bench::bench_main;
pub use study::study_main;
pub use study_report::report_main;
pub use sweep::sweep_main;

/// Every engine of this build: the registry's, the reference engine, and the bare device.
pub fn all_kinds() -> Vec<engine::EngineKind> {
    engine::registry::KINDS.into_iter().chain([reference::KIND, engine::device::KIND]).collect()
}
