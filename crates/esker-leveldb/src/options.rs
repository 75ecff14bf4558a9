//! Options.

use crate::failure::Done;
use crate::objects::*;
use crate::option_values::OptionValues;
use crate::status::told;
use parking_lot::Mutex;
use std::ffi::c_int;
use std::ptr;

/// The values that a handle has at this moment.
pub(crate) fn values(options: *const leveldb_options_t) -> Done<OptionValues> {
    Ok(*leveldb_options_t::get(options)?.0.lock())
}

fn set(function: &str, options: *mut leveldb_options_t, change: impl FnOnce(&mut OptionValues)) {
    set_to(function, options, || Ok(()), |values, ()| change(values));
}

/// Sets what `value` returns, unless it fails.
fn set_to<T>(
    function: &str,
    options: *mut leveldb_options_t,
    value: impl FnOnce() -> Done<T>,
    change: impl FnOnce(&mut OptionValues, T),
) {
    told(function, || {
        let object = leveldb_options_t::get(options)?;
        let value = value()?;
        change(&mut object.0.lock(), value);
        Ok(())
    });
}

/// The number of a handle, or 0 for NULL.
fn number<T: Handle>(handle: *const T) -> Done<usize> {
    if !handle.is_null() {
        drop(T::get(handle)?);
    }
    Ok(handle.addr())
}

/// Sets the number of a comparator or a policy. Options do not keep what it names, which ends when
/// the program destroys it. One that names none is told, and is set all the same: an open would
/// otherwise make a database of another order.
fn set_callback<T: Handle>(
    function: &str,
    options: *mut leveldb_options_t,
    handle: *const T,
    change: impl FnOnce(&mut OptionValues, usize),
) {
    set(function, options, |values| change(values, handle.addr()));
    told(function, || number(handle));
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_create() -> *mut leveldb_options_t {
    let object = Options(Mutex::default());
    told("leveldb_options_create", || leveldb_options_t::make(object)).unwrap_or(ptr::null_mut())
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_destroy(options: *mut leveldb_options_t) {
    told("leveldb_options_destroy", || leveldb_options_t::close(options));
}

/// See LevelDB's header. NULL is LevelDB's own order. The comparator is looked up when the options
/// are used: with one that was destroyed, before or after this call, an open fails.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_comparator(
    options: *mut leveldb_options_t,
    comparator: *mut leveldb_comparator_t,
) {
    set_callback("leveldb_options_set_comparator", options, comparator, |values, order| values.order = order);
}

/// See LevelDB's header. NULL is the engine's own filter. The policy is looked up as a comparator
/// is.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_filter_policy(
    options: *mut leveldb_options_t,
    policy: *mut leveldb_filterpolicy_t,
) {
    set_callback("leveldb_options_set_filter_policy", options, policy, |values, policy| values.policy = policy);
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_create_if_missing(options: *mut leveldb_options_t, yes: u8) {
    set("leveldb_options_set_create_if_missing", options, |values| values.create_if_missing = yes != 0);
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_error_if_exists(options: *mut leveldb_options_t, yes: u8) {
    set("leveldb_options_set_error_if_exists", options, |values| values.error_if_exists = yes != 0);
}

/// Accepted. The engine checks as if it were set.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_paranoid_checks(options: *mut leveldb_options_t, yes: u8) {
    let _ = yes;
    set("leveldb_options_set_paranoid_checks", options, |_| ());
}

/// Accepted: there is one environment, that of the operating system.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_env(options: *mut leveldb_options_t, env: *mut leveldb_env_t) {
    set_to("leveldb_options_set_env", options, || number(env), |_, _| ());
}

/// Accepted: the engine writes no log of messages, and no function makes a logger.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_info_log(options: *mut leveldb_options_t, log: *mut leveldb_logger_t) {
    let _ = log;
    set("leveldb_options_set_info_log", options, |_| ());
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_write_buffer_size(options: *mut leveldb_options_t, bytes: usize) {
    set("leveldb_options_set_write_buffer_size", options, |values| values.write_buffer_bytes = Some(bytes));
}

/// Accepted: the engine keeps the tables of an open database open.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_max_open_files(options: *mut leveldb_options_t, files: c_int) {
    let _ = files;
    set("leveldb_options_set_max_open_files", options, |_| ());
}

/// See LevelDB's header: each database gets a cache of this size of its own.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_cache(options: *mut leveldb_options_t, cache: *mut leveldb_cache_t) {
    let bytes = || match cache.is_null() {
        true => Ok(None),
        false => Ok(Some(leveldb_cache_t::get(cache)?.0)),
    };
    set_to("leveldb_options_set_cache", options, bytes, |values, bytes| values.cache_bytes = bytes);
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_size(options: *mut leveldb_options_t, bytes: usize) {
    set("leveldb_options_set_block_size", options, |values| values.block_bytes = Some(bytes));
}

/// Accepted: blocks of the engine have no restarts.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_block_restart_interval(options: *mut leveldb_options_t, interval: c_int) {
    let _ = interval;
    set("leveldb_options_set_block_restart_interval", options, |_| ());
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_max_file_size(options: *mut leveldb_options_t, bytes: usize) {
    set("leveldb_options_set_max_file_size", options, |values| values.file_bytes = Some(bytes));
}

/// See LevelDB's header: any other number than `leveldb_no_compression` is LZ4.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_compression(options: *mut leveldb_options_t, compression: c_int) {
    set("leveldb_options_set_compression", options, |values| values.is_compressed = Some(compression != 0));
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_create() -> *mut leveldb_readoptions_t {
    let object = ReadOptions(Mutex::default());
    told("leveldb_readoptions_create", || leveldb_readoptions_t::make(object)).unwrap_or(ptr::null_mut())
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_destroy(options: *mut leveldb_readoptions_t) {
    told("leveldb_readoptions_destroy", || leveldb_readoptions_t::close(options));
}

/// Accepted: the engine verifies checksums in any case.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_verify_checksums(options: *mut leveldb_readoptions_t, yes: u8) {
    let _ = yes;
    told("leveldb_readoptions_set_verify_checksums", || leveldb_readoptions_t::get(options).map(drop));
}

/// Accepted: the cache of the engine resists scans by itself.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_fill_cache(options: *mut leveldb_readoptions_t, yes: u8) {
    let _ = yes;
    told("leveldb_readoptions_set_fill_cache", || leveldb_readoptions_t::get(options).map(drop));
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_snapshot(
    options: *mut leveldb_readoptions_t,
    snapshot: *const leveldb_snapshot_t,
) {
    told("leveldb_readoptions_set_snapshot", || {
        leveldb_readoptions_t::get(options)?.0.lock().snapshot = snapshot.addr();
        Ok(())
    });
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_create() -> *mut leveldb_writeoptions_t {
    let object = WriteOptions(Mutex::default());
    told("leveldb_writeoptions_create", || leveldb_writeoptions_t::make(object)).unwrap_or(ptr::null_mut())
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_destroy(options: *mut leveldb_writeoptions_t) {
    told("leveldb_writeoptions_destroy", || leveldb_writeoptions_t::close(options));
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_writeoptions_set_sync(options: *mut leveldb_writeoptions_t, yes: u8) {
    told("leveldb_writeoptions_set_sync", || {
        *leveldb_writeoptions_t::get(options)?.0.lock() = yes != 0;
        Ok(())
    });
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_create_lru(capacity: usize) -> *mut leveldb_cache_t {
    told("leveldb_cache_create_lru", || leveldb_cache_t::make(Cache(capacity))).unwrap_or(ptr::null_mut())
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_cache_destroy(cache: *mut leveldb_cache_t) {
    told("leveldb_cache_destroy", || leveldb_cache_t::close(cache));
}
