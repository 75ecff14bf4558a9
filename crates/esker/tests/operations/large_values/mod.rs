//! Values that lie in blob files.

mod answers;
mod compressed;
mod crash;
mod damage;
mod dead;
mod garbage;
mod gibibyte;
mod rot;

use esker::env::Env;
use esker::{Db, Keyspace, Options, WriteOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of this test's own, removed at its end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("esker-large-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Values from this many bytes on are large in these tests.
pub const THRESHOLD: usize = 100;

/// A small database without threads in a simulated environment.
pub fn simulated(env: impl Env + 'static) -> Options {
    Options::default()
        .env(Arc::new(env))
        .background_threads(0)
        .min_blob_size(THRESHOLD)
        .wal_segment_bytes(1 << 16)
        .write_buffer_bytes(1 << 20)
        .target_file_bytes(1 << 12)
}

pub fn keyspace(db: &Db) -> Keyspace {
    db.keyspace("k", Default::default()).unwrap()
}

pub fn synced() -> WriteOptions {
    WriteOptions::new().sync(true)
}

/// A value that tells its seed and its length.
pub fn value(seed: u64, bytes: usize) -> Vec<u8> {
    let word = |i: usize| (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (i as u64)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (0..bytes).map(|i| (word(i / 8) >> (i % 8 * 8)) as u8).collect()
}

/// The same, but compressible to a quarter or so.
pub fn repetitive(seed: u64, bytes: usize) -> Vec<u8> {
    let mut all: Vec<u8> = value(seed, bytes).chunks(16).flat_map(|chunk| chunk.repeat(5)).collect();
    all.truncate(bytes);
    all
}

/// Names of the blob files in a simulated directory.
pub fn blob_files(env: &esker::env::mem::MemEnv, directory: &str) -> Vec<PathBuf> {
    let mut files = env.files();
    files.retain(|path| path.starts_with(directory) && path.extension().is_some_and(|end| end == "blob"));
    files
}
