//! The appends of one background job: into files of its own, which are made durable together at its end.

use super::file::BlobFile;
use super::store::BlobStore;
use crate::base::blob_reference::BlobReference;
use crate::error::{Error, Result};
use std::sync::Arc;

/// Writes large values for a job. Its files stay as long as this lives; whoever relies on them must refer to them before.
#[derive(Debug)]
pub struct BlobWriter<'a> {
    store: &'a BlobStore,
    files: Vec<Arc<BlobFile>>,
}

impl<'a> BlobWriter<'a> {
    /// A writer without a file yet.
    pub fn new(store: &'a BlobStore) -> BlobWriter<'a> {
        BlobWriter { store, files: Vec::new() }
    }

    /// Appends a value. `next_number` gives out file numbers.
    ///
    /// # Errors
    /// `Io`; the job is to be given up then.
    pub fn append(&mut self, value: &[u8], next_number: &dyn Fn() -> u64) -> Result<BlobReference> {
        self.store.note_written(value.len());
        if let Some(file) = self.files.last()
            && let Some(place) = file.reserve(value.len(), self.store.file_bytes())
        {
            return file.write(place, value);
        }
        let file = self.store.create_file(next_number())?;
        let place = file.reserve(value.len(), u64::MAX);
        let place = place.ok_or_else(|| Error::invalid("an empty blob file takes any value"))?;
        let reference = file.write(place, value);
        self.files.push(file);
        reference
    }

    /// Makes everything durable, the names too.
    ///
    /// # Errors
    /// `Io`; the job is to be given up then.
    pub fn sync(&self) -> Result<()> {
        for file in &self.files {
            file.sync()?;
        }
        if self.files.is_empty() { Ok(()) } else { self.store.sync_names() }
    }
}
