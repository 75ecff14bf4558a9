//! The arguments of a call as Rust sees them.

use crate::failure::{Done, Failure};
use esker::KeyRange;
use esker_ffi::memory;
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ops::Bound;
use std::path::Path;
use std::ptr;

/// No key, value or batch is longer.
const MOST_BYTES: usize = 1 << 30;

/// Bytes of the caller, or lent to it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct esker_bytes {
    /// The first byte; may be NULL if there is none.
    pub data: *const c_void,
    /// Their number.
    pub length: usize,
}

impl esker_bytes {
    pub(crate) const NONE: esker_bytes = esker_bytes { data: ptr::null(), length: 0 };

    pub(crate) fn lent(bytes: &[u8]) -> esker_bytes {
        esker_bytes { data: memory::start_of(bytes).cast(), length: bytes.len() }
    }
}

/// A range of keys: from `start`, which is in it, to `end`, which is not. The key behind a key k is
/// k with a zero byte appended. Where a pointer to a range may be NULL, NULL is all keys.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct esker_range {
    /// The first key; NULL for the first of all.
    pub start: *const c_void,
    /// Its length.
    pub start_length: usize,
    /// The key before which the range ends; NULL for behind the last of all.
    pub end: *const c_void,
    /// Its length.
    pub end_length: usize,
}

/// The bounds of a range.
pub struct Range<'a>(Bound<&'a [u8]>, Bound<&'a [u8]>);

impl KeyRange for Range<'_> {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.0, self.1)
    }
}

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
    pub fn bytes(&self, data: *const c_void, length: usize) -> Done<&[u8]> {
        if length > MOST_BYTES {
            return Err(Failure::invalid(format!("a length of {length} bytes; nothing may be longer than 1 GiB")));
        }
        if data.is_null() {
            return if length == 0 {
                Ok(&[])
            } else {
                Err(Failure::invalid(format!("NULL with a length of {length}")))
            };
        }
        // SAFETY: the contract; the length is that of a slice.
        Ok(unsafe { std::slice::from_raw_parts(data.cast(), length) })
    }

    /// Bytes that may be absent: NULL is none.
    pub fn optional_bytes(&self, data: *const c_void, length: usize) -> Done<Option<&[u8]>> {
        if data.is_null() && length == 0 { Ok(None) } else { self.bytes(data, length).map(Some) }
    }

    /// So many of a type without invalid values.
    pub fn array(&self, start: *const esker_bytes, count: usize) -> Done<&[esker_bytes]> {
        if count > MOST_BYTES / size_of::<esker_bytes>() {
            return Err(Failure::invalid(format!("an array of {count}")));
        }
        if start.is_null() {
            return if count == 0 { Ok(&[]) } else { Err(Failure::invalid(format!("NULL for an array of {count}"))) };
        }
        // SAFETY: the contract; any bits are an `esker_bytes`.
        Ok(unsafe { std::slice::from_raw_parts(start, count) })
    }

    /// What ends with a zero byte.
    pub fn c_text<'a>(&'a self, text: *const c_char, what: &str) -> Done<&'a CStr> {
        if text.is_null() {
            return Err(Failure::invalid(format!("NULL for {what}")));
        }
        // SAFETY: the contract.
        Ok(unsafe { CStr::from_ptr(text) })
    }

    /// A text in UTF-8.
    pub fn text<'a>(&'a self, text: *const c_char, what: &str) -> Done<&'a str> {
        self.c_text(text, what)?.to_str().map_err(|_| Failure::invalid(format!("{what} is not UTF-8")))
    }

    /// The path of a directory.
    pub fn path(&self, path: *const c_char) -> Done<&Path> {
        let text = self.c_text(path, "a path")?;
        if text.is_empty() {
            return Err(Failure::invalid("the path is empty"));
        }
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            Ok(Path::new(std::ffi::OsStr::from_bytes(text.to_bytes())))
        }
        #[cfg(not(unix))]
        Ok(Path::new(text.to_str().map_err(|_| Failure::invalid("the path is not UTF-8"))?))
    }

    /// A range; NULL is all keys.
    pub fn range(&self, range: *const esker_range) -> Done<Range<'_>> {
        if range.is_null() {
            return Ok(Range(Bound::Unbounded, Bound::Unbounded));
        }
        // SAFETY: the contract; any bits are an `esker_range`.
        let range = unsafe { range.read() };
        let start = self.optional_bytes(range.start, range.start_length)?;
        let end = self.optional_bytes(range.end, range.end_length)?;
        Ok(Range(start.map_or(Bound::Unbounded, Bound::Included), end.map_or(Bound::Unbounded, Bound::Excluded)))
    }

    /// Where a result goes, which gets a value at once: the one that it keeps if the call fails.
    pub fn output<T: Copy>(&self, at: *mut T, initial: T) -> Done<Output<'_, T>> {
        if at.is_null() {
            return Err(Failure::invalid("NULL for a result"));
        }
        let output = Output(at, PhantomData);
        output.set(initial);
        Ok(output)
    }

    /// Where a result goes that the caller may not want, with NULL for that.
    pub fn optional_output<T: Copy>(&self, at: *mut T, initial: T) -> Option<Output<'_, T>> {
        self.output(at, initial).ok()
    }

    /// A buffer of the caller.
    pub fn fill(&self, buffer: *mut c_void, bytes: &[u8]) -> Done<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if buffer.is_null() {
            return Err(Failure::invalid("NULL for a buffer"));
        }
        // SAFETY: the contract; the caller of this method has compared the lengths, and a buffer
        // that is written does not overlap what is read.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len()) };
        Ok(())
    }

    /// Where `count` results go.
    pub fn outputs<T: Copy>(&self, at: *mut T, count: usize, initial: T) -> Done<Vec<Output<'_, T>>> {
        if count > MOST_BYTES / size_of::<T>() {
            return Err(Failure::invalid(format!("an array of {count}")));
        }
        if at.is_null() && count > 0 {
            return Err(Failure::invalid("NULL for results"));
        }
        (0..count).map(|index| self.output(at.wrapping_add(index), initial)).collect()
    }

    /// Where bytes in memory of their own go.
    pub fn output_bytes(&self, at: *mut *mut c_char, length: *mut usize) -> Done<OutputBytes<'_>> {
        Ok(OutputBytes { start: self.output(at, ptr::null_mut())?, length: self.output(length, 0)? })
    }
}

/// A place of the caller for a result.
pub struct Output<'a, T>(*mut T, PhantomData<&'a Caller>);

impl<T: Copy> Output<'_, T> {
    pub fn set(&self, value: T) {
        // SAFETY: it is not null, and the contract says that it can be written.
        unsafe { self.0.write(value) };
    }
}

impl Output<'_, *mut c_char> {
    /// A copy of a text, which the caller frees.
    pub fn set_text(&self, text: &str) -> Done<()> {
        let copy = memory::copy_text(text);
        if copy.is_null() {
            return Err(Failure::out_of_memory());
        }
        self.set(copy);
        Ok(())
    }
}

/// Two places of the caller, for bytes and their number.
pub struct OutputBytes<'a> {
    start: Output<'a, *mut c_char>,
    length: Output<'a, usize>,
}

impl OutputBytes<'_> {
    /// A copy, which the caller frees; none leaves NULL.
    pub fn set(&self, bytes: Option<impl AsRef<[u8]>>) -> Done<()> {
        let Some(bytes) = bytes else { return Ok(()) };
        let copy = memory::copy(bytes.as_ref());
        if copy.is_null() {
            return Err(Failure::out_of_memory());
        }
        self.start.set(copy);
        self.length.set(bytes.as_ref().len());
        Ok(())
    }

    /// Copies for two places, or for neither.
    pub fn set_with(&self, bytes: &[u8], other: &OutputBytes<'_>, other_bytes: &[u8]) -> Done<()> {
        let (copy, other_copy) = (memory::copy(bytes), memory::copy(other_bytes));
        if copy.is_null() || other_copy.is_null() {
            // SAFETY: both are copies or null, and nobody else has them.
            unsafe {
                memory::free(copy.cast());
                memory::free(other_copy.cast());
            }
            return Err(Failure::out_of_memory());
        }
        self.start.set(copy);
        self.length.set(bytes.len());
        other.start.set(other_copy);
        other.length.set(other_bytes.len());
        Ok(())
    }
}
