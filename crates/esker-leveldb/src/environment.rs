//! The environment, memory and the version.

use crate::objects::{Environment, Handle, leveldb_env_t};
use crate::status::told;
use esker_ffi::memory;
use std::ffi::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_create_default_env() -> *mut leveldb_env_t {
    told("leveldb_create_default_env", || leveldb_env_t::make(Environment(()))).unwrap_or(ptr::null_mut())
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_destroy(env: *mut leveldb_env_t) {
    told("leveldb_env_destroy", || leveldb_env_t::close(env));
}

/// See LevelDB's header: `$TEST_TMPDIR`, or a directory in `/tmp` with the number of the user.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_get_test_directory(env: *mut leveldb_env_t) -> *mut c_char {
    told("leveldb_env_get_test_directory", || {
        leveldb_env_t::get(env)?;
        let given = std::env::var_os("TEST_TMPDIR").filter(|given| !given.is_empty()).map(PathBuf::from);
        let directory = given.unwrap_or_else(|| {
            // SAFETY: it takes nothing and cannot fail.
            let user = unsafe { libc::geteuid() };
            PathBuf::from(format!("/tmp/leveldbtest-{user}"))
        });
        // As in LevelDB: one that cannot be made fails when it is used.
        let _ = std::fs::create_dir(&directory);
        Ok(memory::copy(directory.as_os_str().as_bytes()))
    })
    .unwrap_or(ptr::null_mut())
}

/// See LevelDB's header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_free(ptr: *mut c_void) {
    // SAFETY: the caller passes what a call has returned, once.
    unsafe { memory::free(ptr) }
}

/// The version of LevelDB whose interface this is.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_major_version() -> c_int {
    1
}

/// See [`leveldb_major_version`].
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_minor_version() -> c_int {
    23
}
