//! The commands on data. Each is a function of the state, the arguments, the time and a seed: it
//! asks no clock, draws nothing by itself, and does no I/O but through the transaction. So a
//! command that is applied on several nodes in the same order has the same effects on all.

mod arguments;
mod bits;
mod blocking;
mod expiry;
mod hashes;
mod keys;
mod lists;
mod scan;
mod sets;
mod sorted;
mod sorted_algebra;
mod sorted_ranges;
mod sorted_sets;
mod strings;
mod subcommands;
mod table;

pub use arguments::{NO_DATABASE, NO_INTEGER, SYNTAX};
pub use subcommands::check_subcommand;
pub use table::{ADMIN, BLOCKING, COMMANDS, Command, DataFunction, FAST, FLAG_NAMES, Handler, NO_AUTH, WRITE, find};
