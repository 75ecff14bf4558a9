//! Entries as columns of Arrow, handed over by its C data interface, without a copy.
//!
//! A batch is a structure of two columns of bytes, `key` and `value`. Each column is an array of
//! 32-bit offsets and the bytes between them.

use crate::walk::{Walk, Way};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

/// A batch ends after so many bytes. Offsets go to 2 GiB, and a single entry has little more than
/// 1 GiB.
const BATCH_BYTES: usize = 64 << 20;

/// `struct ArrowSchema`.
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

// SAFETY: what the pointers lead to belongs to the structure alone, or is shared and never changed;
// the text is static.
unsafe impl Send for Schema {}
// SAFETY: as above.
unsafe impl Send for Array {}

impl Drop for Schema {
    fn drop(&mut self) {
        // Whoever has moved the content has set the pointer to null.
        if let Some(release) = self.release {
            // SAFETY: the function of this structure, which was not released.
            unsafe { release(self) };
        }
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the function of this structure, which was not released.
            unsafe { release(self) };
        }
    }
}

/// What a schema owns.
struct SchemaParts {
    children: Vec<*mut Schema>,
}

/// What an array owns.
struct ArrayParts {
    children: Vec<*mut Array>,
    buffers: Vec<*const c_void>,
    /// What the buffers point into.
    _columns: Arc<[Column; 2]>,
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: the consumer calls it once, with a structure that `Schema::new` has filled, wherever
    // its content was moved to; children that were moved away have no `release` any more.
    unsafe {
        let parts = Box::from_raw((*schema).private_data.cast::<SchemaParts>());
        parts.children.iter().for_each(|child| drop(Box::from_raw(*child)));
        (*schema).release = None;
    }
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: as in `release_schema`, with a structure that `Array::new` has filled.
    unsafe {
        let parts = Box::from_raw((*array).private_data.cast::<ArrayParts>());
        parts.children.iter().for_each(|child| drop(Box::from_raw(*child)));
        (*array).release = None;
    }
}

impl Schema {
    fn new(format: &'static CStr, name: &'static CStr, children: Vec<Schema>) -> Schema {
        let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
        let mut parts = Box::new(SchemaParts { children });
        Schema {
            format: format.as_ptr(),
            name: name.as_ptr(),
            metadata: std::ptr::null(),
            // No column has nulls.
            flags: 0,
            n_children: parts.children.len() as i64,
            children: parts.children.as_mut_ptr(),
            dictionary: std::ptr::null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(parts).cast(),
        }
    }

    /// The schema of a batch.
    fn of_batch() -> Schema {
        let columns = vec![Schema::new(c"z", c"key", Vec::new()), Schema::new(c"z", c"value", Vec::new())];
        Schema::new(c"+s", c"", columns)
    }
}

impl Array {
    fn new(length: usize, buffers: Vec<*const c_void>, children: Vec<Array>, columns: &Arc<[Column; 2]>) -> Array {
        let children = children.into_iter().map(|child| Box::into_raw(Box::new(child))).collect();
        let mut parts = Box::new(ArrayParts { children, buffers, _columns: Arc::clone(columns) });
        Array {
            length: length as i64,
            null_count: 0,
            offset: 0,
            n_buffers: parts.buffers.len() as i64,
            n_children: parts.children.len() as i64,
            buffers: parts.buffers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            dictionary: std::ptr::null_mut(),
            release: Some(release_array),
            private_data: Box::into_raw(parts).cast(),
        }
    }

    /// The array of a batch. Its first buffer, of what is null, is absent, as those of its columns.
    fn of_batch(columns: &Arc<[Column; 2]>) -> Array {
        let length = columns[0].ends.len() - 1;
        let array = |column: &Column| {
            let buffers = vec![std::ptr::null(), column.ends.as_ptr().cast(), column.bytes.as_ptr().cast()];
            Array::new(length, buffers, Vec::new(), columns)
        };
        let children = columns.iter().map(array).collect();
        Array::new(length, vec![std::ptr::null()], children, columns)
    }
}

/// A column of bytes.
struct Column {
    /// Where each value ends; the first is 0.
    ends: Vec<i32>,
    bytes: Vec<u8>,
}

impl Column {
    fn new() -> Column {
        Column { ends: vec![0], bytes: Vec::new() }
    }

    fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        // A batch ends long before, and no value comes near it.
        self.ends.push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
    }
}

/// Entries as a batch of Arrow.
#[pyclass(frozen, module = "esker")]
pub struct ArrowBatch(Arc<[Column; 2]>);

impl ArrowBatch {
    /// The next entries of a walk; `None` where there are none.
    pub fn read(walk: &mut Walk, way: Way) -> esker::Result<Option<ArrowBatch>> {
        let mut columns = [Column::new(), Column::new()];
        loop {
            walk.fill(way)?;
            let before = columns[0].ends.len();
            while columns.iter().all(|column| column.bytes.len() < BATCH_BYTES)
                && let Some((key, value)) = walk.read(way)
            {
                columns[0].push(key);
                columns[1].push(value);
            }
            if columns[0].ends.len() == before {
                break;
            }
        }
        let is_empty = columns[0].ends.len() == 1;
        Ok((!is_empty).then(|| ArrowBatch(Arc::new(columns))))
    }

    /// A batch without entries.
    pub fn empty() -> ArrowBatch {
        ArrowBatch(Arc::new([Column::new(), Column::new()]))
    }
}

#[pymethods]
impl ArrowBatch {
    /// The schema and the array, as capsules of the C data interface. There is one schema only,
    /// whatever is asked for.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let schema = PyCapsule::new_with_value(py, Schema::of_batch(), c"arrow_schema")?;
        let array = PyCapsule::new_with_value(py, Array::of_batch(&self.0), c"arrow_array")?;
        Ok((schema, array))
    }
}
