//! The commands on data. Each is a function of the state, the arguments, the time and a seed: it
//! asks no clock, draws nothing by itself, and does no I/O but through the transaction. So a
//! command that is applied on several nodes in the same order has the same effects on all.

mod arguments;
mod arguments_described;
mod bits;
mod blocking;
mod descriptions;
mod expiry;
mod hashes;
mod keys;
mod lcs;
mod lists;
mod scan;
mod sets;
mod sorted;
mod sorted_algebra;
mod sorted_ranges;
mod sorted_sets;
mod strings;
mod table;

pub use arguments::{NO_DATABASE, NO_INTEGER, SYNTAX};
pub use descriptions::{
    Description, KeySpan, Span, check_subcommand, describe, describe_subcommand, find_subcommand, full_name, help,
};
pub use table::{BLOCKING, COMMANDS, Command, DataFunction, Handler, NO_AUTH, READ, WRITE, find};
