//! redb: opened for reading only; tables whose keys and values are byte slices.

use super::source::{Place, Source, Take, choose, not_a_database};
use crate::engine::{EngineError, Result};
use redb::{ReadOnlyDatabase, ReadableDatabase, ReadableTableMetadata, TableDefinition, TableHandle};
use std::ops::Bound;

const NAME: &str = "redb";

fn failed(error: impl std::fmt::Display) -> EngineError {
    EngineError(format!("{NAME}: {error}"))
}

pub fn open(place: &Place) -> Result<Box<dyn Source>> {
    if !place.path.is_file() {
        let shown = place.path.display();
        return Err(EngineError(format!("{NAME}: {shown} is no file; give the file of the database")));
    }
    let database = ReadOnlyDatabase::open(&place.path).map_err(|error| match error {
        redb::DatabaseError::Storage(redb::StorageError::Io(error))
            if error.kind() == std::io::ErrorKind::InvalidData =>
        {
            not_a_database(NAME, &place.path, "header of one")
        }
        error => failed(error),
    })?;
    let txn = database.begin_read().map_err(failed)?;
    let names: Vec<String> = txn.list_tables().map_err(failed)?.map(|table| table.name().to_owned()).collect();
    let table = choose(NAME, "table", place.table.as_deref(), &names)?;
    let source = Redb { database, table };
    source.with_table(|_| Ok(()))?;
    Ok(Box::new(source))
}

struct Redb {
    database: ReadOnlyDatabase,
    table: String,
}

type Table = redb::ReadOnlyTable<&'static [u8], &'static [u8]>;

impl Redb {
    /// Works on the table as it is now. Another type of keys or values is an error that names both.
    fn with_table<T>(&self, work: impl FnOnce(&Table) -> Result<T>) -> Result<T> {
        let txn = self.database.begin_read().map_err(failed)?;
        let definition: TableDefinition<'_, &'static [u8], &'static [u8]> = TableDefinition::new(&self.table);
        let table = txn.open_table(definition).map_err(|error| {
            EngineError(format!("{NAME}: {error}; only tables of byte slices (`&[u8]`) can be imported"))
        })?;
        work(&table)
    }
}

impl Source for Redb {
    fn read(&mut self, after: Option<&[u8]>, take: &mut Take<'_>) -> Result<()> {
        self.with_table(|table| {
            let bounds = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
            for pair in table.range::<&[u8]>(bounds).map_err(failed)? {
                let (key, value) = pair.map_err(failed)?;
                if !take(key.value(), value.value()) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn pairs(&mut self) -> Option<u64> {
        self.with_table(|table| table.len().map_err(failed)).ok()
    }
}
