//! Large values that the log refers to, and that the engine has removed since.
//!
//! It does so when the manifest says that the record is in tables. Where the manifest says less and
//! a table says it, the manifest has lost edits, although it may look whole.

use super::tables::Tables;
use crate::base::batch::AnyOperation;
use crate::base::blob_reference::BlobReference;
use crate::base::key::{Kind, Sequence};
use crate::blob::BlobStore;
use crate::error::Result;
use crate::version::edit::ManifestState;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// See the module's comment.
#[derive(Debug, Default)]
pub struct RemovedValues {
    /// The first one of each keyspace.
    first: BTreeMap<u64, Sequence>,
    /// Files that were looked for, and whether they are missing.
    files: BTreeMap<u64, bool>,
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
            let is_missing = match self.files.entry(file) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(blobs.is_missing(file)?),
            };
            if is_missing {
                self.first.entry(operation.keyspace).or_insert(sequence);
            }
        }
        Ok(())
    }

    /// Whether one of these tables, which the manifest does not name, says that what the log has of
    /// its keyspace is in tables up to such a value.
    pub fn are_in(&self, tables: &Tables<'_>, numbers: &[u64]) -> Result<bool> {
        if self.first.is_empty() {
            return Ok(false);
        }
        for &number in numbers {
            let found = tables.inspect_unnamed(number)?;
            let has_one =
                found.keyspace().is_some_and(|it| self.first.get(&it.id).is_some_and(|first| it.flushed >= *first));
            if has_one {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
