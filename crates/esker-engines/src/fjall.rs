//! fjall.
//!
//! Settings: `EngineOptions` map one to one; what is not requested keeps fjall's default (filters
//! of 10 bits a key and better on the upper levels, a cache of 32 MiB). Class `OperatingSystem` is
//! fjall's own default: every write flushes its journal buffer to the system. `Device`: `SyncData`
//! (fdatasync) after the write. `disable_wal` leaves the journal buffer to fill up
//! (`manual_journal_persist`), the nearest that fjall has. The compression of LZ class is LZ4.
//! Merge is get and insert under a lock striped by key.

use super::locked;
use super::merge::{KeyLocks, MergeOperator, has_merge, no_operator, resolve};
use super::settings::{Settings, make_directory, number, refuse_zstd, wait_until_quiet};
use super::two_way::{Bounds, Ranges, TwoWay};
use super::{
    Capabilities, Compression, Durability, Engine, EngineError, EngineKind, EngineOptions, Iteration, MemorySplit,
    Opened, Operation, Result, Session, WriteMode,
};
use fjall::config::{BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{
    CompressionType, Database, Guard, Iter, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot, UserKey,
    UserValue,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The registry row of fjall.
pub const KIND: EngineKind = EngineKind {
    name: "fjall",
    title: "fjall",
    capabilities: Capabilities { compact: true, compression: true, concurrent_writers: true, ..Capabilities::ORDERED },
    memory: MemorySplit::fastest([25, 50, 25]),
    open,
    probe: |_| Ok(version()),
};

/// Its name.
pub(crate) const NAME: &str = KIND.name;

fn version() -> String {
    format!("{} (crate)", locked::version(NAME))
}

/// The line for a person of what fjall refused.
pub(crate) fn failed(error: fjall::Error) -> EngineError {
    EngineError(format!("{NAME}: {error}"))
}

fn open(directory: &Path, options: &EngineOptions, _library: Option<&Path>) -> Result<Opened> {
    let operator = MergeOperator::from_option(options.merge_operator.as_deref())?;
    refuse_zstd(NAME, options)?;
    make_directory(NAME, directory)?;
    let workers: Option<usize> = number(options, "max_background_jobs")?.filter(|jobs| *jobs > 0);
    let mut builder = Database::builder(directory).manual_journal_persist(options.disable_wal);
    if let Some(bytes) = options.cache_bytes {
        builder = builder.cache_size(bytes);
    }
    if let Some(workers) = workers {
        builder = builder.worker_threads(workers);
    }
    if options.open_files > 0 {
        builder = builder.max_cached_files(Some(usize::try_from(options.open_files).unwrap_or(usize::MAX).max(10)));
    }
    let database = builder.open().map_err(failed)?;
    let keyspace = database.keyspace("test", || keyspace_options(options)).map_err(failed)?;
    let description = settings(options, operator, &database, workers).describe(&KIND, version());
    let engine = Fjall {
        database,
        keyspace,
        directory: directory.to_path_buf(),
        operator,
        locks: KeyLocks::default(),
        manual_persist: options.disable_wal,
    };
    Ok(Opened::new(engine, description))
}

fn keyspace_options(options: &EngineOptions) -> KeyspaceCreateOptions {
    let compression = match options.compression {
        Compression::None => CompressionPolicy::disabled(),
        // zstd was refused.
        Compression::Lz | Compression::Zstd => CompressionPolicy::all(CompressionType::Lz4),
    };
    let block = u32::try_from(options.block_bytes).unwrap_or(1 << 20).clamp(1024, 1 << 20);
    let created = KeyspaceCreateOptions::default()
        .manual_journal_persist(options.disable_wal)
        .max_memtable_size(options.write_buffer_bytes)
        .data_block_size_policy(BlockSizePolicy::all(block))
        .data_block_compression_policy(compression);
    match options.bloom_bits {
        None => created,
        Some(bits) if bits <= 0 => created.filter_policy(FilterPolicy::disabled()),
        Some(bits) => {
            let bloom = BloomConstructionPolicy::BitsPerKey(bits as f32);
            created.filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(bloom)))
        }
    }
}

fn settings(
    options: &EngineOptions,
    operator: Option<MergeOperator>,
    database: &Database,
    workers: Option<usize>,
) -> Settings {
    let (durability, how) = match (options.disable_wal, options.sync) {
        (true, _) => (Durability::Process, "journal buffer flushed when full (manual_journal_persist)"),
        (false, true) => (Durability::Device, "PersistMode::SyncData (fdatasync) after every write"),
        (false, false) => (Durability::OperatingSystem, "PersistMode::Buffer: journal handed to write(2)"),
    };
    let compression = if options.compression == Compression::Lz { "lz4" } else { "none" };
    let memory = format!("{} memtable + {} cache", options.write_buffer_bytes, database.cache_capacity());
    let mut settings = Settings::new(durability, how, memory, compression);
    settings.add("max_memtable_size", options.write_buffer_bytes);
    settings.add("cache_size", database.cache_capacity());
    settings.add("data_block_size", options.block_bytes.clamp(1024, 1 << 20));
    settings.add("bloom_bits", options.bloom_bits.map_or("default".to_string(), |bits| bits.max(0).to_string()));
    settings.add("worker_threads", workers.map_or("default".to_string(), |w| w.to_string()));
    settings.add_merge(operator, "get + insert under a lock");
    settings
}

struct Fjall {
    database: Database,
    keyspace: Keyspace,
    directory: PathBuf,
    operator: Option<MergeOperator>,
    locks: KeyLocks,
    manual_persist: bool,
}

impl Fjall {
    fn settle(&self, mode: WriteMode) -> Result<()> {
        if mode.sync { self.database.persist(PersistMode::SyncData).map_err(failed) } else { Ok(()) }
    }

    fn lookup(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let Some(found) = self.keyspace.get(key).map_err(failed)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(&found);
        Ok(true)
    }
}

impl Engine for Fjall {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(FjallSession { engine: self, scratch: Vec::new() }))
    }

    fn compact_all(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait().map_err(failed)?;
        self.keyspace.major_compact().map_err(failed)
    }

    fn wait_idle(&self) -> Result<()> {
        const LONGEST: Duration = Duration::from_secs(600);
        let start = Instant::now();
        loop {
            while self.database.outstanding_flushes() > 0 || self.database.active_compactions() > 0 {
                if start.elapsed() > LONGEST {
                    return Err(EngineError(format!("{NAME}: background work did not end")));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            // Work that has not begun yet shows in neither figure.
            wait_until_quiet(&self.directory);
            if self.database.outstanding_flushes() == 0 && self.database.active_compactions() == 0 {
                return Ok(());
            }
        }
    }

    fn property(&self, name: &str) -> Option<String> {
        (name == "stats").then(|| {
            format!(
                "tables {} l0_tables {} journals {} disk_space {} compactions {}",
                self.keyspace.table_count(),
                self.keyspace.l0_table_count(),
                self.database.journal_count(),
                self.keyspace.disk_space(),
                self.database.compactions_completed()
            )
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        // Closing happens when the last handle goes, and reports nothing; this reports what would
        // be lost.
        self.database.persist(PersistMode::Buffer).map_err(failed)
    }
}

struct FjallSession<'e> {
    engine: &'e Fjall,
    scratch: Vec<u8>,
}

impl Session for FjallSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        self.engine.keyspace.insert(key, value).map_err(failed)?;
        self.engine.settle(mode)
    }

    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()> {
        self.engine.keyspace.remove(key).map_err(failed)?;
        self.engine.settle(mode)
    }

    fn write(&mut self, batch: &[Operation<'_>], mode: WriteMode) -> Result<()> {
        let engine = self.engine;
        let mut writes = fjall::OwnedWriteBatch::with_capacity(engine.database.clone(), batch.len());
        if mode.sync {
            writes = writes.durability(Some(PersistMode::SyncData));
        } else if !engine.manual_persist {
            writes = writes.durability(Some(PersistMode::Buffer));
        }
        if !has_merge(batch) {
            for operation in batch {
                match *operation {
                    Operation::Put(key, value) => writes.insert(&engine.keyspace, key, value),
                    Operation::Delete(key) => writes.remove(&engine.keyspace, key),
                    Operation::Merge(..) => return Err(no_operator(NAME)),
                }
            }
            return writes.commit().map_err(failed);
        }
        let _locks = engine.locks.lock_merges(batch);
        for operation in resolve(engine.operator, NAME, batch, |key, value| engine.lookup(key, value))? {
            match operation.value {
                Some(value) => writes.insert(&engine.keyspace, operation.key, &value[..]),
                None => writes.remove(&engine.keyspace, operation.key),
            }
        }
        writes.commit().map_err(failed)
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> Result<()> {
        let operator = self.engine.operator.ok_or_else(|| no_operator(NAME))?;
        let _lock = self.engine.locks.lock(key);
        let found = self.engine.lookup(key, &mut self.scratch)?;
        operator.apply(&mut self.scratch, found, operand)?;
        self.engine.keyspace.insert(key, self.scratch.as_slice()).map_err(failed)?;
        self.engine.settle(mode)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.engine.lookup(key, value)
    }

    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        let snapshot = self.engine.database.snapshot();
        Ok(Box::new(TwoWay::new(Frozen { snapshot, keyspace: &self.engine.keyspace })))
    }
}

/// A keyspace as it was at a moment.
pub(crate) struct Frozen<'s> {
    /// The moment.
    pub snapshot: Snapshot,
    /// The keyspace.
    pub keyspace: &'s Keyspace,
}

impl Ranges for Frozen<'_> {
    type Bytes = UserKey;
    type Item = Guard;
    type Range = Iter;

    fn range(&self, bounds: Bounds<'_>) -> Result<Iter> {
        Ok(self.snapshot.range::<&[u8], _>(self.keyspace, bounds))
    }

    fn entry(item: Guard) -> Result<(UserKey, UserValue)> {
        item.into_inner().map_err(failed)
    }

    fn bytes(of: &UserKey) -> &[u8] {
        of
    }
}
