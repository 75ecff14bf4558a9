//! Segment files: `prepared` one ahead of the writer, one active, `retired` while something in them is in no table yet, then free to be
//! prepared again. A prepared segment's header is on the device before the first record goes in, so that a missing header later
//! is damage and not bad luck.

use super::format::{HEADER_BYTES, encode_header};
use crate::base::key::Sequence;
use crate::env::{Env, LogFile};
use crate::error::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A segment file in use.
#[derive(Debug)]
pub struct Segment {
    pub number: u64,
    pub path: PathBuf,
    pub file: Arc<dyn LogFile>,
    /// Where its records end.
    pub written: AtomicU64,
    /// Up to where it is known to be on the device.
    pub synced: AtomicU64,
}

impl Segment {
    pub fn new(number: u64, path: PathBuf, file: Arc<dyn LogFile>, written: u64, synced: u64) -> Arc<Segment> {
        Arc::new(Segment { number, path, file, written: AtomicU64::new(written), synced: AtomicU64::new(synced) })
    }
}

/// A full segment and the last write in it.
#[derive(Debug, Clone)]
pub struct Retired {
    pub segment: Arc<Segment>,
    pub last_sequence: Sequence,
}

/// A file that can become a segment.
#[derive(Debug)]
pub struct FreeFile {
    pub path: PathBuf,
    pub file: Arc<dyn LogFile>,
}

/// How segment files are made.
#[derive(Debug, Clone)]
pub struct SegmentMaker {
    pub env: Arc<dyn Env>,
    pub directory: PathBuf,
    pub mapped: bool,
    /// Length of the first segment of a database and of a full-grown one.
    pub smallest_bytes: u64,
    pub largest_bytes: u64,
}

/// The name of a segment file made for segment `number`. Recycled files keep their name: the number inside counts.
pub fn file_name(number: u64) -> String {
    format!("{number:06}.wal")
}

/// Whether a file of this name is a segment.
pub fn is_segment_name(name: &str) -> bool {
    name.strip_suffix(".wal").is_some_and(|stem| !stem.is_empty() && stem.bytes().all(|b| b.is_ascii_digit()))
}

impl SegmentMaker {
    /// Makes segment `number` ready for its first record, in `free` if that is given, with room for `least_bytes`. The header is on
    /// the device when this returns.
    pub fn prepare(&self, number: u64, free: Option<FreeFile>, wanted_bytes: u64) -> Result<Arc<Segment>> {
        let reused = free.is_some();
        let FreeFile { path, file } = match free {
            Some(free) => free,
            None => {
                let path = self.directory.join(file_name(number));
                let file = self.env.open_log(&path, Some(wanted_bytes), self.mapped)?;
                FreeFile { path, file }
            }
        };
        file.write(0, &encode_header(number, file.len()))?;
        file.sync()?;
        if !reused {
            self.env.sync_dir(&self.directory)?;
        }
        Ok(Segment::new(number, path, file, HEADER_BYTES as u64, HEADER_BYTES as u64))
    }

    /// Opens an existing segment file.
    pub fn open(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        self.env.open_log(path, None, self.mapped)
    }
}
