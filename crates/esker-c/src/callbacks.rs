//! The types of functions that C passes, and what they share.
//!
//! A function that is left by an exception ends the process, with a message: an exception cannot
//! pass through the engine, which may hold locks. What was acknowledged before is safe, as after
//! any death of the process.

use crate::caller::esker_bytes;
use crate::objects::esker_output;
use std::ffi::{c_char, c_void};

/// Combines a value with operands, oldest first, and puts the result into the output: a value, or
/// that the key is deleted. `existing` is NULL if the key has no value. Returns whether it could;
/// if not, reads of the key fail. Called from any thread, with locks held: short, and without
/// writing to the database.
pub type esker_full_merge = Option<
    unsafe extern "C-unwind" fn(
        state: *mut c_void,
        key: esker_bytes,
        existing: *const esker_bytes,
        operands: *const esker_bytes,
        operand_count: usize,
        output: *mut esker_output,
    ) -> bool,
>;

/// Makes one operand of two, and puts it into the output. Returns whether it could; if not, both
/// are kept.
pub type esker_partial_merge = Option<
    unsafe extern "C-unwind" fn(
        state: *mut c_void,
        key: esker_bytes,
        older: esker_bytes,
        newer: esker_bytes,
        output: *mut esker_output,
    ) -> bool,
>;

/// Returns whether an operand is one that `esker_full_merge` could take. One that is not is refused
/// at the write.
pub type esker_check_operand =
    Option<unsafe extern "C-unwind" fn(state: *mut c_void, operand: esker_bytes, output: *mut esker_output) -> bool>;

/// How two keys are ordered: negative if `a` comes first, positive if `b` does, 0 only if they are
/// the same bytes. The same for ever, from any thread, with locks held.
pub type esker_compare = Option<unsafe extern "C-unwind" fn(state: *mut c_void, a: esker_bytes, b: esker_bytes) -> i32>;

/// Makes the filter of a table of its keys, and puts it into the output. Returns whether it did; if
/// not, the table is always searched.
pub type esker_create_filter = Option<
    unsafe extern "C-unwind" fn(
        state: *mut c_void,
        keys: *const esker_bytes,
        count: usize,
        output: *mut esker_output,
    ) -> bool,
>;

/// Whether the table with a filter may hold a key. A key that it denies is not found.
pub type esker_key_may_match =
    Option<unsafe extern "C-unwind" fn(state: *mut c_void, key: esker_bytes, filter: esker_bytes) -> bool>;

/// Decides about a value while it is compacted: one of `ESKER_FILTER_...`. A replacement goes into
/// the output.
pub type esker_filter = Option<
    unsafe extern "C-unwind" fn(
        state: *mut c_void,
        key: esker_bytes,
        value: esker_bytes,
        output: *mut esker_output,
    ) -> i32,
>;

/// The time now, in milliseconds since 1970.
pub type esker_clock = Option<unsafe extern "C-unwind" fn(state: *mut c_void) -> u64>;

/// Takes something that has happened in the background: its name, as "flush completed", and a text
/// about it. Called in a thread of its own, with no lock held.
pub type esker_event =
    Option<unsafe extern "C-unwind" fn(state: *mut c_void, name: *const c_char, text: *const c_char)>;

/// Frees the state of a callback, when nothing uses it any more. May be NULL.
pub type esker_destroy = Option<unsafe extern "C-unwind" fn(state: *mut c_void)>;

/// Takes a pair. Returns whether to go on.
pub type esker_visit_pair =
    Option<unsafe extern "C-unwind" fn(state: *mut c_void, key: esker_bytes, value: esker_bytes) -> bool>;

/// Takes a text with its name. Returns whether to go on.
pub type esker_visit_text =
    Option<unsafe extern "C-unwind" fn(state: *mut c_void, name: *const c_char, text: *const c_char) -> bool>;

/// Hands out the next pair: sets both and returns true, or returns false at the end. The bytes must
/// stay until the next call.
pub type esker_next_pair =
    Option<unsafe extern "C-unwind" fn(state: *mut c_void, key: *mut esker_bytes, value: *mut esker_bytes) -> bool>;

/// The state of callbacks, and how it ends.
pub(crate) struct State {
    pub(crate) pointer: *mut c_void,
    pub(crate) destroy: esker_destroy,
}

// SAFETY: the interface says that callbacks are called from any thread, so that their state is one
// that any thread may use.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: the function was passed for this state, which nothing uses any more.
            unsafe { destroy(self.pointer) };
        }
    }
}
