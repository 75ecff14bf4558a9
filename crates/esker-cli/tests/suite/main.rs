//! The tests of the command, in one program: each that is linked by itself costs seconds.

#[cfg(feature = "backup")]
mod backup;
mod bad_input;
#[cfg(feature = "bench")]
mod benchmarks;
mod beside_writer;
mod book;
mod cli;
mod common;
#[cfg(unix)]
mod damage;
mod dump_load;
mod explain;
#[cfg(feature = "import")]
mod import;
mod keyspaces;
mod metrics;
mod repair;
#[cfg(feature = "bench")]
mod seed_commands;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod serve_exit;
mod shell;
#[cfg(feature = "bench")]
mod study;
#[cfg(feature = "bench")]
mod sweep;
