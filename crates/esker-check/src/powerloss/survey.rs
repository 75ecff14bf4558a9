//! Everything that a database which holds a known state must answer, by every call that reads.

mod failing;
mod part;

use super::script::NAMES;
use crate::Checked;
use crate::state::{Place, State, find_keyspace};
use esker::{Db, Error};
use failing::Failing;
use part::{Ended, Part, Surveyed, same};
use std::collections::BTreeSet;

/// Asks for all of it, and for the places that are not in the state, by single and by many reads,
/// by scans of both directions, by cursors, by a snapshot, in a transaction and as typed values.
///
/// The inner error is what the engine answered instead; the outer one is a wrong answer.
pub fn survey(db: &Db, state: &State, places: &BTreeSet<Place>) -> Checked<esker::Result<()>> {
    let (snapshot, mut transaction) = (db.snapshot(), db.transaction());
    let mut all = || -> Surveyed {
        for (index, name) in NAMES.iter().enumerate() {
            let keyspace = match find_keyspace(db, name) {
                Ok(keyspace) => keyspace,
                Err(Error::NotFound { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let part = Part::new(&keyspace, index, state, places);
            let checked = match Failing::of(&part, index, state) {
                Some(failing) => failing.check(&snapshot, &mut transaction),
                None => part.check(&snapshot, &mut transaction),
            };
            checked.map_err(|ended| match ended {
                Ended::Wrong(what) => Ended::Wrong(format!("keyspace {name}: {what}")),
                failed => failed,
            })?;
        }
        same("what is said of the database", db.keyspaces().len(), db.stats().keyspaces.len())
    };
    match all() {
        Ok(()) => Ok(Ok(())),
        Err(Ended::Failed(error)) => Ok(Err(error)),
        Err(Ended::Wrong(what)) => Err(what),
    }
}
