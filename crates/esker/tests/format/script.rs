//! Random work on a database, through the public interface.

use crate::machine::ShortestFirst;
use crate::random::Random;
use esker::merge::{BitOr, BytesXor, Int64Add, Max, Min, Put, StringAppend, UInt64Add};
use esker::{Batch, CompactionStyle, Db, Keyspace, KeyspaceOptions, ManualClock, MergeOperator};
use esker::{Result, ReverseBytewise, Ttl, WriteOptions};
use std::sync::Arc;
use std::time::Duration;

/// The work that a seed decides, on whatever database is given.
pub struct Script {
    pub random: Random,
    clock: Arc<ManualClock>,
}

impl Script {
    pub fn new(seed: u64, clock: Arc<ManualClock>) -> Script {
        Script { random: Random::new(seed), clock }
    }

    /// So many steps; ends at the first error.
    pub fn run(&mut self, db: &Db, steps: u64) -> Result<()> {
        for _ in 0..3 {
            self.create(db)?;
        }
        let mut snapshots = Vec::new();
        for _ in 0..steps {
            self.step(db)?;
            match self.random.below(50) {
                0 if snapshots.len() < 4 => snapshots.push(db.snapshot()),
                1 => drop(snapshots.pop()),
                _ => {}
            }
        }
        Ok(())
    }

    fn step(&mut self, db: &Db) -> Result<()> {
        let names = db.keyspaces();
        if names.is_empty() {
            return self.create(db);
        }
        let keyspace = db.existing_keyspace(&names[self.random.below(names.len() as u64) as usize])?;
        match self.random.below(400) {
            0..5 => self.create(db),
            5..8 if names.len() > 2 => db.drop_keyspace(&keyspace.name()),
            8..12 => self.rename(db, &keyspace),
            12..18 => self.settings(&keyspace),
            18..30 => self.ingest(&keyspace),
            30..38 => db.flush(),
            38..40 => db.compact(),
            40..44 => keyspace.compact(),
            44..46 => db.wait_idle(),
            46..50 => db.sync(),
            50..70 => self.batch(db),
            70..90 => {
                self.clock.advance(Duration::from_millis(self.random.below(3000)));
                Ok(())
            }
            90..110 => self.life(&keyspace),
            110..125 => self.delete_range(&keyspace),
            125..160 => keyspace.delete(self.key()),
            _ => self.write(&keyspace),
        }
    }

    fn create(&mut self, db: &Db) -> Result<()> {
        let name = format!("keyspace {}", self.random.below(12));
        if db.keyspaces().contains(&name) {
            return Ok(());
        }
        let options = KeyspaceOptions::default();
        let options = match self.random.below(3) {
            0 => options.ttl(Ttl::Enabled { default: None }),
            1 if self.random.one_in(2) => options.ttl(Ttl::Enabled { default: Some(Duration::from_secs(20)) }),
            _ => options,
        };
        let options = match self.random.below(6) {
            0 => options.comparator(ReverseBytewise),
            1 => options.comparator(ShortestFirst),
            _ => options,
        };
        let options = match self.random.below(6) {
            0 => options.compaction_style(CompactionStyle::Leveled),
            1 => options.compaction_style(CompactionStyle::Tiered),
            2 => options.compaction_style(CompactionStyle::Fifo { max_bytes: 20_000 }),
            _ => options,
        };
        let options = match self.operator() {
            Some(operator) => options.shared_merge_operator(operator),
            None => options,
        };
        db.keyspace(&name, options).map(drop)
    }

    fn operator(&mut self) -> Option<Arc<dyn MergeOperator>> {
        Some(match self.random.below(12) {
            0 => Arc::new(UInt64Add),
            1 => Arc::new(Int64Add),
            2 => Arc::new(Max),
            3 => Arc::new(Min),
            4 => Arc::new(Put),
            5 => Arc::new(BytesXor),
            6 => Arc::new(BitOr),
            7 | 8 => Arc::new(StringAppend::new(", ")),
            _ => return None,
        })
    }

    fn rename(&mut self, db: &Db, keyspace: &Keyspace) -> Result<()> {
        let name = format!("keyspace {}", self.random.below(12));
        if db.keyspaces().contains(&name) { Ok(()) } else { keyspace.rename(&name) }
    }

    /// Changes a setting. That a keyspace refuses it is no error.
    fn settings(&mut self, keyspace: &Keyspace) -> Result<()> {
        let changed = match self.operator() {
            // Sums are of eight bytes, which values of before need not have.
            Some(operator) if !operator.name().ends_with("add") => keyspace.set_shared_merge_operator(operator),
            Some(_) => keyspace.set_ttl(Ttl::Enabled { default: Some(Duration::from_secs(50)) }),
            None => keyspace.set_ttl(Ttl::Enabled { default: None }),
        };
        match changed {
            Err(esker::Error::InvalidArgument { .. }) => Ok(()),
            other => other,
        }
    }

    /// One of few keys, some with much in common.
    fn key(&mut self) -> Vec<u8> {
        let number = self.random.below(150);
        match number % 4 {
            0 => format!("user:{number:05}").into_bytes(),
            1 => format!("a/rather/long/path/that/goes/on/{number}").into_bytes(),
            2 if number == 22 && self.random.one_in(8) => vec![7; 70_000],
            2 => number.to_be_bytes()[7 - (number % 3) as usize..].to_vec(),
            _ => format!("{number}").into_bytes().repeat(1 + (number % 7) as usize),
        }
    }

    fn value(&mut self, keyspace: &Keyspace) -> Vec<u8> {
        if keyspace.merge_operator().is_some_and(|operator| operator.ends_with("add")) {
            let is_at_the_limit = self.random.one_in(8);
            let value = if is_at_the_limit { i64::MAX as u64 - 5 } else { self.random.below(1000) };
            return value.to_le_bytes().to_vec();
        }
        let length = match self.random.below(40) {
            0 => 33_000 + self.random.below(5000),
            1..4 => 500 + self.random.below(5000),
            4..10 => 8,
            10 => 0,
            _ => self.random.below(100),
        };
        self.random.bytes(length as usize)
    }

    fn options(&mut self, keyspace: &Keyspace, can_expire: bool) -> WriteOptions {
        let options = match self.random.below(20) {
            0 => WriteOptions::new().sync(true),
            1 => WriteOptions::new().disable_wal(true),
            _ => WriteOptions::new(),
        };
        let expires = can_expire && keyspace.ttl() != Ttl::Disabled && self.random.one_in(2);
        if expires { options.ttl(Duration::from_millis(1 + self.random.below(30_000))) } else { options }
    }

    fn write(&mut self, keyspace: &Keyspace) -> Result<()> {
        let (key, value) = (self.key(), self.value(keyspace));
        let options = self.options(keyspace, true);
        if keyspace.merge_operator().is_some() && !self.random.one_in(4) {
            keyspace.merge_with(key, value, &options)
        } else {
            keyspace.put_with(key, value, &options)
        }
    }

    fn batch(&mut self, db: &Db) -> Result<()> {
        let names = db.keyspaces();
        let mut batch = db.batch();
        for _ in 0..1 + self.random.below(20) {
            let keyspace = db.existing_keyspace(&names[self.random.below(names.len() as u64) as usize])?;
            self.add(&mut batch, &keyspace)?;
        }
        batch.commit_with(&WriteOptions::new().sync(self.random.one_in(3)))
    }

    fn add(&mut self, batch: &mut Batch, keyspace: &Keyspace) -> Result<()> {
        let (key, value) = (self.key(), self.value(keyspace));
        let expires = keyspace.ttl() != Ttl::Disabled;
        let ttl = Duration::from_millis(1 + self.random.below(30_000));
        let merges = keyspace.merge_operator().is_some();
        match self.random.below(8) {
            0 => batch.delete(keyspace, key),
            1 => {
                let (start, end) = self.range();
                batch.delete_range(keyspace, start..end)
            }
            2 if expires => batch.put_with_ttl(keyspace, key, value, ttl),
            3 if expires => batch.touch(keyspace, key, ttl),
            4 if expires && merges => batch.merge_with_ttl(keyspace, key, value, ttl),
            5 | 6 if merges => batch.merge(keyspace, key, value),
            _ => batch.put(keyspace, key, value),
        }
    }

    fn range(&mut self) -> (Vec<u8>, Vec<u8>) {
        let key = self.key();
        let mut end = key.clone();
        end.push(255);
        if self.random.one_in(2) { (key, end) } else { (self.key(), self.key()) }
    }

    fn delete_range(&mut self, keyspace: &Keyspace) -> Result<()> {
        let (start, end) = self.range();
        match self.random.below(10) {
            0 => keyspace.delete_range(start..),
            1 => keyspace.delete_range(..=end),
            _ => keyspace.delete_range(start..end),
        }
    }

    /// Changes when a key expires.
    fn life(&mut self, keyspace: &Keyspace) -> Result<()> {
        if keyspace.ttl() == Ttl::Disabled {
            return Ok(());
        }
        let key = self.key();
        if self.random.one_in(3) {
            return keyspace.persist(key).map(drop);
        }
        keyspace.touch(key, Duration::from_millis(1 + self.random.below(30_000))).map(drop)
    }

    fn ingest(&mut self, keyspace: &Keyspace) -> Result<()> {
        let mut keys: Vec<_> = (0..self.random.below(60)).map(|_| self.key()).collect();
        keys.sort_by(|a, b| keyspace.compare_keys(a, b));
        keys.dedup();
        let pairs: Vec<_> = keys.into_iter().map(|key| (key, self.value(keyspace))).collect();
        keyspace.ingest(pairs).map(drop)
    }
}
