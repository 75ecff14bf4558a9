//! The hot parts of the engine by themselves, for the microbenchmarks in `benches`.

use crate::base::batch::{Operation, encode};
use crate::base::key::{Entry, Kind, MAX_SEQUENCE, NEVER, Sequence, hash};
use crate::base::key_order::KeyOrder;
use crate::base::memory::MemoryPool;
use crate::cache::{Cache, Slots, Weigh};
use crate::env::mem::MemEnv;
use crate::env::os::OsEnv;
use crate::env::{Env, ReadFile};
use crate::error::Result;
use crate::iter::Cursor;
use crate::iter::merging::MergingCursor;
use crate::memtable::{Memtable, MemtableWriter, RunCursor, WriteContext, entry_bytes};
use crate::merge_operator::UInt64Add;
use crate::options::ReadMode;
use crate::table::{BlockCache, Table, TableBuilder, TableCursor, TableOptions};
use crate::wal::format::RECORD_HEADER_BYTES;
use crate::wal::segment::SegmentMaker;
use crate::wal::writer::{AppendError, Inherited, LogWriter};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A memtable and its writer.
#[derive(Debug)]
pub struct MemtableKernel {
    writer: MemtableWriter,
    sequence: Sequence,
}

impl MemtableKernel {
    /// An empty one for `capacity` bytes of entries and about `keys` keys.
    pub fn new(capacity: usize, keys: usize) -> MemtableKernel {
        let (_, writer) = Memtable::create(capacity, keys, &MemoryPool::of_the_process());
        MemtableKernel { writer, sequence: 0 }
    }

    /// Whether another entry fits.
    pub fn has_room(&self, key: &[u8], value: &[u8]) -> bool {
        self.writer.has_room(entry_bytes(key.len(), value.len(), NEVER))
    }

    /// Sets a key. There must be room.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.apply(key, Kind::Put, value);
    }

    /// Merges an operand of eight bytes into a key, by addition. There must be room.
    pub fn add(&mut self, key: &[u8], operand: u64) {
        self.apply(key, Kind::Merge, &operand.to_le_bytes());
    }

    #[inline]
    fn apply(&mut self, key: &[u8], kind: Kind, value: &[u8]) {
        self.sequence += 1;
        let context = WriteContext { newest_snapshot: 0, operator: Some(&UInt64Add), adds_uint64: true, reserved: 0 };
        let entry = Entry { key, sequence: self.sequence, kind, expiry_ms: NEVER, value };
        self.writer.apply(hash(key), entry, context);
    }

    /// The length of a key's value; 0 if it is not there.
    #[inline]
    pub fn get(&self, key: &[u8]) -> usize {
        let mut length = 0;
        let _ = self.writer.memtable().get(key, hash(key), MAX_SEQUENCE, &mut |entry| {
            length = entry.value.len();
            ControlFlow::Break(())
        });
        length
    }

    fn sealed_cursor(&self) -> RunCursor {
        self.writer.memtable().sealed_cursor()
    }
}

/// A log in a directory, which the caller removes.
#[derive(Debug)]
pub struct LogKernel {
    writer: LogWriter,
    record: Vec<u8>,
    sequence: Sequence,
}

impl LogKernel {
    const SEGMENT_BYTES: u64 = 4 << 20;

    /// Starts a log with small segments, of which the old ones are used again.
    ///
    /// # Errors
    ///
    /// If the directory cannot be written.
    pub fn new(directory: &Path) -> Result<LogKernel> {
        let maker = SegmentMaker {
            env: Arc::new(OsEnv::new()),
            directory: directory.to_path_buf(),
            mapped: true,
            in_foreground: false,
            read_only: false,
            unfinished: None,
            smallest_bytes: Self::SEGMENT_BYTES,
            largest_bytes: Self::SEGMENT_BYTES,
        };
        maker.env.create_dir_all(directory)?;
        let writer = LogWriter::start(maker, Inherited::default())?;
        Ok(LogKernel { writer, record: Vec::new(), sequence: 0 })
    }

    /// Encodes and appends one put, as an unsynced write does.
    ///
    /// # Errors
    ///
    /// If the file system fails.
    #[inline]
    pub fn append(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.record.clear();
        self.record.resize(RECORD_HEADER_BYTES, 0);
        encode(&mut self.record, &Operation { keyspace: 1, kind: Kind::Put, expiry_ms: NEVER, key, value });
        self.sequence += 1;
        let before = self.writer.position().segment;
        let appended = self.writer.append(&mut self.record, self.sequence, self.sequence - 1, false);
        let position = appended.map_err(|error| match error {
            AppendError::NoSegment(error) | AppendError::Failed(error) => error,
        })?;
        if position.segment != before {
            // Everything before is taken for flushed; no file is ever given up.
            self.writer.shared().release(position.segment, usize::MAX);
        }
        Ok(())
    }
}

/// A table without compression, read through a cache that holds all of it.
#[derive(Debug)]
pub struct TableKernel {
    table: Arc<Table>,
    cursor: TableCursor,
}

impl TableKernel {
    /// The table of these keys, ascending, all with one value, in blocks of about `block_bytes`.
    ///
    /// # Errors
    ///
    /// If the keys do not ascend.
    pub fn new(keys: &[Vec<u8>], value: &[u8], block_bytes: usize) -> Result<TableKernel> {
        const CACHE_BYTES: usize = 256 << 20;
        let (env, path) = (MemEnv::new(), PathBuf::from("table"));
        let options = TableOptions { block_bytes, ..TableOptions::default() };
        let mut builder = TableBuilder::new(env.create(&path)?, path.clone(), 1, options);
        for key in keys {
            builder.add(Entry { key, sequence: 1, kind: Kind::Put, expiry_ms: NEVER, value })?;
        }
        builder.finish_reusably()?;
        let file: Arc<dyn ReadFile> = env.open(&path)?;
        let table = Table::open(file, path, 1, Arc::new(BlockCache::new(CACHE_BYTES)), ReadMode::Pread)?;
        Ok(TableKernel { cursor: table.cursor(true), table })
    }

    /// Whether the filter lets a key through.
    #[inline]
    pub fn may_contain(&self, key: &[u8]) -> bool {
        self.table.may_contain(hash(key))
    }

    /// Seeks a key and returns the length of the one that is found; 0 behind the last.
    ///
    /// # Errors
    ///
    /// If the table is damaged.
    #[inline]
    pub fn seek(&mut self, key: &[u8]) -> Result<usize> {
        self.cursor.seek(key, MAX_SEQUENCE)?;
        Ok(if self.cursor.valid() { self.cursor.entry().key.len() } else { 0 })
    }

    /// Steps on, from the last entry to the first, and returns the bytes of the entry.
    ///
    /// # Errors
    ///
    /// If the table is damaged.
    #[inline]
    pub fn step(&mut self) -> Result<usize> {
        step(&mut self.cursor)
    }
}

#[inline]
fn step(cursor: &mut impl Cursor) -> Result<usize> {
    cursor.next()?;
    if !cursor.valid() {
        cursor.seek_to_first()?;
    }
    if !cursor.valid() {
        return Ok(0);
    }
    let entry = cursor.entry();
    Ok(entry.key.len() + entry.value.len())
}

/// The merge of several sorted runs.
pub struct MergeKernel {
    cursor: MergingCursor<RunCursor>,
}

impl MergeKernel {
    /// The merge of what these memtables hold.
    pub fn new(runs: &[MemtableKernel]) -> MergeKernel {
        MergeKernel {
            cursor: MergingCursor::new(runs.iter().map(MemtableKernel::sealed_cursor).collect(), &KeyOrder::Bytewise),
        }
    }

    /// Steps on, from the last entry to the first, and returns the bytes of the entry.
    ///
    /// # Errors
    ///
    /// None here; cursors over files may fail.
    #[inline]
    pub fn step(&mut self) -> Result<usize> {
        step(&mut self.cursor)
    }
}

/// Something to be cached.
#[derive(Debug)]
struct Cached(Vec<u8>);

impl Weigh for Cached {
    fn weight(&self) -> usize {
        self.0.len()
    }
}

/// The slots of a table, all of them filled.
pub struct CacheKernel {
    slots: Arc<Slots<Cached>>,
}

impl CacheKernel {
    /// A table of `blocks` blocks of `bytes` each, all cached.
    pub fn new(blocks: usize, bytes: usize) -> CacheKernel {
        let cache = Cache::new(2 * blocks * bytes + 1);
        let slots = cache.slots(blocks);
        for block in 0..blocks {
            cache.insert(&slots, block, Arc::new(Cached(vec![1; bytes])));
        }
        CacheKernel { slots }
    }

    /// Looks a block up and returns its length; 0 if there is none.
    #[inline]
    pub fn hit(&self, block: usize) -> usize {
        self.slots.lookup(block).and_then(|hit| hit.as_ref().map(|cached| cached.0.len())).unwrap_or(0)
    }
}
