//! Compression with zstd, in builds with the feature and in those without.

use crate::common::DIRECTORY;
use esker::env::mem::MemEnv;
use esker::{Compression, Db, Options};
use std::sync::Arc;

fn options(env: &MemEnv, compression: Compression) -> Options {
    Options::default().env(Arc::new(env.clone())).compression(compression).min_blob_size(4000)
}

#[cfg(not(feature = "zstd"))]
#[test]
fn a_build_without_it_says_so_and_creates_nothing() {
    let env = MemEnv::new();
    for options in
        [options(&env, Compression::Zstd), options(&env, Compression::Lz4).upper_compression(Compression::Zstd)]
    {
        let error = Db::open(DIRECTORY, options).unwrap_err();
        assert!(error.to_string().contains("with the feature `zstd`"), "{error}");
    }
    assert!(Db::open_read_only(DIRECTORY, options(&env, Compression::Lz4)).is_err());
}

#[cfg(feature = "zstd")]
mod with_zstd {
    use super::*;
    use esker::Error;
    use esker::env::Env;
    use std::path::{Path, PathBuf};

    /// Text that repeats itself a little, as records do; every hundredth is a large value.
    fn value(number: u32) -> Vec<u8> {
        let line =
            format!("{{\"name\":\"user {number}\",\"city\":\"{}\",\"score\":{}}}", number % 97, number * number % 1009);
        if number.is_multiple_of(100) { line.repeat(200).into_bytes() } else { line.into_bytes() }
    }

    fn fill(env: &MemEnv, compression: Compression) -> Db {
        let db = Db::open(DIRECTORY, options(env, compression)).unwrap();
        let keyspace = db.keyspace("k", Default::default()).unwrap();
        for number in 0..5000u32 {
            keyspace.put(number.to_be_bytes(), value(number)).unwrap();
        }
        db.compact().unwrap();
        db
    }

    fn check(db: &Db) {
        let keyspace = db.existing_keyspace("k").unwrap();
        let mut number = 0u32;
        for pair in keyspace.iter() {
            let (key, found) = pair.unwrap();
            assert_eq!((&*key, &*found), (&number.to_be_bytes()[..], &value(number)[..]));
            number += 1;
        }
        assert_eq!(number, 5000);
        for number in (0..5000).step_by(7) {
            assert_eq!(keyspace.get(u32::to_be_bytes(number)).unwrap().as_deref(), Some(&value(number)[..]));
        }
        db.verify().unwrap();
    }

    fn files(env: &MemEnv, suffix: &str) -> Vec<PathBuf> {
        let names = env.list(Path::new(DIRECTORY)).unwrap();
        names.iter().filter(|name| name.ends_with(suffix)).map(|name| Path::new(DIRECTORY).join(name)).collect()
    }

    fn bytes(env: &MemEnv, suffix: &str) -> usize {
        files(env, suffix).iter().map(|path| env.file_bytes(path).unwrap().len()).sum()
    }

    #[test]
    fn tables_and_large_values_are_smaller_than_with_lz4_and_read_back_after_a_reopen() {
        let (lz4, zstd) = (MemEnv::new(), MemEnv::new());
        fill(&lz4, Compression::Lz4).close().unwrap();
        let db = fill(&zstd, Compression::Zstd);
        check(&db);
        db.close().unwrap();
        for suffix in [".table", ".blob"] {
            let (lz4, zstd) = (bytes(&lz4, suffix), bytes(&zstd, suffix));
            println!("{suffix}: {lz4} bytes with lz4, {zstd} with zstd");
            assert!(zstd * 10 < lz4 * 9, "{suffix}: {lz4} bytes with lz4, {zstd} with zstd");
        }
        // Any build with the feature reads it, whatever it writes with; compaction writes that.
        for cache_bytes in [0, 8 << 20] {
            let db = Db::open(DIRECTORY, options(&zstd, Compression::Zstd).block_cache_bytes(cache_bytes)).unwrap();
            check(&db);
            db.close().unwrap();
        }
        let db = Db::open(DIRECTORY, options(&zstd, Compression::None)).unwrap();
        check(&db);
        db.compact().unwrap();
        check(&db);
    }

    /// The compression kind of each block, and the format version of a blob file, of all files.
    fn kinds(env: &MemEnv) -> Vec<u8> {
        let mut kinds: Vec<u8> = Vec::new();
        for path in files(env, ".table") {
            let content = env.file_bytes(&path).unwrap();
            // A frame begins behind the four bytes of its block's size.
            let zstd = content.windows(4).any(|bytes| bytes == [0x28, 0xb5, 0x2f, 0xfd]);
            kinds.push(u8::from(zstd));
        }
        kinds
    }

    #[test]
    fn only_the_last_run_is_compressed_with_it_unless_told_otherwise() {
        let env = MemEnv::new();
        let db = fill(&env, Compression::Zstd);
        assert_eq!(kinds(&env), [1]);
        let keyspace = db.existing_keyspace("k").unwrap();
        // It overlaps the last run, so that it becomes one above it.
        for number in (0..5000u32).step_by(2) {
            keyspace.put(number.to_be_bytes(), "another value, and one that can be compressed ".repeat(3)).unwrap();
        }
        db.flush().unwrap();
        let mut found = kinds(&env);
        found.sort_unstable();
        assert_eq!(found, [0, 1], "the upper run has LZ4");
        db.compact().unwrap();
        assert_eq!(kinds(&env), [1]);
    }

    #[test]
    fn damage_in_a_table_or_a_large_value_is_found_and_harms_nothing_else() {
        let env = MemEnv::new();
        fill(&env, Compression::Zstd).close().unwrap();
        for path in [files(&env, ".table"), files(&env, ".blob")].concat() {
            let good = env.file_bytes(&path).unwrap();
            for at in (0..good.len()).step_by(good.len() / 40) {
                let mut bad = good.clone();
                bad[at] ^= 0x10;
                env.set_file_bytes(&path, bad);
                let Ok(db) = Db::open_read_only(DIRECTORY, options(&env, Compression::Zstd)) else { continue };
                let keyspace = db.existing_keyspace("k").unwrap();
                for number in (0..5000u32).step_by(50) {
                    match keyspace.get(number.to_be_bytes()) {
                        Ok(found) => assert_eq!(found.as_deref(), Some(&value(number)[..]), "byte {at} of {path:?}"),
                        Err(Error::Corruption { .. }) => {}
                        Err(error) => panic!("byte {at} of {path:?}: {error}"),
                    }
                }
            }
            env.set_file_bytes(&path, good);
        }
    }

    /// Without index and properties a repair finds every block by its frame.
    #[test]
    fn a_repair_finds_the_blocks_of_a_table_without_its_index() {
        let env = MemEnv::new();
        fill(&env, Compression::Zstd).close().unwrap();
        let [path] = &files(&env, ".table")[..] else { panic!("one table") };
        let mut bad = env.file_bytes(path).unwrap();
        let footer = bad.len() - 64;
        bad[footer..].fill(0);
        env.set_file_bytes(path, bad);
        let report = Db::repair(DIRECTORY, options(&env, Compression::Zstd)).unwrap();
        println!("{report:?}");
        let db = Db::open(DIRECTORY, options(&env, Compression::Zstd)).unwrap();
        check(&db);
    }
}
