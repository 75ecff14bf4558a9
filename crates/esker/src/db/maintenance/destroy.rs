//! Removing a database.

use crate::db::files::remover;
use crate::db::lifecycle::directory;
use crate::error::Result;
use crate::options::Options;
use crate::version::file_name::{LOCK, LOST};
use std::path::Path;

/// Removes the database in `directory`, if there is one. What a repair has moved away stays, and so
/// does what is not of the engine.
pub fn destroy(directory: &Path, options: &Options) -> Result<()> {
    options.validate()?;
    let env = &*options.env;
    let names = if env.exists(directory)? { env.list(directory)? } else { Vec::new() };
    if !names.iter().any(|name| directory::is_ours(name) && name != LOST) {
        return Ok(());
    }
    let _lock = env.lock(&directory.join(LOCK))?;
    remover::remove_database(env, directory, directory::is_ours)
}
