//! The tests of the library, in one program: each that is linked by itself costs seconds.

mod bench_core;
mod browser;
mod children;
mod compare;
mod fairness;
mod golden;
mod grid;
mod judgement;
mod leveldb_2011_study;
mod memtable_study;
mod pages;
mod plans;
mod published;
mod report_html;
mod scale;
mod scoreboard;
mod study_report;
mod sweep;
mod sweep_bad_input;
mod ttl_study;
mod verify;
mod workloads;
