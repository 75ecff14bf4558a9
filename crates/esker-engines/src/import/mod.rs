//! Databases of other engines as sources of an import: read from beginning to end in the order of
//! their keys, and again from behind any key.

mod fjall;
mod lmdb;
mod peer;
mod redb;
mod source;
mod sqlite;

use crate::{EngineError, Result};
pub use source::{Place, Source, Take};

/// The engines that can be imported from, by the names of the registry.
pub const SOURCES: [&str; 6] = ["leveldb", "rocksdb", "lmdb", "sqlite", "redb", "fjall"];

/// Opens a database of that engine. Creates nothing: a path without such a database is an error.
pub fn open(engine: &str, place: &Place) -> Result<Box<dyn Source>> {
    if std::fs::metadata(&place.path).is_err() {
        return Err(EngineError(format!("{engine}: {} does not exist; check the path", place.path.display())));
    }
    match engine {
        "leveldb" | "rocksdb" => peer::open(engine, place),
        "lmdb" => lmdb::open(place),
        "sqlite" => sqlite::open(place),
        "redb" => redb::open(place),
        "fjall" => fjall::open(place),
        _ => Err(EngineError(format!("no import from `{engine}`: there are {}", SOURCES.join(", ")))),
    }
}
