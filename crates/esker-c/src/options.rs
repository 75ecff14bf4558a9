//! The options of a database. What each does, and its price, is in the documentation of the
//! engine's `Options`, under the same name.

use crate::callbacks::{
    State, esker_clock, esker_compare, esker_create_filter, esker_destroy, esker_event, esker_key_may_match,
};
use crate::caller::Caller;
use crate::codes::*;
use crate::failure::{Done, Failure, call};
use crate::keyspace_options::order;
use crate::objects::{Exclusive, Handle, OptionsObject, esker_options};
use crate::operator::{CClock, CPolicy, listener};
use esker::{ChangeRetention, Compression, Options, Profile, ReadMode, WalMode};
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

/// Makes options with their defaults. A database that is opened copies them: they can be changed
/// and destroyed at once. Destroy them with `esker_options_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_create(options: *mut *mut esker_options) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(options, std::ptr::null_mut())?;
        esker_options::give(&output, OptionsObject(Exclusive::new(Options::default())))
    })
}

/// Destroys options.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_destroy(options: *mut esker_options) -> esker_code {
    call(|| esker_options::close(options).map(drop))
}

fn set(options: *mut esker_options, change: impl FnOnce(Options) -> Done<Options>) -> esker_code {
    call(|| {
        let object = esker_options::get(options)?;
        // Not under the lock: what is replaced may call back when it ends.
        let before = object.0.wait().clone();
        let after = change(before)?;
        let replaced = std::mem::replace(&mut *object.0.wait(), after);
        drop(replaced);
        Ok(())
    })
}

/// The options of a call: NULL are the defaults.
pub(crate) fn options_or_default(options: *const esker_options) -> Done<Options> {
    if options.is_null() {
        return Ok(Options::default());
    }
    Ok(esker_options::get(options)?.0.wait().clone())
}

/// Refuses what cannot work, with ESKER_INVALID_ARGUMENT: the message names the option, its value
/// and its limits. Every open begins with this.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_validate(options: *mut esker_options) -> esker_code {
    call(|| Ok(esker_options::get(options)?.0.wait().clone().validate()?))
}

/// Every value that a database opened with these options would have, its origin and its trade-off,
/// as a text to be freed with `esker_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_explain(options: *mut esker_options, text: *mut *mut c_char) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(text, std::ptr::null_mut())?;
        let options = esker_options::get(options)?.0.wait().clone();
        output.set_text(&options.explain().to_string())
    })
}

/// Whether a missing database is created. Default: true.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_create_if_missing(options: *mut esker_options, yes: bool) -> esker_code {
    set(options, |options| Ok(options.create_if_missing(yes)))
}

/// Bytes of a memtable before it is flushed.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_write_buffer_bytes(options: *mut esker_options, bytes: usize) -> esker_code {
    set(options, |options| Ok(options.write_buffer_bytes(bytes)))
}

/// Bytes of the cache of decompressed blocks.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_block_cache_bytes(options: *mut esker_options, bytes: usize) -> esker_code {
    set(options, |options| Ok(options.block_cache_bytes(bytes)))
}

/// Bytes of a block of a table.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_block_bytes(options: *mut esker_options, bytes: usize) -> esker_code {
    set(options, |options| Ok(options.block_bytes(bytes)))
}

fn compression(number: i32) -> Done<Compression> {
    match number {
        ESKER_COMPRESSION_NONE => Ok(Compression::None),
        ESKER_COMPRESSION_LZ4 => Ok(Compression::Lz4),
        ESKER_COMPRESSION_ZSTD => Ok(Compression::Zstd),
        other => Err(Failure::invalid(format!("{other} is no ESKER_COMPRESSION_..."))),
    }
}

/// Whether the library was built with a compression: one of `ESKER_COMPRESSION_...`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_compression_is_available(number: i32, available: *mut bool) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(available, false)?;
        output.set(compression(number)?.is_available());
        Ok(())
    })
}

/// The compression of the last run: one of `ESKER_COMPRESSION_...`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_compression(options: *mut esker_options, number: i32) -> esker_code {
    set(options, |options| Ok(options.compression(compression(number)?)))
}

/// The compression of the runs above the last.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_upper_compression(options: *mut esker_options, number: i32) -> esker_code {
    set(options, |options| Ok(options.upper_compression(compression(number)?)))
}

/// Bits of the filter of a table for each key; 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_filter_bits_per_key(options: *mut esker_options, bits: u32) -> esker_code {
    set(options, |options| Ok(options.filter_bits_per_key(bits)))
}

/// Bytes of a table, about.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_target_file_bytes(options: *mut esker_options, bytes: u64) -> esker_code {
    set(options, |options| Ok(options.target_file_bytes(bytes)))
}

/// The length from which values are stored in blob files.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_min_blob_size(options: *mut esker_options, bytes: usize) -> esker_code {
    set(options, |options| Ok(options.min_blob_size(bytes)))
}

/// Bytes of a segment of the log.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_wal_segment_bytes(options: *mut esker_options, bytes: u64) -> esker_code {
    set(options, |options| Ok(options.wal_segment_bytes(bytes)))
}

/// How the log is written: one of `ESKER_WAL_...`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_wal_mode(options: *mut esker_options, number: i32) -> esker_code {
    set(options, |options| match number {
        ESKER_WAL_MAPPED => Ok(options.wal_mode(WalMode::Mapped)),
        ESKER_WAL_PLAIN => Ok(options.wal_mode(WalMode::Plain)),
        other => Err(Failure::invalid(format!("{other} is no ESKER_WAL_..."))),
    })
}

/// How tables are read: one of `ESKER_READ_...`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_read_mode(options: *mut esker_options, number: i32) -> esker_code {
    set(options, |options| match number {
        ESKER_READ_AUTO => Ok(options.read_mode(ReadMode::Auto)),
        ESKER_READ_MMAP => Ok(options.read_mode(ReadMode::Mmap)),
        ESKER_READ_PREAD => Ok(options.read_mode(ReadMode::Pread)),
        ESKER_READ_MMAP_CHECKED => Ok(options.read_mode(ReadMode::MmapChecked)),
        other => Err(Failure::invalid(format!("{other} is no ESKER_READ_..."))),
    })
}

/// Threads that flush and compact; 0 makes writes do it.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_background_threads(options: *mut esker_options, threads: usize) -> esker_code {
    set(options, |options| Ok(options.background_threads(threads)))
}

/// The most bytes that compactions write in a second; 0 for no limit.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_compaction_bytes_per_second(options: *mut esker_options, bytes: u64) -> esker_code {
    set(options, |options| Ok(options.compaction_bytes_per_second(bytes)))
}

/// The most bytes of memory of memtables, caches, indexes and filters together.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_memory_budget_bytes(options: *mut esker_options, bytes: usize) -> esker_code {
    set(options, |options| Ok(options.memory_budget_bytes(bytes)))
}

/// Sets several options for a kind of use: "counters", "balanced", "read-heavy" or "large-values".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_profile(options: *mut esker_options, profile: *const c_char) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    set(options, |options| {
        let name = caller.text(profile, "the name of a profile")?;
        Ok(options.profile(name.parse::<Profile>()?))
    })
}

/// Whether the time that calls take is measured.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_latency_histograms(options: *mut esker_options, yes: bool) -> esker_code {
    set(options, |options| Ok(options.latency_histograms(yes)))
}

/// Keeps the changes in the last so many bytes of the log, for `esker_db_changes`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_keep_changes_bytes(options: *mut esker_options, bytes: u64) -> esker_code {
    set(options, |options| Ok(options.keep_changes(ChangeRetention::Bytes(bytes))))
}

/// Keeps the changes of the last so many milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_keep_changes_time(options: *mut esker_options, milliseconds: u64) -> esker_code {
    set(options, |options| Ok(options.keep_changes(ChangeRetention::Time(Duration::from_millis(milliseconds)))))
}

/// Keeps the changes that are kept, all of them, as long as the database is open, and none where
/// none are: for a program that opens the database of another one for a moment. Opened without any
/// of the three, it would end the changes of the other.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_keep_changes_as_before(options: *mut esker_options) -> esker_code {
    set(options, |options| Ok(options.keep_changes(ChangeRetention::AsBefore)))
}

/// Whether a database that is there is refused, with ESKER_ALREADY_EXISTS. Default: false.
#[unsafe(no_mangle)]
pub extern "C" fn esker_options_set_error_if_exists(options: *mut esker_options, yes: bool) -> esker_code {
    set(options, |options| Ok(options.error_if_exists(yes)))
}

/// Supplies a comparator for the keyspaces that were created with one of its name. Call it once for
/// each. `destroy` gets the state when nothing uses it any more, also if this call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_add_comparator(
    options: *mut esker_options,
    name: *const c_char,
    state: *mut c_void,
    compare: esker_compare,
    destroy: esker_destroy,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    let state = State { pointer: state, destroy };
    set(options, |options| Ok(options.comparator(order(&caller, name, state, compare)?)))
}

/// Asks functions, beside the engine's own filter, whether a get has to search a table. `destroy`
/// gets the state as for a comparator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_filter_policy(
    options: *mut esker_options,
    name: *const c_char,
    state: *mut c_void,
    create_filter: esker_create_filter,
    key_may_match: esker_key_may_match,
    destroy: esker_destroy,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    let state = State { pointer: state, destroy };
    set(options, |options| {
        let name = caller.text(name, "the name of a filter policy")?.to_owned();
        if create_filter.is_none() || key_may_match.is_none() {
            return Err(Failure::invalid("NULL for a function of a filter policy"));
        }
        Ok(options.filter_policy(Arc::new(CPolicy { name, state, create_filter, key_may_match })))
    })
}

/// Takes the time from a function. For tests.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_clock(
    options: *mut esker_options,
    state: *mut c_void,
    now: esker_clock,
    destroy: esker_destroy,
) -> esker_code {
    let state = State { pointer: state, destroy };
    set(options, |options| match now {
        None => Err(Failure::invalid("NULL for a clock")),
        now => Ok(options.clock(Arc::new(CClock { state, now }))),
    })
}

/// Tells a function about flushes, compactions, stalls and failures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_options_set_event_listener(
    options: *mut esker_options,
    state: *mut c_void,
    event: esker_event,
    destroy: esker_destroy,
) -> esker_code {
    let state = State { pointer: state, destroy };
    set(options, |options| match event {
        None => Err(Failure::invalid("NULL for a listener")),
        event => Ok(options.event_listener(listener(state, event))),
    })
}
