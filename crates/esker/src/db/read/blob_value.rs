//! Large values: writes move them to blob files, reads load them from there.

use crate::base::blob_reference::BlobReference;
use crate::base::key::Kind;
use crate::blob::Appended;
use crate::db::state::inner::Inner;
use crate::error::{Error, Result};

/// Bytes of large values at which a memtable counts as full. Recovery reads those of the memtables
/// again, and garbage among them is not seen before they are flushed.
pub const MAX_MEMTABLE_BLOB_BYTES: u64 = 256 << 20;

/// After so many bytes of large values the background thread is woken.
const WAKE_BYTES: u64 = 16 << 20;

/// Whether the value of an operation goes to a blob file.
#[inline]
pub fn is_large(inner: &Inner, kind: Kind, value: &[u8]) -> bool {
    value.len() >= inner.blob_threshold && kind == Kind::Put
}

/// Writes a value to a blob file. The operation is then a `PutBlob` of the reference; what is
/// returned must live until it was committed.
#[cold]
pub fn put_blob(inner: &Inner, value: &[u8]) -> Result<Appended> {
    inner.refuse_in_callback()?;
    inner.error_state.check()?;
    let appended = inner.blobs.append(value, &|| inner.next_file_number());
    let appended = appended.map_err(|error| inner.error_state.note_failure(error))?;
    let written = appended.written_before + value.len() as u64;
    if written / WAKE_BYTES != appended.written_before / WAKE_BYTES && !inner.inline_jobs() {
        // Neither log nor memtable grow by much: nothing else would tell it that there is something
        // to compress, once no more writes come.
        inner.wake();
    }
    Ok(appended)
}

/// The value behind the bytes of a `PutBlob`. The caller holds the read state it found them in, so
/// that the file stays.
#[cold]
pub fn load(inner: &Inner, reference: &[u8]) -> Result<Vec<u8>> {
    match BlobReference::decode(reference) {
        Some(reference) => inner.blobs.read(&reference),
        None => Err(Error::corruption(&inner.directory, 0, "a reference to a large value is malformed")),
    }
}
