//! The C interface that LevelDB and RocksDB share: RocksDB's began as a copy of LevelDB's. `Handle`
//! is a database, `Client` one thread's part of it, `Walk` its iterator.

use super::ffi::{self, Base};
use crate::counting::{self, Comparisons};
use crate::dynamic::{bytes, c_path, take_string};
use crate::settings::switch;
use crate::{EngineError, EngineOptions, Iteration, Result, Tree};
use std::ffi::{CString, c_char};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;

/// An open database, of LevelDB or of RocksDB. `db` and `comparator` are null or live, `options`
/// live.
pub(crate) struct Handle {
    name: &'static str,
    pub(crate) api: &'static Base,
    pub(crate) db: *mut ffi::Db,
    pub(crate) options: *mut ffi::DbOptions,
    comparator: *mut ffi::Comparator,
    /// What the comparator counts into.
    comparisons: Option<Box<Comparisons>>,
}

// SAFETY: the database object may be used from any thread; the options are only read after open,
// and RocksDB's statistics in them are thread-safe.
unsafe impl Send for Handle {}
// SAFETY: as above: every call that the adapters make on a database is thread-safe.
unsafe impl Sync for Handle {}

impl Handle {
    /// Options for a database that is created if it is missing, and compares through a function
    /// that counts if that was requested; not open yet.
    pub(crate) fn new(name: &'static str, api: &'static Base, options: &EngineOptions) -> Result<Handle> {
        let counts = switch(options, "comparisons")?.unwrap_or(false);
        let comparisons = counts.then(Comparisons::new);
        let (release, compare, name_of) = (counting::release, counting::compare, counting::name);
        // SAFETY: plain constructors, and setters on what they made; `Drop` destroys the options,
        // and the comparator before the count that it refers to.
        unsafe {
            let options = (api.options_create)();
            (api.options_set_create_if_missing)(options, 1);
            let create = |count: &Comparisons| (api.comparator_create)(count.state(), release, compare, name_of);
            let comparator = comparisons.as_deref().map_or(ptr::null_mut(), create);
            if counts {
                (api.options_set_comparator)(options, comparator);
            }
            Ok(Handle { name, api, db: ptr::null_mut(), options, comparator, comparisons })
        }
    }

    /// What compares keys, for the report.
    pub(crate) fn comparator(&self) -> &'static str {
        if self.comparisons.is_some() { "counting" } else { "built in" }
    }

    /// Opens it as the options say.
    pub(crate) fn open(&mut self, directory: &Path) -> Result<()> {
        let path = c_path(self.name, directory)?;
        let mut error = ptr::null_mut();
        // SAFETY: the options are live and the path is zero-terminated; the error starts as null.
        self.db = unsafe { (self.api.open)(self.options, path.as_ptr(), &mut error) };
        self.check(error)
    }

    /// Turns the error that a call left into a `Result`.
    #[inline]
    pub(crate) fn check(&self, error: *mut c_char) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: the library leaves the pointer null or sets it to a string allocated with malloc.
        let text = unsafe { take_string(error, self.api.free) };
        Err(EngineError(format!("{}: {}", self.name, text.unwrap_or_default())))
    }

    /// Compacts everything that has been flushed.
    pub(crate) fn compact(&self) {
        // SAFETY: null bounds mean the whole range; the call returns when the compaction is done.
        unsafe { (self.api.compact_range)(self.db, ptr::null(), 0, ptr::null(), 0) };
    }

    /// A property, whose name begins with that of the engine.
    pub(crate) fn property(&self, name: &str) -> Option<String> {
        let full = if name.contains('.') { name.to_string() } else { format!("{}.{name}", self.name) };
        let full = CString::new(full).ok()?;
        // SAFETY: the name is zero-terminated; the answer is null or allocated with malloc.
        unsafe { take_string((self.api.property_value)(self.db, full.as_ptr()), self.api.free) }
    }

    /// How its tables lie on so many levels.
    pub(crate) fn tree(&self, levels: i32) -> Option<Tree> {
        let files = (0..levels).map(|level| self.property(&format!("num-files-at-level{level}"))?.trim().parse().ok());
        files.collect::<Option<Vec<u64>>>().map(|files| Tree::of_levels(&files))
    }

    /// Comparisons so far, if they are counted.
    pub(crate) fn comparisons(&self) -> Option<u64> {
        self.comparisons.as_ref().map(|comparisons| comparisons.count())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: every pointer is null or was made by the matching constructor, and nothing
        // borrows the database any more (sessions borrow the adapter). The comparator must outlive
        // the database, and what it counts into the comparator.
        unsafe {
            if !self.db.is_null() {
                // It reports nothing.
                (self.api.close)(self.db);
            }
            (self.api.options_destroy)(self.options);
            if !self.comparator.is_null() {
                (self.api.comparator_destroy)(self.comparator);
            }
        }
    }
}

/// One thread's options and batch, made once.
pub(crate) struct Client<'e> {
    pub(crate) handle: &'e Handle,
    pub(crate) api: &'static Base,
    pub(crate) read: *mut ffi::ReadOptions,
    /// By what the write asks for: plain, synced, and plain once more for who can leave the log
    /// out.
    pub(crate) write: [*mut ffi::WriteOptions; 3],
    pub(crate) batch: *mut ffi::WriteBatch,
}

impl<'e> Client<'e> {
    /// A client of an open database.
    pub(crate) fn new(handle: &'e Handle) -> Client<'e> {
        let api = handle.api;
        // SAFETY: plain constructors and a setter; `Drop` destroys the objects.
        unsafe {
            let write = [(); 3].map(|()| (api.writeoptions_create)());
            (api.writeoptions_set_sync)(write[1], 1);
            Client { handle, api, read: (api.readoptions_create)(), write, batch: (api.writebatch_create)() }
        }
    }

    #[inline]
    pub(crate) fn put(&self, options: *const ffi::WriteOptions, key: &[u8], value: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: database and options are live, key and value readable.
        unsafe { (self.api.put)(self.handle.db, options, k, key.len(), v, value.len(), &mut error) };
        self.handle.check(error)
    }

    #[inline]
    pub(crate) fn delete(&self, options: *const ffi::WriteOptions, key: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: database and options are live, the key is readable.
        unsafe { (self.api.delete)(self.handle.db, options, key.as_ptr().cast(), key.len(), &mut error) };
        self.handle.check(error)
    }

    /// Begins a batch.
    #[inline]
    pub(crate) fn begin(&mut self) {
        // SAFETY: the batch is live.
        unsafe { (self.api.writebatch_clear)(self.batch) };
    }

    #[inline]
    pub(crate) fn stage_put(&mut self, key: &[u8], value: &[u8]) {
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the batch is live; it copies key and value.
        unsafe { (self.api.writebatch_put)(self.batch, k, key.len(), v, value.len()) };
    }

    #[inline]
    pub(crate) fn stage_delete(&mut self, key: &[u8]) {
        // SAFETY: the batch is live; it copies the key.
        unsafe { (self.api.writebatch_delete)(self.batch, key.as_ptr().cast(), key.len()) };
    }

    #[inline]
    pub(crate) fn commit(&mut self, options: *const ffi::WriteOptions) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: database, options and batch are live.
        unsafe { (self.api.write)(self.handle.db, options, self.batch, &mut error) };
        self.handle.check(error)
    }

    /// An iterator, not positioned yet.
    pub(crate) fn walk(&self) -> Walk<'_> {
        // SAFETY: database and options are live and outlive the iterator, which borrows the client.
        let iter = unsafe { (self.api.create_iterator)(self.handle.db, self.read) };
        Walk { handle: self.handle, api: self.api, iter, positioned: false, client: PhantomData }
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        // SAFETY: all were made by the matching constructors and are not used again; iterators
        // borrow the client, so none is left.
        unsafe {
            (self.api.readoptions_destroy)(self.read);
            self.write.iter().for_each(|write| (self.api.writeoptions_destroy)(*write));
            (self.api.writebatch_destroy)(self.batch);
        }
    }
}

/// The library's own iterator; it sees the state at its creation.
pub(crate) struct Walk<'s> {
    handle: &'s Handle,
    api: &'static Base,
    iter: *mut ffi::Iter,
    /// Whether the iterator is on an entry: it must not be asked to move or to show one otherwise.
    positioned: bool,
    client: PhantomData<&'s ()>,
}

impl Walk<'_> {
    fn settle(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live.
        self.positioned = unsafe { (self.api.iter_valid)(self.iter) } != 0;
        if self.positioned {
            return Ok(true);
        }
        let mut error = ptr::null_mut();
        // SAFETY: as above; the error starts as null.
        unsafe { (self.api.iter_get_error)(self.iter, &mut error) };
        self.handle.check(error).map(|()| false)
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        // SAFETY: made by create_iterator and not used again.
        unsafe { (self.api.iter_destroy)(self.iter) };
    }
}

impl Iteration for Walk<'_> {
    fn seek_to_first(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live.
        unsafe { (self.api.iter_seek_to_first)(self.iter) };
        self.settle()
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live.
        unsafe { (self.api.iter_seek_to_last)(self.iter) };
        self.settle()
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        // SAFETY: the iterator is live and the key readable.
        unsafe { (self.api.iter_seek)(self.iter, key.as_ptr().cast(), key.len()) };
        self.settle()
    }

    fn next(&mut self) -> Result<bool> {
        if !self.positioned {
            return Ok(false);
        }
        // SAFETY: the iterator is live and positioned.
        unsafe { (self.api.iter_next)(self.iter) };
        self.settle()
    }

    fn prev(&mut self) -> Result<bool> {
        if !self.positioned {
            return Ok(false);
        }
        // SAFETY: as for `next`.
        unsafe { (self.api.iter_prev)(self.iter) };
        self.settle()
    }

    fn key(&self) -> &[u8] {
        if !self.positioned {
            return &[];
        }
        let mut len = 0;
        // SAFETY: a positioned iterator's key lives until its next move, which needs `&mut self`.
        unsafe { bytes((self.api.iter_key)(self.iter, &mut len), len) }
    }

    fn value(&self) -> &[u8] {
        if !self.positioned {
            return &[];
        }
        let mut len = 0;
        // SAFETY: as for `key`.
        unsafe { bytes((self.api.iter_value)(self.iter, &mut len), len) }
    }
}
