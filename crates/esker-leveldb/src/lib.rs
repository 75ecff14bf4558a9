//! The C interface of LevelDB 1.23 on Esker: a program that is linked to `libleveldb` runs on this
//! engine with another library in its path. `doc/leveldb.md` is its page.
//!
//! Each function checks and converts its arguments and delegates to the engine. A LevelDB database
//! is the keyspace `default` of one of Esker. Handles are numbers that `esker_ffi::handles` tells
//! apart: a call with one that was closed is an error, in `errptr` where the function has one, and
//! otherwise a line on standard error.
//!
//! The contract of all functions is that of LevelDB's header: a pointer with a length points to
//! that many bytes, a text ends with a zero byte, `*errptr` is NULL or memory of `malloc`.

// The names are those of C.
#![allow(non_camel_case_types)]
// The contract of the functions is the one above, and that of LevelDB's header.
#![allow(clippy::missing_safety_doc)]

mod callbacks;
mod caller;
mod comparator;
mod data;
mod database;
mod environment;
mod failure;
mod filter_policy;
mod iterator;
mod objects;
mod operations;
mod option_values;
mod options;
mod order;
mod policy;
mod property;
mod snapshot;
mod status;
mod write_batch;

// For Rust programs that test the interface.
pub use {
    comparator::*, data::*, database::*, environment::*, filter_policy::*, iterator::*, objects::*, options::*,
    property::*, snapshot::*, write_batch::*,
};
