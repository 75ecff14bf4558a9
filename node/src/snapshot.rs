//! Explicit snapshots.

use crate::failure::Failure;
use napi_derive::napi;
use parking_lot::Mutex;

/// A snapshot of the engine until it is closed. Reads under way keep it for themselves.
#[napi]
pub struct Snapshot(Mutex<Option<esker::Snapshot>>);

#[napi]
impl Snapshot {
    /// Releases it.
    #[napi]
    pub fn close(&self) {
        let released = self.0.lock().take();
        drop(released);
    }
}

impl Snapshot {
    /// An open one.
    pub fn new(snapshot: esker::Snapshot) -> Snapshot {
        Snapshot(Mutex::new(Some(snapshot)))
    }

    /// What reads read at.
    pub fn reader(&self) -> Result<esker::Snapshot, Failure> {
        self.0.lock().clone().ok_or_else(Failure::snapshot_not_open)
    }
}

/// The reader of a snapshot that may not be given.
pub fn reader(snapshot: Option<&Snapshot>) -> Result<Option<esker::Snapshot>, Failure> {
    snapshot.map(Snapshot::reader).transpose()
}
