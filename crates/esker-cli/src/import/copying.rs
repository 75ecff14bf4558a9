//! Writes the pairs of a source in batches, each with the marker of how far it is.

use super::marker::Marker;
use super::source_error::refused;
use crate::failure::Failure;
use crate::progress::{Progress, Unit};
use esker::{Batch, Db, Keyspace, WriteOptions, escape_key};
use esker_engines::import::Source;

/// Bounds the memory of a batch, and what an interruption costs.
const LARGEST_BATCH_PAIRS: usize = 1000;
const LARGEST_BATCH_BYTES: usize = 4 << 20;

/// The state of a copy. Invariant: what the marker says is committed, together with the pairs, or
/// is in `batch` with them.
pub struct Copying<'a> {
    keyspace: &'a Keyspace,
    batch: Batch,
    batch_bytes: usize,
    left: u64,
    /// How far it is.
    pub marker: Marker,
}

impl<'a> Copying<'a> {
    /// Goes on behind what the marker says.
    pub fn new(db: &Db, keyspace: &'a Keyspace, marker: Marker, limit: Option<u64>) -> Copying<'a> {
        Copying { keyspace, batch: db.batch(), batch_bytes: 0, left: limit.unwrap_or(u64::MAX), marker }
    }

    /// Copies up to the end of the source, or the limit; whether it is the end.
    pub fn run(&mut self, source: &mut dyn Source, total: Option<u64>) -> Result<bool, Failure> {
        let mut progress = Progress::new("importing", Unit::Records, total);
        let after = self.marker.last.clone();
        let mut failure = None;
        let mut is_complete = true;
        let read = source.read(after.as_deref(), &mut |key, value| {
            if self.left == 0 {
                is_complete = false;
                return false;
            }
            if let Err(error) = self.take(key, value) {
                failure = Some(error);
                return false;
            }
            if self.batch.is_empty() {
                progress.set(self.marker.pairs);
            }
            true
        });
        // What was read before a failure is good.
        let committed = self.commit();
        match failure {
            Some(failure) => return Err(failure),
            None => read.map_err(refused)?,
        }
        committed?;
        Ok(is_complete)
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        if self.marker.last.as_deref().is_some_and(|last| key <= last) {
            let what = format!("key {} of the source comes twice, or not in the order of its bytes", escape_key(key));
            return Err(Failure::Operation(format!("{what}; only sources with different keys can be imported")));
        }
        self.batch.put(self.keyspace, key, value)?;
        self.batch_bytes += key.len() + value.len();
        self.marker.pairs += 1;
        self.marker.last = Some(key.to_vec());
        self.left -= 1;
        if self.batch.len() >= LARGEST_BATCH_PAIRS || self.batch_bytes >= LARGEST_BATCH_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        if !self.batch.is_empty() {
            self.marker.put(&mut self.batch)?;
            self.batch.commit_and_clear(&WriteOptions::new())?;
        }
        self.batch_bytes = 0;
        Ok(())
    }
}
