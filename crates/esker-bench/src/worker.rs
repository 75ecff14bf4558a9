//! One client thread of a benchmark: its part of the work, its random numbers, its buffers.

use crate::expiries::Expiries;
use crate::filled::Filled;
use crate::flags::config::{Config, MergeOperand};
use crate::inserts::Inserts;
use crate::keys::KeyBuffer;
use crate::meter::Meter;
use crate::random::KeyRandom;
use crate::values::ValueCursor;
use crate::zipfian::Zipfian;
use esker_engines::WriteMode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What every thread of a benchmark is to do; made from the flags by the benchmark's row in the
/// table.
#[derive(Debug)]
pub struct Job {
    /// Operations of each thread.
    pub ops: u64,
    /// `--num`, the second number of found messages.
    pub num: u64,
    /// Random keys are below this.
    pub keys: u64,
    /// Bytes of a value.
    pub value_size: usize,
    /// Entries of a batch; 1: no batches.
    pub batch: u64,
    /// How writes are done.
    pub mode: WriteMode,
    /// The operand of merges.
    pub merge_operand: MergeOperand,
    /// Merges per hundred operations where they are mixed with gets.
    pub merge_percent: u64,
    /// Keys in the order in which they are written, where each is written once in random order.
    pub permutation: Vec<u64>,
    /// The keys that a random fill wrote, where the benchmark is about those or the others.
    pub filled: Option<Filled>,
    /// Which keys are popular, where some are.
    pub zipfian: Option<Zipfian>,
    /// What is inserted behind the loaded keys, where anything is.
    pub inserts: Option<Inserts>,
    /// Whether every key below `num` was there when the benchmark began, as far as that follows
    /// from what wrote before.
    pub complete: bool,
    /// How long entries live that expire.
    pub ttl: Duration,
    /// When they do; made when the benchmark starts.
    pub expiries: Expiries,
    /// Rate of the thread that writes beside readers; `None`: as fast as it can.
    pub writes_per_second: Option<f64>,
    /// Reading threads that still work, for the thread that writes beside them.
    pub readers_left: AtomicU32,
}

impl Job {
    /// `ops` operations per thread on `--num` keys with values of `--value_size`.
    pub fn new(config: &Config, ops: u64) -> Job {
        Job {
            ops,
            num: config.num,
            keys: config.num,
            value_size: config.value_size,
            batch: 1,
            mode: config.options.write_mode(),
            merge_operand: config.merge_operand,
            merge_percent: config.merge_read_percent,
            permutation: Vec::new(),
            filled: None,
            zipfian: None,
            inserts: None,
            complete: false,
            ttl: config.ttl,
            expiries: Expiries::default(),
            writes_per_second: config.writes_per_second,
            readers_left: AtomicU32::new(0),
        }
    }

    /// With some keys more popular than others.
    pub fn zipfian(self) -> Job {
        Job { zipfian: Some(Zipfian::new(self.keys)), ..self }
    }

    /// With inserts behind the loaded keys, the first with number `base`.
    pub fn inserting(self, base: u64, threads: u32) -> Job {
        Job { inserts: Some(Inserts::new(self.num, base, threads)), ..self }
    }

    /// With every write waiting for the device. The log stays on: a synced write means nothing
    /// without it.
    pub fn synced(self) -> Job {
        Job { mode: WriteMode { sync: true, disable_wal: false }, ..self }
    }
}

/// A thread at work.
pub struct Worker<'a> {
    /// Its number within the benchmark.
    pub index: u32,
    /// What to do.
    pub job: &'a Job,
    /// Its random numbers.
    pub random: KeyRandom,
    /// Its key.
    pub key: KeyBuffer,
    /// Its values.
    pub values: ValueCursor<'a>,
    /// Where gets put what they find.
    pub value: Vec<u8>,
    /// Its counts and times.
    pub meter: Meter<'a>,
    /// Keys found, where the benchmark looks keys up.
    pub found: Option<u64>,
    /// What it has to say.
    pub message: String,
}

impl Worker<'_> {
    /// Whether operation number `done` (from 0) is still to be done. If operations start at fixed
    /// times, returns once this one is due.
    #[inline]
    pub fn goes_on(&mut self, done: u64) -> bool {
        done < self.job.ops && self.meter.starts()
    }

    /// Draws a random key below the job's number of keys and puts it into the key buffer.
    #[inline]
    pub fn draw_key(&mut self) {
        let number = self.random.uniform(self.job.keys);
        self.key.set(number);
    }

    /// Draws a key of the job's distribution of popularity, if it has one, and puts it into the key
    /// buffer.
    #[inline]
    pub fn draw_popular_key(&mut self) {
        match self.job.zipfian {
            Some(zipfian) => {
                let uniform = self.draw_fraction();
                self.key.set(zipfian.key(uniform));
            }
            None => self.draw_key(),
        }
    }

    /// Draws a rank of the job's distribution of popularity; any rank alike if it has none.
    #[inline]
    pub fn draw_rank(&mut self) -> u64 {
        match self.job.zipfian {
            Some(zipfian) => zipfian.rank(self.draw_fraction()),
            None => self.random.uniform(self.job.keys),
        }
    }

    #[inline]
    fn draw_fraction(&mut self) -> f64 {
        const RESOLUTION: u64 = 1 << 30;
        self.random.uniform(RESOLUTION) as f64 / RESOLUTION as f64
    }

    /// Says and records how many keys were found, as db_bench does: out of `--num`, whatever the
    /// number of reads.
    pub fn report_found(&mut self, found: u64) {
        self.found = Some(found);
        self.message = format!("({found} of {} found)", self.job.num);
    }

    /// Whether any reader still works.
    #[inline]
    pub fn readers_work(&self) -> bool {
        self.job.readers_left.load(Ordering::Relaxed) > 0
    }
}
