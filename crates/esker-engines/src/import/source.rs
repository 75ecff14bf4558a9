//! What a source is, and what all sources say in the same words.

use crate::{EngineError, Iteration, Result};
use std::path::{Path, PathBuf};

/// Where the pairs are.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// The directory of the database, or its file.
    pub path: PathBuf,
    /// The table, keyspace or named database in it; if left out, the only one.
    pub table: Option<String>,
    /// SQLite: the columns with the keys and with the values; if left out, the first two.
    pub columns: Option<(String, String)>,
    /// LevelDB and RocksDB: the library, if it is not the usual one.
    pub library: Option<PathBuf>,
}

/// Takes a pair; whether it wants more.
pub type Take<'t> = dyn FnMut(&[u8], &[u8]) -> bool + 't;

/// A database to import from.
pub trait Source {
    /// Hands over every pair whose key is behind `after`, or every pair, in the order in which the
    /// engine has them, until there are no more or `take` wants no more.
    fn read(&mut self, after: Option<&[u8]>, take: &mut Take<'_>) -> Result<()>;

    /// How many pairs there are, if the engine knows.
    fn pairs(&mut self) -> Option<u64>;
}

/// Hands over what an engine's own iterator comes to, as [`Source::read`] does.
pub fn read(pairs: &mut dyn Iteration, after: Option<&[u8]>, take: &mut Take<'_>) -> Result<()> {
    let mut valid = match after {
        None => pairs.seek_to_first()?,
        Some(after) => {
            let found = pairs.seek(after)?;
            if found && pairs.key() == after { pairs.next()? } else { found }
        }
    };
    while valid && take(pairs.key(), pairs.value()) {
        valid = pairs.next()?;
    }
    Ok(())
}

/// What is said of a path that holds no database of the engine.
pub fn not_a_database(engine: &str, path: &Path, expected: &str) -> EngineError {
    EngineError(format!("{engine}: {} is no {engine} database: it has no {expected}; check the path", path.display()))
}

/// The one of these names that was requested, or the only one.
pub fn choose(engine: &str, what: &str, requested: Option<&str>, names: &[String]) -> Result<String> {
    let list = || names.join(", ");
    match (requested, names) {
        (Some(name), _) if names.iter().any(|found| found == name) => Ok(name.to_owned()),
        (Some(name), []) => Err(EngineError(format!("{engine}: there is no {what} {name:?}, and no other one"))),
        (Some(name), _) => Err(EngineError(format!("{engine}: there is no {what} {name:?}; there are: {}", list()))),
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(EngineError(format!("{engine}: there is no {what} to import"))),
        (None, _) => Err(EngineError(format!("{engine}: name a {what} with --table; there are: {}", list()))),
    }
}

/// The error of an option that the engine has no use for.
pub fn refuse_table(engine: &str, place: &Place) -> Result<()> {
    match &place.table {
        Some(table) => Err(EngineError(format!("{engine}: has no tables; leave out --table {table:?}"))),
        None => Ok(()),
    }
}
