//! Opening, closing, removing and repairing databases.

use crate::caller::Caller;
use crate::failure::{Done, Failure};
use crate::foreign::refuse_foreign;
use crate::objects::*;
use crate::option_values::OptionValues;
use crate::options::values;
use crate::status::{checked, told};
use esker::{Db, Error};
use std::ffi::c_char;
use std::path::Path;
use std::ptr;

/// The keyspace that holds the pairs of a database. `esker import` fills the same one.
const KEYSPACE: &str = "default";

fn open(path: &Path, options: &OptionValues) -> Done<Open> {
    refuse_foreign(path)?;
    let db = Db::open(path, options.of_database()).map_err(|error| match error {
        Error::NotFound { .. } => {
            Failure::invalid(format!("{}: does not exist (create_if_missing is false)", path.display()))
        }
        Error::AlreadyExists { .. } => {
            Failure::invalid(format!("{}: exists (error_if_exists is true)", path.display()))
        }
        other => Failure::from(other),
    })?;
    let keyspace = db.keyspace(KEYSPACE, options.of_keyspace())?;
    Ok(Open { db, keyspace })
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
        let opened = open(caller.path(name)?, &values(options)?)?;
        leveldb_t::make(Database(opened))
    });
    opened.unwrap_or(ptr::null_mut())
}

/// See LevelDB's header. Iterators and snapshots that are left can be read until they are
/// destroyed.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_close(db: *mut leveldb_t) {
    told("leveldb_close", || Ok(leveldb_t::close(db)?.0.db.clone().close()?));
}

/// See LevelDB's header. A directory that LevelDB wrote is not touched.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_destroy_db(
    options: *const leveldb_options_t,
    name: *const c_char,
    errptr: *mut *mut c_char,
) {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    checked(&caller, errptr, || {
        let (path, options) = (caller.path(name)?, values(options)?);
        refuse_foreign(path)?;
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
        let (path, options) = (caller.path(name)?, values(options)?);
        refuse_foreign(path)?;
        let report = Db::repair(path, options.of_database()).map_err(|error| match error {
            Error::NotFound { .. } => Failure(format!("IO error: {}: repair found no files", path.display())),
            other => Failure::from(other),
        })?;
        if !report.healthy {
            eprint!("libesker_leveldb: leveldb_repair_db: {report}");
        }
        Ok(())
    });
}
