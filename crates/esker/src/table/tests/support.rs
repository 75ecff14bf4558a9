//! Files in memory, random entries, and tables made of them.

use crate::base::key::{Entry, Kind, NEVER, Sequence, compare};
pub(crate) use crate::base::random::Random;
use crate::env::{ReadFile, WriteFile};
use crate::error::{Error, Result};
use crate::options::{Compression, ReadMode};
use crate::table::{BlockCache, Table, TableBuilder, TableOptions, TableSummary};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) const FILE_NUMBER: u64 = 17;

/// A file that was read into memory.
#[derive(Debug)]
pub(crate) struct MemoryRead {
    pub(crate) bytes: Vec<u8>,
    pub(crate) mapped: bool,
    /// Reads fail while this is set.
    pub(crate) broken: AtomicBool,
}

impl MemoryRead {
    pub(crate) fn new(bytes: Vec<u8>, mapped: bool) -> Arc<MemoryRead> {
        Arc::new(MemoryRead { bytes, mapped, broken: AtomicBool::new(false) })
    }
}

impl ReadFile for MemoryRead {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let short = || Error::corruption("memory", offset, "the file ends too early");
        if self.broken.load(Ordering::Relaxed) {
            return Err(Error::io("read", "memory", io::Error::other("told to fail")));
        }
        let start = usize::try_from(offset).map_err(|_| short())?;
        let end = start.checked_add(buffer.len()).ok_or_else(short)?;
        buffer.copy_from_slice(self.bytes.get(start..end).ok_or_else(short)?);
        Ok(())
    }

    fn mapping(&self) -> Option<&[u8]> {
        self.mapped.then_some(&self.bytes)
    }

    /// Memory cannot fail.
    fn check_mapping(&self) -> Result<()> {
        Ok(())
    }
}

/// A file that is written into memory shared with the test.
#[derive(Debug, Default, Clone)]
pub(crate) struct MemoryWrite(pub(crate) Arc<Mutex<Vec<u8>>>);

impl WriteFile for MemoryWrite {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.lock().expect("no panic in another holder").extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> u64 {
        self.0.lock().expect("no panic in another holder").len() as u64
    }
}

/// An entry that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) key: Vec<u8>,
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
    pub(crate) expiry_ms: u64,
    pub(crate) value: Vec<u8>,
}

impl Owned {
    pub(crate) fn put(key: impl Into<Vec<u8>>, sequence: Sequence, value: impl Into<Vec<u8>>) -> Owned {
        Owned { key: key.into(), sequence, kind: Kind::Put, expiry_ms: NEVER, value: value.into() }
    }

    pub(crate) fn entry(&self) -> Entry<'_> {
        Entry {
            key: &self.key,
            sequence: self.sequence,
            kind: self.kind,
            expiry_ms: self.expiry_ms,
            value: &self.value,
        }
    }
}

impl From<Entry<'_>> for Owned {
    fn from(entry: Entry<'_>) -> Owned {
        Owned {
            key: entry.key.to_vec(),
            sequence: entry.sequence,
            kind: entry.kind,
            expiry_ms: entry.expiry_ms,
            value: entry.value.to_vec(),
        }
    }
}

/// What random entries look like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) entries: u64,
    pub(crate) fixed_key: bool,
    pub(crate) fixed_value: bool,
    pub(crate) versions: u64,
    pub(crate) constant_sequence: bool,
    pub(crate) plain: bool,
}

/// Random entries of a shape, in order and without repetition.
pub(crate) fn random_entries(shape: Shape, random: &mut Random) -> Vec<Owned> {
    let mut entries = Vec::new();
    for i in 0..shape.entries {
        let key_length = random.below(24);
        let key = if shape.fixed_key {
            format!("user{:012}", random.below(1_000_000)).into_bytes()
        } else {
            random.text(key_length)
        };
        for _ in 0..=random.below(shape.versions) {
            let value_length = if shape.fixed_value { 33 } else { random.below(100) };
            let kind = match random.below(4) {
                0 if !shape.plain => Kind::Delete,
                1 if !shape.plain => Kind::Merge,
                _ => Kind::Put,
            };
            let sequence = match random.below(8) {
                _ if shape.constant_sequence => 5,
                0 if !shape.plain => random.below(1 << 56),
                _ => 1000 + i * 10 + random.below(10),
            };
            let expiry_ms = if shape.plain || random.below(3) > 0 { NEVER } else { random.below(1 << 40) };
            let value = if kind == Kind::Delete && !shape.fixed_value { Vec::new() } else { random.text(value_length) };
            entries.push(Owned { key: key.clone(), sequence, kind, expiry_ms, value });
        }
    }
    sort(&mut entries);
    entries
}

/// Sorts entries and drops repeated ones.
pub(crate) fn sort(entries: &mut Vec<Owned>) {
    entries.sort_by(|a, b| compare(&a.key, a.sequence, &b.key, b.sequence));
    entries.dedup_by(|a, b| a.key == b.key && a.sequence == b.sequence);
}

/// Every combination of the yes and no questions about shapes.
pub(crate) fn shapes(entries: u64, versions: u64) -> impl Iterator<Item = Shape> {
    (0..16).map(move |bits| Shape {
        entries,
        fixed_key: bits & 1 != 0,
        fixed_value: bits & 2 != 0,
        constant_sequence: bits & 4 != 0,
        plain: bits & 8 != 0,
        versions,
    })
}

/// All that this build has.
pub(crate) const COMPRESSIONS: &[Compression] = &[
    Compression::None,
    Compression::Lz4,
    #[cfg(feature = "zstd")]
    Compression::Zstd,
];

pub(crate) fn options(block_bytes: usize, compression: Compression) -> TableOptions {
    TableOptions { block_bytes, compression, ..TableOptions::default() }
}

/// The bytes of a table of these entries.
pub(crate) fn build(entries: &[Owned], options: TableOptions) -> (Vec<u8>, TableSummary) {
    let file = MemoryWrite::default();
    let mut builder = TableBuilder::new(Box::new(file.clone()), PathBuf::from("memory"), FILE_NUMBER, options);
    entries.iter().for_each(|entry| builder.add(entry.entry()).expect("entries in order"));
    let summary = builder.finish().expect("memory does not fail");
    assert_eq!(summary.entries, entries.len() as u64);
    let bytes = file.0.lock().expect("no panic in another holder").clone();
    (bytes, summary)
}

/// How a table is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) read_mode: ReadMode,
    pub(crate) cache_bytes: usize,
}

pub(crate) const ACCESSES: [Access; 7] = [
    Access { read_mode: ReadMode::Mmap, cache_bytes: 1 << 20 },
    Access { read_mode: ReadMode::Pread, cache_bytes: 1 << 20 },
    // What the cache will not keep is unpacked in part.
    Access { read_mode: ReadMode::Mmap, cache_bytes: 0 },
    Access { read_mode: ReadMode::Pread, cache_bytes: 0 },
    // Some of it is kept.
    Access { read_mode: ReadMode::Mmap, cache_bytes: 8 << 10 },
    Access { read_mode: ReadMode::MmapChecked, cache_bytes: 1 << 20 },
    Access { read_mode: ReadMode::MmapChecked, cache_bytes: 0 },
];

pub(crate) fn open(bytes: Vec<u8>, access: Access) -> Result<Arc<Table>> {
    let file = MemoryRead::new(bytes, access.read_mode != ReadMode::Pread);
    let cache = Arc::new(BlockCache::new(access.cache_bytes));
    Table::open(file, PathBuf::from("memory"), FILE_NUMBER, cache, access.read_mode)
}
