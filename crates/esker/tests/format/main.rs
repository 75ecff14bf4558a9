//! A decoder that was written from the pages in `doc/format` alone. It shares no code with the
//! engine: it reads every byte of every file of a database, checks every checksum, rebuilds the
//! contents, and what it has then is what `Db` answers.
#![allow(clippy::unwrap_used)]

mod blob;
mod block;
mod bytes;
mod chain;
mod changes;
mod compare;
mod damage;
mod databases;
mod directory;
mod features;
mod log;
mod machine;
mod manifest;
mod merge;
mod on_disk;
mod operation;
mod order;
mod properties;
mod random;
mod rare;
mod runs;
mod script;
mod state;
mod table;
