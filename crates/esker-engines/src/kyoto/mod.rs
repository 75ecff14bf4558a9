//! Kyoto Cabinet's TreeDB through its C interface.
//!
//! Tuned as LevelDB's own comparison tuned it: small addresses, linear chains, pages of 1 KiB
//! (`page_size`), a map of 256 MiB, LZO pages when compression is on, and the page cache that was
//! requested (the library's default is 64 MiB). What one should know:
//!
//! * Without synchronisation dirty pages stay in the process: a write is lost if the process dies
//!   before the page is evicted or `synchronize` is called, so the class is `Process`.
//!   `options.sync` opens with auto-synchronisation, which reaches the device after every update.
//! * A batch is a transaction: durable as a whole or not at all, but other threads see it happen.
//! * Merge is a visitor that replaces the value in place, atomic under the page's lock.
//! * Cursors have no snapshot: a scan sees what is there when it gets there.

mod ffi;

use super::dynamic::{self, Loaded, bytes, c_path, take_string};
use super::merge::{MergeOperator, no_operator};
use super::settings::{Settings, make_directory, number, refuse_zstd};
use super::{
    Capabilities, Compression, Durability, Engine, EngineError, EngineKind, EngineOptions, Iteration, MemorySplit,
    Opened, Operation, Result, Session, WriteMode,
};
use ffi::Api;
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::ptr;

/// The registry row of Kyoto Cabinet.
pub const KIND: EngineKind = EngineKind {
    name: "kyoto",
    title: "Kyoto Cabinet",
    capabilities: Capabilities { compression: true, concurrent_writers: true, ..Capabilities::ORDERED },
    memory: MemorySplit::cache_only("no write buffer: all is page cache"),
    open,
    probe: |library| Ok(version(dynamic::load(&ffi::LIBRARY, library)?)),
};

const NAME: &str = KIND.name;
const MAP_BYTES: u64 = 256 << 20;
const DEFAULT_CACHE_BYTES: u64 = 64 << 20;

fn version(library: &Loaded<Api>) -> String {
    // SAFETY: the constant points to a zero-terminated string of the library, which is never
    // unloaded.
    let number = unsafe { CStr::from_ptr(library.api.KCVERSION as *const c_char) };
    format!("{} TreeDB ({})", number.to_string_lossy(), library.file_name())
}

fn open(directory: &Path, options: &EngineOptions, library: Option<&Path>) -> Result<Opened> {
    let library = dynamic::load(&ffi::LIBRARY, library)?;
    let operator = MergeOperator::from_option(options.merge_operator.as_deref())?;
    make_directory(NAME, directory)?;
    let file = directory.join("dbbench.kct");
    // Tuning parameters trail the path behind this character.
    if file.to_string_lossy().contains('#') {
        return Err(EngineError(format!("{NAME}: the path {} must not contain #", file.display())));
    }
    refuse_zstd(NAME, options)?;
    let page: u64 = number(options, "page_size")?.unwrap_or(1024);
    let cache = options.cache_bytes.unwrap_or(DEFAULT_CACHE_BYTES);
    let compress = options.compression == Compression::Lz;
    let tuning = if compress { "#opts=slc#zcomp=lzo" } else { "#opts=sl" };
    let path = format!("{}{tuning}#pccap={cache}#psiz={page}#msiz={MAP_BYTES}", file.display());
    let path = c_path(NAME, Path::new(&path))?;
    let mode = ffi::OPEN_WRITER | ffi::OPEN_CREATE | if options.sync { ffi::OPEN_AUTO_SYNC } else { 0 };
    let description = settings(options, operator, page, cache).describe(&KIND, version(library));
    // SAFETY: a plain constructor; `Drop` releases the object.
    let db = unsafe { (library.api.kcdbnew)() };
    let mut database = Kyoto { library, db, open: false, auto_sync: options.sync, operator };
    // SAFETY: the object is live and the path zero-terminated.
    let opened = unsafe { (library.api.kcdbopen)(db, path.as_ptr(), mode) };
    database.check(opened)?;
    database.open = true;
    Ok(Opened::new(database, description))
}

fn settings(options: &EngineOptions, operator: Option<MergeOperator>, page: u64, cache: u64) -> Settings {
    let (durability, how) = if options.sync {
        (Durability::Device, "auto-synchronisation at open: the map is synced after every update")
    } else {
        (Durability::Process, "dirty pages stay in the process until evicted or synchronised")
    };
    let compression = if options.compression == Compression::Lz { "lzo" } else { "none" };
    let memory = format!("{cache} page cache + file mapped up to {MAP_BYTES}");
    let mut settings = Settings::new(durability, how, memory, compression);
    settings.add("page_cache", cache);
    settings.add("page_size", page);
    settings.add("map_size", MAP_BYTES);
    settings.add("options", "small, linear");
    settings.add_merge(operator, "a visitor");
    settings
}

/// A database object, live until `Drop`; `open` tells whether a file is open.
struct Kyoto {
    library: &'static Loaded<Api>,
    db: *mut ffi::Db,
    open: bool,
    auto_sync: bool,
    operator: Option<MergeOperator>,
}

// SAFETY: a Kyoto Cabinet database object may be used from any thread; it locks itself, and error
// codes are kept per thread.
unsafe impl Send for Kyoto {}
// SAFETY: as above.
unsafe impl Sync for Kyoto {}

impl Kyoto {
    /// Turns the answer of a call into a `Result`; the error is this thread's last.
    fn check(&self, answer: i32) -> Result<()> {
        if answer == 0 { Err(self.last_error()) } else { Ok(()) }
    }

    fn last_error(&self) -> EngineError {
        // SAFETY: the object is live; the message is a zero-terminated string that lives until this
        // thread's next failing call.
        let text = unsafe { CStr::from_ptr((self.library.api.kcdbemsg)(self.db)) };
        EngineError(format!("{NAME}: {}", text.to_string_lossy()))
    }

    /// Whether this thread's last failure was only a missing record.
    fn missing(&self) -> bool {
        // SAFETY: the object is live.
        unsafe { (self.library.api.kcdbecode)(self.db) == ffi::NO_RECORD }
    }

    fn synchronize(&self, hard: bool) -> Result<()> {
        // SAFETY: the object is live; no callback is given.
        self.check(unsafe { (self.library.api.kcdbsync)(self.db, i32::from(hard), None, ptr::null_mut()) })
    }
}

impl Drop for Kyoto {
    fn drop(&mut self) {
        // SAFETY: nothing borrows the database any more (sessions borrow `self`).
        unsafe {
            if self.open {
                (self.library.api.kcdbclose)(self.db);
            }
            (self.library.api.kcdbdel)(self.db);
        }
    }
}

impl Engine for Kyoto {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(KyotoSession { engine: self }))
    }

    fn finish_writes(&self) -> Result<()> {
        self.synchronize(false)
    }

    fn compact_all(&self) -> Result<()> {
        // A B+ tree has nothing to merge; what is dirty is written.
        self.synchronize(false)
    }

    fn property(&self, name: &str) -> Option<String> {
        if name != "stats" {
            return None;
        }
        // SAFETY: the object is live; the answer is null or a zero-terminated string to be released
        // with kcfree.
        unsafe { take_string((self.library.api.kcdbstatus)(self.db), self.library.api.kcfree) }
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.open = false;
        // SAFETY: the object is live and a file is open.
        let closed = unsafe { (self.library.api.kcdbclose)(self.db) };
        self.check(closed)
    }
}

/// A pointer for Kyoto Cabinet, which uses the small addresses that Rust gives empty slices as its
/// marks for "leave" and "remove".
fn pointer(bytes: &[u8]) -> *const c_char {
    if bytes.is_empty() { c"".as_ptr() } else { bytes.as_ptr().cast() }
}

/// What a visitor works on.
struct Visit<'a> {
    nop: *const c_char,
    value: &'a mut Vec<u8>,
    found: bool,
    /// The operand to merge in, if this is a merge, and the error it met.
    merge: Option<(MergeOperator, &'a [u8])>,
    error: Option<EngineError>,
}

impl Visit<'_> {
    /// Merges the operand into `value` and tells Kyoto Cabinet to store that, or to leave the
    /// record alone.
    fn answer(&mut self, new_len: *mut usize) -> *const c_char {
        let Some((operator, operand)) = self.merge else { return self.nop };
        match operator.apply(self.value, self.found, operand) {
            Ok(()) => {
                // SAFETY: the out pointer is Kyoto Cabinet's own.
                unsafe { *new_len = self.value.len() };
                pointer(self.value)
            }
            Err(e) => {
                self.error = Some(e);
                self.nop
            }
        }
    }
}

unsafe extern "C" fn visit_full(
    _key: *const c_char,
    _key_len: usize,
    value: *const c_char,
    value_len: usize,
    new_len: *mut usize,
    context: *mut c_void,
) -> *const c_char {
    // SAFETY: the context is the `Visit` given to kcdbaccept, which is still running; the value is
    // readable during the visit.
    let (visit, value) = unsafe { (&mut *context.cast::<Visit<'_>>(), bytes(value, value_len)) };
    visit.found = true;
    visit.value.clear();
    visit.value.extend_from_slice(value);
    visit.answer(new_len)
}

unsafe extern "C" fn visit_empty(
    _key: *const c_char,
    _key_len: usize,
    new_len: *mut usize,
    context: *mut c_void,
) -> *const c_char {
    // SAFETY: as in `visit_full`.
    let visit = unsafe { &mut *context.cast::<Visit<'_>>() };
    visit.answer(new_len)
}

/// One thread's handle; Kyoto Cabinet needs nothing of its own per thread.
struct KyotoSession<'e> {
    engine: &'e Kyoto,
}

impl KyotoSession<'_> {
    fn accept(&self, key: &[u8], value: &mut Vec<u8>, merge: Option<(MergeOperator, &[u8])>) -> Result<bool> {
        let api = &self.engine.library.api;
        let nop = api.KCVISNOP as *const c_char;
        let writable = i32::from(merge.is_some());
        let mut visit = Visit { nop, value, found: false, merge, error: None };
        // SAFETY: database and key are live, and the context outlives the call; the visitors are of
        // the declared types.
        let answer = unsafe {
            let context = ptr::from_mut(&mut visit).cast();
            (api.kcdbaccept)(self.engine.db, key.as_ptr().cast(), key.len(), visit_full, visit_empty, context, writable)
        };
        let (found, error) = (visit.found, visit.error.take());
        self.engine.check(answer)?;
        error.map_or(Ok(found), Err)
    }

    fn put_plain(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let (k, v) = (pointer(key), pointer(value));
        // SAFETY: the database is live, key and value readable.
        self.engine.check(unsafe { (self.engine.library.api.kcdbset)(self.engine.db, k, key.len(), v, value.len()) })
    }

    fn delete_plain(&self, key: &[u8]) -> Result<()> {
        // SAFETY: the database is live and the key readable.
        let answer = unsafe { (self.engine.library.api.kcdbremove)(self.engine.db, key.as_ptr().cast(), key.len()) };
        if answer == 0 && self.engine.missing() {
            return Ok(());
        }
        self.engine.check(answer)
    }

    fn merge_plain(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        let operator = self.engine.operator.ok_or_else(|| no_operator(NAME))?;
        self.accept(key, &mut Vec::with_capacity(operand.len()), Some((operator, operand))).map(|_| ())
    }

    /// Reaches the device where auto-synchronisation has not done so already.
    fn settle(&self, mode: WriteMode) -> Result<()> {
        if mode.sync && !self.engine.auto_sync { self.engine.synchronize(true) } else { Ok(()) }
    }
}

impl Session for KyotoSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        self.put_plain(key, value)?;
        self.settle(mode)
    }

    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()> {
        self.delete_plain(key)?;
        self.settle(mode)
    }

    fn write(&mut self, batch: &[Operation<'_>], mode: WriteMode) -> Result<()> {
        let api = &self.engine.library.api;
        let hard = i32::from(mode.sync || self.engine.auto_sync);
        // SAFETY: the database is live.
        self.engine.check(unsafe { (api.kcdbbegintran)(self.engine.db, hard) })?;
        let applied = batch.iter().try_for_each(|operation| match *operation {
            Operation::Put(key, value) => self.put_plain(key, value),
            Operation::Delete(key) => self.delete_plain(key),
            Operation::Merge(key, operand) => self.merge_plain(key, operand),
        });
        // SAFETY: as above; a transaction of this thread is open.
        let ended = unsafe { (api.kcdbendtran)(self.engine.db, i32::from(applied.is_ok())) };
        applied.and_then(|()| self.engine.check(ended))
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> Result<()> {
        self.merge_plain(key, operand)?;
        self.settle(mode)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.accept(key, value, None)
    }

    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        // SAFETY: the database is live and outlives the cursor, which borrows the session.
        let cursor = unsafe { (self.engine.library.api.kcdbcursor)(self.engine.db) };
        Ok(Box::new(KyotoIteration {
            engine: self.engine,
            cursor,
            record: Record { nop: self.engine.library.api.KCVISNOP, key: Vec::new(), value: Vec::new() },
            at: At::Nowhere,
        }))
    }
}

/// The record under the cursor, copied out by the visitor as TreeDB's own benchmark does; the
/// buffers are reused.
struct Record {
    nop: usize,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Where the cursor stands relative to the record last read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Nowhere,
    /// On it.
    Record,
    /// One further, or past the end: reading and stepping in one call costs half of doing them
    /// apart.
    Next,
}

unsafe extern "C" fn visit_record(
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
    _new_len: *mut usize,
    context: *mut c_void,
) -> *const c_char {
    // SAFETY: the context is the `Record` given to kccuraccept, which is still running; key and
    // value are readable during the visit.
    let (record, key, value) =
        unsafe { (&mut *context.cast::<Record>(), bytes(key, key_len), bytes(value, value_len)) };
    record.key.clear();
    record.key.extend_from_slice(key);
    record.value.clear();
    record.value.extend_from_slice(value);
    record.nop as *const c_char
}

struct KyotoIteration<'s> {
    engine: &'s Kyoto,
    cursor: *mut ffi::Cursor,
    record: Record,
    at: At,
}

impl KyotoIteration<'_> {
    fn api(&self) -> &'static Api {
        &self.engine.library.api
    }

    /// Whether a cursor call found a record; not finding one is no error.
    fn moved(&mut self, answer: i32) -> Result<bool> {
        if answer != 0 {
            return Ok(true);
        }
        self.at = At::Nowhere;
        // SAFETY: the cursor is live; the message is zero-terminated.
        unsafe {
            if (self.api().kccurecode)(self.cursor) == ffi::NO_RECORD {
                return Ok(false);
            }
            let text = CStr::from_ptr((self.api().kccuremsg)(self.cursor));
            Err(EngineError(format!("{NAME}: {}", text.to_string_lossy())))
        }
    }

    /// Copies the record under the cursor, and steps on if asked to.
    fn read(&mut self, step: bool) -> Result<bool> {
        // SAFETY: the cursor is live; the context outlives the call.
        let answer = unsafe {
            let context = ptr::from_mut(&mut self.record).cast();
            (self.api().kccuraccept)(self.cursor, visit_record, context, 0, i32::from(step))
        };
        let found = self.moved(answer)?;
        if found {
            self.at = if step { At::Next } else { At::Record };
        }
        Ok(found)
    }
}

impl Drop for KyotoIteration<'_> {
    fn drop(&mut self) {
        // SAFETY: made by kcdbcursor and not used again.
        unsafe { (self.api().kccurdel)(self.cursor) };
    }
}

impl Iteration for KyotoIteration<'_> {
    fn seek_to_first(&mut self) -> Result<bool> {
        // SAFETY: the cursor is live.
        let answer = unsafe { (self.api().kccurjump)(self.cursor) };
        Ok(self.moved(answer)? && self.read(true)?)
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        // SAFETY: the cursor is live.
        let answer = unsafe { (self.api().kccurjumpback)(self.cursor) };
        Ok(self.moved(answer)? && self.read(false)?)
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        // SAFETY: the cursor is live and the key readable.
        let answer = unsafe { (self.api().kccurjumpkey)(self.cursor, key.as_ptr().cast(), key.len()) };
        Ok(self.moved(answer)? && self.read(true)?)
    }

    fn next(&mut self) -> Result<bool> {
        match self.at {
            At::Nowhere => return Ok(false),
            At::Next => {}
            At::Record => {
                // SAFETY: the cursor is live.
                let answer = unsafe { (self.api().kccurstep)(self.cursor) };
                if !self.moved(answer)? {
                    return Ok(false);
                }
            }
        }
        self.read(true)
    }

    fn prev(&mut self) -> Result<bool> {
        match self.at {
            At::Nowhere => return Ok(false),
            At::Record => {}
            At::Next => {
                let here = std::mem::take(&mut self.record.key);
                // SAFETY: the cursor is live and the key readable.
                let answer = unsafe { (self.api().kccurjumpbackkey)(self.cursor, here.as_ptr().cast(), here.len()) };
                if !self.moved(answer)? || !self.read(false)? {
                    return Ok(false);
                }
                // If the record has been removed meanwhile, the jump already went to the one before
                // it.
                if self.record.key < here {
                    return Ok(true);
                }
            }
        }
        // SAFETY: the cursor is live.
        let answer = unsafe { (self.api().kccurstepback)(self.cursor) };
        Ok(self.moved(answer)? && self.read(false)?)
    }

    fn key(&self) -> &[u8] {
        &self.record.key
    }

    fn value(&self) -> &[u8] {
        &self.record.value
    }
}
