//! What the tests share: directories that go away, and the options of small simulated databases.

use esker::env::Env;
use esker::{Db, Keyspace, Options, WriteOptions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A directory of this test's own, removed at its end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("esker-history-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Every file in it with its bytes.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap());
        let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
        named.map(|(name, path)| (name, std::fs::read(path).unwrap())).collect()
    }

    pub fn names_ending(&self, suffix: &str) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(suffix)).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A small database without threads in a simulated environment.
pub fn simulated(env: impl Env + 'static) -> Options {
    Options::default().env(Arc::new(env)).background_threads(0).wal_segment_bytes(1 << 16).write_buffer_bytes(1 << 20)
}

/// The keyspace of that name, without a merge operator.
pub fn keyspace(db: &Db, name: &str) -> Keyspace {
    db.keyspace(name, Default::default()).unwrap()
}

/// How many keys a scan finds.
pub fn count(k: &Keyspace) -> usize {
    k.iter().fold(0, |count, item| {
        item.unwrap();
        count + 1
    })
}

pub fn synced() -> WriteOptions {
    WriteOptions::new().sync(true)
}

pub fn unlogged() -> WriteOptions {
    WriteOptions::new().disable_wal(true)
}

/// Waits for it. The limit only turns a wait for ever into a failure: no machine is that slow.
pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(300);
    while !condition() {
        assert!(Instant::now() < end, "waited for ever: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
