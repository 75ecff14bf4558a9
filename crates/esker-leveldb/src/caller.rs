//! The arguments of a call as Rust sees them.

use crate::failure::{Done, Failure};
use esker_ffi::{memory, standard_error};
use std::ffi::{CStr, OsStr, c_char};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// No key and no value is longer.
const MOST_BYTES: usize = 1 << 30;

/// That the caller keeps the contract of the interface, for as long as the call lasts. All pointers
/// to memory of the caller are followed here.
pub struct Caller(PhantomData<*const ()>);

impl Caller {
    /// # Safety
    /// Every pointer that is passed to the methods comes from the caller of the C function, and
    /// that has kept the contract at the head of `lib.rs`. The value does not outlive the call.
    pub unsafe fn trusted() -> Caller {
        Caller(PhantomData)
    }

    /// So many bytes.
    pub fn bytes(&self, data: *const c_char, length: usize) -> Done<&[u8]> {
        if length > MOST_BYTES {
            return Err(Failure::invalid(format!("a length of {length} bytes; nothing may be longer than 1 GiB")));
        }
        if length == 0 {
            return Ok(&[]);
        }
        if data.is_null() {
            return Err(Failure::invalid(format!("NULL with a length of {length}")));
        }
        // SAFETY: the contract; the length is that of a slice.
        Ok(unsafe { std::slice::from_raw_parts(data.cast(), length) })
    }

    /// What ends with a zero byte.
    pub fn text(&self, text: *const c_char) -> Done<&[u8]> {
        if text.is_null() {
            return Err(Failure::invalid("NULL for a text"));
        }
        // SAFETY: the contract.
        Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
    }

    /// The path of a database.
    pub fn path(&self, name: *const c_char) -> Done<&Path> {
        match self.text(name)? {
            [] => Err(Failure::invalid("the name of the database is empty")),
            name => Ok(Path::new(OsStr::from_bytes(name))),
        }
    }

    /// One of so many, at `index`.
    pub fn element<T: Copy>(&self, array: *const T, index: usize) -> Done<T> {
        if array.is_null() {
            return Err(Failure::invalid("NULL for an array"));
        }
        // SAFETY: the contract.
        Ok(unsafe { array.add(index).read() })
    }

    /// A result, where the caller wants it.
    pub fn set<T>(&self, at: *mut T, value: T) {
        if !at.is_null() {
            // SAFETY: the contract.
            unsafe { at.write(value) };
        }
    }

    /// Puts an error in the place of the one before. Without a place it goes to standard error.
    pub fn fail(&self, errptr: *mut *mut c_char, message: &str) {
        if errptr.is_null() {
            standard_error::write_line(&format!("libesker_leveldb: {message}"));
            return;
        }
        // SAFETY: the contract: it is NULL or memory of `malloc`, which nobody else frees.
        unsafe {
            memory::free(errptr.read().cast());
            errptr.write(memory::copy_text(message));
        }
    }
}
