//! The changes in a record of the log, with the large values that they refer to.

use super::change::{ChangeBatch, ChangeOperation};
use super::listed::{Listed, Listing};
use crate::base::batch::{AnyOperation, Operation};
use crate::base::blob_reference::BlobReference;
use crate::base::expiry::Expiry;
use crate::base::key::{Kind, Sequence};
use crate::base::key_order::{bounds_of, unmarked};
use crate::base::slice::Slice;
use crate::blob::BlobStore;
use crate::error::{Error, Result};
use crate::wal::reader::Record;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The blob files that were read last.
pub struct BlobStoreOfChanges {
    store: Arc<BlobStore>,
    opened: VecDeque<u64>,
}

impl BlobStoreOfChanges {
    /// So many files stay open.
    const MOST: usize = 4;

    pub fn new(store: Arc<BlobStore>) -> Self {
        BlobStoreOfChanges { store, opened: VecDeque::new() }
    }

    fn read(&mut self, reference: &BlobReference) -> Result<Vec<u8>> {
        let file = self.store.open_file(reference.file, reference.end().unwrap_or(u64::MAX))?;
        if !self.opened.contains(&reference.file) {
            self.opened.push_back(reference.file);
            if self.opened.len() > Self::MOST
                && let Some(old) = self.opened.pop_front()
            {
                self.store.forget(old);
            }
        }
        file.read(reference)
    }
}

/// The changes in a record, from the write `from` on. A large value that several keys have is read
/// once.
pub fn batch(
    listed: &Listed,
    values: &mut BlobStoreOfChanges,
    record: &Record<'_>,
    operations: &[AnyOperation<'_>],
    from: Sequence,
) -> Result<ChangeBatch> {
    let mut changes = Vec::with_capacity(operations.len());
    let mut read: BTreeMap<BlobReference, Slice> = BTreeMap::new();
    let mut load = |reference: BlobReference| {
        if let Some(value) = read.get(&reference) {
            return Ok(value.clone());
        }
        let value = Slice::from(values.read(&reference)?);
        read.insert(reference, value.clone());
        Ok(value)
    };
    for (operation, sequence) in operations.iter().zip(record.sequence..) {
        if sequence >= from {
            let is_marked = listed.keyspaces.get(&operation.keyspace()).is_some_and(Listing::is_marked);
            let decoded = decoded(&mut load, record, operation, is_marked)?;
            changes.push(listed.change(sequence, operation.keyspace(), decoded)?);
        }
    }
    Ok(ChangeBatch { changes })
}

fn decoded(
    load: &mut dyn FnMut(BlobReference) -> Result<Slice>,
    record: &Record<'_>,
    operation: &AnyOperation<'_>,
    is_marked: bool,
) -> Result<ChangeOperation> {
    let slice = |bytes: &[u8]| Slice::from(bytes.to_vec());
    let Operation { kind, expiry_ms, key, value, .. } = match operation {
        AnyOperation::Key(operation) => *operation,
        AnyOperation::Range(range) => {
            let (start, end) = bounds_of(range.start, range.end, !is_marked);
            return Ok(ChangeOperation::DeleteRange { start: start.map(slice), end: end.map(slice) });
        }
    };
    let (key, expiry) = (slice(if is_marked { unmarked(key) } else { key }), Expiry::from_ms(expiry_ms));
    Ok(match kind {
        Kind::Delete => ChangeOperation::Delete { key },
        Kind::Put => ChangeOperation::Put { key, value: slice(value), expiry },
        Kind::PutBlob => {
            let damaged = || Error::corruption(record.path, record.offset, "a reference to a large value is broken");
            let reference = BlobReference::decode(value).ok_or_else(damaged)?;
            ChangeOperation::Put { key, value: load(reference)?, expiry }
        }
        Kind::Merge | Kind::MergeFirst => {
            ChangeOperation::Merge { key, operand: slice(value), expiry, is_first: kind == Kind::MergeFirst }
        }
    })
}
