//! LMDB: opened for reading only.

use super::source::{Place, Source, Take, choose, not_a_database, read};
use crate::lmdb::{NAME, failed, iterate, open_for_reading};
use crate::{EngineError, Result};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, WithoutTls};

pub fn open(place: &Place) -> Result<Box<dyn Source>> {
    let data = if place.path.is_dir() { place.path.join("data.mdb") } else { place.path.clone() };
    if !data.is_file() {
        return Err(not_a_database(NAME, &place.path, "file data.mdb"));
    }
    let env = open_for_reading(&place.path)?;
    let named = named_databases(&env)?;
    let table = match (&place.table, named.is_empty()) {
        (None, true) => None,
        (table, _) => Some(choose(NAME, "named database", table.as_deref(), &named)?),
    };
    let opened = env.open_databases_and_commit(env.read_txn().map_err(failed)?, |opener, txn| {
        opener.open_database::<Bytes, Bytes>(txn, table.as_deref()).map(CommitOrAbort::<_, ()>::Commit)
    });
    match opened.map_err(failed)? {
        CommitOrAbort::Commit(Some(database)) => Ok(Box::new(Lmdb { env, database })),
        _ => Err(EngineError(format!("{NAME}: there is no database to import"))),
    }
}

/// The named databases: their names are keys of the unnamed one, whose other keys open none.
fn named_databases(env: &Env<WithoutTls>) -> Result<Vec<String>> {
    // Nothing stays open.
    type Names<'e> = CommitOrAbort<Option<Database<'e, Bytes, Bytes>>, Vec<String>>;
    let found = env.open_databases_and_commit(env.read_txn().map_err(failed)?, |opener, txn| {
        let mut names = Vec::new();
        let Some(unnamed) = opener.open_database::<Bytes, Bytes>(txn, None)? else { return Ok(Names::Abort(names)) };
        for pair in unnamed.iter(txn)?.take(MOST_KEYS) {
            let (key, value) = pair?;
            let Some(name) = str::from_utf8(key).ok().filter(|_| value.len() == RECORD_BYTES) else { continue };
            if matches!(opener.open_database::<Bytes, Bytes>(txn, Some(name)), Ok(Some(_))) {
                names.push(name.to_owned());
            }
        }
        Ok(Names::Abort(names))
    });
    match found.map_err(failed)? {
        CommitOrAbort::Abort(names) => Ok(names),
        CommitOrAbort::Commit(_) => Ok(Vec::new()),
    }
}

/// What the unnamed database has of a named one: a struct of C.
const RECORD_BYTES: usize = 48;
/// With more keys than this, they are data.
const MOST_KEYS: usize = 1000;

struct Lmdb {
    env: Env<WithoutTls>,
    database: Database<'static, Bytes, Bytes>,
}

impl Source for Lmdb {
    fn read(&mut self, after: Option<&[u8]>, take: &mut Take<'_>) -> Result<()> {
        read(&mut iterate(&self.env, self.database)?, after, take)
    }

    fn pairs(&mut self) -> Option<u64> {
        let txn = self.env.read_txn().ok()?;
        self.database.len(&txn).ok()
    }
}
