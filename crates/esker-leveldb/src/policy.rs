//! Filter policies of C functions, and the engine's own.

use crate::order::State;
use esker::FilterPolicy;
use esker_ffi::memory::{self, start_of_array};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

pub(crate) type CreateFilter = Option<
    unsafe extern "C-unwind" fn(*mut c_void, *const *const c_char, *const usize, c_int, *mut usize) -> *mut c_char,
>;
pub(crate) type KeyMayMatch =
    Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> u8>;

/// A filter policy. It ends when neither its handle nor an open database has it.
pub(crate) enum Policy {
    /// The engine's own filter, with so many bits for each key.
    Bloom(u32),
    /// Functions of C.
    Custom(Arc<Custom>),
}

pub(crate) struct Custom {
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) create_filter: CreateFilter,
    pub(crate) key_may_match: KeyMayMatch,
}

impl Policy {
    /// The bits of the engine's own filter, if that is the policy.
    pub(crate) fn bits_per_key(&self) -> Option<u32> {
        match self {
            Policy::Bloom(bits) => Some(*bits),
            Policy::Custom(_) => None,
        }
    }

    /// The policy of the program.
    pub(crate) fn custom(&self) -> Option<Arc<Custom>> {
        match self {
            Policy::Bloom(_) => None,
            Policy::Custom(custom) => Some(Arc::clone(custom)),
        }
    }
}

impl FilterPolicy for Custom {
    fn name(&self) -> &str {
        &self.name
    }

    fn create_filter(&self, keys: &[&[u8]]) -> Option<Vec<u8>> {
        let create_filter = self.create_filter?;
        let count = c_int::try_from(keys.len()).ok()?;
        let starts: Vec<*const c_char> = keys.iter().map(|key| memory::start_of(key)).collect();
        let lengths: Vec<usize> = keys.iter().map(|key| key.len()).collect();
        let mut length = 0;
        // SAFETY: the program has passed this function for this state. The keys live until it
        // returns; what it returns is memory of `malloc`, of the length that it says.
        unsafe {
            let filter = create_filter(
                self.state.pointer,
                start_of_array(&starts),
                start_of_array(&lengths),
                count,
                &raw mut length,
            );
            if filter.is_null() {
                return None;
            }
            let copy = std::slice::from_raw_parts(filter.cast::<u8>(), length).to_vec();
            memory::free(filter.cast());
            Some(copy)
        }
    }

    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        let Some(key_may_match) = self.key_may_match else { return true };
        let (start, length) = (memory::start_of(key), key.len());
        // SAFETY: the program has passed this function for this state; key and filter live until it
        // returns.
        unsafe { key_may_match(self.state.pointer, start, length, memory::start_of(filter), filter.len()) != 0 }
    }
}
