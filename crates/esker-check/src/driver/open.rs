//! An open database with the keyspaces of a run.

use super::world::World;
use crate::Checked;
use crate::model::Operator;
use esker::{Db, Keyspace};

/// A database and its keyspaces, in the order of the cast.
pub(super) struct Opened {
    /// The database.
    pub db: Db,
    /// Its keyspaces, and behind them those that were dropped since it was opened.
    pub keyspaces: Vec<Keyspace>,
}

impl Opened {
    /// Opens the keyspaces of the cast; `opening` says with which styles.
    pub fn new(db: Db, world: &World, opening: usize) -> Checked<Opened> {
        let mut keyspaces = Vec::new();
        for role in world.cast.iter() {
            let keyspace = if role.operator == Operator::Shelved && !world.supplied {
                db.existing_keyspace(&role.present_name())
            } else {
                db.keyspace(&role.present_name(), role.options(opening))
            };
            keyspaces.push(keyspace.map_err(|error| format!("keyspace {} cannot be opened: {error}", role.name))?);
        }
        Ok(Opened { db, keyspaces })
    }
}
