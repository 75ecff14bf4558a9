//! Iterators: the pairs of a range, from both ends.

use crate::caller::{Caller, esker_bytes, esker_range};
use crate::codes::esker_code;
use crate::failure::{Done, call};
use crate::objects::{Exclusive, Handle, IteratorObject, Pairs, esker_iterator, esker_keyspace, esker_snapshot};
use std::ptr;

const NAME: &str = "an esker_iterator";

/// Makes an iterator over a range of a keyspace: of a snapshot, or of this moment if `snapshot` is
/// NULL. `range` may be NULL. Destroy it with `esker_iterator_destroy`. It may outlive the handles
/// that it was made of.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iterator_create(
    keyspace: *mut esker_keyspace,
    snapshot: *mut esker_snapshot,
    range: *const esker_range,
    iterator: *mut *mut esker_iterator,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(iterator, ptr::null_mut())?;
        let (keyspace, range) = (esker_keyspace::get(keyspace)?, caller.range(range)?);
        let iter = match snapshot.is_null() {
            true => keyspace.0.range(range),
            false => esker_snapshot::get(snapshot)?.0.range(&keyspace.0, range),
        };
        esker_iterator::give(&output, IteratorObject(Exclusive::new(Pairs::new(iter))))
    })
}

/// As `esker_iterator_create`, over the keys that begin with a prefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iterator_create_prefix(
    keyspace: *mut esker_keyspace,
    snapshot: *mut esker_snapshot,
    prefix: *const std::ffi::c_void,
    prefix_length: usize,
    iterator: *mut *mut esker_iterator,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(iterator, ptr::null_mut())?;
        let (keyspace, prefix) = (esker_keyspace::get(keyspace)?, caller.bytes(prefix, prefix_length)?);
        let iter = match snapshot.is_null() {
            true => keyspace.0.prefix(prefix),
            false => esker_snapshot::get(snapshot)?.0.prefix(&keyspace.0, prefix),
        };
        esker_iterator::give(&output, IteratorObject(Exclusive::new(Pairs::new(iter))))
    })
}

/// Destroys an iterator.
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_destroy(iterator: *mut esker_iterator) -> esker_code {
    call(|| esker_iterator::close(iterator).map(drop))
}

/// From here on an iterator has no values: they are empty, and large ones are not loaded, unless
/// operands are merged into them.
#[unsafe(no_mangle)]
pub extern "C" fn esker_iterator_keys_only(iterator: *mut esker_iterator) -> esker_code {
    call(|| {
        esker_iterator::get(iterator)?.0.lock(NAME)?.scan.skip_values();
        Ok(())
    })
}

fn step(
    caller: &Caller,
    iterator: *mut esker_iterator,
    (key, value, found): (*mut esker_bytes, *mut esker_bytes, *mut bool),
    forward: bool,
) -> Done<()> {
    // Both are NULL after a failure, also after that of the other one.
    let (key, value) = (caller.output(key, esker_bytes::NONE), caller.output(value, esker_bytes::NONE));
    let (key, value) = (key?, value?);
    let found = caller.output(found, false)?;
    let object = esker_iterator::get(iterator)?;
    let mut pairs = object.0.lock(NAME)?;
    pairs.pair = None;
    pairs.pair = pairs.scan.step(forward).transpose()?;
    if let Some((found_key, found_value)) = &pairs.pair {
        key.set(esker_bytes::lent(found_key));
        value.set(esker_bytes::lent(found_value.as_deref().unwrap_or(&[])));
        found.set(true);
    }
    Ok(())
}

/// The next pair from the front, which is lent until the next step or the end of the iterator.
/// `found` is false at the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iterator_next(
    iterator: *mut esker_iterator,
    key: *mut esker_bytes,
    value: *mut esker_bytes,
    found: *mut bool,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| step(&caller, iterator, (key, value, found), true))
}

/// The next pair from the back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_iterator_next_back(
    iterator: *mut esker_iterator,
    key: *mut esker_bytes,
    value: *mut esker_bytes,
    found: *mut bool,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| step(&caller, iterator, (key, value, found), false))
}
