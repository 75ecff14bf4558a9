//! Filter policies.

use crate::comparator::State;
use crate::objects::{FilterPolicyObject, Handle, leveldb_filterpolicy_t};
use crate::status::{Failure, told};
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
    Custom(Custom),
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
        let policy = Policy::Custom(Custom { name, state, create_filter, key_may_match });
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
