//! A server for an Esker database that speaks RESP, the protocol of Redis, in its versions 2 and 3.
//!
//! `doc/server.md` has the commands, the settings and what differs; `store/encoding.rs` and
//! `store/entry.rs` have the format of the data.
//!
//! Modules, each importing only from those above it: `protocol`; `store`; `commands`; `cluster`;
//! `server`.

mod cluster;
mod commands;
mod protocol;
mod server;
mod store;

pub use cluster::{Address, ClusterConfig, ClusterTlsFiles, Followers};
pub use server::{Config, Server, ServerError, SyncPolicy, TlsFiles, run};
