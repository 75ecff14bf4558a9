//! What the tests share.

use esker::{Db, Keyspace, Options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A directory of this test's own, removed at its end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("esker-operations-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Bytes of the files whose names end like this.
    pub fn bytes_ending(&self, suffix: &str) -> u64 {
        let entries = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap());
        let ours = entries.filter(|entry| entry.file_name().to_str().unwrap().ends_with(suffix));
        // One may be removed meanwhile.
        ours.map(|entry| entry.metadata().map_or(0, |metadata| metadata.len())).sum()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Options that make a little data a lot of tables.
pub fn tiny() -> Options {
    Options::default()
        .background_threads(0)
        .write_buffer_bytes(8 << 10)
        .target_file_bytes(4 << 10)
        .block_bytes(512)
        .wal_segment_bytes(16 << 10)
}

pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

pub fn contents(keyspace: &Keyspace) -> Model {
    keyspace.iter().map(|pair| pair.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Compares a scan and every get.
pub fn check(keyspace: &Keyspace, model: &Model, when: &str) {
    assert!(contents(keyspace) == *model, "the scan is wrong {when}");
    for (key, value) in model {
        assert_eq!(keyspace.get(key).unwrap().as_deref(), Some(value.as_slice()), "{key:?} {when}");
    }
}

/// Every table verifies and no run overlaps itself.
pub fn verify(db: &Db) {
    db.verify().unwrap();
}
