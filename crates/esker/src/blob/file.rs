//! One blob file: its handle, and reads and writes of single values.

use super::format::{
    HEADER_BYTES, Values, check_header, encode_header, encode_record_header, file_name, reference_to, verify,
};
use crate::base::blob_reference::{BlobReference, stored_bytes};
use crate::base::compression::decompress;
use crate::base::key::MAX_VALUE_BYTES;
use crate::env::{Env, GrowingFile, ReadFile};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A file found at the start is only read; nothing is ever appended to it.
#[derive(Debug)]
enum Content {
    Growing(Arc<dyn GrowingFile>),
    Fixed(Arc<dyn ReadFile>),
}

/// A blob file, usable from any thread.
#[derive(Debug)]
pub struct BlobFile {
    number: u64,
    path: PathBuf,
    /// How its values are stored.
    pub(super) values: Values,
    content: Content,
    /// Where the next record goes: everything before it was given out.
    end: AtomicU64,
    /// A write that the store is to sync was done since the last sync.
    pub(super) unsynced: AtomicBool,
    /// A log record may refer to it: one of this process, or, of a file found, of an earlier one.
    pub(super) logged: AtomicBool,
}

impl BlobFile {
    /// A new file with nothing but its header; nothing of it is durable yet. Leaves no file behind
    /// if it fails.
    pub(super) fn create(env: &dyn Env, directory: &Path, number: u64, values: Values) -> Result<BlobFile> {
        let path = directory.join(file_name(number));
        let file = env.create_growing(&path)?;
        if let Err(error) = file.write(0, &encode_header(number, values)) {
            // Nothing would refer to the file, and every attempt would leave one.
            let _ = env.remove(&path);
            return Err(error);
        }
        Ok(BlobFile {
            number,
            path,
            values,
            content: Content::Growing(file),
            end: AtomicU64::new(HEADER_BYTES),
            unsynced: AtomicBool::new(false),
            logged: AtomicBool::new(false),
        })
    }

    /// An existing file, for reading.
    pub(super) fn open(env: &dyn Env, directory: &Path, number: u64) -> Result<BlobFile> {
        let path = directory.join(file_name(number));
        if !env.exists(&path)? {
            return Err(Error::corruption(path, 0, "the blob file is missing"));
        }
        let file = env.open(&path)?;
        let mut header = [0; HEADER_BYTES as usize];
        file.read_at(0, &mut header)?;
        let values = check_header(&path, number, &header)?;
        let end = AtomicU64::new(file.len());
        let (unsynced, logged) = (AtomicBool::new(false), AtomicBool::new(true));
        Ok(BlobFile { number, path, values, content: Content::Fixed(file), end, unsynced, logged })
    }

    /// An existing file of which only the checksums of values are to be checked, whatever its
    /// header says.
    pub fn open_for_check(env: &dyn Env, directory: &Path, number: u64) -> Result<BlobFile> {
        let path = directory.join(file_name(number));
        let file = env.open(&path)?;
        let end = AtomicU64::new(file.len());
        let (unsynced, logged) = (AtomicBool::new(false), AtomicBool::new(true));
        let values = Values::AsWritten;
        Ok(BlobFile { number, path, values, content: Content::Fixed(file), end, unsynced, logged })
    }

    /// Its bytes, for a copy. A file that this process appends to is opened again, by its name;
    /// any other may have none any more.
    ///
    /// # Errors
    /// `Io`
    pub fn reopen(&self, env: &dyn Env) -> Result<Arc<dyn ReadFile>> {
        match &self.content {
            Content::Growing(_) => env.open(&self.path),
            Content::Fixed(file) => Ok(Arc::clone(file)),
        }
    }

    /// The same file, read through `content`.
    pub fn with_content(&self, content: Arc<dyn ReadFile>) -> BlobFile {
        BlobFile {
            number: self.number,
            path: self.path.clone(),
            values: self.values,
            end: AtomicU64::new(content.len()),
            content: Content::Fixed(content),
            unsynced: AtomicBool::new(false),
            logged: AtomicBool::new(true),
        }
    }

    /// Reads the header again.
    ///
    /// # Errors
    /// As when it is opened.
    pub fn check_header(&self) -> Result<()> {
        let mut header = [0; HEADER_BYTES as usize];
        self.read_at(0, &mut header)?;
        check_header(&self.path, self.number, &header).map(drop)
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// The place for a value of `length` bytes, or `None` if the file would get longer than `limit`
    /// by it. An empty file takes any value. One caller at a time.
    pub(super) fn reserve(&self, length: usize, limit: u64) -> Option<u64> {
        let start = self.bytes();
        let end = start + stored_bytes(length as u64);
        if end > limit && start > HEADER_BYTES {
            return None;
        }
        self.end.store(end, Ordering::Relaxed);
        Some(start)
    }

    /// Writes a value, as it is `stored`, at the reserved place. The bytes are the system's when
    /// this returns.
    pub(super) fn write(&self, place: u64, stored: &[u8], compressed: bool) -> Result<BlobReference> {
        let Content::Growing(file) = &self.content else {
            return Err(Error::invalid(format!("{} is not written any more", self.path.display())));
        };
        let reference = reference_to(self.number, place, stored, compressed);
        file.write(place, &encode_record_header(&reference))?;
        file.write(reference.offset, stored)?;
        Ok(reference)
    }

    /// Makes everything written before the call durable; not the name.
    pub(super) fn sync(&self) -> Result<()> {
        match &self.content {
            Content::Growing(file) => file.sync(),
            Content::Fixed(_) => Ok(()),
        }
    }

    /// The value that `reference`, which is one to this file, stands for.
    ///
    /// # Errors
    /// `Corruption` names the file and the offset if the bytes there are not those that were
    /// written.
    pub fn read(&self, reference: &BlobReference) -> Result<Vec<u8>> {
        let stored = self.read_stored(reference)?;
        if !reference.compressed {
            return Ok(stored);
        }
        decompress(self.values.codec(), &stored, Vec::new()).map_err(|error| error.at(&self.path, reference.offset))
    }

    /// The value as it is stored: as [`BlobFile::read`], for a caller that only checks it.
    pub fn read_stored(&self, reference: &BlobReference) -> Result<Vec<u8>> {
        let damaged = |what: &str| Err(Error::corruption(&self.path, reference.offset, what));
        // Before anything is allocated: a reference may be damaged too.
        if reference.end().is_none_or(|end| end > self.bytes()) {
            return damaged("a large value lies behind the end of its file");
        }
        if reference.length as usize > MAX_VALUE_BYTES {
            return damaged("a large value is longer than any that is written");
        }
        let mut stored = vec![0; reference.length as usize];
        self.read_at(reference.offset, &mut stored)?;
        if !verify(reference, &stored) {
            return damaged("a large value's checksum does not match");
        }
        Ok(stored)
    }

    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        match &self.content {
            Content::Growing(file) => file.read_at(offset, buffer),
            Content::Fixed(file) => file.read_at(offset, buffer),
        }
    }
}
