//! `esker serve` as a process.

mod common;
