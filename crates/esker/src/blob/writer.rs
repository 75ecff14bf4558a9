//! The appends of one background job, which are made durable together at its end. A job compresses
//! values; a write does not take the time.
//!
//! A job begins in the file where the last job ended, so that many small jobs do not make as many
//! small files. That file has no other writer meanwhile. A job that runs beside others writes files
//! of its own: the others could remove a shared file before any table refers to the new values.

use super::file::BlobFile;
use super::format::Values;
use super::store::BlobStore;
use crate::base::blob_reference::BlobReference;
use crate::base::compression::Compressor;
use crate::error::{Error, Result};
use std::sync::Arc;

/// Larger values are stored as they are: compressing one takes its size of memory once more, and
/// decompressing it at each read.
pub(super) const MOST_COMPRESSED_BYTES: usize = 16 << 20;

/// Writes large values for a job. Its files stay as long as this lives; references to them must be
/// made before it is dropped.
#[derive(Debug)]
pub struct BlobWriter<'a> {
    store: &'a BlobStore,
    /// Beside this job no other appends and removes files.
    one_by_one: bool,
    files: Vec<Arc<BlobFile>>,
    /// From the first value on, if values are compressed.
    compressor: Option<Compressor>,
    written_bytes: u64,
}

impl<'a> BlobWriter<'a> {
    /// A writer without a file yet. `one_by_one`: of a job beside which no other appends and
    /// removes files.
    pub fn new(store: &'a BlobStore, one_by_one: bool) -> BlobWriter<'a> {
        BlobWriter { store, one_by_one, files: Vec::new(), compressor: None, written_bytes: 0 }
    }

    /// Appends a value. `next_number` gives out file numbers.
    ///
    /// # Errors
    /// `Io`; the job is to be given up then.
    pub fn append(&mut self, value: &[u8], next_number: &dyn Fn() -> u64) -> Result<BlobReference> {
        let BlobWriter { store, one_by_one, files, compressor, written_bytes } = self;
        let values = Values::of(store.codec());
        let codec = store.codec().filter(|_| value.len() <= MOST_COMPRESSED_BYTES);
        let compressed = match codec {
            Some(codec) => compressor.get_or_insert_with(|| Compressor::new(codec)).compress(value),
            None => None,
        };
        let (stored, compressed) = (compressed.unwrap_or(value), compressed.is_some());
        store.note_written(stored.len());
        *written_bytes += stored.len() as u64;
        if files.is_empty() && *one_by_one {
            files.extend(store.take_job_file(values));
        }
        if let Some(file) = files.last()
            && let Some(place) = file.reserve(stored.len(), store.file_bytes())
        {
            return file.write(place, stored, compressed);
        }
        let file = store.create_file(next_number(), values)?;
        let place = file.reserve(stored.len(), u64::MAX);
        let place = place.ok_or_else(|| Error::invalid("an empty blob file takes any value"))?;
        let reference = file.write(place, stored, compressed);
        files.push(file);
        reference
    }

    /// Bytes written.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Makes everything durable but the names of new files, which the sync for the tables that
    /// refer to them brings; nothing more is appended.
    ///
    /// # Errors
    /// `Io`; the job is to be given up then.
    pub fn sync(&self) -> Result<()> {
        for file in &self.files {
            file.sync()?;
        }
        let Some(last) = self.files.last() else { return Ok(()) };
        // Not after a failure: what a later sync of the same file would tell is unknown then.
        if self.one_by_one {
            self.store.leave_job_file(last);
        }
        Ok(())
    }
}
