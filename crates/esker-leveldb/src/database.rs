//! Opening, closing, removing and repairing databases.

use crate::callbacks::Callbacks;
use crate::caller::Caller;
use crate::failure::{Done, Failure};
use crate::objects::*;
use crate::option_values::OptionValues;
use crate::options::values;
use crate::status::{checked, told};
use esker::{Db, Error};
use esker_ffi::directory::is_without_database;
use esker_ffi::fork;
use esker_ffi::standard_error::write_line;
use std::ffi::c_char;
use std::path::Path;
use std::ptr;

/// The keyspace that holds the pairs of a database. `esker import` fills the same one.
const KEYSPACE: &str = "default";

fn open(path: &Path, options: &OptionValues) -> Done<Open> {
    let callbacks = Callbacks::of(options)?;
    let db = Db::open(path, callbacks.of_database(options.of_database())).map_err(|error| match error {
        Error::NotFound { .. } => {
            Failure::invalid(format!("{}: does not exist (create_if_missing is false)", path.display()))
        }
        Error::AlreadyExists { .. } => {
            Failure::invalid(format!("{}: exists (error_if_exists is true)", path.display()))
        }
        other => with_comparator(other, &callbacks),
    })?;
    let keyspace = match db.existing_keyspace(KEYSPACE) {
        Err(Error::NotFound { .. }) => db.keyspace(KEYSPACE, callbacks.of_keyspace())?,
        found => found?,
    };
    if !callbacks.fit(keyspace.comparator()) {
        return Err(callbacks.mismatch(keyspace.comparator()));
    }
    Ok(Open { db, keyspace })
}

/// The failure for an error of the engine, which may be that the comparator is another one.
fn with_comparator(error: Error, callbacks: &Callbacks) -> Failure {
    match error {
        Error::MissingComparator { keyspace, comparator } if keyspace == KEYSPACE => callbacks.mismatch(&comparator),
        other => Failure::from(other),
    }
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_open(
    options: *const leveldb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut leveldb_t {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    let opened = checked(&caller, errptr, || {
        fork::watch();
        let opened = open(caller.path(name)?, &values(options)?)?;
        leveldb_t::make(Database(opened))
    });
    opened.unwrap_or(ptr::null_mut())
}

/// See LevelDB's header. Iterators and snapshots that are left can be read until they are
/// destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_close(db: *mut leveldb_t) {
    told("leveldb_close", || Ok(leveldb_t::take(db)?.0.db.clone().close()?));
}

/// See LevelDB's header. A directory that LevelDB wrote is not touched, nor are files of others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_destroy_db(
    options: *const leveldb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    checked(&caller, errptr, || {
        fork::watch();
        let (path, options) = (caller.path(name)?, values(options)?);
        if is_without_database(path) {
            // As in LevelDB, an empty directory goes, and one with files of others stays.
            let _ = std::fs::remove_dir(path);
            return Ok(());
        }
        // No key is compared, so that a comparator may be destroyed before.
        Db::destroy(path, options.of_database())?;
        // With files of others in it, the directory stays.
        let _ = std::fs::remove_dir(path);
        Ok(())
    });
}

/// See LevelDB's header. What was lost goes to standard error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_repair_db(
    options: *const leveldb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    checked(&caller, errptr, || {
        fork::watch();
        let (path, options) = (caller.path(name)?, values(options)?);
        let callbacks = Callbacks::of(&options)?;
        let report = Db::repair(path, callbacks.of_database(options.of_database())).map_err(|error| match error {
            Error::NotFound { .. } => Failure(format!("IO error: {}: repair found no files", path.display())),
            other => with_comparator(other, &callbacks),
        })?;
        if !report.healthy {
            write_line(format!("libesker_leveldb: leveldb_repair_db: {report}").trim_end());
        }
        Ok(())
    });
}
