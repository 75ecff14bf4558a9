//! Large values that the log refers to, and that the engine has removed since.
//!
//! It does so when the manifest says that the record is in tables, or the keyspace is dropped.
//! Where the manifest says less, it has lost edits, although it may look whole; or somebody else
//! has removed the file.

use crate::base::batch::AnyOperation;
use crate::base::blob_reference::BlobReference;
use crate::base::key::{Kind, Sequence};
use crate::blob::BlobStore;
use crate::error::Result;
use crate::version::edit::ManifestState;
use std::collections::BTreeSet;

/// See the module's comment.
#[derive(Debug, Default)]
pub struct RemovedValues {
    /// Whether there are any.
    pub found: bool,
    looked_for: BTreeSet<u64>,
}

impl RemovedValues {
    /// Looks for the files of the large values of a record that are not in tables, as far as the
    /// manifest tells.
    pub fn look(
        &mut self,
        state: &ManifestState,
        blobs: &BlobStore,
        first: Sequence,
        operations: &[AnyOperation<'_>],
    ) -> Result<()> {
        for (operation, sequence) in operations.iter().zip(first..) {
            let AnyOperation::Key(operation) = operation else { continue };
            let is_needed = state.keyspaces.get(&operation.keyspace).is_some_and(|record| sequence > record.flushed);
            if operation.kind != Kind::PutBlob || !is_needed {
                continue;
            }
            let Some(BlobReference { file, .. }) = BlobReference::decode(operation.value) else { continue };
            if self.looked_for.insert(file) {
                self.found |= blobs.is_missing(file)?;
            }
        }
        Ok(())
    }
}
