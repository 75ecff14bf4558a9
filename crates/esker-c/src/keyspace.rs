//! What concerns a keyspace as a whole.

use crate::callbacks::esker_next_pair;
use crate::caller::{Caller, esker_bytes, esker_range};
use crate::codes::*;
use crate::failure::{Done, Failure, call};
use crate::objects::{Handle, esker_keyspace};
use esker::{CompactionStyle, Ttl};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::time::Duration;

/// Destroys the handle of a keyspace; the keyspace stays.
#[unsafe(no_mangle)]
pub extern "C" fn esker_keyspace_destroy(keyspace: *mut esker_keyspace) -> esker_code {
    call(|| esker_keyspace::close(keyspace).map(drop))
}

/// The name of a keyspace, to be freed with `esker_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_name(keyspace: *mut esker_keyspace, name: *mut *mut c_char) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| caller.output(name, ptr::null_mut())?.set_text(&esker_keyspace::get(keyspace)?.0.name()))
}

/// The number of a keyspace, which no other keyspace of the database ever has, and which a rename
/// does not change: the `keyspace_id` of its changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_id(keyspace: *mut esker_keyspace, id: *mut u64) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(id, 0)?;
        output.set(esker_keyspace::get(keyspace)?.0.id());
        Ok(())
    })
}

/// Gives a keyspace another name, in one atomic step that is durable when it returns. All handles,
/// snapshots, iterators, batches and transactions go on; the old name is free at once.
/// ESKER_ALREADY_EXISTS if a keyspace has that name; its own name changes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_rename(keyspace: *mut esker_keyspace, name: *const c_char) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| Ok(esker_keyspace::get(keyspace)?.0.rename(caller.text(name, "the name of a keyspace")?)?))
}

/// The name of the order of the keys, which is "bytewise" without a comparator, to be freed with
/// `esker_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_comparator(
    keyspace: *mut esker_keyspace,
    name: *mut *mut c_char,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| caller.output(name, ptr::null_mut())?.set_text(esker_keyspace::get(keyspace)?.0.comparator()))
}

/// The name of the merge operator, to be freed with `esker_free`; NULL if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_merge_operator(
    keyspace: *mut esker_keyspace,
    name: *mut *mut c_char,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(name, ptr::null_mut())?;
        let name = esker_keyspace::get(keyspace)?.0.merge_operator();
        name.map_or(Ok(()), |name| output.set_text(&name))
    })
}

/// How two keys are ordered in a keyspace, whether they have values or not: `*order` is -1 if `a`
/// comes first, 1 if `b` does, 0 if they are the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_compare_keys(
    keyspace: *mut esker_keyspace,
    a: *const c_void,
    a_length: usize,
    b: *const c_void,
    b_length: usize,
    order: *mut i32,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(order, 0)?;
        let (a, b) = (caller.bytes(a, a_length)?, caller.bytes(b, b_length)?);
        output.set(esker_keyspace::get(keyspace)?.0.compare_keys(a, b) as i32);
        Ok(())
    })
}

/// Whether the entries of a keyspace can expire, and after how many milliseconds by default; 0 if
/// writes that bring no time to live never expire.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_ttl(
    keyspace: *mut esker_keyspace,
    enabled: *mut bool,
    default_ms: *mut u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (enabled, milliseconds) = (caller.output(enabled, false)?, caller.output(default_ms, 0)?);
        if let Ttl::Enabled { default } = esker_keyspace::get(keyspace)?.0.ttl() {
            enabled.set(true);
            milliseconds.set(default.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)));
        }
        Ok(())
    })
}

/// From now on entries of a keyspace can expire, after so many milliseconds by default; 0 is never.
/// What was written before keeps the expiry that it has, or has none, and so do operations that
/// were added to batches and transactions before. Durable when it returns. Waits for a flush or
/// compaction that is under way. Where nothing could expire before, and the keyspace has a merge
/// operator, its operands are combined first: as for `esker_keyspace_set_merge_operator`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_keyspace_set_ttl(keyspace: *mut esker_keyspace, default_ms: u64) -> esker_code {
    call(|| {
        let default = (default_ms > 0).then(|| Duration::from_millis(default_ms));
        Ok(esker_keyspace::get(keyspace)?.0.set_ttl(Ttl::Enabled { default })?)
    })
}

/// How a keyspace is compacted: one of `ESKER_COMPACTION_...`, and of ESKER_COMPACTION_FIFO the
/// most bytes of tables, otherwise 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_compaction_style(
    keyspace: *mut esker_keyspace,
    number: *mut i32,
    max_bytes: *mut u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (number, bytes) = (caller.output(number, 0)?, caller.output(max_bytes, 0)?);
        number.set(match esker_keyspace::get(keyspace)?.0.compaction_style() {
            CompactionStyle::LazyLeveling => ESKER_COMPACTION_LAZY_LEVELING,
            CompactionStyle::Leveled => ESKER_COMPACTION_LEVELED,
            CompactionStyle::Tiered => ESKER_COMPACTION_TIERED,
            CompactionStyle::Fifo { max_bytes } => {
                bytes.set(max_bytes);
                ESKER_COMPACTION_FIFO
            }
            other => return Err(Failure::invalid(format!("{other:?} has no number in this interface"))),
        });
        Ok(())
    })
}

/// About the bytes of a range on disk and in memory. `range` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_approximate_size(
    keyspace: *mut esker_keyspace,
    range: *const esker_range,
    bytes: *mut u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(bytes, 0)?;
        output.set(esker_keyspace::get(keyspace)?.0.approximate_size(caller.range(range)?)?);
        Ok(())
    })
}

/// About how many entries there are in a range, without reading a file: a key counts once for each
/// table and memtable that has a version of it, also where it was deleted or has expired, until
/// compaction drops it. `range` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_approximate_count(
    keyspace: *mut esker_keyspace,
    range: *const esker_range,
    entries: *mut u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(entries, 0)?;
        output.set(esker_keyspace::get(keyspace)?.0.approximate_count(caller.range(range)?)?);
        Ok(())
    })
}

/// Flushes, and compacts a range into one run. `range` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_compact(
    keyspace: *mut esker_keyspace,
    range: *const esker_range,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        if range.is_null() {
            keyspace.0.compact()?
        } else {
            keyspace.0.compact_range(caller.range(range)?)?
        }
        Ok(())
    })
}

/// Loads pairs with ascending keys straight into tables; all of them become visible and durable at
/// once, or none. `entries` gets their number, and may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_ingest(
    keyspace: *mut esker_keyspace,
    state: *mut c_void,
    next: esker_next_pair,
    entries: *mut u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let mut ignored = 0;
        let output = caller.output(if entries.is_null() { &raw mut ignored } else { entries }, 0)?;
        let keyspace = esker_keyspace::get(keyspace)?;
        let next = next.ok_or_else(|| Failure::invalid("NULL for a function"))?;
        let mut refused = None;
        let pairs = std::iter::from_fn(|| {
            let (mut key, mut value) = (esker_bytes::NONE, esker_bytes::NONE);
            // SAFETY: the program has passed this function for this state; it writes to both.
            if !unsafe { next(state, &raw mut key, &raw mut value) } {
                return None;
            }
            let copy = |bytes: esker_bytes| -> Done<Vec<u8>> { Ok(caller.bytes(bytes.data, bytes.length)?.to_vec()) };
            match copy(key).and_then(|key| Ok((key, copy(value)?))) {
                Ok(pair) => Some(pair),
                Err(failure) => {
                    refused = Some(failure);
                    // Longer than a key may be: what was loaded so far is refused as a whole.
                    Some((vec![0xff; 1 << 17], Vec::new()))
                }
            }
        });
        let done = keyspace.0.ingest(pairs);
        if let Some(failure) = refused {
            return Err(failure);
        }
        output.set(done?.entries);
        Ok(())
    })
}
