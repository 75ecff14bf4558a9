//! The options of a keyspace.

use crate::callbacks::{
    State, esker_check_operand, esker_compare, esker_destroy, esker_filter, esker_full_merge, esker_partial_merge,
};
use crate::caller::Caller;
use crate::codes::*;
use crate::failure::{Done, Failure, call};
use crate::objects::{
    Exclusive, Handle, KeyspaceOptionsObject, KeyspaceValues, esker_keyspace, esker_keyspace_options,
};
use crate::operator::{COrder, Filter, Operator};
use esker::{CompactionStyle, KeyspaceOptions, MergeOperator, ReverseBytewise, Ttl, merge};
use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

/// Makes options with their defaults. A keyspace that is opened copies them. Destroy them with
/// `esker_keyspace_options_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_create(options: *mut *mut esker_keyspace_options) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(options, std::ptr::null_mut())?;
        let object = KeyspaceOptionsObject(Exclusive::new(KeyspaceValues::default()));
        esker_keyspace_options::give(&output, object)
    })
}

/// Destroys options.
#[unsafe(no_mangle)]
pub extern "C" fn esker_keyspace_options_destroy(options: *mut esker_keyspace_options) -> esker_code {
    call(|| esker_keyspace_options::close(options).map(drop))
}

fn set(
    options: *mut esker_keyspace_options,
    change: impl FnOnce(KeyspaceOptions) -> Done<KeyspaceOptions>,
) -> esker_code {
    set_values(options, |values| Ok(KeyspaceValues { options: change(values.options)?, operator: values.operator }))
}

fn set_operator(
    options: *mut esker_keyspace_options,
    operator: impl FnOnce() -> Done<Arc<dyn MergeOperator>>,
) -> esker_code {
    set_values(options, |values| {
        let operator = operator()?;
        let options = values.options.shared_merge_operator(Arc::clone(&operator));
        Ok(KeyspaceValues { options, operator: Some(operator) })
    })
}

fn set_values(
    options: *mut esker_keyspace_options,
    change: impl FnOnce(KeyspaceValues) -> Done<KeyspaceValues>,
) -> esker_code {
    call(|| {
        let object = esker_keyspace_options::get(options)?;
        // Not under the lock: what is replaced may call back when it ends.
        let before = object.0.wait().clone();
        let after = change(before)?;
        let replaced = std::mem::replace(&mut *object.0.wait(), after);
        drop(replaced);
        Ok(())
    })
}

/// The options of a call: NULL are the defaults.
pub(crate) fn keyspace_options_or_default(options: *const esker_keyspace_options) -> Done<KeyspaceOptions> {
    if options.is_null() {
        return Ok(KeyspaceOptions::default());
    }
    Ok(esker_keyspace_options::get(options)?.0.wait().options.clone())
}

/// Gives a keyspace the merge operator that these options have, of which nothing else is used.
/// Durable when it returns. In the place of another one it takes the time to rewrite the keyspace,
/// whose operands are combined first. Does nothing where the keyspace has an operator of that name,
/// but supply it if the keyspace was opened without. ESKER_INVALID_ARGUMENT if the options have
/// none, and where operands cannot be combined, as where an iterator sees what is below them.
#[unsafe(no_mangle)]
pub extern "C" fn esker_keyspace_set_merge_operator(
    keyspace: *mut esker_keyspace,
    options: *const esker_keyspace_options,
) -> esker_code {
    call(|| {
        let keyspace = esker_keyspace::get(keyspace)?;
        let operator = esker_keyspace_options::get(options)?.0.wait().operator.clone();
        let none = || Failure::invalid("the options have no merge operator; give them one first");
        Ok(keyspace.0.set_shared_merge_operator(operator.ok_or_else(none)?)?)
    })
}

/// Takes a merge operator of the engine: "uint64add", "int64add", "max", "min", "put", "bytesxor",
/// "bitor", or "stringappend:" with the delimiter in hexadecimal digits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_set_built_in_operator(
    options: *mut esker_keyspace_options,
    name: *const c_char,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    set_operator(options, || {
        let name = caller.text(name, "the name of an operator")?;
        merge::built_in(name).ok_or_else(|| Failure::invalid(format!("there is no built-in merge operator {name:?}")))
    })
}

/// Takes a merge operator of C functions, under a name that is stored with the keyspace.
/// `partial_merge` and `check_operand` may be NULL. The engine calls the functions from any thread;
/// `destroy` gets the state when nothing uses it any more, also if this call fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_set_merge_operator(
    options: *mut esker_keyspace_options,
    name: *const c_char,
    state: *mut c_void,
    full_merge: esker_full_merge,
    partial_merge: esker_partial_merge,
    check_operand: esker_check_operand,
    destroy: esker_destroy,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    let state = State { pointer: state, destroy };
    set_operator(options, || {
        let name = caller.text(name, "the name of an operator")?.to_owned();
        if full_merge.is_none() {
            return Err(Failure::invalid("NULL for the function of a merge operator"));
        }
        Ok(Arc::new(Operator { name, state, full_merge, partial_merge, check_operand }))
    })
}

/// Takes an order of the keys, under a name that is stored when the keyspace is created. Later
/// opens of the database need it by `esker_options_add_comparator`. `destroy` gets the state as for
/// a merge operator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_set_comparator(
    options: *mut esker_keyspace_options,
    name: *const c_char,
    state: *mut c_void,
    compare: esker_compare,
    destroy: esker_destroy,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    let state = State { pointer: state, destroy };
    set(options, |options| Ok(options.shared_comparator(order(&caller, name, state, compare)?)))
}

/// Takes the reverse of the order of bytes: the greatest key comes first. Opens know it without
/// `esker_options_add_comparator`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_keyspace_options_set_reverse_order(options: *mut esker_keyspace_options) -> esker_code {
    set(options, |options| Ok(options.comparator(ReverseBytewise)))
}

/// A comparator of the caller.
pub(crate) fn order(caller: &Caller, name: *const c_char, state: State, compare: esker_compare) -> Done<Arc<COrder>> {
    let name = caller.text(name, "the name of a comparator")?.to_owned();
    if compare.is_none() {
        return Err(Failure::invalid("NULL for the function of a comparator"));
    }
    Ok(Arc::new(COrder { name, state, compare }))
}

/// Gives the keyspace a time to live; `default_ms` is that of writes that bring none, or 0 if those
/// never expire.
#[unsafe(no_mangle)]
pub extern "C" fn esker_keyspace_options_set_ttl(
    options: *mut esker_keyspace_options,
    enabled: bool,
    default_ms: u64,
) -> esker_code {
    set(options, |options| {
        let default = (default_ms > 0).then(|| Duration::from_millis(default_ms));
        Ok(options.ttl(if enabled { Ttl::Enabled { default } } else { Ttl::Disabled }))
    })
}

/// How the keyspace is compacted: one of `ESKER_COMPACTION_...`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_keyspace_options_set_compaction_style(
    options: *mut esker_keyspace_options,
    number: i32,
) -> esker_code {
    set(options, |options| {
        let style = match number {
            ESKER_COMPACTION_LAZY_LEVELING => CompactionStyle::LazyLeveling,
            ESKER_COMPACTION_LEVELED => CompactionStyle::Leveled,
            ESKER_COMPACTION_TIERED => CompactionStyle::Tiered,
            other => return Err(Failure::invalid(format!("{other} is no ESKER_COMPACTION_..."))),
        };
        Ok(options.compaction_style(style))
    })
}

/// Keeps at most so many bytes of tables: the oldest ones are dropped with all that is in them.
#[unsafe(no_mangle)]
pub extern "C" fn esker_keyspace_options_set_fifo(options: *mut esker_keyspace_options, max_bytes: u64) -> esker_code {
    set(options, |options| Ok(options.compaction_style(CompactionStyle::Fifo { max_bytes })))
}

/// Takes a compaction filter. `destroy` gets the state as for a merge operator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_set_compaction_filter(
    options: *mut esker_keyspace_options,
    name: *const c_char,
    state: *mut c_void,
    filter: esker_filter,
    destroy: esker_destroy,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    let state = State { pointer: state, destroy };
    set(options, |options| {
        let name = caller.text(name, "the name of a filter")?.to_owned();
        if filter.is_none() {
            return Err(Failure::invalid("NULL for the function of a compaction filter"));
        }
        Ok(options.compaction_filter(Filter { name, state, filter }))
    })
}

/// Whether compaction drops values by these options for other reasons than that they were deleted,
/// overwritten or have expired: a compaction filter, or ESKER_COMPACTION_FIFO. When it does depends
/// on how a database was compacted, so that two databases with the same writes differ.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn esker_keyspace_options_drops_values_in_compaction(
    options: *mut esker_keyspace_options,
    drops: *mut bool,
) -> esker_code {
    // SAFETY: the caller keeps the contract.
    let caller = unsafe { Caller::trusted() };
    call(|| {
        let output = caller.output(drops, false)?;
        output.set(esker_keyspace_options::get(options)?.0.wait().options.drops_values_in_compaction());
        Ok(())
    })
}
