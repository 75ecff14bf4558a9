//! A simulated machine with a database of random options.

use crate::directory::{Files, in_memory};
use crate::order::{SHORTEST_FIRST, shortest_first};
use crate::random::Random;
use esker::env::mem::MemEnv;
use esker::{ChangeRetention, Comparator, Compression, Db, FilterPolicy, ManualClock, Options};
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub const DIRECTORY: &str = "/db";

/// The comparator of the program.
pub struct ShortestFirst;

impl Comparator for ShortestFirst {
    fn name(&self) -> &str {
        SHORTEST_FIRST
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        shortest_first(a, b)
    }
}

/// A filter of the program, whose bytes are the last bytes of the keys.
struct LastBytes;

impl FilterPolicy for LastBytes {
    fn name(&self) -> &str {
        "last-bytes"
    }

    fn create_filter(&self, keys: &[&[u8]]) -> Option<Vec<u8>> {
        Some(keys.iter().map(|key| key.last().copied().unwrap_or(0)).collect())
    }

    fn key_may_match(&self, key: &[u8], filter: &[u8]) -> bool {
        filter.contains(&key.last().copied().unwrap_or(0))
    }
}

/// The simulated file system, the clock, and the options that the seed has chosen.
pub struct Machine {
    pub env: MemEnv,
    pub clock: Arc<ManualClock>,
    seed: u64,
}

impl Machine {
    pub fn new(seed: u64) -> Machine {
        Machine { env: MemEnv::new(), clock: Arc::new(ManualClock::new(1_700_000_000_000)), seed }
    }

    /// The same machine with another disk.
    pub fn with(&self, env: MemEnv) -> Machine {
        Machine { env, clock: self.clock.clone(), seed: self.seed }
    }

    pub fn open(&self) -> esker::Result<Db> {
        Db::open(DIRECTORY, self.options())
    }

    pub fn files(&self) -> Files {
        in_memory(&self.env, Path::new(DIRECTORY))
    }

    pub fn options(&self) -> Options {
        let options = Options::default().env(Arc::new(self.env.clone())).clock(self.clock.clone());
        chosen(options.background_threads(0), self.seed).wal_segment_bytes(Random::new(self.seed).pick(&[
            16 << 10,
            64 << 10,
            1 << 20,
        ]))
    }
}

/// Sets what decides which bytes files have.
pub fn chosen(options: Options, seed: u64) -> Options {
    let mut random = Random::new(seed + 1000);
    let mut compressions = vec![Compression::None, Compression::Lz4, Compression::Lz4];
    if Compression::Zstd.is_available() {
        compressions.extend([Compression::Zstd, Compression::Zstd]);
    }
    let options = options
        .comparator(Arc::new(ShortestFirst))
        .write_buffer_bytes(64 << 10)
        .block_bytes(random.pick(&[256, 1024, 8192]))
        .target_file_bytes(random.pick(&[4 << 10, 64 << 10]))
        .min_blob_size(random.pick(&[512, 4096, 32 << 10]))
        .compression(random.pick(&compressions))
        .upper_compression(random.pick(&compressions))
        .filter_bits_per_key(random.pick(&[0, 4, 10, 16]));
    let options = if random.one_in(6) { options.filter_policy(Arc::new(LastBytes)) } else { options };
    match random.below(4) {
        0 => options.keep_changes(ChangeRetention::Bytes(100_000)),
        1 => options.keep_changes(ChangeRetention::Time(Duration::from_secs(1000))),
        _ => options,
    }
}
