//! The server: sessions, the task that executes commands, connections.

mod client_commands;
mod client_memory;
mod clock;
mod cluster_commands;
mod cluster_information;
mod cluster_jobs;
mod cluster_reads;
#[cfg(test)]
mod cluster_tests;
mod command_information;
mod command_statistics;
mod config;
mod configuration;
mod connection;
mod connection_commands;
mod debug_commands;
mod descriptors;
mod dispatch;
mod error;
mod execution;
mod executor;
mod http;
mod information;
mod listener;
mod network;
mod occasional;
mod pause;
mod process;
mod session;
mod shared;
mod tls;
mod watches;

pub use config::{Config, SyncPolicy, TlsFiles};
pub use error::ServerError;
pub use listener::{Server, run};
