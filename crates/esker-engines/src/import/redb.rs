//! redb: opened for reading only; tables whose keys and values are byte slices.

use super::source::{Place, Source, Take, choose, not_a_database, read};
use crate::redb::{NAME, ReadTable, failed};
use crate::two_way::TwoWay;
use crate::{EngineError, Result};
use redb::{ReadOnlyDatabase, ReadableDatabase, ReadableTableMetadata, TableDefinition, TableHandle};

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
    source.table()?;
    Ok(Box::new(source))
}

struct Redb {
    database: ReadOnlyDatabase,
    table: String,
}

impl Redb {
    /// The table as it is now. Another type of keys or values is an error that names both.
    fn table(&self) -> Result<ReadTable> {
        let txn = self.database.begin_read().map_err(failed)?;
        txn.open_table(TableDefinition::new(&self.table)).map_err(|error| {
            EngineError(format!("{NAME}: {error}; only tables of byte slices (`&[u8]`) can be imported"))
        })
    }
}

impl Source for Redb {
    fn read(&mut self, after: Option<&[u8]>, take: &mut Take<'_>) -> Result<()> {
        read(&mut TwoWay::new(self.table()?), after, take)
    }

    fn pairs(&mut self) -> Option<u64> {
        self.table().and_then(|table| table.len().map_err(failed)).ok()
    }
}
