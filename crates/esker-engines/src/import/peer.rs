//! LevelDB and RocksDB, through their adapters. They have no opening that is certain to write
//! nothing: they replay their log and may compact, as when their own program opens them.

use super::source::{Place, Source, Take, not_a_database, read, refuse_table};
use crate::dynamic::library_option;
use crate::{EngineError, EngineOptions, Opened, Result, registry};
use std::path::Path;

/// What RocksDB keeps beside its tables, and LevelDB does not.
const ROCKSDB_ONLY: &str = "IDENTITY";

pub fn open(name: &str, place: &Place) -> Result<Box<dyn Source>> {
    refuse_table(name, place)?;
    check_directory(name, &place.path)?;
    let options = EngineOptions { merge_operator: None, ..EngineOptions::default() };
    let kind = registry::find(name)?;
    let opened = (kind.open)(&place.path, &options, place.library.as_deref());
    // The import has an option of its own for it.
    let opened = opened.map_err(|error| EngineError(error.0.replace(&library_option(name), "--library PATH")))?;
    Ok(Box::new(Peer(opened)))
}

/// Both create what is not there, and RocksDB converts what LevelDB wrote.
fn check_directory(name: &str, path: &Path) -> Result<()> {
    if !path.join("CURRENT").is_file() {
        return Err(not_a_database(name, path, "file CURRENT"));
    }
    match (name, path.join(ROCKSDB_ONLY).is_file()) {
        ("rocksdb", false) => Err(not_a_database(name, path, "file IDENTITY")),
        ("leveldb", true) => {
            let shown = path.display();
            Err(EngineError(format!("leveldb: {shown} is a RocksDB database; import it with --from rocksdb")))
        }
        _ => Ok(()),
    }
}

struct Peer(Opened);

impl Source for Peer {
    fn read(&mut self, after: Option<&[u8]>, take: &mut Take<'_>) -> Result<()> {
        let mut session = self.0.session()?;
        read(session.iterate()?.as_mut(), after, take)
    }

    fn pairs(&mut self) -> Option<u64> {
        None
    }
}
