//! LevelDB through its C interface.
//!
//! Settings: `EngineOptions` map one to one. No filter setting requested means 10 bits a key, which
//! LevelDB's documentation recommends for reads, and 0 bits, as in its db_bench, a filter of
//! one probe; no cache size requested means LevelDB's own 8 MiB. Merge is get, combine and put
//! under a lock striped by key. `leveldb_get` of the C interface returns a copy that the adapter
//! copies once more and frees: a C++ program saves that.

pub(super) mod client;
pub(super) mod ffi;
mod log;

use super::dynamic::{self, Loaded, bytes};
use super::merge::{KeyLocks, MergeOperator, has_merge, no_operator, resolve};
use super::settings::{Settings, make_directory, refuse_zstd, wait_until_quiet};
use super::{
    Capabilities, Compression, Counters, Durability, Engine, EngineKind, EngineOptions, Iteration, MemorySplit, Opened,
    Operation, Result, Session, Tree, WriteMode,
};
use client::{Client, Handle};
use ffi::Api;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// The registry row of LevelDB.
pub const KIND: EngineKind = EngineKind {
    name: "leveldb",
    title: "LevelDB",
    capabilities: Capabilities { compact: true, compression: true, concurrent_writers: true, ..Capabilities::ORDERED },
    memory: MemorySplit::fastest([12, 25, 25]),
    open,
    probe: |library| Ok(version(dynamic::load(&ffi::LIBRARY, library)?)),
};

const NAME: &str = KIND.name;

/// LevelDB takes no less, and says nothing.
const LEAST_WRITE_BUFFER_BYTES: usize = 64 << 10;
/// As above.
const LEAST_FILE_BYTES: usize = 1 << 20;

/// A record of the log has a header, and a batch in it another.
const BATCH_BYTES: usize = 7 + 12;
/// An operation in a batch has its kind and two lengths, of one byte each as a rule.
const OPERATION_BYTES: usize = 3;

fn version(library: &Loaded<Api>) -> String {
    // SAFETY: both functions take nothing and return a constant.
    let (major, minor) = unsafe { ((library.api.leveldb_major_version)(), (library.api.leveldb_minor_version)()) };
    format!("{major}.{minor} ({})", library.file_name())
}

fn open(directory: &Path, options: &EngineOptions, library: Option<&Path>) -> Result<Opened> {
    let library = dynamic::load(&ffi::LIBRARY, library)?;
    let operator = MergeOperator::from_option(options.merge_operator.as_deref())?;
    make_directory(NAME, directory)?;
    let mut handle = Handle::new(NAME, &library.api.base, options)?;
    let (parts, mut settings) = Parts::configure(&library.api, &handle, options)?;
    settings.add_merge(operator, "get + put under a lock");
    handle.open(directory)?;
    let engine = LevelDb {
        handle,
        _parts: parts,
        api: &library.api,
        directory: directory.to_path_buf(),
        operator,
        locks: KeyLocks::default(),
        logged_bytes: AtomicU64::new(0),
    };
    Ok(Opened::new(engine, settings.describe(&KIND, version(library))))
}

/// What LevelDB wants kept for as long as the database is open. Each is null or live.
struct Parts {
    api: &'static Api,
    cache: *mut ffi::Cache,
    filter: *mut ffi::FilterPolicy,
}

impl Parts {
    /// Sets what was requested, with what it refers to; the settings for the report.
    fn configure(api: &'static Api, handle: &Handle, options: &EngineOptions) -> Result<(Parts, Settings)> {
        refuse_zstd(NAME, options)?;
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let write_buffer = size(options.write_buffer_bytes).clamp(LEAST_WRITE_BUFFER_BYTES, 1 << 30);
        let max_file = options.max_file_bytes.map(|bytes| size(bytes).clamp(LEAST_FILE_BYTES, 1 << 30));
        let bloom_bits = options.bloom_bits.unwrap_or(10).max(-1);
        let snappy = options.compression == Compression::Lz;
        let open_files =
            if options.open_files == 0 { 1000 } else { i32::try_from(options.open_files).unwrap_or(i32::MAX) };
        let mut parts = Parts { api, cache: ptr::null_mut(), filter: ptr::null_mut() };
        let (base, set) = (&api.base, handle.options);
        // SAFETY: plain constructors, and setters on live options; `Drop` destroys what is made.
        unsafe {
            (base.options_set_write_buffer_size)(set, write_buffer);
            (api.leveldb_options_set_block_size)(set, size(options.block_bytes));
            (base.options_set_max_open_files)(set, open_files);
            (base.options_set_compression)(set, i32::from(snappy));
            if let Some(bytes) = max_file {
                (api.leveldb_options_set_max_file_size)(set, bytes);
            }
            if let Some(bytes) = options.cache_bytes {
                parts.cache = (base.cache_create_lru)(size(bytes));
                (api.leveldb_options_set_cache)(set, parts.cache);
            }
            if bloom_bits >= 0 {
                parts.filter = (api.leveldb_filterpolicy_create_bloom)(bloom_bits);
                (api.leveldb_options_set_filter_policy)(set, parts.filter);
            }
        }
        let (durability, how) = match options.sync {
            true => (Durability::Device, "WriteOptions::sync: fdatasync of the log"),
            false => (Durability::OperatingSystem, "log handed to write(2) before a put returns"),
        };
        // LevelDB has at most one immutable memtable beside the active one.
        let cache = options.cache_bytes.unwrap_or(8 << 20);
        let memory = format!("2 x {write_buffer} write buffer + {cache} block cache");
        let mut settings = Settings::new(durability, how, memory, if snappy { "snappy" } else { "none" });
        settings.add("write_buffer_size", write_buffer);
        settings.add("block_cache", cache);
        settings.add("block_size", options.block_bytes);
        settings.add("max_file_size", max_file.map_or("default (2097152)".to_string(), |bytes| bytes.to_string()));
        // As a reader of the report needs it: 0 is not what it seems.
        settings.add(
            "bloom_bits",
            match bloom_bits {
                0 => "0 (a filter of one probe)".into(),
                bits if bits < 0 => "none".into(),
                bits => bits.to_string(),
            },
        );
        settings.add("comparator", handle.comparator());
        settings.add("max_open_files", open_files);
        settings.add("mmap_read", "first 1000 files (fixed)");
        Ok((parts, settings))
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // SAFETY: each is null or was made by the matching constructor; the database is closed.
        unsafe {
            if !self.cache.is_null() {
                (self.api.base.cache_destroy)(self.cache);
            }
            if !self.filter.is_null() {
                (self.api.leveldb_filterpolicy_destroy)(self.filter);
            }
        }
    }
}

/// An open database.
struct LevelDb {
    handle: Handle,
    /// Behind the handle, which is dropped first.
    _parts: Parts,
    api: &'static Api,
    directory: PathBuf,
    operator: Option<MergeOperator>,
    locks: KeyLocks,
    /// What sessions that have ended gave to the log.
    logged_bytes: AtomicU64,
}

// SAFETY: options, cache and filter are only touched at open and in `Drop`.
unsafe impl Send for Parts {}
// SAFETY: as above.
unsafe impl Sync for Parts {}

impl Engine for LevelDb {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let client = Client::new(&self.handle);
        Ok(Box::new(LevelDbSession { engine: self, client, scratch: Vec::new(), logged_bytes: 0 }))
    }

    fn compact_all(&self) -> Result<()> {
        // It flushes the memtable as well.
        self.handle.compact();
        Ok(())
    }

    fn wait_idle(&self) -> Result<()> {
        wait_until_quiet(&self.directory);
        Ok(())
    }

    fn property(&self, name: &str) -> Option<String> {
        self.handle.property(name)
    }

    fn counters(&self) -> Counters {
        let (comparisons, wal_bytes) = (self.handle.comparisons(), self.logged_bytes.load(Ordering::Relaxed));
        Counters { comparisons, wal_bytes, ..log::counters(&self.directory) }
    }

    fn tree(&self) -> Option<Tree> {
        const LEVELS: i32 = 7;
        self.handle.tree(LEVELS)
    }
}

/// One thread's handle.
struct LevelDbSession<'e> {
    engine: &'e LevelDb,
    client: Client<'e>,
    scratch: Vec<u8>,
    /// What this session gave to the log, headers included. LevelDB does not count it.
    logged_bytes: usize,
}

impl LevelDbSession<'_> {
    fn options(&self, mode: WriteMode) -> *const ffi::WriteOptions {
        self.client.write[usize::from(mode.sync)]
    }

    fn lookup(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (client, mut error, mut len) = (&self.client, ptr::null_mut(), 0);
        let (k, get) = (key.as_ptr().cast(), self.engine.api.leveldb_get);
        // SAFETY: database and options are live, the key is readable, and the out pointers are
        // ours.
        let found = unsafe { get(client.handle.db, client.read, k, key.len(), &mut len, &mut error) };
        if found.is_null() {
            client.handle.check(error)?;
            return Ok(false);
        }
        value.clear();
        // SAFETY: a non-null answer is `len` bytes from malloc that are ours to free after the
        // copy.
        unsafe {
            value.extend_from_slice(bytes(found, len));
            (client.api.free)(found.cast());
        }
        Ok(true)
    }

    fn stage_put(&mut self, key: &[u8], value: &[u8]) {
        self.logged_bytes += OPERATION_BYTES + key.len() + value.len();
        self.client.stage_put(key, value);
    }

    fn stage_delete(&mut self, key: &[u8]) {
        self.logged_bytes += OPERATION_BYTES + key.len();
        self.client.stage_delete(key);
    }

    fn commit(&mut self, mode: WriteMode) -> Result<()> {
        self.logged_bytes += BATCH_BYTES;
        self.client.commit(self.options(mode))
    }
}

impl Drop for LevelDbSession<'_> {
    fn drop(&mut self) {
        self.engine.logged_bytes.fetch_add(self.logged_bytes as u64, Ordering::Relaxed);
    }
}

impl Session for LevelDbSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        self.logged_bytes += BATCH_BYTES + OPERATION_BYTES + key.len() + value.len();
        self.client.put(self.options(mode), key, value)
    }

    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()> {
        self.logged_bytes += BATCH_BYTES + OPERATION_BYTES + key.len();
        self.client.delete(self.options(mode), key)
    }

    fn write(&mut self, batch: &[Operation<'_>], mode: WriteMode) -> Result<()> {
        self.client.begin();
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
        Ok(Box::new(self.client.walk()))
    }
}
