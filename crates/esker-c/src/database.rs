//! Databases and their keyspaces.

use crate::callbacks::esker_visit_text;
use crate::caller::Caller;
use crate::codes::esker_code;
use crate::failure::{Done, Failure, call, not_forked};
use crate::keyspace_options::keyspace_options_or_default;
use crate::objects::*;
use crate::options::options_or_default;
use esker::{Db, Options};
use esker_ffi::fork;
use std::ffi::{CString, c_char, c_void};
use std::path::Path;
use std::ptr;

fn open(
    caller: &Caller,
    path: *const c_char,
    options: *const esker_options,
    db: *mut *mut esker_db,
    how: impl FnOnce(&Path, Options) -> esker::Result<Db>,
) -> Done<()> {
    let output = caller.output(db, ptr::null_mut())?;
    not_forked()?;
    fork::watch();
    let opened = how(caller.path(path)?, options_or_default(options)?)?;
    esker_db::give(&output, DbObject(opened))
}

/// Opens the database in a directory, or creates it. `options` may be NULL. Close it with
/// `esker_db_close`. Any thread may use the handle; no other process may open it meanwhile
/// (ESKER_LOCKED), and a child of fork cannot use the library (ESKER_FORKED).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_open(
    path: *const c_char,
    options: *const esker_options,
    db: *mut *mut esker_db,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| open(&caller, path, options, db, |path, options| Db::open(path, options)))
}

/// Opens a database for reading, beside a writer or not: it sees what was acknowledged before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_open_read_only(
    path: *const c_char,
    options: *const esker_options,
    db: *mut *mut esker_db,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| open(&caller, path, options, db, |path, options| Db::open_read_only(path, options)))
}

/// Closes a database: flushes what was written without log, and releases the lock. The handle is
/// closed in any case. Keyspaces, snapshots, cursors and iterators of it can be read until they are
/// destroyed; their writes are ESKER_READ_ONLY.
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_close(db: *mut esker_db) -> esker_code {
    call(|| Ok(esker_db::close(db)?.0.clone().close()?))
}

/// Opens a keyspace, or creates it. `options` may be NULL. Destroy the handle with
/// `esker_keyspace_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_keyspace(
    db: *mut esker_db,
    name: *const c_char,
    options: *const esker_keyspace_options,
    keyspace: *mut *mut esker_keyspace,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(keyspace, ptr::null_mut())?;
        let db = esker_db::get(db)?;
        let name = caller.text(name, "the name of a keyspace")?;
        let opened = db.0.keyspace(name, keyspace_options_or_default(options)?)?;
        esker_keyspace::give(&output, KeyspaceObject(opened))
    })
}

/// Opens a keyspace that exists: ESKER_NOT_FOUND if it does not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_existing_keyspace(
    db: *mut esker_db,
    name: *const c_char,
    keyspace: *mut *mut esker_keyspace,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(keyspace, ptr::null_mut())?;
        let opened = esker_db::get(db)?.0.existing_keyspace(caller.text(name, "the name of a keyspace")?)?;
        esker_keyspace::give(&output, KeyspaceObject(opened))
    })
}

/// Removes a keyspace with all that is in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_drop_keyspace(db: *mut esker_db, name: *const c_char) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| Ok(esker_db::get(db)?.0.drop_keyspace(caller.text(name, "the name of a keyspace")?)?))
}

/// Calls a function for the name of each keyspace; the text is that of its merge operator, or
/// empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_keyspaces(
    db: *mut esker_db,
    state: *mut c_void,
    visit: esker_visit_text,
) -> esker_code {
    call(|| {
        let db = esker_db::get(db)?;
        let stats = db.0.stats();
        let named = stats.keyspaces.into_iter().map(|it| (it.name, it.merge_operator.unwrap_or_default()));
        visit_texts(named, state, visit)
    })
}

/// Passes texts to a function until it returns false.
pub(crate) fn visit_texts(
    texts: impl IntoIterator<Item = (String, String)>,
    state: *mut c_void,
    visit: esker_visit_text,
) -> Done<()> {
    let visit = visit.ok_or_else(|| Failure::invalid("NULL for a function"))?;
    let c_text = |text: String| CString::new(text.replace('\0', "\\0")).unwrap_or_default();
    for (name, text) in texts {
        let (name, text) = (c_text(name), c_text(text));
        // SAFETY: the program has passed this function for this state; the texts live until it
        // returns.
        if !unsafe { visit(state, name.as_ptr(), text.as_ptr()) } {
            break;
        }
    }
    Ok(())
}

/// The directory of the database, to be freed with `esker_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_path(db: *mut esker_db, path: *mut *mut c_char) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(path, ptr::null_mut())?;
        output.set_text(&esker_db::get(db)?.0.path().to_string_lossy())
    })
}

/// Takes a snapshot of all keyspaces. Destroy it with `esker_snapshot_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_snapshot(db: *mut esker_db, snapshot: *mut *mut esker_snapshot) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(snapshot, ptr::null_mut())?;
        esker_snapshot::give(&output, SnapshotObject(esker_db::get(db)?.0.snapshot()))
    })
}

/// Makes an empty batch. Destroy it with `esker_batch_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_batch(db: *mut esker_db, batch: *mut *mut esker_batch) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(batch, ptr::null_mut())?;
        esker_batch::give(&output, BatchObject(Exclusive::new(esker_db::get(db)?.0.batch())))
    })
}

/// Begins a transaction. End it with `esker_transaction_commit` or `esker_transaction_rollback`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_transaction(
    db: *mut esker_db,
    transaction: *mut *mut esker_transaction,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(transaction, ptr::null_mut())?;
        let begun = esker_db::get(db)?.0.transaction();
        esker_transaction::give(&output, TransactionObject(Exclusive::new(Some(begun))))
    })
}
