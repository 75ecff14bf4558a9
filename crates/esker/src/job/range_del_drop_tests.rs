use super::*;
use crate::base::key::{Entry, Kind, NEVER};
use crate::base::key_order::KeyOrder;
use crate::env::mem::MemEnv;
use crate::job::blob_values::{BlobValues, Copy};
use crate::job::output::{Output, OutputOptions};
use crate::options::{Compression, ReadMode};
use crate::table::{BlockCache, Table, TableKeyspace, TableOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes tables of one key each; their numbers count from 1.
struct Maker {
    env: MemEnv,
    next: AtomicU64,
}

impl Maker {
    fn new() -> Maker {
        let env = MemEnv::default();
        crate::env::Env::create_dir_all(&env, Path::new("/t")).expect("memory");
        Maker { env, next: AtomicU64::new(1) }
    }

    fn tables(&self, keys: &[(&str, Sequence)], ranges: &[(&str, &str, Sequence)]) -> Vec<Arc<Table>> {
        let next_file = || self.next.fetch_add(1, Ordering::Relaxed);
        let env: Arc<dyn crate::env::Env> = Arc::new(self.env.clone());
        let blobs = crate::blob::BlobStore::new(env, PathBuf::from("/t"), 1 << 20, Compression::None);
        let options = OutputOptions {
            env: &self.env,
            directory: PathBuf::from("/t"),
            table: TableOptions::default(),
            order: KeyOrder::Bytewise,
            filter_policy: None,
            keyspace: TableKeyspace::default(),
            flushed: 0,
            target_file_bytes: 1,
            cache: Arc::new(BlockCache::new(1 << 20)),
            read_mode: ReadMode::Pread,
            next_file: &next_file,
            large: BlobValues { store: &blobs, threshold: usize::MAX, copy: Copy::From(&|_| false), one_by_one: true },
        };
        let splitter = crate::job::output_splitter::OutputSplitter::default();
        let sets: Vec<_> =
            ranges.iter().map(|(from, to, at)| RangeTombstones::one(from.as_bytes(), to.as_bytes(), *at)).collect();
        let mut output = Output::new(&options, RangeTombstones::union(&sets), &splitter);
        for (key, sequence) in keys {
            let (key, kind) = (key.as_bytes(), Kind::Put);
            output.add(Entry { key, sequence: *sequence, kind, expiry_ms: NEVER, value: b"v" }).expect("memory");
        }
        output.finish().expect("memory")
    }
}

/// A version of runs, oldest first.
fn version(runs: Vec<Vec<Arc<Table>>>) -> Version {
    let numbered = (1u64..).zip(runs);
    Version::from_tables(numbered.flat_map(|(id, tables)| tables.into_iter().map(move |table| (id, table))))
}

#[test]
fn a_table_goes_when_newer_runs_cover_it_and_no_snapshot_lies_between() {
    let maker = Maker::new();
    let old = maker.tables(&[("a", 1), ("b", 2), ("c", 3), ("d", 4)], &[]);
    let new = maker.tables(&[("bb", 7)], &[("b", "c", 5), ("c", "d", 6)]);
    let both = version(vec![old.clone(), new.clone()]);
    assert!(both.overlap().is_none());
    assert_eq!(removable(&both, &[]), [2, 3]);
    assert_eq!(removable(&both, &[2]), [3], "a snapshot sees the second table and not the tombstone over it");
    assert_eq!(removable(&both, &[3]), [] as [u64; 0]);
    assert_eq!(removable(&both, &[5]), [2]);
    assert_eq!(removable(&both, &[1]), [2, 3], "a snapshot that sees neither the tables nor the tombstones");
    assert_eq!(removable(&both, &[6, 9]), [2, 3]);
    // Tombstones do not reach into newer runs, nor into their own.
    assert_eq!(removable(&version(vec![new, old]), &[]), [] as [u64; 0]);
}

#[test]
fn tombstones_over_nothing_go() {
    let maker = Maker::new();
    let old = maker.tables(&[("c", 1)], &[]);
    let near = maker.tables(&[], &[("a", "c", 5)]);
    let over = maker.tables(&[], &[("c", "", 6)]);
    let numbers = |tables: &[Arc<Table>]| tables.iter().map(|table| table.summary().file_number).collect::<Vec<_>>();
    assert_eq!(removable(&version(vec![old.clone(), near.clone()]), &[]), numbers(&near));
    assert_eq!(removable(&version(vec![old.clone(), over.clone()]), &[3]), [] as [u64; 0]);
    assert_eq!(removable(&version(vec![old.clone(), over.clone()]), &[]), numbers(&old));
    assert_eq!(removable(&version(vec![over.clone()]), &[6]), numbers(&over));
    assert_eq!(removable(&version(vec![over.clone()]), &[3]), [] as [u64; 0], "the reader at 3 may be a transaction");
}

#[test]
fn two_tombstones_together_cover_a_table() {
    let maker = Maker::new();
    let old = maker.tables(&[], &[("b", "", 2)]);
    let older = maker.tables(&[("z", 1)], &[]);
    let left = maker.tables(&[], &[("a", "m", 5)]);
    let right = maker.tables(&[], &[("m", "", 6)]);
    let partly = version(vec![older.clone(), old.clone(), left.clone()]);
    assert_eq!(removable(&partly, &[]), [older[0].summary().file_number, left[0].summary().file_number][..1]);
    let wholly = version(vec![older, old.clone(), left, right]);
    assert!(removable(&wholly, &[]).contains(&old[0].summary().file_number));
}
