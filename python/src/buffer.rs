//! Bytes of Python objects: `bytes` as they are, other objects through the buffer protocol.
//!
//! The protocol is in the stable interface from Python 3.11 on. Its functions and its structure are
//! the same in all versions since 3.3, so that they are declared here for the older ones.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};
use std::ffi::{c_char, c_int, c_void};
use std::ops::Deref;

/// `Py_buffer`.
#[repr(C)]
struct RawBuffer {
    buf: *mut c_void,
    obj: *mut pyo3::ffi::PyObject,
    len: isize,
    itemsize: isize,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

/// `PyBUF_SIMPLE`: contiguous bytes.
const SIMPLE: c_int = 0;
/// `PyBUF_WRITABLE`.
const WRITABLE: c_int = 1;

// SAFETY: the declarations of `Include/pybuffer.h`.
unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut pyo3::ffi::PyObject, view: *mut RawBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut RawBuffer);
}

/// The contiguous memory of an object, which neither moves nor ends while this lives.
pub struct Buffer<'py> {
    raw: Box<RawBuffer>,
    /// Released while attached.
    _py: Python<'py>,
}

impl<'py> Buffer<'py> {
    fn acquire(object: &Bound<'py, PyAny>, flags: c_int) -> PyResult<Buffer<'py>> {
        let mut raw = Box::new(RawBuffer {
            buf: std::ptr::null_mut(),
            obj: std::ptr::null_mut(),
            len: 0,
            itemsize: 0,
            readonly: 0,
            ndim: 0,
            format: std::ptr::null_mut(),
            shape: std::ptr::null_mut(),
            strides: std::ptr::null_mut(),
            suboffsets: std::ptr::null_mut(),
            internal: std::ptr::null_mut(),
        });
        // SAFETY: this thread is attached, the object is alive, and the structure is one that the
        // function may fill.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), &raw mut *raw, flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        Ok(Buffer { raw, _py: object.py() })
    }

    /// Memory that may be written to.
    pub fn writable(object: &Bound<'py, PyAny>) -> PyResult<Buffer<'py>> {
        Buffer::acquire(object, SIMPLE | WRITABLE)
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        // The exporter says how long it is; a negative length is no memory.
        usize::try_from(self.raw.len).unwrap_or(0)
    }

    /// The bytes, which must be such that nobody changes them.
    fn bytes(&self) -> &[u8] {
        if self.len() == 0 {
            return &[];
        }
        // SAFETY: the exporter has said that so many bytes are there, and keeps them there until the
        // release. Only called for memory of `bytes` objects, which never changes.
        unsafe { std::slice::from_raw_parts(self.raw.buf.cast::<u8>(), self.len()) }
    }

    /// A copy of the bytes of now.
    fn copy(&self) -> Vec<u8> {
        let mut copy = vec![0_u8; self.len()];
        if !copy.is_empty() {
            // SAFETY: the exporter has said that so many bytes are there, the copy is as long, and
            // the two do not overlap. The memory is read through a pointer: Python code that changes
            // it does not run while this thread is attached, or races with itself as it would for
            // any other reader.
            unsafe { std::ptr::copy_nonoverlapping(self.raw.buf.cast::<u8>(), copy.as_mut_ptr(), copy.len()) };
        }
        copy
    }

    /// Copies as many bytes as fit to the beginning of the memory, which must be writable.
    pub fn fill(&mut self, bytes: &[u8]) {
        let length = bytes.len().min(self.len());
        if length > 0 && self.raw.readonly == 0 {
            // SAFETY: the exporter has granted writing to so many bytes, and they are no part of
            // `bytes`, which the engine owns.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.raw.buf.cast::<u8>(), length) };
        }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: acquired once, released once, by a thread that is attached, as `_py` proves.
        unsafe { PyBuffer_Release(&raw mut *self.raw) };
    }
}

/// An argument of bytes.
///
/// `bytes`, and views of `bytes`, are used in place, also while the interpreter is released: they
/// never change. Any other memory is copied once, since other threads may change it meanwhile.
pub enum Bytes<'a, 'py> {
    InPlace(&'a [u8]),
    View(Buffer<'py>),
    Copied(Vec<u8>),
}

impl Deref for Bytes<'_, '_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::InPlace(bytes) => bytes,
            Bytes::View(view) => view.bytes(),
            Bytes::Copied(copy) => copy,
        }
    }
}

/// The bytes of an argument, whose name is for the message if it has none.
pub fn bytes<'a, 'py>(object: &'a Bound<'py, PyAny>, name: &str) -> PyResult<Bytes<'a, 'py>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Bytes::InPlace(bytes.as_bytes()));
    }
    let Ok(buffer) = Buffer::acquire(object, SIMPLE) else {
        return Err(not_bytes(object, name));
    };
    // A view of `bytes`: the memory is that of an object that never changes.
    let is_view = object.cast_exact::<PyMemoryView>().is_ok();
    if is_view && object.getattr("obj")?.cast_exact::<PyBytes>().is_ok() {
        return Ok(Bytes::View(buffer));
    }
    Ok(Bytes::Copied(buffer.copy()))
}

fn not_bytes(object: &Bound<'_, PyAny>, name: &str) -> PyErr {
    let found = object.get_type().name().map_or_else(|_| "another type".to_owned(), |name| name.to_string());
    let hint = if found == "str" { "; encode text, as in text.encode()" } else { "" };
    PyTypeError::new_err(format!("{name} must be bytes or another contiguous buffer, not {found}{hint}"))
}
