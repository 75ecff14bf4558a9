//! Runs an import: copies what is not there yet, then compares both sides.

use super::{Import, copying, marker, source_error, verifying};
use crate::failure::Failure;
use crate::{open, output};
use esker::Db;
use esker_engines::import::{Place, Source};
use std::time::Instant;

/// How an import ended.
enum End {
    /// So many pairs are copied; there are more.
    Unfinished(u64),
    /// All are there, as often and with the same hash as in the source.
    Verified(verifying::Sum),
}

impl Import {
    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let started = Instant::now();
        marker::refuse_markers(&self.keyspace)?;
        // Before the database is created: a wrong path leaves nothing behind.
        let mut source = esker_engines::import::open(&self.from, &self.place()).map_err(source_error::refused)?;
        let db = open::or_create(&self.database.db)?;
        let end = self.import(&db, source.as_mut());
        let closed = db.close();
        let end = end?;
        closed?;
        self.report(&end, started.elapsed().as_secs_f64())
    }

    fn place(&self) -> Place {
        Place {
            path: self.path.clone(),
            table: self.table.clone(),
            columns: self.key_column.clone().zip(self.value_column.clone()),
            library: self.library.clone(),
        }
    }

    /// What tells this source from another one.
    fn source_name(&self) -> String {
        let path = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let of = |part: &Option<String>| part.as_ref().map(|part| format!(" {part:?}")).unwrap_or_default();
        let parts = format!("{}{}{}", of(&self.table), of(&self.key_column), of(&self.value_column));
        format!("{} {}{parts}", self.from, path.display())
    }

    fn import(&self, db: &Db, source: &mut dyn Source) -> Result<End, Failure> {
        let keyspace = db.keyspace(&self.keyspace, Default::default())?;
        let marker = marker::Marker::find(db, &keyspace, self.source_name())?;
        let mut copying = copying::Copying::new(db, &keyspace, marker, self.limit);
        let total = source.pairs();
        let is_complete = copying.run(source, total)?;
        // From here on a power failure costs no more than the verification.
        db.sync()?;
        if !is_complete {
            return Ok(End::Unfinished(copying.marker.pairs));
        }
        let sum = verifying::verify(source, &keyspace, copying.marker.pairs)?;
        copying.marker.forget(db)?;
        db.sync()?;
        Ok(End::Verified(sum))
    }

    fn report(&self, end: &End, seconds: f64) -> Result<(), Failure> {
        output::print_line(&match (end, self.database.json) {
            (End::Unfinished(pairs), true) => {
                format!(r#"{{"pairs":{pairs},"complete":false,"seconds":{seconds:.3}}}"#)
            }
            (End::Unfinished(pairs), false) => {
                format!("imported {pairs} pairs so far; run the same command again to go on")
            }
            (End::Verified(sum), true) => format!(
                r#"{{"pairs":{},"bytes":{},"hash":"{:016x}","complete":true,"seconds":{seconds:.3}}}"#,
                sum.pairs, sum.bytes, sum.hash
            ),
            (End::Verified(sum), false) => format!(
                "imported {} pairs, {}, in {seconds:.2} s; both sides have the hash {:016x}",
                sum.pairs,
                output::bytes_text(sum.bytes),
                sum.hash
            ),
        })
    }
}
