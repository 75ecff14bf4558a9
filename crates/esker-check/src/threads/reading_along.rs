//! Those that read along while all others are at work: a follower, and a reader of the changes.

use super::altering;
use crate::Checked;
use esker::{Change, ChangeOperation, Db, Error, Follower};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Catches up again and again, and has `check` look at what is there then: that gets what `before`
/// said in front of the catch-up.
pub fn follow<T>(
    follower: &Follower,
    stop: &AtomicBool,
    before: impl Fn() -> T,
    check: impl Fn(T) -> Checked<()>,
) -> Checked<()> {
    while !stop.load(Ordering::Acquire) {
        let before = before();
        match follower.catch_up() {
            // Segments this small last less than a millisecond here.
            Err(Error::Stalled { .. }) => continue,
            caught_up => drop(caught_up.map_err(|error| format!("the follower failed: {error}"))?),
        }
        check(before).map_err(|what| format!("the follower: {what}"))?;
    }
    Ok(())
}

/// Reads the changes: they have every commit of every writer, which puts its number under its name
/// into two keyspaces, once, in order and whole, and every step of the altered keyspace.
pub struct ChangesReader {
    writers: Vec<Vec<u8>>,
    /// The number of the next write.
    from: u64,
    /// The last number of each writer that was told, since changes were last missed.
    told: Vec<Option<u64>>,
    altered: altering::Told,
}

impl ChangesReader {
    /// One that begins with the oldest change, of writers with these names.
    pub fn new(writers: Vec<Vec<u8>>) -> ChangesReader {
        let told = vec![None; writers.len()];
        ChangesReader { writers, from: 0, told, altered: altering::Told::default() }
    }

    /// Reads them as they come. Counts the batches in `batches`.
    pub fn read_along(&mut self, db: &Db, stop: &AtomicBool, batches: &AtomicU64) -> Checked<()> {
        while !stop.load(Ordering::Acquire) {
            if self.read(db, batches)? {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        Ok(())
    }

    /// Reads the rest, once nobody writes any more. It must end with what was `acknowledged` of
    /// each writer, and with the last generation of the altered keyspace that was `finished`:
    /// changes of which nothing comes any more are otherwise in order.
    pub fn check_end(&mut self, db: &Db, acknowledged: &[u64], finished: u64, batches: &AtomicU64) -> Checked<()> {
        while !self.read(db, batches)? {}
        for ((writer, told), last) in self.writers.iter().zip(&self.told).zip(acknowledged) {
            if told.is_some_and(|told| told != *last) {
                let writer = String::from_utf8_lossy(writer);
                return Err(format!("the changes of {writer} end with {told:?}, and {last} was acknowledged"));
            }
        }
        self.altered.check_end(finished)
    }

    /// Reads what there is. False if changes went before they were read.
    fn read(&mut self, db: &Db, batches: &AtomicU64) -> Checked<bool> {
        let failed = |error: Error| format!("the changes cannot be read: {error}");
        let changes = match db.changes(self.from) {
            // The others were faster than this thread.
            Err(Error::Gone { oldest }) => {
                let writers = std::mem::take(&mut self.writers);
                *self = ChangesReader { from: oldest, ..ChangesReader::new(writers) };
                return Ok(false);
            }
            changes => changes.map_err(failed)?,
        };
        for batch in changes {
            let batch = match batch {
                Err(Error::Gone { .. }) => return Ok(false),
                batch => batch.map_err(failed)?,
            };
            self.from = batch.next_sequence();
            check_batch(&batch.changes, &self.writers, &mut self.told)?;
            self.altered.take(&batch.changes)?;
            batches.fetch_add(1, Ordering::Relaxed);
        }
        Ok(true)
    }
}

fn check_batch(changes: &[Change], writers: &[Vec<u8>], told: &mut [Option<u64>]) -> Checked<()> {
    for (writer, told) in writers.iter().zip(told) {
        let [number, copy] = ["numbers", "copies"].map(|keyspace| number_in(changes, keyspace, writer));
        if number != copy || told.zip(number).is_some_and(|(told, number)| number != told + 1) {
            let writer = String::from_utf8_lossy(writer);
            return Err(format!("the changes of {writer} go on with {number:?} and {copy:?} behind {told:?}"));
        }
        *told = number.or(*told);
    }
    Ok(())
}

/// The number that was put under the key.
fn number_in(changes: &[Change], keyspace: &str, key: &[u8]) -> Option<u64> {
    changes.iter().find_map(|change| match &change.operation {
        ChangeOperation::Put { key: found, value, .. } if *change.keyspace == *keyspace && **found == *key => {
            value[..].try_into().ok().map(u64::from_le_bytes)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker::env::mem::MemEnv;
    use esker::{ChangeRetention, Options};
    use std::sync::Arc;

    fn open() -> Db {
        let options = Options::default().env(Arc::new(MemEnv::new()));
        Db::open("/db", options.keep_changes(ChangeRetention::Bytes(1 << 20))).unwrap()
    }

    /// A commit of the writer.
    fn write(db: &Db, number: u64) {
        let mut batch = db.batch();
        for keyspace in ["numbers", "copies"] {
            let keyspace = db.keyspace(keyspace, Default::default()).unwrap();
            batch.put(&keyspace, "writer", number.to_le_bytes()).unwrap();
        }
        batch.commit().unwrap();
    }

    fn reader() -> ChangesReader {
        ChangesReader::new(vec![b"writer".to_vec(), b"another".to_vec()])
    }

    #[test]
    fn changes_that_end_before_the_last_commit_are_noticed() {
        let (db, batches) = (open(), AtomicU64::new(0));
        let mut reader = reader();
        write(&db, 1);
        assert!(reader.read(&db, &batches).unwrap());
        (2..=5).for_each(|number| write(&db, number));
        reader.check_end(&db, &[5, 0], 0, &batches).unwrap();
        assert_eq!(batches.load(Ordering::Relaxed), 5);
        assert!(reader.check_end(&db, &[6, 0], 0, &batches).is_err(), "the last one is missing");
        assert!(reader.check_end(&db, &[4, 0], 0, &batches).is_err(), "nobody was told that it is written");
        // Of the other one there may have been something before.
        reader.check_end(&db, &[5, 3], 0, &batches).unwrap();
    }

    #[test]
    fn a_commit_that_is_missing_between_others_is_noticed() {
        let (db, batches) = (open(), AtomicU64::new(0));
        [1, 2, 4].into_iter().for_each(|number| write(&db, number));
        assert!(reader().read(&db, &batches).is_err());
    }
}
