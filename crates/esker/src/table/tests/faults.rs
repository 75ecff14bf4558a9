//! Mappings that fail in the middle of a read. That whole files do is tried with real ones, in
//! `tests/operations/faults_under_mappings.rs`.

use super::support::{COMPRESSIONS, FILE_NUMBER, MemoryRead, Owned, build, options};
use crate::env::{ReadFile, note_mapping_fault};
use crate::error::{Error, Result};
use crate::options::{Compression, ReadMode};
use crate::table::{BlockCache, Table};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A mapped file with a page that becomes unavailable on demand.
#[derive(Debug)]
struct Failing {
    file: Arc<MemoryRead>,
    has_failed: AtomicBool,
}

impl ReadFile for Failing {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn mapping(&self) -> Option<&[u8]> {
        self.file.mapping()
    }

    fn check_mapping(&self) -> Result<()> {
        match self.has_failed.load(Ordering::Relaxed) {
            true => Err(Error::io("read", "memory", io::Error::other("a page is gone"))),
            false => Ok(()),
        }
    }
}

fn table(compression: Compression) -> (Arc<Failing>, Arc<Table>, Vec<Owned>) {
    let entries: Vec<Owned> = (0..500).map(|i| Owned::put(format!("{i:08}"), 1, format!("{i:0100}"))).collect();
    let (bytes, _) = build(&entries, options(1024, compression));
    let file = Arc::new(Failing { file: MemoryRead::new(bytes, true), has_failed: AtomicBool::new(false) });
    let cache = Arc::new(BlockCache::new(1 << 20));
    let table =
        Table::open(file.clone(), PathBuf::from("memory"), FILE_NUMBER, cache, ReadMode::Mmap).expect("a good table");
    // What counts for the process has happened, for other files.
    note_mapping_fault();
    (file, table, entries)
}

fn get(table: &Table, key: &[u8], mut meanwhile: impl FnMut()) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    table.search(key, 9, &mut |version| {
        meanwhile();
        value = version.value.to_vec();
        false
    })?;
    Ok(value)
}

#[test]
fn a_get_during_which_the_mapping_fails_is_an_error_and_the_next_one_reads_the_file() {
    for &compression in COMPRESSIONS {
        let (file, table, entries) = table(compression);
        for entry in &entries {
            file.has_failed.store(false, Ordering::Relaxed);
            let fails = || file.has_failed.store(true, Ordering::Relaxed);
            assert!(matches!(get(&table, &entry.key, fails), Err(Error::Io { .. })));
            assert_eq!(get(&table, &entry.key, || {}).expect("the file is whole"), entry.value);
        }
    }
}

/// The reader that decompressed the block gets the error; readers that find it in the cache would
/// get none.
#[test]
fn a_block_that_was_unpacked_while_the_mapping_failed_is_not_kept_for_others() {
    for has_failed in [false, true] {
        let (file, table, _) = table(Compression::Lz4);
        for number in 0..table.index.len() {
            let (handle, length) = table.located(number).expect("the block exists");
            let stored = table.in_mapping(number, handle.offset, length).expect("it is mapped");
            let content = table.content(stored, handle.offset, true).expect("it is good");
            let (_, room) = table.raw_size(handle.offset, content).expect("it is good");
            file.has_failed.store(has_failed, Ordering::Relaxed);
            table.keep((number, handle.offset), content, room).expect("it is good");
            file.has_failed.store(false, Ordering::Relaxed);
            assert_eq!(table.slots.lookup(number).is_none(), has_failed);
        }
    }
}

/// That a block was found good in the mapping says nothing of what the file has instead.
#[test]
fn a_block_known_from_a_mapping_that_failed_is_checked_again() {
    let (file, table, _) = table(Compression::Lz4);
    let (handle, length) = table.located(3).expect("the block exists");
    let mut stored = table.in_mapping(3, handle.offset, length).expect("it is mapped").to_vec();
    stored[20] ^= 1;
    assert!(table.content(&stored, handle.offset, true).is_ok());
    file.has_failed.store(true, Ordering::Relaxed);
    assert!(table.in_mapping(3, handle.offset, length).is_none());
    assert!(matches!(table.content(&stored, handle.offset, true), Err(Error::Corruption { .. })));
}
