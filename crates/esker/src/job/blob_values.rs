//! What a job does with large values: values that became large go to a blob file of the job,
//! references stay as they are, unless their file is to be emptied.

use crate::base::blob_reference::BlobReference;
use crate::base::key::{Entry, Kind};
use crate::blob::{BlobStore, BlobWriter};
use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;

/// Which values are copied into a blob file of the job.
#[derive(Clone, Copy)]
pub struct BlobValues<'a> {
    pub store: &'a BlobStore,
    /// Values of at least this many bytes do not stay in tables.
    pub threshold: usize,
    pub copy: Copy<'a>,
    /// Whether the job is one of those that do not run beside each other, and so may go on in a
    /// file of the last one.
    pub one_by_one: bool,
}

/// Which references are replaced by a copy of the value.
#[derive(Clone, Copy)]
pub enum Copy<'a> {
    /// Those to a file for which this is true.
    From(&'a (dyn Fn(u64) -> bool + Sync)),
    /// All of them, each value once: nothing is known about the files they refer to, and many may
    /// refer to one value.
    All(&'a Copies),
}

/// Values that were copied, and where to. Takes memory in proportion to the memtables that refer to
/// them.
#[derive(Debug, Default)]
pub struct Copies(Mutex<BTreeMap<BlobReference, BlobReference>>);

impl Copies {
    fn find(&self, original: &BlobReference) -> Option<BlobReference> {
        self.0.lock().get(original).copied()
    }

    fn note(&self, original: BlobReference, copy: BlobReference) {
        self.0.lock().insert(original, copy);
    }
}

impl BlobValues<'_> {
    /// The value behind an encoded reference.
    pub fn load(&self, reference: &[u8]) -> Result<Vec<u8>> {
        match BlobReference::decode(reference) {
            Some(reference) => self.store.read_for_job(&reference),
            None => Err(Error::corruption(Path::new(""), 0, "a reference to a large value is malformed")),
        }
    }

    /// The reference that takes the place of the value of a put, if one does.
    pub(super) fn settle(
        &self,
        entry: Entry<'_>,
        blobs: &mut BlobWriter<'_>,
        next_number: &dyn Fn() -> u64,
    ) -> Result<Option<BlobReference>> {
        if entry.kind == Kind::Put {
            return blobs.append(entry.value, next_number).map(Some);
        }
        let Some(reference) = BlobReference::decode(entry.value) else { return Ok(None) };
        let copies = match self.copy {
            Copy::All(copies) => Some(copies),
            Copy::From(choose) if choose(reference.file) => None,
            Copy::From(_) => return Ok(None),
        };
        if let Some(copy) = copies.and_then(|copies| copies.find(&reference)) {
            return Ok(Some(copy));
        }
        // Checked as it is read: what is damaged would be valid in its new place.
        let value = self.store.read_for_job(&reference)?;
        let copy = blobs.append(&value, next_number)?;
        if let Some(copies) = copies {
            copies.note(reference, copy);
        }
        Ok(Some(copy))
    }
}
