//! What a database of a server needs to be the state of a cluster.

use super::commands::LATEST_EXPIRY;
use crate::store::Entry;
use esker::{Db, Error, Result};

/// Checks that a server has written the database, and adds what only clusters keep.
///
/// # Errors
/// `InvalidArgument` for another database; those of the engine.
pub fn prepare(db: &Db) -> Result<()> {
    let other = || Error::InvalidArgument {
        what:
            "the directory holds no data of `esker serve`; name that of a server, of a node's state, or a backup of one"
                .into(),
    };
    let names = db.keyspaces();
    if !names.iter().any(|name| name == "system") {
        return Err(other());
    }
    let system = db.existing_keyspace("system")?;
    if system.get("format")?.as_deref() != Some(b"1") {
        return Err(other());
    }
    if system.get(LATEST_EXPIRY)?.is_some() {
        return Ok(());
    }
    // A server on its own does not keep it.
    let mut latest_ms = 0;
    for name in names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        for pair in db.existing_keyspace(name)?.iter() {
            let (key, value) = pair?;
            // A replica that met it later would stop, and so would all others.
            let entry = Entry::decode(value).ok_or_else(|| Error::InvalidArgument {
                what: format!("the value of key '{}' of database {name} cannot be read", key.escape_ascii()),
            })?;
            latest_ms = latest_ms.max(entry.expiry_ms.unwrap_or(0));
        }
    }
    system.put(LATEST_EXPIRY, latest_ms.to_be_bytes())
}
