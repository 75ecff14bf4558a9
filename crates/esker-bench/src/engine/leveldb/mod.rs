//! LevelDB through its C interface.
//!
//! Settings: `EngineOptions` map one to one. No filter setting asked for means 10 bits a key, which LevelDB's
//! documentation recommends to whoever reads, and 0 bits, as in its db_bench, a filter of one probe; no cache size asked for means LevelDB's own 8 MiB. Merge is get,
//! combine and put under a lock striped by key. `leveldb_get` of the C interface returns a copy that the adapter
//! copies once more and frees: a C++ program saves that.

mod ffi;
mod log;

use super::counting::{self, Comparisons};
use super::dynamic::{self, Loaded, bytes, c_path, take_string};
use super::merge::{KeyLocks, MergeOperator, has_merge, no_operator, resolve};
use super::settings::{Settings, make_directory, switch, wait_until_quiet};
use super::{
    Capabilities, Compression, Counters, Description, Durability, Engine, EngineError, EngineKind, EngineOptions,
    Iteration, Operation, Result, Session, Tree, WriteMode,
};
use ffi::Api;
use std::ffi::{CString, c_char};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

const NAME: &str = "leveldb";

/// LevelDB takes no less, and says nothing.
const LEAST_WRITE_BUFFER_BYTES: usize = 64 << 10;
/// As above.
const LEAST_FILE_BYTES: usize = 1 << 20;

/// A record of the log has a header, and a batch in it another.
const BATCH_BYTES: usize = 7 + 12;
/// An operation in a batch has its kind and two lengths, of one byte each as a rule.
const OPERATION_BYTES: usize = 3;

/// What it can do.
const CAPABILITIES: Capabilities = Capabilities {
    batch: true,
    reverse: true,
    compact: true,
    compression: true,
    concurrent_writers: true,
    ..Capabilities::NONE
};

/// The registry row of LevelDB.
pub fn kind() -> EngineKind {
    EngineKind { name: NAME, open, probe }
}

fn probe(library: Option<&Path>) -> Result<String> {
    Ok(version(dynamic::load(&ffi::LIBRARY, library, &ffi::LOADED)?))
}

fn version(library: &Loaded<Api>) -> String {
    // SAFETY: both functions take nothing and return a constant.
    let (major, minor) = unsafe { ((library.api.leveldb_major_version)(), (library.api.leveldb_minor_version)()) };
    format!("{major}.{minor} ({})", library.file_name())
}

fn open(directory: &Path, options: &EngineOptions, library: Option<&Path>) -> Result<Box<dyn Engine>> {
    let library = dynamic::load(&ffi::LIBRARY, library, &ffi::LOADED)?;
    let operator = MergeOperator::from_option(options.merge_operator.as_deref())?;
    make_directory(NAME, directory)?;
    let path = c_path(NAME, directory)?;
    let plan = Plan::new(options)?;
    let mut database = LevelDb {
        library,
        db: ptr::null_mut(),
        options: ptr::null_mut(),
        cache: ptr::null_mut(),
        filter: ptr::null_mut(),
        comparator: ptr::null_mut(),
        comparisons: plan.comparisons.then(Comparisons::new),
        directory: directory.to_path_buf(),
        operator,
        locks: KeyLocks::default(),
        description: plan.settings(options, operator).describe(NAME, version(library), CAPABILITIES),
        logged_bytes: AtomicU64::new(0),
    };
    database.create_options(&plan);
    let mut error = ptr::null_mut();
    // SAFETY: the options are live and the path is zero-terminated; the error starts as null.
    database.db = unsafe { (library.api.leveldb_open)(database.options, path.as_ptr(), &mut error) };
    check(&library.api, error)?;
    Ok(Box::new(database))
}

/// `EngineOptions` in LevelDB's terms.
struct Plan {
    write_buffer: usize,
    cache: Option<usize>,
    block: usize,
    max_file: Option<usize>,
    bloom_bits: i32,
    snappy: bool,
    open_files: i32,
    comparisons: bool,
}

impl Plan {
    fn new(options: &EngineOptions) -> Result<Plan> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Plan {
            write_buffer: size(options.write_buffer_bytes).clamp(LEAST_WRITE_BUFFER_BYTES, 1 << 30),
            cache: options.cache_bytes.map(size),
            block: size(options.block_bytes),
            max_file: options.max_file_bytes.map(|bytes| size(bytes).clamp(LEAST_FILE_BYTES, 1 << 30)),
            bloom_bits: options.bloom_bits.unwrap_or(10).max(-1),
            snappy: options.compression == Compression::Lz,
            open_files: if options.open_files == 0 {
                1000
            } else {
                i32::try_from(options.open_files).unwrap_or(i32::MAX)
            },
            comparisons: switch(options, "comparisons")?.unwrap_or(false),
        })
    }

    /// As a reader of the report needs it: 0 is not what it seems.
    fn filter(&self) -> String {
        match self.bloom_bits {
            0 => "0 (a filter of one probe)".into(),
            bits if bits < 0 => "none".into(),
            bits => bits.to_string(),
        }
    }

    fn settings(&self, options: &EngineOptions, operator: Option<MergeOperator>) -> Settings {
        let durability = if options.sync { Durability::Device } else { Durability::OperatingSystem };
        let how = if options.sync {
            "WriteOptions::sync: fdatasync of the log"
        } else {
            "log handed to write(2) before a put returns"
        };
        // LevelDB has at most one immutable memtable beside the active one.
        let cache = self.cache.unwrap_or(8 << 20);
        let memory = format!("2 x {} write buffer + {} block cache", self.write_buffer, cache);
        let mut settings = Settings::new(durability, how, memory, if self.snappy { "snappy" } else { "none" });
        settings.add("write_buffer_size", self.write_buffer);
        settings.add("block_cache", cache);
        settings.add("block_size", self.block);
        settings.add("max_file_size", self.max_file.map_or("default (2097152)".to_string(), |b| b.to_string()));
        settings.add("bloom_bits", self.filter());
        settings.add("comparator", if self.comparisons { "counting" } else { "built in" });
        settings.add("max_open_files", self.open_files);
        settings.add("mmap_read", "first 1000 files (fixed)");
        settings
            .add("merge", operator.map_or("none".to_string(), |o| format!("{} by get + put under a lock", o.name())));
        settings
    }
}

/// An open database. The pointers are null or live; `Drop` releases them in the order that LevelDB asks for.
struct LevelDb {
    library: &'static Loaded<Api>,
    db: *mut ffi::Db,
    options: *mut ffi::DbOptions,
    cache: *mut ffi::Cache,
    filter: *mut ffi::FilterPolicy,
    comparator: *mut ffi::Comparator,
    /// What the comparator counts into.
    comparisons: Option<Box<Comparisons>>,
    directory: PathBuf,
    operator: Option<MergeOperator>,
    locks: KeyLocks,
    description: Description,
    /// What sessions that have ended gave to the log.
    logged_bytes: AtomicU64,
}

// SAFETY: LevelDB's database object may be used from any thread; options, cache and filter are only touched at open
// and in `Drop`.
unsafe impl Send for LevelDb {}
// SAFETY: as above: all of leveldb_put, _get, _write, _delete, _create_iterator, _property_value and _compact_range
// are thread-safe.
unsafe impl Sync for LevelDb {}

impl LevelDb {
    fn create_options(&mut self, plan: &Plan) {
        let api = &self.library.api;
        // SAFETY: plain constructors and setters on the objects just made; `Drop` destroys them.
        unsafe {
            self.options = (api.leveldb_options_create)();
            (api.leveldb_options_set_create_if_missing)(self.options, 1);
            (api.leveldb_options_set_write_buffer_size)(self.options, plan.write_buffer);
            (api.leveldb_options_set_block_size)(self.options, plan.block);
            (api.leveldb_options_set_max_open_files)(self.options, plan.open_files);
            (api.leveldb_options_set_compression)(self.options, i32::from(plan.snappy));
            if let Some(bytes) = plan.max_file {
                (api.leveldb_options_set_max_file_size)(self.options, bytes);
            }
            if let Some(bytes) = plan.cache {
                self.cache = (api.leveldb_cache_create_lru)(bytes);
                (api.leveldb_options_set_cache)(self.options, self.cache);
            }
            if let Some(comparisons) = &self.comparisons {
                let (release, compare, name) = (counting::release, counting::compare, counting::name);
                self.comparator = (api.leveldb_comparator_create)(comparisons.state(), release, compare, name);
                (api.leveldb_options_set_comparator)(self.options, self.comparator);
            }
            if plan.bloom_bits >= 0 {
                self.filter = (api.leveldb_filterpolicy_create_bloom)(plan.bloom_bits);
                (api.leveldb_options_set_filter_policy)(self.options, self.filter);
            }
        }
    }
}

impl Drop for LevelDb {
    fn drop(&mut self) {
        let api = &self.library.api;
        // SAFETY: every pointer is null or was made by the matching constructor, and nothing borrows the database any
        // more (sessions borrow `self`). Cache, filter and comparator must outlive the database, so they go after it,
        // and what the comparator counts into after that.
        unsafe {
            if !self.db.is_null() {
                (api.leveldb_close)(self.db);
            }
            if !self.options.is_null() {
                (api.leveldb_options_destroy)(self.options);
            }
            if !self.cache.is_null() {
                (api.leveldb_cache_destroy)(self.cache);
            }
            if !self.filter.is_null() {
                (api.leveldb_filterpolicy_destroy)(self.filter);
            }
            if !self.comparator.is_null() {
                (api.leveldb_comparator_destroy)(self.comparator);
            }
        }
    }
}

/// Turns the error that a call left into a `Result`.
fn check(api: &Api, error: *mut c_char) -> Result<()> {
    // SAFETY: LevelDB leaves the pointer null or sets it to a string allocated with malloc.
    match unsafe { take_string(error, api.leveldb_free) } {
        None => Ok(()),
        Some(text) => Err(EngineError(format!("{NAME}: {text}"))),
    }
}

impl Engine for LevelDb {
    fn description(&self) -> &Description {
        &self.description
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(LevelDbSession::new(self)))
    }

    fn compact_all(&self) -> Result<()> {
        // SAFETY: null bounds mean the whole range. The call flushes the memtable and returns when every level is
        // compacted.
        unsafe { (self.library.api.leveldb_compact_range)(self.db, ptr::null(), 0, ptr::null(), 0) };
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        wait_until_quiet(&self.directory);
        Ok(())
    }

    fn property(&self, name: &str) -> Option<String> {
        let full = if name.contains('.') { name.to_string() } else { format!("{NAME}.{name}") };
        let full = CString::new(full).ok()?;
        // SAFETY: the name is zero-terminated; the answer is null or allocated with malloc.
        unsafe {
            let text = (self.library.api.leveldb_property_value)(self.db, full.as_ptr());
            take_string(text, self.library.api.leveldb_free)
        }
    }

    fn counters(&self) -> Counters {
        let comparisons = self.comparisons.as_ref().map(|comparisons| comparisons.count());
        let wal_bytes = self.logged_bytes.load(Ordering::Relaxed);
        Counters { comparisons, wal_bytes, ..log::counters(&self.directory) }
    }

    fn tree(&self) -> Option<Tree> {
        const LEVELS: usize = 7;
        let files = (0..LEVELS).map(|level| self.property(&format!("num-files-at-level{level}"))?.trim().parse().ok());
        files.collect::<Option<Vec<u64>>>().map(|files| Tree::of_levels(&files))
    }

    fn close(self: Box<Self>) -> Result<()> {
        // leveldb_close reports nothing; `Drop` calls it.
        Ok(())
    }
}

/// One thread's options and batch, made once.
struct LevelDbSession<'e> {
    engine: &'e LevelDb,
    api: &'static Api,
    read: *mut ffi::ReadOptions,
    write: *mut ffi::WriteOptions,
    write_sync: *mut ffi::WriteOptions,
    batch: *mut ffi::WriteBatch,
    scratch: Vec<u8>,
    /// What this session gave to the log, headers included. LevelDB does not count it.
    logged_bytes: usize,
}

impl<'e> LevelDbSession<'e> {
    fn new(engine: &'e LevelDb) -> LevelDbSession<'e> {
        let api = &engine.library.api;
        // SAFETY: plain constructors; `Drop` destroys the objects.
        unsafe {
            let write_sync = (api.leveldb_writeoptions_create)();
            (api.leveldb_writeoptions_set_sync)(write_sync, 1);
            LevelDbSession {
                engine,
                api,
                read: (api.leveldb_readoptions_create)(),
                write: (api.leveldb_writeoptions_create)(),
                write_sync,
                batch: (api.leveldb_writebatch_create)(),
                scratch: Vec::new(),
                logged_bytes: 0,
            }
        }
    }

    fn options(&self, mode: WriteMode) -> *const ffi::WriteOptions {
        if mode.sync { self.write_sync } else { self.write }
    }

    fn lookup(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (mut error, mut len) = (ptr::null_mut(), 0);
        // SAFETY: database and options are live, the key is readable, and the out pointers are ours.
        let found = unsafe {
            (self.api.leveldb_get)(self.engine.db, self.read, key.as_ptr().cast(), key.len(), &mut len, &mut error)
        };
        if found.is_null() {
            check(self.api, error)?;
            return Ok(false);
        }
        value.clear();
        // SAFETY: a non-null answer is `len` bytes from malloc that are ours to free after the copy.
        unsafe {
            value.extend_from_slice(bytes(found, len));
            (self.api.leveldb_free)(found.cast());
        }
        Ok(true)
    }

    fn stage_put(&mut self, key: &[u8], value: &[u8]) {
        self.logged_bytes += OPERATION_BYTES + key.len() + value.len();
        // SAFETY: the batch is live; it copies key and value.
        unsafe {
            (self.api.leveldb_writebatch_put)(
                self.batch,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
            );
        }
    }

    fn stage_delete(&mut self, key: &[u8]) {
        self.logged_bytes += OPERATION_BYTES + key.len();
        // SAFETY: the batch is live; it copies the key.
        unsafe { (self.api.leveldb_writebatch_delete)(self.batch, key.as_ptr().cast(), key.len()) };
    }

    fn commit(&mut self, mode: WriteMode) -> Result<()> {
        self.logged_bytes += BATCH_BYTES;
        let mut error = ptr::null_mut();
        // SAFETY: database, options and batch are live.
        unsafe { (self.api.leveldb_write)(self.engine.db, self.options(mode), self.batch, &mut error) };
        check(self.api, error)
    }
}

impl Drop for LevelDbSession<'_> {
    fn drop(&mut self) {
        self.engine.logged_bytes.fetch_add(self.logged_bytes as u64, Ordering::Relaxed);
        // SAFETY: all four were made by the matching constructors and are not used again; iterators borrow the
        // session, so none is left.
        unsafe {
            (self.api.leveldb_readoptions_destroy)(self.read);
            (self.api.leveldb_writeoptions_destroy)(self.write);
            (self.api.leveldb_writeoptions_destroy)(self.write_sync);
            (self.api.leveldb_writebatch_destroy)(self.batch);
        }
    }
}

impl Session for LevelDbSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        self.logged_bytes += BATCH_BYTES + OPERATION_BYTES + key.len() + value.len();
        let mut error = ptr::null_mut();
        // SAFETY: database and options are live, key and value readable.
        unsafe {
            (self.api.leveldb_put)(
                self.engine.db,
                self.options(mode),
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &mut error,
            );
        }
        check(self.api, error)
    }

    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()> {
        self.logged_bytes += BATCH_BYTES + OPERATION_BYTES + key.len();
        let mut error = ptr::null_mut();
        // SAFETY: database and options are live, the key is readable.
        unsafe {
            (self.api.leveldb_delete)(self.engine.db, self.options(mode), key.as_ptr().cast(), key.len(), &mut error)
        };
        check(self.api, error)
    }

    fn write(&mut self, batch: &[Operation<'_>], mode: WriteMode) -> Result<()> {
        // SAFETY: the batch is live.
        unsafe { (self.api.leveldb_writebatch_clear)(self.batch) };
        if !has_merge(batch) {
            for operation in batch {
                match *operation {
                    Operation::Put(key, value) => self.stage_put(key, value),
                    Operation::Delete(key) => self.stage_delete(key),
                    Operation::Merge(..) => return Err(no_operator(NAME)),
                }
            }
            return self.commit(mode);
        }
        let _locks = self.engine.locks.lock_merges(batch);
        for operation in resolve(self.engine.operator, NAME, batch, |key, value| self.lookup(key, value))? {
            match operation.value {
                Some(value) => self.stage_put(operation.key, &value),
                None => self.stage_delete(operation.key),
            }
        }
        self.commit(mode)
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> Result<()> {
        let operator = self.engine.operator.ok_or_else(|| no_operator(NAME))?;
        let _lock = self.engine.locks.lock(key);
        let mut value = std::mem::take(&mut self.scratch);
        let found = self.lookup(key, &mut value)?;
        operator.apply(&mut value, found, operand)?;
        let written = self.put(key, &value, mode);
        self.scratch = value;
        written
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.lookup(key, value)
    }

    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        // SAFETY: database and options are live and outlive the iterator, which borrows the session.
        let iter = unsafe { (self.api.leveldb_create_iterator)(self.engine.db, self.read) };
        Ok(Box::new(LevelDbIteration { api: self.api, iter, positioned: false, _session: self }))
    }
}

/// LevelDB's own iterator; it sees the state at its creation.
struct LevelDbIteration<'s, 'e> {
    api: &'static Api,
    iter: *mut ffi::Iter,
    /// Whether the iterator is on an entry: LevelDB must not be asked to move or to show one otherwise.
    positioned: bool,
    _session: &'s LevelDbSession<'e>,
}

impl LevelDbIteration<'_, '_> {
    fn settle(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live.
        self.positioned = unsafe { (self.api.leveldb_iter_valid)(self.iter) } != 0;
        if self.positioned {
            return Ok(true);
        }
        let mut error = ptr::null_mut();
        // SAFETY: as above; the error starts as null.
        unsafe { (self.api.leveldb_iter_get_error)(self.iter, &mut error) };
        check(self.api, error).map(|()| false)
    }
}

impl Drop for LevelDbIteration<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: made by leveldb_create_iterator and not used again.
        unsafe { (self.api.leveldb_iter_destroy)(self.iter) };
    }
}

impl Iteration for LevelDbIteration<'_, '_> {
    fn seek_to_first(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live.
        unsafe { (self.api.leveldb_iter_seek_to_first)(self.iter) };
        self.settle()
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        // SAFETY: the iterator is live.
        unsafe { (self.api.leveldb_iter_seek_to_last)(self.iter) };
        self.settle()
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        // SAFETY: the iterator is live and the key readable.
        unsafe { (self.api.leveldb_iter_seek)(self.iter, key.as_ptr().cast(), key.len()) };
        self.settle()
    }

    fn next(&mut self) -> Result<bool> {
        if !self.positioned {
            return Ok(false);
        }
        // SAFETY: the iterator is live and positioned.
        unsafe { (self.api.leveldb_iter_next)(self.iter) };
        self.settle()
    }

    fn prev(&mut self) -> Result<bool> {
        if !self.positioned {
            return Ok(false);
        }
        // SAFETY: as for `next`.
        unsafe { (self.api.leveldb_iter_prev)(self.iter) };
        self.settle()
    }

    fn key(&self) -> &[u8] {
        if !self.positioned {
            return &[];
        }
        let mut len = 0;
        // SAFETY: a positioned iterator's key lives until its next move, which needs `&mut self`.
        unsafe { bytes((self.api.leveldb_iter_key)(self.iter, &mut len), len) }
    }

    fn value(&self) -> &[u8] {
        if !self.positioned {
            return &[];
        }
        let mut len = 0;
        // SAFETY: as for `key`.
        unsafe { bytes((self.api.leveldb_iter_value)(self.iter, &mut len), len) }
    }
}
