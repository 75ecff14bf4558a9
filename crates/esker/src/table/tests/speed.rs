//! Rough timings, to see a mistake at a glance: `cargo test --release -p esker table::tests::speed
//! -- --ignored --nocapture`.

use super::support::*;
use crate::base::key;
use crate::env::WriteFile;
use crate::error::Result;
use crate::iter::Cursor;
use crate::iter::merging::MergingCursor;
use crate::options::{Compression, ReadMode};
use crate::table::{BlockCache, Table, TableBuilder, TableCursor};
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

const ENTRIES: u64 = 1_000_000;

fn report(what: &str, start: Instant) {
    println!("{what:48} {:7.1} ns", start.elapsed().as_nanos() as f64 / ENTRIES as f64);
}

/// A file that forgets: fresh memory for a real one would cost more than everything measured here.
#[derive(Debug, Default)]
struct NoFile(u64);

impl WriteFile for NoFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0 += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> u64 {
        self.0
    }
}

fn builder(compression: Compression) -> TableBuilder {
    TableBuilder::new(Box::new(NoFile(0)), PathBuf::from("t"), FILE_NUMBER, options(8192, compression))
}

fn copy(cursor: &mut impl Cursor, compression: Compression) {
    let mut builder = builder(compression);
    cursor.seek_to_first().expect("good tables");
    while cursor.valid() {
        builder.add(cursor.entry()).expect("in order");
        cursor.next().expect("good tables");
    }
    builder.finish().expect("no file does not fail");
}

fn table(bytes: Vec<u8>, mapped: bool) -> Arc<Table> {
    let file = MemoryRead::new(bytes, mapped);
    let cache = Arc::new(BlockCache::new(1 << 30));
    let read_mode = if mapped { ReadMode::Mmap } else { ReadMode::Pread };
    Table::open(file, PathBuf::from("t"), FILE_NUMBER, cache, read_mode).expect("a good table")
}

fn digits(number: u64) -> [u8; 16] {
    let mut key = [b'0'; 16];
    key.copy_from_slice(format!("{number:016}").as_bytes());
    key
}

fn merged(tables: &[Arc<Table>]) -> MergingCursor<TableCursor> {
    MergingCursor::new(
        tables.iter().map(|table| table.cursor(false)).collect(),
        &crate::base::key_order::KeyOrder::Bytewise,
    )
}

#[test]
#[ignore = "timing"]
fn speed() {
    let mut random = Random::new(1);
    let value: Vec<u8> = (0..100).map(|i| if i < 50 { random.next() as u8 } else { b'x' }).collect();
    let entries: Vec<Owned> = (0..ENTRIES).map(|i| Owned::put(format!("{i:016}"), i, value.clone())).collect();
    for &compression in COMPRESSIONS {
        println!("{compression:?}");
        let (bytes, _) = build(&entries, options(8192, compression));
        let start = Instant::now();
        let mut builder = builder(compression);
        entries.iter().for_each(|entry| builder.add(entry.entry()).expect("in order"));
        report("build, all added", start);
        builder.finish().expect("no file does not fail");
        report("build, finished", start);
        for mapped in [true, false] {
            let table = table(bytes.clone(), mapped);
            for round in ["cold", "warm"] {
                let mut cursor = table.cursor(true);
                let start = Instant::now();
                cursor.seek_to_first().expect("good");
                let mut sum = 0;
                while cursor.valid() {
                    let entry = cursor.entry();
                    sum += entry.value[7] as usize + entry.key[15] as usize;
                    cursor.next().expect("good");
                }
                black_box(sum);
                report(&format!("scan, {round}, mapped {mapped}"), start);
            }
            for among in [ENTRIES, ENTRIES / 100] {
                let keys: Vec<[u8; 16]> = (0..ENTRIES).map(|_| digits(random.below(among))).collect();
                let start = Instant::now();
                let mut found = 0u64;
                for key in &keys {
                    let visit = &mut |version: crate::table::FoundEntry| {
                        found += version.value.len() as u64;
                        false
                    };
                    table.get(key, key::hash(key), key::MAX_SEQUENCE, visit).expect("good");
                }
                report(&format!("get among {among}, mapped {mapped}"), start);
                assert_eq!(found, 100 * ENTRIES);
                let mut cursor = table.cursor(true);
                let start = Instant::now();
                keys.iter().for_each(|key| cursor.seek(key, key::MAX_SEQUENCE).expect("good"));
                report(&format!("seek among {among}, mapped {mapped}"), start);
            }
        }
        for (what, runs) in [("interleaved", 2), ("interleaved", 4), ("interleaved", 8), ("in runs", 4)] {
            let mut parts = vec![Vec::new(); runs];
            for (at, entry) in entries.iter().enumerate() {
                let part = if what == "in runs" { at / 1000 } else { random.next() as usize };
                parts[part % runs].push(entry.clone());
            }
            let tables: Vec<_> = parts.iter().map(|p| table(build(p, options(8192, compression)).0, true)).collect();
            let mut cursor = merged(&tables);
            let start = Instant::now();
            cursor.seek_to_first().expect("good");
            let mut seen = 0;
            while cursor.valid() {
                seen += u64::from(cursor.entry().value[0] == value[0]);
                cursor.next().expect("good");
            }
            report(&format!("merge {runs} {what}"), start);
            assert_eq!(seen, ENTRIES);
            let start = Instant::now();
            copy(&mut merged(&tables), compression);
            report(&format!("merge and build {runs} {what}"), start);
        }
    }
}
