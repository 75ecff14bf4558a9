//! The tests of the server, in one program: each that is linked by itself costs seconds.

mod cluster;
mod differential;
mod order;
mod replies;
mod server;
mod support;
