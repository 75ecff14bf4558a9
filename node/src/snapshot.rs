//! Explicit snapshots.

use crate::failure::Failure;
use napi_derive::napi;
use parking_lot::Mutex;

/// A snapshot of the engine until it is closed. Reads under way keep it for themselves.
#[napi]
pub struct Snapshot {
    snapshot: Mutex<Option<esker::Snapshot>>,
    sequence: u64,
}

#[napi]
impl Snapshot {
    /// The number of the last write that it has.
    #[napi(getter)]
    pub fn sequence(&self) -> f64 {
        self.sequence as f64
    }

    /// Releases it.
    #[napi]
    pub fn close(&self) {
        let released = self.snapshot.lock().take();
        drop(released);
    }
}

impl Snapshot {
    /// An open one.
    pub fn new(snapshot: esker::Snapshot) -> Snapshot {
        let sequence = snapshot.sequence();
        Snapshot { snapshot: Mutex::new(Some(snapshot)), sequence }
    }

    /// What reads read at.
    pub fn reader(&self) -> Result<esker::Snapshot, Failure> {
        self.snapshot.lock().clone().ok_or_else(Failure::snapshot_not_open)
    }
}

/// The reader of a snapshot that may not be given.
pub fn reader(snapshot: Option<&Snapshot>) -> Result<Option<esker::Snapshot>, Failure> {
    snapshot.map(Snapshot::reader).transpose()
}
