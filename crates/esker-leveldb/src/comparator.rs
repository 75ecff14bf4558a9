//! Comparators.

use crate::failure::Failure;
use crate::objects::{ComparatorObject, Handle, leveldb_comparator_t};
use crate::order::{Compare, Destructor, Name, Order, State};
use crate::status::told;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// See LevelDB's header. The destructor is called when the comparator was destroyed and no open
/// database uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_comparator_create(
    state: *mut c_void,
    destructor: Destructor,
    compare: Compare,
    name: Name,
) -> *mut leveldb_comparator_t {
    let state = State { pointer: state, destructor };
    told("leveldb_comparator_create", || {
        if compare.is_none() {
            return Err(Failure::invalid("NULL for the function that compares"));
        }
        leveldb_comparator_t::make(ComparatorObject(Arc::new(Order::new(state, compare, name)?)))
    })
    .unwrap_or(ptr::null_mut())
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_comparator_destroy(comparator: *mut leveldb_comparator_t) {
    told("leveldb_comparator_destroy", || leveldb_comparator_t::close(comparator));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::{c_char, c_int};

    unsafe extern "C-unwind" fn ends_badly(_: *mut c_void) {
        panic!("the state ends badly");
    }

    unsafe extern "C-unwind" fn same(_: *mut c_void, _: *const c_char, _: usize, _: *const c_char, _: usize) -> c_int {
        0
    }

    unsafe extern "C-unwind" fn name(_: *mut c_void) -> *const c_char {
        c"example.same".as_ptr()
    }

    /// One that passed the end of the function would end the process.
    #[test]
    fn a_panic_of_a_destructor_is_contained() {
        // SAFETY: the functions use no state, and the name is a static text.
        let comparator =
            unsafe { leveldb_comparator_create(ptr::null_mut(), Some(ends_badly), Some(same), Some(name)) };
        assert!(!comparator.is_null());
        leveldb_comparator_destroy(comparator);
        leveldb_comparator_destroy(comparator);
    }
}
