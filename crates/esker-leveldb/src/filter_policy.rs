//! Filter policies.

use crate::failure::Failure;
use crate::objects::{FilterPolicyObject, Handle, leveldb_filterpolicy_t};
use crate::order::{Destructor, Name, State};
use crate::policy::{CreateFilter, Custom, KeyMayMatch, Policy};
use crate::status::told;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

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
