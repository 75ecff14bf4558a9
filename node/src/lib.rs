//! The native half of the Node package `esker-level`: classes that the JavaScript half, `index.js`,
//! makes an `abstract-level` database of.
//!
//! Arguments are copied when a call is made, on the thread of the event loop; the engine is called
//! on the threads of libuv's pool, and what it returns becomes JavaScript values on the thread of
//! the event loop again. Nothing that JavaScript can reach is shared with the pool.
//!
//! A wait for writes has a thread of its own.
//!
//! Merge operators of the program run in worker threads of their own.
//!
//! Modules, each importing only from those above it: `failure`; `work`, `values`;
//! `served_operator`; `options`, `range`, `waits`, `outcomes`; `database_state`; `operations`, `snapshot`, `watch`, `changes`,
//! `transaction`; `reads`, `writes`, `entry_iterator`; `database`.

mod changes;
mod database;
mod database_state;
mod entry_iterator;
mod failure;
mod operations;
mod options;
mod outcomes;
mod range;
mod reads;
mod served_operator;
mod snapshot;
mod transaction;
mod values;
mod waits;
mod watch;
mod work;
mod writes;
