//! Maintenance: flushes, checkpoints, verification, repair, statistics.

use crate::callbacks::esker_visit_text;
use crate::caller::Caller;
use crate::codes::esker_code;
use crate::database::visit_texts;
use crate::failure::{Done, call, not_forked};
use crate::objects::{Handle, esker_db, esker_options};
use crate::options::options_or_default;
use esker::{CheckpointMode, Db, PrometheusText, VerifyEvent, VerifyReport};
use esker_ffi::fork;
use std::ffi::{c_char, c_void};
use std::ptr;

fn with(db: *mut esker_db, body: impl FnOnce(&Db) -> esker::Result<()>) -> esker_code {
    call(|| Ok(body(&esker_db::get(db)?.0)?))
}

/// Writes everything acknowledged before the call to tables, durably.
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_flush(db: *mut esker_db) -> esker_code {
    with(db, Db::flush)
}

/// Flushes everything, and compacts each keyspace into one run.
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_compact(db: *mut esker_db) -> esker_code {
    with(db, Db::compact)
}

/// Returns when an idle database would have nothing left to do.
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_wait_idle(db: *mut esker_db) -> esker_code {
    with(db, Db::wait_idle)
}

/// Brings everything logged so far to the device.
#[unsafe(no_mangle)]
pub extern "C" fn esker_db_sync(db: *mut esker_db) -> esker_code {
    with(db, Db::sync)
}

/// Makes a copy in a new or empty directory that opens as a database: by hard links where those
/// work, or, with `copy`, of every file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_checkpoint(db: *mut esker_db, directory: *const c_char, copy: bool) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let mode = if copy { CheckpointMode::Copy } else { CheckpointMode::Link };
        Ok(esker_db::get(db)?.0.checkpoint_with(caller.path(directory)?, mode)?)
    })
}

/// Passes all that is damaged to a function, if there is one; the first damage is the error.
fn with_damage(
    state: *mut c_void,
    visit: esker_visit_text,
    verify: impl FnOnce(&mut dyn FnMut(VerifyEvent<'_>)) -> esker::Result<VerifyReport>,
) -> Done<()> {
    let mut told: Done<()> = Ok(());
    verify(&mut |event| {
        if let (VerifyEvent::Damage(error), true) = (event, visit.is_some()) {
            told = visit_texts([("damage".to_owned(), error.to_string())], state, visit);
        }
    })?;
    told
}

/// Reads everything and checks it. `visit` gets all that is damaged, under the name "damage", and
/// may be NULL; the first damage is the error. What the function returns changes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_verify(db: *mut esker_db, state: *mut c_void, visit: esker_visit_text) -> esker_code {
    call(|| {
        let db = esker_db::get(db)?;
        with_damage(state, visit, |tell| db.0.verify_with(tell))
    })
}

/// The same of the database in a directory, without a lock and without a write: a writer may be at
/// work beside it. Of one that does not open, every part is gone over on its own, so that `visit`
/// gets each damaged place that can be found. `options` may be NULL; comparators are needed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_verify_directory(
    path: *const c_char,
    options: *const esker_options,
    state: *mut c_void,
    visit: esker_visit_text,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        not_forked()?;
        fork::watch();
        let (path, options) = (caller.path(path)?, options_or_default(options)?);
        with_damage(state, visit, |tell| Db::verify_directory(path, options, tell))
    })
}

/// Makes a damaged database that is not open one that opens, with what can be read. `*report` is a
/// text that names what is lost, to be freed with `esker_free`. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_repair(
    path: *const c_char,
    options: *const esker_options,
    report: *mut *mut c_char,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(report, ptr::null_mut())?;
        not_forked()?;
        fork::watch();
        let done = Db::repair(caller.path(path)?, options_or_default(options)?)?;
        output.set_text(&done.to_string())
    })
}

/// Removes the database in a directory that is not open, with all that is in it; the directory
/// stays. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_destroy(path: *const c_char, options: *const esker_options) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        not_forked()?;
        fork::watch();
        Ok(Db::destroy(caller.path(path)?, options_or_default(options)?)?)
    })
}

fn text(
    caller: &Caller,
    db: *mut esker_db,
    text: *mut *mut c_char,
    read: impl FnOnce(&Db) -> Done<Option<String>>,
) -> Done<()> {
    let output = caller.output(text, ptr::null_mut())?;
    read(&esker_db::get(db)?.0)?.map_or(Ok(()), |text| output.set_text(&text))
}

/// Statistics as a text for people, to be freed with `esker_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_stats(db: *mut esker_db, stats: *mut *mut c_char) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| text(&caller, db, stats, |db| Ok(Some(db.stats().to_string()))))
}

/// Every option with its value and its origin, as a text to be freed with `esker_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_explain(db: *mut esker_db, options: *mut *mut c_char) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| text(&caller, db, options, |db| Ok(Some(db.explain().to_string()))))
}

/// All metrics in the text format of Prometheus, to be freed with `esker_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_metrics(db: *mut esker_db, metrics: *mut *mut c_char) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        text(&caller, db, metrics, |db| {
            let mut text = PrometheusText::new();
            db.record(&mut text);
            Ok(Some(text.to_string()))
        })
    })
}

/// A property by name, as "esker.health.writable" or "esker.table_bytes", to be freed with
/// `esker_free`; NULL if there is none of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_property(
    db: *mut esker_db,
    name: *const c_char,
    value: *mut *mut c_char,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| text(&caller, db, value, |db| Ok(db.property(caller.text(name, "the name of a property")?))))
}

/// Calls a function for every property, until it returns false.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_db_properties(
    db: *mut esker_db,
    state: *mut c_void,
    visit: esker_visit_text,
) -> esker_code {
    call(|| visit_texts(esker_db::get(db)?.0.properties(), state, visit))
}
