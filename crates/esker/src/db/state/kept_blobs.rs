//! Blob files that no table and no memtable refers to any more, kept because changes may.
//!
//! A record refers to a file that was in use when the record was written. So a file is needed until
//! the segment that was active when it went out of use is gone.

use crate::base::sync::Mutex;
use std::path::PathBuf;

/// See the module's comment.
#[derive(Debug, Default)]
pub struct KeptBlobs {
    /// Each with the segment that was active then.
    files: Mutex<Vec<(u64, PathBuf)>>,
}

impl KeptBlobs {
    /// Keeps a file that goes out of use while `segment` is the active one.
    pub fn add(&self, path: PathBuf, segment: u64) {
        self.files.lock().push((segment, path));
    }

    /// Takes out the files that no record refers to, now that `oldest` is the oldest segment.
    pub fn take_unneeded(&self, oldest: u64) -> Vec<PathBuf> {
        self.files.lock().extract_if(.., |(segment, _)| *segment < oldest).map(|(_, path)| path).collect()
    }
}
