//! fjall.

use super::source::{Place, Source, Take, choose, not_a_database, read};
use crate::Result;
use crate::fjall::{Frozen, NAME, failed};
use crate::two_way::TwoWay;
use fjall::{Database, Keyspace, KeyspaceCreateOptions};

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
        let frozen = Frozen { snapshot: self.database.snapshot(), keyspace: &self.keyspace };
        read(&mut TwoWay::new(frozen), after, take)
    }

    fn pairs(&mut self) -> Option<u64> {
        None
    }
}
