//! SQLite: opened for reading only. Keys and values are two columns of a table, each taken as its
//! bytes: text as UTF-8, numbers as decimal text.

use super::source::{Place, Source, Take, choose, not_a_database};
use crate::{EngineError, Result};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, params};

const NAME: &str = "sqlite";

fn failed(error: rusqlite::Error) -> EngineError {
    EngineError(format!("{NAME}: {error}"))
}

pub fn open(place: &Place) -> Result<Box<dyn Source>> {
    if !place.path.is_file() {
        let shown = place.path.display();
        return Err(EngineError(format!("{NAME}: {shown} is no file; give the file of the database")));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&place.path, flags).map_err(failed)?;
    let names = strings(
        &connection,
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
        [],
    );
    let names = names.map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => not_a_database(NAME, &place.path, "header of one"),
        _ => failed(error),
    })?;
    let table = choose(NAME, "table", place.table.as_deref(), &names)?;
    let columns = strings(&connection, "SELECT name FROM pragma_table_info(?1)", [&table]).map_err(failed)?;
    let (key, value) = match (&place.columns, columns.as_slice()) {
        (Some((key, value)), _) => {
            (choose(NAME, "column", Some(key), &columns)?, choose(NAME, "column", Some(value), &columns)?)
        }
        (None, [key, value, ..]) => (key.clone(), value.clone()),
        (None, _) => return Err(EngineError(format!("{NAME}: table {table:?} has no two columns"))),
    };
    let (table, key, value) = (quoted(&table), quoted(&key), quoted(&value));
    let select = format!("SELECT CAST({key} AS BLOB) AS k, CAST({value} AS BLOB) AS v FROM {table}");
    let count = format!("SELECT count(*) FROM {table}");
    Ok(Box::new(Sqlite { connection, select, count }))
}

fn strings<P: rusqlite::Params>(connection: &Connection, query: &str, params: P) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(query)?;
    let names = statement.query_map(params, |row| row.get(0))?;
    names.collect()
}

/// A name as SQL has it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

struct Sqlite {
    connection: Connection,
    select: String,
    count: String,
}

fn bytes(value: ValueRef<'_>, what: &str) -> Result<Vec<u8>> {
    match value {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Ok(bytes.to_vec()),
        _ => Err(EngineError(format!("{NAME}: a row has no {what} (NULL); every {what} must be there"))),
    }
}

impl Source for Sqlite {
    fn read(&mut self, after: Option<&[u8]>, take: &mut Take<'_>) -> Result<()> {
        // NULL comes first in the order, so that one in the keys is found at once.
        let query = match after {
            None => format!("{} ORDER BY k", self.select),
            Some(_) => format!("SELECT k, v FROM ({}) WHERE k > ?1 OR k IS NULL ORDER BY k", self.select),
        };
        let mut statement = self.connection.prepare(&query).map_err(failed)?;
        let rows = match after {
            None => statement.query([]),
            Some(after) => statement.query(params![after]),
        };
        let mut rows = rows.map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let key = bytes(row.get_ref(0).map_err(failed)?, "key")?;
            let value = bytes(row.get_ref(1).map_err(failed)?, "value")?;
            if !take(&key, &value) {
                break;
            }
        }
        Ok(())
    }

    fn pairs(&mut self) -> Option<u64> {
        self.connection.query_row(&self.count, [], |row| row.get::<_, i64>(0)).ok()?.try_into().ok()
    }
}
