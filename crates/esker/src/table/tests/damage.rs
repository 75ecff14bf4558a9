//! Damaged tables answer rightly or with an error, and never panic.

use super::support::*;
use crate::base::key;
use crate::env::WriteFile;
use crate::error::{Error, Result};
use crate::iter::Cursor;
use crate::options::{Compression, ReadMode};
use crate::table::{BlockCache, Table, TableBuilder, TableOptions};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Everything a reader can ask of a small table, each answer or the fact of an error. Without the
/// summary of the file.
type Answers = Vec<Option<Vec<Owned>>>;

fn corrupt<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Corruption { .. }) => None,
        Err(other) => panic!("damage was reported as {other}"),
    }
}

fn scan(table: &Arc<Table>, backward: bool) -> Result<Vec<Owned>> {
    let mut found = Vec::new();
    let mut cursor = table.cursor(true);
    if backward {
        cursor.seek_to_last()?
    } else {
        cursor.seek_to_first()?
    }
    while cursor.valid() {
        found.push(cursor.entry().into());
        let step = if backward { cursor.prev() } else { cursor.next() };
        if let Err(error) = step {
            assert!(!cursor.valid() && cursor.next().is_err() && cursor.prev().is_err(), "an error must stick");
            return Err(error);
        }
    }
    Ok(found)
}

fn point_read(table: &Table, wanted: &Owned) -> Result<Vec<Owned>> {
    let mut found = Vec::new();
    let wanted_key = wanted.key.clone();
    table.get(&wanted.key, key::hash(&wanted.key), wanted.sequence, &mut |version| {
        found.push(Owned {
            key: wanted_key.clone(),
            sequence: version.sequence,
            kind: version.kind,
            expiry_ms: version.expiry_ms,
            value: version.value.to_vec(),
        });
        false
    })?;
    Ok(found)
}

fn answers(table: &Arc<Table>, entries: &[Owned]) -> Answers {
    let mut all = vec![corrupt(scan(table, false)), corrupt(scan(table, true))];
    all.extend(entries.iter().map(|entry| corrupt(point_read(table, entry))));
    all
}

/// Opens damaged bytes and compares every answer with the good one.
fn check(damaged: Vec<u8>, entries: &[Owned], good: &Answers, access: Access) -> bool {
    let Some(table) = corrupt(open(damaged, access)) else { return true };
    let mut noticed = false;
    for (answer, expected) in answers(&table, entries).iter().zip(good) {
        noticed |= answer.is_none();
        assert!(answer.is_none() || answer == expected, "a wrong answer");
    }
    let verified = corrupt(table.verify(&mut |_| {}));
    assert!(verified.is_none() || !noticed, "verify missed damage that a read met");
    verified.is_none()
}

fn small_tables() -> Vec<(Vec<Owned>, Vec<u8>)> {
    let mut random = Random::new(5);
    let mut tables = Vec::new();
    for &compression in COMPRESSIONS {
        for shape in shapes(12, 3).step_by(5) {
            let entries = random_entries(shape, &mut random);
            let (bytes, _) = build(&entries, TableOptions { filter_bits_per_key: 5, ..options(400, compression) });
            tables.push((entries, bytes));
        }
    }
    tables
}

#[test]
fn every_flipped_byte_is_noticed() {
    for (entries, bytes) in small_tables() {
        for access in ACCESSES {
            let good = answers(&open(bytes.clone(), access).expect("a good table"), &entries);
            for at in 0..bytes.len() {
                for flip in [1u8, 0x80, 0xff] {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= flip;
                    assert!(check(damaged, &entries, &good, access), "byte {at} changed unnoticed");
                }
            }
        }
    }
}

#[test]
fn every_truncation_is_noticed() {
    for (_, bytes) in small_tables() {
        for length in 0..bytes.len() {
            assert!(corrupt(open(bytes[..length].to_vec(), ACCESSES[0])).is_none());
        }
        let longer = [bytes.as_slice(), &[0; 7]].concat();
        assert!(corrupt(open(longer, ACCESSES[0])).is_none());
    }
}

/// With checksums made right again, what remains is the check of the structure: nothing may panic
/// or hang, any answer is allowed.
#[test]
fn forged_checksums_do_no_harm() {
    use crate::base::checksum::checksum;
    let mut random = Random::new(6);
    for (entries, bytes) in small_tables() {
        let table = open(bytes.clone(), ACCESSES[1]).expect("a good table");
        let mut handles: Vec<_> = (0..table.index.len()).filter_map(|n| table.index.handle(n)).collect();
        handles.extend([table.footer.index, table.footer.filter, table.footer.properties]);
        for _ in 0..4000 {
            let mut damaged = bytes.clone();
            let handle = handles[random.below(handles.len() as u64) as usize];
            let (start, end) = (handle.offset as usize, (handle.offset + handle.bytes) as usize);
            for _ in 0..=random.below(3) {
                let at = start + random.below(handle.bytes.min(60)) as usize;
                damaged[at] = match random.below(3) {
                    0 => 0xff,
                    1 => random.next() as u8,
                    _ => damaged[at].wrapping_add(1),
                };
            }
            let sum = checksum(FILE_NUMBER, handle.offset, &damaged[start..end - 4]);
            damaged[end - 4..end].copy_from_slice(&sum.to_le_bytes());
            for access in ACCESSES {
                match open(damaged.clone(), access) {
                    Ok(table) => {
                        // A forged order can lead a scan anywhere, but not past the end.
                        let _ = answers(&table, &entries);
                        let _ = table.verify(&mut |_| {});
                        walk_anywhere(&table, &mut random);
                    }
                    Err(Error::Corruption { .. } | Error::Unsupported { .. }) => {}
                    Err(other) => panic!("damage was reported as {other}"),
                }
            }
        }
    }
}

fn walk_anywhere(table: &Arc<Table>, random: &mut Random) {
    let mut cursor = table.cursor(false);
    for _ in 0..10 {
        let length = random.below(10);
        let _ = cursor.seek(&random.text(length), random.below(10_000));
        let _ = cursor.prev();
        if cursor.valid() {
            assert!(cursor.entry().key.len() <= key::MAX_KEY_BYTES);
        }
    }
}

#[test]
fn the_wrong_file_number_is_noticed() {
    let (bytes, _) = build(&[Owned::put("a", 1, "b")], TableOptions::default());
    let file = MemoryRead::new(bytes, false);
    let cache = Arc::new(BlockCache::new(0));
    let result = Table::open(file, "t".into(), FILE_NUMBER + 1, cache, ReadMode::Pread);
    assert!(matches!(result, Err(Error::Corruption { .. })));
}

#[test]
fn a_failed_read_surfaces_at_its_step_and_a_seek_recovers() {
    let entries: Vec<Owned> = (0..100).map(|i| Owned::put(format!("{i:03}"), 1, "value")).collect();
    let (bytes, _) = build(&entries, options(200, Compression::None));
    let file = MemoryRead::new(bytes, false);
    let cache = Arc::new(BlockCache::new(0));
    let table = Table::open(file.clone(), "t".into(), FILE_NUMBER, cache, ReadMode::Pread).expect("a good table");
    for fill_cache in [false, true] {
        let mut cursor = table.cursor(fill_cache);
        cursor.seek_to_first().expect("a good file");
        file.broken.store(true, Ordering::Relaxed);
        let mut steps = 0;
        while cursor.next().is_ok() {
            steps += 1;
            assert!(cursor.valid() && steps < 100);
        }
        assert!(!cursor.valid());
        assert!(matches!(cursor.next(), Err(Error::Io { .. })));
        assert!(matches!(cursor.prev(), Err(Error::Io { .. })));
        assert!(cursor.seek(b"050", 1).is_err());
        let read = table.get(b"050", key::hash(b"050"), 1, &mut |_| true);
        assert!(matches!(read, Err(Error::Io { .. })));
        file.broken.store(false, Ordering::Relaxed);
        cursor.seek(b"050", 1).expect("a good file again");
        assert_eq!(cursor.entry().key, b"050");
    }
}

/// A file that takes so many bytes and no more.
#[derive(Debug)]
struct SmallDisk(u64);

impl WriteFile for SmallDisk {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let full = || Error::io("append to", "disk", std::io::ErrorKind::StorageFull.into());
        self.0 = self.0.checked_sub(bytes.len() as u64).ok_or_else(full)?;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> u64 {
        0
    }
}

#[test]
fn a_full_disk_fails_the_builder_for_good() {
    let new = || TableBuilder::new(Box::new(SmallDisk(100_000)), PathBuf::from("t"), 1, TableOptions::default());
    let mut builder = new();
    builder.add(Owned::put("a", 1, "b").entry()).expect("it fits");
    assert!(builder.finish().is_ok());
    let mut builder = new();
    let value = vec![0; 300_000];
    let results: Vec<_> = (0..4u8).map(|i| builder.add(Owned::put([i], 1, value.clone()).entry())).collect();
    assert!(results.iter().any(|result| result.as_ref().is_err_and(Error::is_disk_full)));
    assert!(builder.add(Owned::put("z", 1, "").entry()).is_err());
    assert!(builder.finish().is_err());
}

#[test]
fn tables_and_cursors_go_to_other_threads() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Send + Sync>() {}
    is_sync::<Table>();
    is_sync::<BlockCache>();
    is_send::<TableBuilder>();
    is_send::<crate::table::TableCursor>();
}
