//! What every engine must find when it is filled and read with LevelDB's key sequence.
//!
//! The keys of a run are fixed, so the numbers of keys found are too, and any store that loses,
//! invents or hides one shows another number. The generator: `s = s * 16807 mod (2^31 - 1)`; a key
//! is the next `s` modulo the number of keys. Each benchmark's one thread starts at `s = 1000 + n`,
//! where it is the n-th benchmark thread of the run. So `fillrandom` starts at 1001 and
//! `readrandom` after it at 1002, and finds about 1 - 1/e of its keys. The numbers were computed by
//! playing the sequence on a set of integers.
//!
//! A C library that is not installed is a skipped line, or a failure with `ESKER_REQUIRE_PEERS=1`.

#![allow(clippy::unwrap_used)]

use esker_bench::bench::bench_with;
use esker_bench::interrupt::Interrupt;
use esker_bench::progress::Display;
use esker_engines::registry;

/// Runs the benchmarks and returns what each row says was found; `None` if the engine's library is
/// missing.
fn found(engine: &str, flags: &str) -> Option<Vec<u64>> {
    if let Err(missing) = (registry::find(engine).unwrap().probe)(None) {
        assert_ne!(std::env::var("ESKER_REQUIRE_PEERS").as_deref(), Ok("1"), "{missing}");
        eprintln!("skipped: {missing}");
        return None;
    }
    let db = tempfile::tempdir().unwrap();
    let mut arguments: Vec<String> = flags.split_whitespace().map(String::from).collect();
    arguments.extend([format!("--engine={engine}"), format!("--db={}", db.path().display())]);
    let mut out = Vec::new();
    let code = bench_with(&arguments, &registry::KINDS, &mut out, Display::Hidden, Interrupt::new);
    let out = String::from_utf8(out).unwrap();
    assert_eq!(code, 0, "{engine} {flags}: {out}");
    let number = |line: &str| line.split_once(" of ")?.0.rsplit_once('(')?.1.parse().ok();
    Some(out.lines().filter_map(number).collect())
}

fn random_reads(engine: &str) {
    for (num, expected) in [(10_000, 6250), (100_000, 63_059)] {
        let flags = format!("--keygen=leveldb --benchmarks=fillrandom,readrandom --num={num}");
        let Some(found) = found(engine, &flags) else { return };
        assert_eq!(found, [expected], "{engine}, {num} keys");
    }
}

/// Small buffers and blocks, so that nearly everything is read from tables of several runs.
fn random_reads_of_a_deep_tree(engine: &str) {
    let flags = "--keygen=leveldb --benchmarks=fillrandom,readrandom,compact,readrandom --num=100000 \
                 --write_buffer_size=262144 --max_file_size=262144 --block_size=1024 --cache_size=1048576";
    let Some(found) = found(engine, flags) else { return };
    assert_eq!(found[0], 63_059, "{engine}");
    // The second reader is the fourth thread: `compact` has one too.
    assert_eq!(found[1], 63_359, "{engine}");
}

/// The default list fills, overwrites, reads twice, compacts and reads again; seeds 1003 and 1004
/// write, 1005, 1006 and 1010 read.
fn default_list(engine: &str) {
    for (num, expected) in [(10_000, [8609, 8665, 8634]), (100_000, [86_501, 86_354, 86_588])] {
        let Some(found) = found(engine, &format!("--num={num}")) else { return };
        assert_eq!(found, expected, "{engine}, {num} keys");
    }
}

macro_rules! engines {
    ($($name:ident),*) => {$(
        mod $name {
            #[test]
            fn random_reads() {
                super::random_reads(stringify!($name));
            }
        }
    )*};
}

engines!(esker, leveldb, rocksdb, sqlite, kyoto, lmdb, redb, fjall);

#[test]
fn esker_with_many_tables() {
    random_reads_of_a_deep_tree("esker");
}

#[test]
fn leveldb_with_many_tables() {
    random_reads_of_a_deep_tree("leveldb");
}

#[test]
fn default_list_of_esker() {
    default_list("esker");
}

#[test]
fn default_list_of_leveldb() {
    default_list("leveldb");
}
