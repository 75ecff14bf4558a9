//! A snapshot that is there: a checkpoint whose files are read piece by piece.

use crate::error::{Error, Result};
use crate::manifest::SnapshotManifest;
use crate::slots::Slot;
use crate::transfer::{Place, TransferRequest};
use esker::env::Env;
use std::sync::Arc;

/// A snapshot of a state machine: a checkpoint, whose tables and blob files are hard links of those
/// of the database. Its files stay as long as this or a clone of it lives.
#[derive(Clone)]
pub struct SnapshotFiles {
    env: Arc<dyn Env>,
    slot: Arc<Slot>,
    manifest: Arc<SnapshotManifest>,
}

impl std::fmt::Debug for SnapshotFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotFiles").field("directory", &self.slot.path()).finish_non_exhaustive()
    }
}

impl SnapshotFiles {
    pub(crate) fn new(env: Arc<dyn Env>, slot: Arc<Slot>, manifest: SnapshotManifest) -> SnapshotFiles {
        SnapshotFiles { env, slot, manifest: Arc::new(manifest) }
    }

    pub(crate) fn env(&self) -> &dyn Env {
        &*self.env
    }

    pub(crate) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// What it consists of.
    pub fn manifest(&self) -> &SnapshotManifest {
        &self.manifest
    }

    /// The request that begins to send it.
    pub fn begin(&self) -> TransferRequest {
        TransferRequest::Begin { manifest: (*self.manifest).clone() }
    }

    /// The request that sends up to `most_bytes` from `place` on.
    ///
    /// # Errors
    /// `InvalidArgument` if no file has that place; `Database` if it cannot be read.
    pub fn piece(&self, place: Place, most_bytes: usize) -> Result<TransferRequest> {
        let files = self.manifest.files();
        let file = usize::try_from(place.file).ok().and_then(|number| files.get(number));
        let Some(file) = file.filter(|file| place.offset < file.bytes) else {
            return Err(Error::invalid(format!("the snapshot has no byte {} in file {}", place.offset, place.file)));
        };
        let left = usize::try_from(file.bytes - place.offset).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left.min(most_bytes.max(1))];
        self.env.open(&self.slot.path().join(&file.name))?.read_at(place.offset, &mut bytes)?;
        Ok(TransferRequest::Piece { snapshot: self.manifest.identity()?, place, bytes })
    }
}
