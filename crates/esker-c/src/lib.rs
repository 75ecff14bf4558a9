//! The C interface of Esker. `doc/c.md` is its page, `include/esker.h` its header, which is
//! generated from this crate.
//!
//! Each function checks and converts its arguments and delegates to the engine. Handles are numbers
//! that `esker_ffi::handles` tells apart; panics end in `failure::call`.
//!
//! The contract of all functions, which their callers in C keep: a pointer with a length points to
//! that many bytes, readable until the call returns; a text ends with a zero byte; a pointer to a
//! result points to memory that can be written. Functions that are passed work from any thread.

// The names are those of C.
#![allow(non_camel_case_types)]
// The contract of the functions is the one above, and stands in the header once.
#![allow(clippy::missing_safety_doc)]

mod batch;
mod callbacks;
mod caller;
mod change_batch;
mod changes;
mod codes;
mod conditional;
mod cursor;
mod database;
mod errors;
mod expiry;
mod failure;
mod follower;
mod iterator;
mod keyspace;
mod keyspace_options;
mod maintenance;
mod objects;
mod operator;
mod options;
mod output;
mod read;
mod snapshot;
mod times;
mod transaction;
mod watch;
mod write;
mod write_options;

// For Rust programs that test the interface.
pub use {
    batch::*,
    callbacks::*,
    caller::{esker_bytes, esker_range},
    change_batch::{esker_change, esker_keyspace_settings},
    changes::*,
    codes::*,
    conditional::*,
    cursor::*,
    database::*,
    errors::*,
    expiry::*,
    follower::*,
    iterator::*,
    keyspace::*,
    keyspace_options::*,
    maintenance::*,
    objects::*,
    options::*,
    output::*,
    read::*,
    snapshot::*,
    transaction::*,
    watch::*,
    write::*,
    write_options::*,
};
