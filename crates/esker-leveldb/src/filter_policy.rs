//! Filter policies.

use crate::comparator::State;
use crate::objects::{FilterPolicyObject, Handle, leveldb_filterpolicy_t};
use crate::status::{Failure, told};
use esker::FilterPolicy;
use esker_ffi::memory;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

type Destructor = Option<unsafe extern "C-unwind" fn(*mut c_void)>;
type CreateFilter = Option<
    unsafe extern "C-unwind" fn(*mut c_void, *const *const c_char, *const usize, c_int, *mut usize) -> *mut c_char,
>;
type KeyMayMatch = Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> u8>;
type Name = Option<unsafe extern "C-unwind" fn(*mut c_void) -> *const c_char>;

/// A filter policy. It ends when neither its handle nor an open database has it.
pub(crate) enum Policy {
    /// The engine's own filter, with so many bits for each key.
    Bloom(u32),
    /// Functions of C.
    Custom(Arc<Custom>),
}

pub(crate) struct Custom {
    name: String,
    state: State,
    create_filter: CreateFilter,
    key_may_match: KeyMayMatch,
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
        let starts: Vec<*const c_char> = keys.iter().map(|key| key.as_ptr().cast()).collect();
        let lengths: Vec<usize> = keys.iter().map(|key| key.len()).collect();
        let mut length = 0;
        // SAFETY: the program has passed this function for this state. The keys live until it
        // returns; what it returns is memory of `malloc`, of the length that it says.
        unsafe {
            let filter = create_filter(self.state.pointer, starts.as_ptr(), lengths.as_ptr(), count, &raw mut length);
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
        let (key, key_length) = (key.as_ptr().cast(), key.len());
        // SAFETY: the program has passed this function for this state; key and filter live until it
        // returns.
        unsafe { key_may_match(self.state.pointer, key, key_length, filter.as_ptr().cast(), filter.len()) != 0 }
    }
}

/// See LevelDB's header. The destructor is called when the policy was destroyed and no open
/// database uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Destructor,
    create_filter: CreateFilter,
    key_may_match: KeyMayMatch,
    name: Name,
) -> *mut leveldb_filterpolicy_t {
    let state = State { pointer: state, destructor };
    told("leveldb_filterpolicy_create", || {
        if create_filter.is_none() || key_may_match.is_none() {
            return Err(Failure::invalid("NULL for a function of a filter policy"));
        }
        let name = state.name(name)?;
        let policy = Policy::Custom(Arc::new(Custom { name, state, create_filter, key_may_match }));
        leveldb_filterpolicy_t::make(FilterPolicyObject(Arc::new(policy)))
    })
    .unwrap_or(ptr::null_mut())
}

/// See LevelDB's header: the engine's own Bloom filter.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> *mut leveldb_filterpolicy_t {
    // As in LevelDB, where fewer than one bit still makes a filter.
    let bits = u32::try_from(bits_per_key).unwrap_or(0).clamp(1, 64);
    told("leveldb_filterpolicy_create_bloom", || {
        leveldb_filterpolicy_t::make(FilterPolicyObject(Arc::new(Policy::Bloom(bits))))
    })
    .unwrap_or(ptr::null_mut())
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_filterpolicy_destroy(policy: *mut leveldb_filterpolicy_t) {
    told("leveldb_filterpolicy_destroy", || leveldb_filterpolicy_t::close(policy));
}
