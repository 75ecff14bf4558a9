//! redb.
//!
//! Settings: the cache that was requested (redb's default is 1 GiB). redb knows two durabilities:
//! `Immediate`, synced at every commit, and `None`, lost when the process dies. Neither is the
//! class `OperatingSystem` of the other engines, so for that one the adapter commits with
//! `Immediate` through a storage backend whose sync does nothing: all writes of a commit are then
//! the kernel's, and redb's checksummed commit slots make a killed process recover to the last
//! commit. Synced writes sync as usual. `disable_wal` maps to `Durability::None`.
//!
//! One transaction per write; a read transaction is kept per session and renewed when anything has
//! been committed since. Merge is get and insert in one write transaction.

use super::locked;
use super::merge::{MergeOperator, no_operator};
use super::settings::{Settings, make_directory};
use super::two_way::{Bounds, Ranges, TwoWay};
use super::{
    Capabilities, Engine, EngineError, EngineKind, EngineOptions, Iteration, MemorySplit, Opened, Operation, Result,
    Session, WriteMode,
};
use redb::backends::FileBackend;
use redb::{
    AccessGuard, Builder, Database, Range, ReadOnlyTable, ReadableDatabase, ReadableTable, StorageBackend,
    StorageError, Table, TableDefinition,
};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The registry row of redb.
pub const KIND: EngineKind = EngineKind {
    name: "redb",
    title: "redb",
    capabilities: Capabilities { disable_wal: true, compact: true, ..Capabilities::ORDERED },
    memory: MemorySplit::cache_only("one cache for reading and writing: all of it"),
    open,
    probe: |_| Ok(version()),
};

/// Its name.
pub(crate) const NAME: &str = KIND.name;
const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("test");
const DEFAULT_CACHE_BYTES: u64 = 1 << 30;

fn version() -> String {
    format!("{} (crate)", locked::version(NAME))
}

/// The line for a person of what redb refused.
pub(crate) fn failed(error: impl std::fmt::Display) -> EngineError {
    EngineError(format!("{NAME}: {error}"))
}

/// redb's own file backend, with syncing switched on only where a write asks for it.
#[derive(Debug)]
struct LazyBackend {
    file: FileBackend,
    /// Whether syncs are carried out. Changed by the holder of redb's one write transaction, so a
    /// commit sees its own wish.
    sync: Arc<AtomicBool>,
}

impl StorageBackend for LazyBackend {
    fn len(&self) -> std::result::Result<u64, io::Error> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::result::Result<(), io::Error> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::result::Result<(), io::Error> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> std::result::Result<(), io::Error> {
        if self.sync.load(Ordering::SeqCst) { self.file.sync_data() } else { Ok(()) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::result::Result<(), io::Error> {
        self.file.write(offset, data)
    }

    fn close(&self) -> std::result::Result<(), io::Error> {
        self.file.close()
    }
}

fn open(directory: &Path, options: &EngineOptions, _library: Option<&Path>) -> Result<Opened> {
    let operator = MergeOperator::from_option(options.merge_operator.as_deref())?;
    make_directory(NAME, directory)?;
    let cache = options.cache_bytes.unwrap_or(DEFAULT_CACHE_BYTES);
    let path = directory.join("dbbench.redb");
    let file = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|e| EngineError(format!("{NAME}: cannot open {}: {e}", path.display())))?;
    let sync = Arc::new(AtomicBool::new(true));
    let backend = LazyBackend { file: FileBackend::new(file).map_err(failed)?, sync: sync.clone() };
    let mut builder = Builder::new();
    builder.set_cache_size(usize::try_from(cache).unwrap_or(usize::MAX));
    let database = builder.create_with_backend(backend).map_err(failed)?;
    let txn = database.begin_write().map_err(failed)?;
    txn.open_table(TABLE).map_err(failed)?;
    txn.commit().map_err(failed)?;
    let engine = Redb {
        database: RwLock::new(database),
        sync,
        commits: AtomicU64::new(0),
        disable_wal: options.disable_wal,
        operator,
    };
    Ok(Opened::new(engine, settings(options, operator, cache).describe(&KIND, version())))
}

fn settings(options: &EngineOptions, operator: Option<MergeOperator>, cache: u64) -> Settings {
    use super::Durability;
    let (durability, how) = match (options.disable_wal, options.sync) {
        (true, _) => (Durability::Process, "Durability::None"),
        (false, true) => (Durability::Device, "Durability::Immediate"),
        (false, false) => (Durability::OperatingSystem, "Durability::Immediate on a backend whose sync does nothing"),
    };
    let mut settings = Settings::new(durability, how, format!("{cache} cache"), "none");
    settings.add("cache_size", cache);
    settings.add("page_size", "4096 (of the system)");
    settings.add("two_phase_commit", 0);
    settings.add_merge(operator, "get + insert in a transaction");
    settings
}

struct Redb {
    /// Locked exclusively only for compaction, which redb wants to itself.
    database: RwLock<Database>,
    sync: Arc<AtomicBool>,
    /// Counts commits; raised before a write is acknowledged, so a reader that sees no change has
    /// missed nothing.
    commits: AtomicU64,
    disable_wal: bool,
    operator: Option<MergeOperator>,
}

impl Redb {
    fn database(&self) -> std::sync::RwLockReadGuard<'_, Database> {
        self.database.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the table in a write transaction and commits.
    fn transact(&self, mode: WriteMode, work: impl FnOnce(&mut TestTable<'_>) -> Result<()>) -> Result<()> {
        let mut txn = self.database().begin_write().map_err(failed)?;
        // From here to the commit no other write transaction runs.
        self.sync.store(mode.sync, Ordering::SeqCst);
        if (self.disable_wal || mode.disable_wal) && !mode.sync {
            txn.set_durability(redb::Durability::None).map_err(failed)?;
        }
        work(&mut txn.open_table(TABLE).map_err(failed)?)?;
        txn.commit().map_err(failed)?;
        self.commits.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn apply(&self, table: &mut TestTable<'_>, operation: &Operation<'_>) -> Result<()> {
        match *operation {
            Operation::Put(key, value) => table.insert(key, value).map(|_| ()).map_err(failed),
            Operation::Delete(key) => table.remove(key).map(|_| ()).map_err(failed),
            Operation::Merge(key, operand) => {
                let operator = self.operator.ok_or_else(|| no_operator(NAME))?;
                let existing = table.get(key).map_err(failed)?.map(|value| value.value().to_vec());
                let found = existing.is_some();
                let mut value = existing.unwrap_or_default();
                operator.apply(&mut value, found, operand)?;
                table.insert(key, value.as_slice()).map(|_| ()).map_err(failed)
            }
        }
    }

    fn read(&self) -> Result<ReadTable> {
        let txn = self.database().begin_read().map_err(failed)?;
        txn.open_table(TABLE).map_err(failed)
    }
}

type TestTable<'t> = Table<'t, &'static [u8], &'static [u8]>;
/// A table as it was at a moment.
pub(crate) type ReadTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

impl Engine for Redb {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(RedbSession { engine: self, reader: None }))
    }

    fn compact_all(&self) -> Result<()> {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        match database.compact() {
            Ok(_) => Ok(()),
            // A session still holds a read transaction; compaction is then not possible, and not
            // needed for an answer.
            Err(redb::CompactionError::TransactionInProgress) => Ok(()),
            Err(e) => Err(failed(e)),
        }
    }

    fn property(&self, name: &str) -> Option<String> {
        if name != "stats" {
            return None;
        }
        let txn = self.database().begin_write().ok()?;
        let stats = txn.stats().ok()?;
        let text = format!(
            "height {} pages {} stored_bytes {} metadata_bytes {} fragmented_bytes {}",
            stats.tree_height(),
            stats.allocated_pages(),
            stats.stored_bytes(),
            stats.metadata_bytes(),
            stats.fragmented_bytes()
        );
        txn.abort().ok()?;
        Some(text)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.sync.store(true, Ordering::SeqCst);
        self.database.into_inner().unwrap_or_else(PoisonError::into_inner).close().map_err(failed)
    }
}

struct RedbSession<'e> {
    engine: &'e Redb,
    /// An open table, and the number of commits it has seen.
    reader: Option<(u64, ReadTable)>,
}

impl Session for RedbSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], mode: WriteMode) -> Result<()> {
        self.write(&[Operation::Put(key, value)], mode)
    }

    fn delete(&mut self, key: &[u8], mode: WriteMode) -> Result<()> {
        self.write(&[Operation::Delete(key)], mode)
    }

    fn write(&mut self, batch: &[Operation<'_>], mode: WriteMode) -> Result<()> {
        // An old read transaction would keep freed pages from being used again.
        self.reader = None;
        let engine = self.engine;
        engine.transact(mode, |table| batch.iter().try_for_each(|operation| engine.apply(table, operation)))
    }

    fn merge(&mut self, key: &[u8], operand: &[u8], mode: WriteMode) -> Result<()> {
        self.write(&[Operation::Merge(key, operand)], mode)
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let commits = self.engine.commits.load(Ordering::SeqCst);
        let (_, table) = match self.reader.take() {
            Some(reader) if reader.0 == commits => self.reader.insert(reader),
            _ => self.reader.insert((commits, self.engine.read()?)),
        };
        let Some(found) = table.get(key).map_err(failed)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(found.value());
        Ok(true)
    }

    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        Ok(Box::new(TwoWay::new(self.engine.read()?)))
    }
}

impl Ranges for ReadTable {
    type Bytes = AccessGuard<'static, &'static [u8]>;
    type Item = std::result::Result<(Self::Bytes, Self::Bytes), StorageError>;
    type Range = Range<'static, &'static [u8], &'static [u8]>;

    fn range(&self, bounds: Bounds<'_>) -> Result<Self::Range> {
        ReadOnlyTable::range::<&[u8]>(self, bounds).map_err(failed)
    }

    fn entry(item: Self::Item) -> Result<(Self::Bytes, Self::Bytes)> {
        item.map_err(failed)
    }

    fn bytes(of: &Self::Bytes) -> &[u8] {
        of.value()
    }
}
