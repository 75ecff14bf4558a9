//! What the tests of this binary have in common.

use esker::env::mem::MemEnv;
use esker::{Db, Keyspace, ManualClock, Options};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The directory of every simulated database.
pub const DIRECTORY: &str = "/db";

/// The time at which every test begins.
pub const START_MS: u64 = 1_700_000_000_000;

/// Where the versions of a key are when they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the active memtable.
    Memtable,
    /// In a run above the last one.
    UpperRun,
    /// In the last run.
    LastRun,
}

/// All of them.
pub const PLACES: [Place; 3] = [Place::Memtable, Place::UpperRun, Place::LastRun];

/// A simulated machine with a clock that stands still.
pub struct Machine {
    pub env: Arc<MemEnv>,
    pub clock: Arc<ManualClock>,
}

impl Machine {
    pub fn new() -> Machine {
        Machine { env: Arc::new(MemEnv::new()), clock: Arc::new(ManualClock::new(START_MS)) }
    }

    /// Small everything, and all work inside the calls.
    pub fn options(&self) -> Options {
        Options::default()
            .env(self.env.clone())
            .clock(self.clock.clone())
            .background_threads(0)
            .write_buffer_bytes(64 << 10)
            .wal_segment_bytes(64 << 10)
            .block_bytes(256)
            .target_file_bytes(4 << 10)
    }

    pub fn open(&self) -> Db {
        Db::open(DIRECTORY, self.options()).expect("the simulated machine is healthy")
    }

    /// Lets time pass.
    pub fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }
}

/// Seconds after the beginning, as a time.
pub fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(START_MS) + Duration::from_secs(seconds)
}

/// Moves what was written so far to that place. For an upper run, there must be something in the
/// last one below it: `ballast` is put there.
pub fn settle(db: &Db, place: Place) {
    match place {
        Place::Memtable => {}
        Place::UpperRun => db.flush().expect("flush"),
        Place::LastRun => db.compact().expect("compact"),
    }
}

/// The value of a key, as text.
pub fn text(keyspace: &Keyspace, key: &str) -> Option<String> {
    keyspace.get(key).expect("get").map(|value| String::from_utf8_lossy(&value).into_owned())
}

/// All pairs, ascending, as text; read in both directions.
pub fn pairs(keyspace: &Keyspace) -> Vec<(String, String)> {
    let own = |pair: esker::Result<(esker::Slice, esker::Slice)>| {
        let (key, value) = pair.expect("scan");
        (String::from_utf8_lossy(&key).into_owned(), String::from_utf8_lossy(&value).into_owned())
    };
    let forward: Vec<_> = keyspace.iter().map(own).collect();
    let mut backward: Vec<_> = keyspace.iter().rev().map(own).collect();
    backward.reverse();
    assert_eq!(forward, backward, "the two directions disagree");
    forward
}

/// A small database without threads in a simulated environment.
pub fn simulated(env: &MemEnv) -> Options {
    Options::default()
        .env(Arc::new(env.clone()))
        .background_threads(0)
        .wal_segment_bytes(1 << 14)
        .write_buffer_bytes(1 << 18)
        .block_bytes(256)
        .target_file_bytes(4 << 10)
}

/// A database like that.
pub fn open(env: &MemEnv) -> Db {
    Db::open(DIRECTORY, simulated(env)).unwrap()
}

/// A keyspace with what is usual.
pub fn keyspace(db: &Db, name: &str) -> Keyspace {
    db.keyspace(name, Default::default()).unwrap()
}

/// Everything in a keyspace.
pub fn all(keyspace: &Keyspace) -> BTreeMap<Vec<u8>, Vec<u8>> {
    keyspace.iter().map(|pair| pair.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

/// The files of the database with their bytes, without those below it.
pub fn files(env: &MemEnv) -> BTreeMap<String, Vec<u8>> {
    let all = env.files().into_iter();
    let own = all.filter(|path| path.parent() == Some(Path::new(DIRECTORY)));
    own.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), env.file_bytes(&path).unwrap())).collect()
}

/// A real directory of its own, removed at the end.
pub struct Scratch(std::path::PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("esker-operations-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits for it. The limit only turns a wait for ever into a failure: no machine is that slow.
pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(300);
    while !condition() {
        assert!(Instant::now() < end, "waited for ever: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
