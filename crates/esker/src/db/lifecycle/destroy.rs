//! Removing a whole database.
//!
//! `CURRENT` goes first, durably, and `LOCK` last: cut short, what is left opens as no database,
//! and another attempt removes the rest; unless its sync of the directory has failed
//! (durability.md, C5). What the engine has not made stays, and so does the
//! directory `lost`, with what a repair could not use.

use crate::db::files::remover;
use crate::db::lifecycle::directory::is_ours;
use crate::db::lifecycle::other_engine::refuse_other_engine;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::version::file_name::{CURRENT, LOCK, LOST};
use crate::version::manifest::current_number;
use std::path::Path;

/// Removes the files of the database in a directory, if there is one.
pub fn destroy(env: &dyn Env, directory: &Path) -> Result<()> {
    if !env.exists(directory)? {
        return Ok(());
    }
    refuse_files_of_others(env, directory)?;
    let lock = env.lock(&directory.join(LOCK))?;
    let goes = |name: &String| is_ours(name) && name != LOST && name != LOCK;
    remover::remove_database(env, directory, env.list(directory)?.into_iter().filter(goes).collect())?;
    drop(lock);
    env.sync_dir(directory)
}

/// Other engines have files of the same names: without a `CURRENT` that only this engine writes,
/// nothing else may be there.
fn refuse_files_of_others(env: &dyn Env, directory: &Path) -> Result<()> {
    if env.exists(&directory.join(CURRENT))? && current_number(env, directory)?.is_some() {
        return Ok(());
    }
    refuse_other_engine(env, directory)?;
    match env.list(directory)?.into_iter().find(|name| !is_ours(name)) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!(
            "{} holds files of something else ({name}), and no database that is known for one of this engine; \
             nothing was removed",
            directory.display()
        ))),
    }
}
