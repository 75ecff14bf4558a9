//! fjall.

use super::source::{Place, Source, Take, choose, not_a_database};
use crate::engine::{EngineError, Result};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, Readable};
use std::ops::Bound;

const NAME: &str = "fjall";

fn failed(error: impl std::fmt::Display) -> EngineError {
    EngineError(format!("{NAME}: {error}"))
}

pub fn open(place: &Place) -> Result<Box<dyn Source>> {
    // It creates what is not there.
    if !place.path.join("version").is_file() || !place.path.join("keyspaces").is_dir() {
        return Err(not_a_database(NAME, &place.path, "file `version` and directory `keyspaces`"));
    }
    let database = Database::builder(&place.path).open().map_err(failed)?;
    let names: Vec<String> = database.list_keyspace_names().iter().map(|name| name.to_string()).collect();
    let name = choose(NAME, "keyspace", place.table.as_deref(), &names)?;
    let keyspace = database.keyspace(&name, KeyspaceCreateOptions::default).map_err(failed)?;
    Ok(Box::new(Fjall { database, keyspace }))
}

struct Fjall {
    database: Database,
    keyspace: Keyspace,
}

impl Source for Fjall {
    fn read(&mut self, after: Option<&[u8]>, take: &mut Take<'_>) -> Result<()> {
        let bounds = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        for pair in self.database.snapshot().range::<&[u8], _>(&self.keyspace, bounds) {
            let (key, value) = pair.into_inner().map_err(failed)?;
            if !take(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn pairs(&mut self) -> Option<u64> {
        None
    }
}
