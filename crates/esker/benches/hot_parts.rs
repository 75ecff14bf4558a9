//! The hot parts of the engine, one by one: `cargo bench -p esker`, or `cargo bench -p esker --
//! memtable` for some of them.
//!
//! Each iteration is one operation. Keys and values are those of the scoreboard: 16 digits, 100
//! bytes.

#![allow(missing_docs)]

use divan::{Bencher, black_box};
use esker::internals::{CacheKernel, LogKernel, MemtableKernel, MergeKernel, TableKernel};

fn main() {
    divan::main();
}

const KEYS: u64 = 100_000;
const CAPACITY: usize = 64 << 20;
const VALUE: [u8; 100] = [b'v'; 100];

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'0'; 16];
    let mut rest = number;
    for digit in key.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Keys in random order, made before the time starts.
struct Keys {
    keys: Vec<[u8; 16]>,
    at: usize,
}

impl Keys {
    /// Every number below `count` once (the multiplier is prime and divides no `count` used here),
    /// then again.
    fn new(count: u64) -> Keys {
        Keys { keys: (0..count).map(|at| key(at * 982_451_653 % count)).collect(), at: 0 }
    }

    fn next(&mut self) -> [u8; 16] {
        self.at = (self.at + 1) % self.keys.len();
        self.keys[self.at]
    }
}

fn filled(count: u64) -> MemtableKernel {
    let mut memtable = MemtableKernel::new(CAPACITY, count as usize);
    let mut keys = Keys::new(count);
    (0..count).for_each(|_| memtable.put(&keys.next(), &VALUE));
    memtable
}

mod memtable {
    use super::*;

    /// New keys; a full memtable is replaced by an empty one, as the engine does.
    #[divan::bench]
    fn put(bencher: Bencher) {
        let mut number = 0u64;
        let mut memtable = MemtableKernel::new(CAPACITY, 500_000);
        bencher.bench_local(|| {
            number += 1;
            let key = key(number * 982_451_653 % 1_000_000_007);
            if !memtable.has_room(&key, &VALUE) {
                memtable = MemtableKernel::new(CAPACITY, 500_000);
            }
            memtable.put(&key, &VALUE);
        });
    }

    #[divan::bench]
    fn overwrite(bencher: Bencher) {
        let (mut memtable, mut keys) = (filled(KEYS), Keys::new(KEYS));
        bencher.bench_local(|| {
            let key = keys.next();
            if !memtable.has_room(&key, &VALUE) {
                memtable = filled(KEYS);
            }
            memtable.put(&key, &VALUE);
        });
    }

    #[divan::bench]
    fn merge(bencher: Bencher) {
        let (mut memtable, mut keys) = (MemtableKernel::new(CAPACITY, KEYS as usize), Keys::new(KEYS));
        (0..KEYS).for_each(|_| memtable.add(&keys.next(), 1));
        bencher.bench_local(|| memtable.add(&keys.next(), 1));
    }

    #[divan::bench]
    fn get(bencher: Bencher) {
        let (memtable, mut keys) = (filled(KEYS), Keys::new(KEYS));
        bencher.bench_local(|| black_box(memtable.get(&keys.next())));
    }
}

mod wal {
    use super::*;

    #[divan::bench]
    fn append(bencher: Bencher) {
        let directory = std::env::temp_dir().join(format!("esker-bench-wal-{}", std::process::id()));
        let mut log = LogKernel::new(&directory).expect("a log in the temporary directory");
        let mut keys = Keys::new(KEYS);
        bencher.bench_local(|| log.append(&keys.next(), &VALUE).expect("an append"));
        drop(log);
        let _ = std::fs::remove_dir_all(&directory);
    }
}

mod table {
    use super::*;

    fn table(count: u64, block_bytes: usize) -> TableKernel {
        let keys: Vec<Vec<u8>> = (0..count).map(|number| key(number).to_vec()).collect();
        TableKernel::new(&keys, &VALUE, block_bytes).expect("ascending keys")
    }

    /// A seek in a table of one block: the search of the block, mostly.
    #[divan::bench]
    fn block_search(bencher: Bencher) {
        let (mut table, mut keys) = (table(60, 1 << 20), Keys::new(60));
        bencher.bench_local(|| black_box(table.seek(&keys.next()).expect("a whole table")));
    }

    /// A seek in a table of many blocks, all of them cached.
    #[divan::bench]
    fn seek(bencher: Bencher) {
        let (mut table, mut keys) = (table(KEYS, 8 << 10), Keys::new(KEYS));
        bencher.bench_local(|| black_box(table.seek(&keys.next()).expect("a whole table")));
    }

    #[divan::bench]
    fn step(bencher: Bencher) {
        let mut table = table(KEYS, 8 << 10);
        bencher.bench_local(|| black_box(table.step().expect("a whole table")));
    }

    #[divan::bench]
    fn filter_probe(bencher: Bencher) {
        let (table, mut keys) = (table(KEYS, 8 << 10), Keys::new(2 * KEYS));
        bencher.bench_local(|| black_box(table.may_contain(&keys.next())));
    }
}

mod merge {
    use super::*;

    /// One step of the merge of so many runs whose keys alternate.
    #[divan::bench(args = [2, 4, 8, 16])]
    fn step(bencher: Bencher, runs: u64) {
        let run = |first: u64| {
            let mut memtable = MemtableKernel::new(8 << 20, 20_000);
            (0..20_000).for_each(|number| memtable.put(&key(number * runs + first), &VALUE));
            memtable
        };
        let runs: Vec<MemtableKernel> = (0..runs).map(run).collect();
        let mut merge = MergeKernel::new(&runs);
        bencher.bench_local(|| black_box(merge.step().expect("memory does not fail")));
    }
}

mod cache {
    use super::*;

    #[divan::bench]
    fn hit(bencher: Bencher) {
        let cache = CacheKernel::new(4096, 256);
        let mut block = 0;
        bencher.bench_local(|| {
            block = (block + 1567) % 4096;
            black_box(cache.hit(block))
        });
    }
}
