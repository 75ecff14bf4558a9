//! Options.

use crate::failure::Done;
use crate::objects::*;
use crate::option_values::OptionValues;
use crate::status::told;
use parking_lot::Mutex;
use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

/// The values that a handle has at this moment.
pub(crate) fn values(options: *const leveldb_options_t) -> Done<OptionValues> {
    Ok(leveldb_options_t::get(options)?.0.lock().clone())
}

fn set(function: &str, options: *mut leveldb_options_t, change: impl FnOnce(&mut OptionValues)) {
    told(function, || {
        let object = leveldb_options_t::get(options)?;
        // Not under the lock: what is replaced may call back when it ends.
        let mut values = object.0.lock().clone();
        change(&mut values);
        let replaced = std::mem::replace(&mut *object.0.lock(), values);
        drop(replaced);
        Ok(())
    });
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

/// See LevelDB's header. NULL is LevelDB's own order.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_comparator(
    options: *mut leveldb_options_t,
    comparator: *mut leveldb_comparator_t,
) {
    let function = "leveldb_options_set_comparator";
    let order = match comparator.is_null() {
        true => Some(None),
        false => told(function, || Ok(Some(Arc::clone(&leveldb_comparator_t::get(comparator)?.0)))),
    };
    if let Some(order) = order {
        set(function, options, |values| values.order = order);
    }
}

/// See LevelDB's header. NULL is the engine's own filter.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_options_set_filter_policy(
    options: *mut leveldb_options_t,
    policy: *mut leveldb_filterpolicy_t,
) {
    let function = "leveldb_options_set_filter_policy";
    let policy = match policy.is_null() {
        true => Some(None),
        false => told(function, || Ok(Some(Arc::clone(&leveldb_filterpolicy_t::get(policy)?.0)))),
    };
    if let Some(policy) = policy {
        set(function, options, |values| values.policy = policy);
    }
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
    let function = "leveldb_options_set_env";
    if !env.is_null() {
        told(function, || leveldb_env_t::get(env));
    }
    set(function, options, |_| ());
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
    let function = "leveldb_options_set_cache";
    let bytes = match cache.is_null() {
        true => Some(None),
        false => told(function, || Ok(Some(leveldb_cache_t::get(cache)?.0))),
    };
    if let Some(bytes) = bytes {
        set(function, options, |values| values.cache_bytes = bytes);
    }
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
    told("leveldb_readoptions_set_verify_checksums", || leveldb_readoptions_t::get(options));
}

/// Accepted: the cache of the engine resists scans by itself.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_readoptions_set_fill_cache(options: *mut leveldb_readoptions_t, yes: u8) {
    let _ = yes;
    told("leveldb_readoptions_set_fill_cache", || leveldb_readoptions_t::get(options));
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
