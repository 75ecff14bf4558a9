//! Transactions.

use crate::callbacks::esker_visit_pair;
use crate::caller::{Caller, esker_bytes, esker_range};
use crate::codes::{ESKER_CLOSED_HANDLE, esker_code};
use crate::failure::{Done, Failure, call};
use crate::objects::{Handle, esker_keyspace, esker_transaction, esker_write_options};
use crate::read::{copy_into, give_pair, multi_get};
use crate::times::{milliseconds, time};
use crate::write_options::write_options_or_default;
use esker::{Transaction, TransactionIter};
use std::ffi::{c_char, c_void};
use std::time::Duration;

const NAME: &str = "an esker_transaction";

fn with<T>(handle: *mut esker_transaction, body: impl FnOnce(&mut Transaction) -> Done<T>) -> Done<T> {
    let object = esker_transaction::get(handle)?;
    let mut transaction = object.0.lock(NAME)?;
    body(transaction.as_mut().ok_or_else(ended)?)
}

fn ended() -> Failure {
    Failure::new(ESKER_CLOSED_HANDLE, "the transaction has ended")
}

/// Writes all that a transaction has written in one atomic step, or fails with ESKER_CONFLICT and
/// writes nothing. The handle is closed in any case but ESKER_BUSY_HANDLE. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_commit(
    transaction: *mut esker_transaction,
    options: *const esker_write_options,
) -> esker_code {
    call(|| {
        let options = write_options_or_default(options);
        Ok(end(transaction)?.commit_with(&options?)?)
    })
}

/// Ends a transaction without writing.
#[unsafe(no_mangle)]
pub extern "C" fn esker_transaction_rollback(transaction: *mut esker_transaction) -> esker_code {
    call(|| {
        end(transaction)?.rollback();
        Ok(())
    })
}

/// Closes the handle, unless another call uses it.
fn end(handle: *mut esker_transaction) -> Done<Transaction> {
    let object = esker_transaction::get(handle)?;
    let transaction = object.0.lock(NAME)?.take().ok_or_else(ended)?;
    esker_transaction::close(handle)?;
    Ok(transaction)
}

/// The value of a key as the transaction sees it, as `esker_keyspace_get`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_get(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    value: *mut *mut c_char,
    value_length: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output_bytes(value, value_length)?;
        let keyspace = esker_keyspace::get(keyspace)?;
        let key = caller.bytes(key, key_length)?;
        output.set(with(transaction, |transaction| Ok(transaction.get(&keyspace.0, key)?))?)
    })
}

/// Copies the value of a key as the transaction sees it into a buffer, as
/// `esker_keyspace_get_into`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_get_into(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    buffer: *mut c_void,
    buffer_length: usize,
    value_length: *mut usize,
    found: *mut bool,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        copy_into(&caller, (buffer, buffer_length), (value_length, found), || {
            let keyspace = esker_keyspace::get(keyspace)?;
            let key = caller.bytes(key, key_length)?;
            with(transaction, |transaction| Ok(transaction.get(&keyspace.0, key)?))
        })
    })
}

/// The values of many keys as the transaction sees them, as `esker_keyspace_multi_get`. All of them
/// count as read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_multi_get(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    keys: *const esker_bytes,
    count: usize,
    values: *mut *mut c_char,
    value_lengths: *mut usize,
    codes: *mut esker_code,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        multi_get(&caller, (keys, count), (values, value_lengths, codes), |keys| {
            let keyspace = esker_keyspace::get(keyspace)?;
            with(transaction, |transaction| Ok(transaction.multi_get(&keyspace.0, keys)))
        })
    })
}

/// Whether a key has a value, as the transaction sees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_contains_key(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    found: *mut bool,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(found, false)?;
        let keyspace = esker_keyspace::get(keyspace)?;
        let key = caller.bytes(key, key_length)?;
        output.set(with(transaction, |transaction| Ok(transaction.contains_key(&keyspace.0, key)?))?);
        Ok(())
    })
}

/// When a key expires, as of the beginning of the transaction, as `esker_keyspace_expires_at`.
/// ESKER_INVALID_ARGUMENT for a key that the transaction has written: times count from the commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_expires_at(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    found: *mut bool,
    expires_at_ms: *mut u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let (found, time) = (caller.output(found, false)?, caller.output(expires_at_ms, 0)?);
        let keyspace = esker_keyspace::get(keyspace)?;
        let key = caller.bytes(key, key_length)?;
        let expiry = with(transaction, |transaction| Ok(transaction.expires_at(&keyspace.0, key)?))?;
        found.set(expiry.is_some());
        time.set(expiry.map_or(0, milliseconds));
        Ok(())
    })
}

/// The least key as the transaction sees it, as `esker_keyspace_first`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_first(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *mut *mut c_char,
    key_length: *mut usize,
    value: *mut *mut c_char,
    value_length: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        give_pair(&caller, (key, key_length, value, value_length), || {
            let keyspace = esker_keyspace::get(keyspace)?;
            with(transaction, |transaction| Ok(transaction.first(&keyspace.0)?))
        })
    })
}

/// The greatest key as the transaction sees it, as `esker_keyspace_last`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_last(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *mut *mut c_char,
    key_length: *mut usize,
    value: *mut *mut c_char,
    value_length: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        give_pair(&caller, (key, key_length, value, value_length), || {
            let keyspace = esker_keyspace::get(keyspace)?;
            with(transaction, |transaction| Ok(transaction.last(&keyspace.0)?))
        })
    })
}

/// Deletes the least key and returns it with its value, as `esker_keyspace_pop_first`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_pop_first(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *mut *mut c_char,
    key_length: *mut usize,
    value: *mut *mut c_char,
    value_length: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        give_pair(&caller, (key, key_length, value, value_length), || {
            let keyspace = esker_keyspace::get(keyspace)?;
            with(transaction, |transaction| Ok(transaction.pop_first(&keyspace.0)?))
        })
    })
}

/// The number of keys in a range, as the transaction sees it. `range` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_count(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    range: *const esker_range,
    count: *mut u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(count, 0)?;
        let keyspace = esker_keyspace::get(keyspace)?;
        let range = caller.range(range)?;
        output.set(with(transaction, |transaction| Ok(transaction.count(&keyspace.0, range)?))?);
        Ok(())
    })
}

/// Sets the value of a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_put(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let (key, value) = (caller.bytes(key, key_length)?, caller.bytes(value, value_length)?);
        with(transaction, |transaction| Ok(transaction.put(&keyspace.0, key, value)?))
    })
}

/// Sets the value of a key with a time to live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_put_with_ttl(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    ttl_ms: u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let (key, value) = (caller.bytes(key, key_length)?, caller.bytes(value, value_length)?);
        with(transaction, |transaction| {
            Ok(transaction.put_with_ttl(&keyspace.0, key, value, Duration::from_millis(ttl_ms))?)
        })
    })
}

/// Sets the value of a key until a time, in milliseconds since 1970; ESKER_NEVER is never.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_put_until(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    expires_at_ms: u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let (key, value) = (caller.bytes(key, key_length)?, caller.bytes(value, value_length)?);
        with(transaction, |transaction| Ok(transaction.put_until(&keyspace.0, key, value, time(expires_at_ms))?))
    })
}

/// Deletes a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_delete(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let key = caller.bytes(key, key_length)?;
        with(transaction, |transaction| Ok(transaction.delete(&keyspace.0, key)?))
    })
}

/// Merges an operand.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_merge(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    operand: *const c_void,
    operand_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let (key, operand) = (caller.bytes(key, key_length)?, caller.bytes(operand, operand_length)?);
        with(transaction, |transaction| Ok(transaction.merge(&keyspace.0, key, operand)?))
    })
}

/// Merges an operand with a time to live, which counts from the commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_merge_with_ttl(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    operand: *const c_void,
    operand_length: usize,
    ttl_ms: u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let (key, operand) = (caller.bytes(key, key_length)?, caller.bytes(operand, operand_length)?);
        with(transaction, |transaction| {
            Ok(transaction.merge_with_ttl(&keyspace.0, key, operand, Duration::from_millis(ttl_ms))?)
        })
    })
}

/// Deletes a range. `range` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_delete_range(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    range: *const esker_range,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let range = caller.range(range)?;
        with(transaction, |transaction| Ok(transaction.delete_range(&keyspace.0, range)?))
    })
}

/// Deletes every key that begins with a prefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_delete_prefix(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    prefix: *const c_void,
    prefix_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let prefix = caller.bytes(prefix, prefix_length)?;
        with(transaction, |transaction| Ok(transaction.delete_prefix(&keyspace.0, prefix)?))
    })
}

/// Changes the expiry of a key to so many milliseconds from the commit on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_touch(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    ttl_ms: u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let key = caller.bytes(key, key_length)?;
        with(transaction, |transaction| Ok(transaction.touch(&keyspace.0, key, Duration::from_millis(ttl_ms))?))
    })
}

/// Changes the expiry of a key to a time in milliseconds since 1970; ESKER_NEVER is
/// never.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_expire_at(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
    expires_at_ms: u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let key = caller.bytes(key, key_length)?;
        with(transaction, |transaction| Ok(transaction.expire_at(&keyspace.0, key, time(expires_at_ms))?))
    })
}

/// Makes the value of a key one that never expires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_persist(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    key: *const c_void,
    key_length: usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let key = caller.bytes(key, key_length)?;
        with(transaction, |transaction| Ok(transaction.persist(&keyspace.0, key)?))
    })
}

/// Calls a function for each pair of a range as the transaction sees it, from the front or, with
/// `reverse`, from the back, until it returns false. The function cannot use the transaction
/// (ESKER_BUSY_HANDLE): collect what is to be written. `range` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_scan(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    range: *const esker_range,
    reverse: bool,
    state: *mut c_void,
    visit: esker_visit_pair,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let range = caller.range(range)?;
        with(transaction, |transaction| tell(transaction.range(&keyspace.0, range), reverse, state, visit))
    })
}

/// As `esker_transaction_scan`, for the keys that begin with a prefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_scan_prefix(
    transaction: *mut esker_transaction,
    keyspace: *mut esker_keyspace,
    prefix: *const c_void,
    prefix_length: usize,
    reverse: bool,
    state: *mut c_void,
    visit: esker_visit_pair,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let prefix = caller.bytes(prefix, prefix_length)?;
        with(transaction, |transaction| tell(transaction.prefix(&keyspace.0, prefix), reverse, state, visit))
    })
}

/// Passes pairs to a function until it returns false.
fn tell(mut pairs: TransactionIter<'_>, reverse: bool, state: *mut c_void, visit: esker_visit_pair) -> Done<()> {
    let visit = visit.ok_or_else(|| Failure::invalid("NULL for a function"))?;
    // SAFETY: the program has passed this function for this state; the pair lives until it returns.
    let tell = |key: &[u8], value: &[u8]| unsafe { visit(state, esker_bytes::lent(key), esker_bytes::lent(value)) };
    while let Some(pair) = if reverse { pairs.next_back() } else { pairs.next() } {
        let (key, value) = pair?;
        if !tell(&key, &value) {
            break;
        }
    }
    Ok(())
}

/// The sequence number of the last write that a transaction sees.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_sequence(
    transaction: *mut esker_transaction,
    sequence: *mut u64,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(sequence, 0)?;
        output.set(with(transaction, |transaction| Ok(transaction.sequence()))?);
        Ok(())
    })
}

/// The number of operations that the transaction writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_transaction_write_count(
    transaction: *mut esker_transaction,
    count: *mut usize,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(count, 0)?;
        output.set(with(transaction, |transaction| Ok(transaction.len()))?);
        Ok(())
    })
}
