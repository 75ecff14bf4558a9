//! A cache that is kept in step by the change feed: prices by name in memory, each looked up
//! without the database, and never older than what the feed has brought.
//!
//! Run it with `cargo run --example cache_in_step`, or with a directory as its argument to keep the
//! database: a second run goes on with what the first has left.

use esker::{Change, ChangeOperation, ChangeRetention, Changes, Db, Error, Keyspace, Options};
use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many changes a cache may be behind before it has to be filled anew.
const KEPT: ChangeRetention = ChangeRetention::Bytes(16 << 20);

struct Cache {
    prices: BTreeMap<Vec<u8>, Vec<u8>>,
    changes: Changes,
    /// How often it was filled from the keyspace.
    fills: u64,
}

impl Cache {
    /// Fills the cache from a snapshot. Later changes come through the feed.
    fn fill(db: &Db, keyspace: &Keyspace) -> esker::Result<Cache> {
        let snapshot = db.snapshot();
        let mut prices = BTreeMap::new();
        for pair in snapshot.iter(keyspace) {
            let (key, value) = pair?;
            prices.insert(key.into(), value.into());
        }
        Ok(Cache { prices, changes: db.changes(snapshot.sequence() + 1)?, fills: 1 })
    }

    /// Takes over what was written since.
    fn catch_up(&mut self, db: &Db, keyspace: &Keyspace) -> esker::Result<()> {
        while let Some(batch) = self.changes.next() {
            let is_known = match batch {
                // Each batch as a whole: nobody sees half of one.
                Ok(batch) => batch.changes.iter().all(|change| self.apply(keyspace, change)),
                // It has slept for too long.
                Err(Error::Gone { .. }) => false,
                Err(error) => return Err(error),
            };
            if !is_known {
                let fills = self.fills + 1;
                *self = Cache { fills, ..Cache::fill(db, keyspace)? };
            }
        }
        Ok(())
    }

    /// False if the keyspace has to be read.
    fn apply(&mut self, keyspace: &Keyspace, change: &Change) -> bool {
        if *change.keyspace != *keyspace.name() {
            return true;
        }
        match &change.operation {
            ChangeOperation::Put { key, value, .. } => {
                self.prices.insert(key.to_vec(), value.to_vec());
            }
            ChangeOperation::Delete { key } => {
                self.prices.remove(&key[..]);
            }
            ChangeOperation::DeleteRange { start, end } => {
                let range = (start.as_ref().map(|key| &key[..]), end.as_ref().map(|key| &key[..]));
                self.prices.retain(|key, _| !range.contains(&key[..]));
            }
            _ => return false,
        }
        true
    }
}

/// Fills the cache, changes prices from other threads, and compares.
pub fn run(directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let db = Db::open(directory, Options::default().keep_changes(KEPT))?;
    let prices = db.keyspace("prices", Default::default())?;
    prices.put("apple", "30")?;
    let mut cache = Cache::fill(&db, &prices)?;
    assert_eq!(cache.prices[&b"apple"[..]], b"30");

    prices.put("apple", "35")?;
    prices.delete_prefix("gone/")?;
    cache.catch_up(&db, &prices)?;
    assert_eq!(cache.prices[&b"apple"[..]], b"35");

    // Beside writers it wakes when there is something.
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| -> esker::Result<()> {
        let writer = scope.spawn(|| {
            for number in 0..1000 {
                prices.put(format!("item/{}", number % 100), number.to_string())?;
            }
            is_done.store(true, Ordering::Release);
            prices.put("last", "1")
        });
        while !is_done.load(Ordering::Acquire) {
            cache.changes.wait(Duration::from_secs(1))?;
            cache.catch_up(&db, &prices)?;
        }
        writer.join().expect("the writer does not panic")
    })?;
    cache.catch_up(&db, &prices)?;
    assert_eq!(cache.fills, 1, "the feed was enough");

    // A load is not listed pair by pair: the cache is filled anew.
    prices.ingest([("bulk/1", "10"), ("bulk/2", "20")])?;
    cache.catch_up(&db, &prices)?;
    assert_eq!(cache.fills, 2);
    let stored = prices.iter().map(|pair| pair.map(|(key, value)| (key.into(), value.into())));
    assert_eq!(cache.prices, stored.collect::<esker::Result<BTreeMap<Vec<u8>, Vec<u8>>>>()?);
    println!("{} prices in step", cache.prices.len());
    db.close()?;
    Ok(())
}

#[allow(dead_code)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(directory) = std::env::args_os().nth(1) {
        return run(Path::new(&directory));
    }
    let directory = std::env::temp_dir().join(format!("esker-example-cache-{}", std::process::id()));
    let result = run(&directory);
    std::fs::remove_dir_all(&directory)?;
    result
}
