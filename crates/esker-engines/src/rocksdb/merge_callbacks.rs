//! Merge operators for RocksDB beyond its built-in `uint64add`, as C callbacks.
//!
//! RocksDB calls them from several threads at once and frees their answers with `free`, so the
//! answers come from the `malloc` that the library itself is linked to. No callback panics: slices
//! are only built from what RocksDB passes, and appending cannot fail short of exhausted memory.

use super::ffi::{self, Api};
use crate::dynamic::bytes;
use crate::merge::MergeOperator;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// What RocksDB hands back to every callback.
struct State {
    operator: MergeOperator,
    malloc: unsafe extern "C" fn(usize) -> *mut c_void,
}

/// Makes an operator that RocksDB then owns; `None` if the library does not tell its `malloc`.
pub fn create(api: &Api, operator: MergeOperator) -> Option<*mut ffi::MergeOperator> {
    let state = Box::into_raw(Box::new(State { operator, malloc: api.malloc? }));
    // SAFETY: the callbacks have the declared types, and the state lives until `destroy`, the
    // destructor.
    Some(unsafe { (api.rocksdb_mergeoperator_create)(state.cast(), destroy, full_merge, partial_merge, None, name) })
}

unsafe extern "C" fn destroy(state: *mut c_void) {
    // SAFETY: RocksDB calls the destructor once, with the pointer given to it at creation.
    drop(unsafe { Box::from_raw(state.cast::<State>()) });
}

unsafe extern "C" fn name(state: *mut c_void) -> *const c_char {
    // SAFETY: the state lives as long as the operator.
    let name = match unsafe { &*state.cast::<State>() }.operator {
        MergeOperator::UInt64Add => c"uint64add",
        MergeOperator::Put => c"put",
        MergeOperator::Max => c"max",
        MergeOperator::StringAppend => c"stringappend",
    };
    name.as_ptr()
}

unsafe extern "C" fn full_merge(
    state: *mut c_void,
    _key: *const c_char,
    _key_len: usize,
    existing: *const c_char,
    existing_len: usize,
    operands: *const *const c_char,
    operand_lens: *const usize,
    operand_count: c_int,
    success: *mut u8,
    new_len: *mut usize,
) -> *mut c_char {
    let found = !existing.is_null();
    // SAFETY: RocksDB passes a readable value, or null for none.
    let value = if found { unsafe { bytes(existing, existing_len) }.to_vec() } else { Vec::new() };
    // SAFETY: the arguments are RocksDB's own, passed on unchanged.
    unsafe { fold(state, value, found, operands, operand_lens, operand_count, success, new_len) }
}

unsafe extern "C" fn partial_merge(
    state: *mut c_void,
    _key: *const c_char,
    _key_len: usize,
    operands: *const *const c_char,
    operand_lens: *const usize,
    operand_count: c_int,
    success: *mut u8,
    new_len: *mut usize,
) -> *mut c_char {
    // For all these operators a run of operands folds like a value made of the first one.
    // SAFETY: the arguments are RocksDB's own, passed on unchanged.
    unsafe { fold(state, Vec::new(), false, operands, operand_lens, operand_count, success, new_len) }
}

/// # Safety
/// The pointers are those that RocksDB passes to a merge callback.
#[allow(clippy::too_many_arguments)]
unsafe fn fold(
    state: *mut c_void,
    mut value: Vec<u8>,
    mut found: bool,
    operands: *const *const c_char,
    operand_lens: *const usize,
    operand_count: c_int,
    success: *mut u8,
    new_len: *mut usize,
) -> *mut c_char {
    // SAFETY: the state lives as long as the operator.
    let state = unsafe { &*state.cast::<State>() };
    let mut merged = true;
    for index in 0..usize::try_from(operand_count).unwrap_or(0) {
        // SAFETY: both arrays have `operand_count` entries, and each operand is readable.
        let operand = unsafe { bytes(*operands.add(index), *operand_lens.add(index)) };
        merged &= state.operator.apply(&mut value, found, operand).is_ok();
        found = true;
    }
    // SAFETY: `malloc` gives null or that many writable bytes; the out pointers are RocksDB's.
    unsafe {
        let answer = (state.malloc)(value.len().max(1));
        if answer.is_null() || !merged {
            *success = 0;
            *new_len = 0;
            return answer.cast();
        }
        ptr::copy_nonoverlapping(value.as_ptr(), answer.cast(), value.len());
        *success = 1;
        *new_len = value.len();
        answer.cast()
    }
}
