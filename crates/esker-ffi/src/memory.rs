//! Memory that C frees with `free`.

use std::ffi::{c_char, c_void};
use std::ptr;

/// A copy of `bytes`, followed by a zero byte that is not counted; null if there is no memory.
///
/// ```
/// let copy = esker_ffi::memory::copy(b"ada");
/// assert!(!copy.is_null());
/// // SAFETY: it is a copy, and used no more.
/// unsafe { esker_ffi::memory::free(copy.cast()) };
/// ```
pub fn copy(bytes: &[u8]) -> *mut c_char {
    // SAFETY: a slice is shorter than `isize::MAX`, so that the sum is a size. The copy goes to the
    // fresh allocation, which is that long.
    unsafe {
        let start = libc::malloc(bytes.len() + 1).cast::<u8>();
        if !start.is_null() {
            ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            start.add(bytes.len()).write(0);
        }
        start.cast()
    }
}

/// The first byte of what is lent to C; where there is none, that of an empty text, as C may
/// compare or copy from a pointer that Rust never follows.
///
/// ```
/// assert_ne!(esker_ffi::memory::start_of(&[]).addr(), 1);
/// let bytes = b"ada";
/// assert_eq!(esker_ffi::memory::start_of(bytes), bytes.as_ptr().cast());
/// ```
pub fn start_of(bytes: &[u8]) -> *const c_char {
    if bytes.is_empty() { c"".as_ptr() } else { bytes.as_ptr().cast() }
}

/// The first of what is lent to C, or null where there is none.
///
/// ```
/// assert!(esker_ffi::memory::start_of_array::<u64>(&[]).is_null());
/// ```
pub fn start_of_array<T>(array: &[T]) -> *const T {
    if array.is_empty() { ptr::null() } else { array.as_ptr() }
}

/// A copy of a text for C: what is behind a zero byte in it is left out.
///
/// ```
/// let copy = esker_ffi::memory::copy_text("ada");
/// // SAFETY: it is a copy, and used no more.
/// unsafe { esker_ffi::memory::free(copy.cast()) };
/// ```
pub fn copy_text(text: &str) -> *mut c_char {
    copy(text.split('\0').next().unwrap_or("").as_bytes())
}

/// Frees what [`copy`] or [`copy_text`] has made, or C with `malloc`. Null does nothing.
///
/// # Safety
/// Nothing else is passed, and what was passed is used no more.
///
/// ```
/// // SAFETY: there is nothing to free.
/// unsafe { esker_ffi::memory::free(std::ptr::null_mut()) };
/// ```
pub unsafe fn free(start: *mut c_void) {
    // SAFETY: as the contract says.
    unsafe { libc::free(start) }
}
