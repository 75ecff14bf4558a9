//! The tests of backups, in one program: each that is linked by itself costs seconds.

mod databases;
mod forward;
mod support;
