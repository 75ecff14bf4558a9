//! Segment files: `prepared` one ahead of the writer, one active, `retired` while something in them
//! is in no table yet, then free to be prepared again. A prepared segment's header is on the device
//! before the first record goes in, so that a missing header later is damage and not bad luck.

use super::format::{HEADER_BYTES, encode_header};
use super::reserve::{RESERVE_BYTES, Reserve, SCARCE_BYTES};
use crate::base::file_number::{of_digits, to_digits};
use crate::base::key::Sequence;
use crate::base::sync::{AtomicBool, AtomicU64};
use crate::env::{Env, LogFile, ReadFile};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place in the log. Later places are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    pub segment: u64,
    pub offset: u64,
}

impl From<(u64, u64)> for Position {
    fn from((segment, offset): (u64, u64)) -> Position {
        Position { segment, offset }
    }
}

impl From<Position> for (u64, u64) {
    fn from(position: Position) -> (u64, u64) {
        (position.segment, position.offset)
    }
}

/// What is known of the space of a segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// Nothing: it is new; or it was found at a start, where its preparation may have been cut
    /// short, or was closed while it was kept for changes. Then it is not used again: a failed sync
    /// of another process may have given up its name, which no later sync would tell, and what is
    /// synced in it would be gone after a power loss.
    Found,
    /// Its length is on the device, and its blocks are its own.
    Reserved,
    /// Every block has been written besides. The first sync after a store into a block that is only
    /// reserved has to record it as written, which costs a second write to the device.
    Written,
}

/// A segment file in use.
#[derive(Debug)]
pub struct Segment {
    pub number: u64,
    /// What its records' header checks are seeded with.
    pub salt: u64,
    pub path: PathBuf,
    pub file: Arc<dyn LogFile>,
    /// Where its records end.
    pub written: AtomicU64,
    /// Up to where it is known to be on the device, and with it all segments before.
    pub synced: AtomicU64,
    /// Whether its link is known to be on the device.
    pub linked: AtomicBool,
    /// Up to where its pages are ready for stores, and up to where they have been taken out of
    /// memory again: see `prefault.rs`.
    pub ready: AtomicU64,
    pub left: AtomicU64,
    space: Space,
}

impl Segment {
    /// A segment that was found at a start. Nothing is appended to it any more.
    pub fn found(number: u64, file: FreeFile, written: u64) -> Arc<Segment> {
        Segment::new(number, 0, file, written, 0)
    }

    fn new(number: u64, salt: u64, file: FreeFile, written: u64, synced: u64) -> Arc<Segment> {
        let FreeFile { path, file, space } = file;
        let (written, synced) = (AtomicU64::new(written), AtomicU64::new(synced));
        let (linked, ready, left) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Segment { number, salt, path, file, written, synced, linked, ready, left, space })
    }

    /// Its file, for when nothing in it is needed any more.
    pub fn to_free(&self) -> FreeFile {
        FreeFile { path: self.path.clone(), file: Arc::clone(&self.file), space: self.space }
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
    pub space: Space,
}

/// Says of a directory from which number on the names of files are those of a job that is not done,
/// or was cut short: its files are not to be relied on.
pub type Unfinished = fn(&dyn Env, &Path) -> Result<Option<u64>>;

/// How segment files are made and opened.
#[derive(Debug, Clone)]
pub struct SegmentMaker {
    pub env: Arc<dyn Env>,
    pub directory: PathBuf,
    pub mapped: bool,
    /// No background thread prefaults or prepares segments.
    pub in_foreground: bool,
    /// Nothing may be written: segments are opened for reading only.
    pub read_only: bool,
    /// Tells which files are left out; without it, none.
    pub unfinished: Option<Unfinished>,
    /// Length of the first segment of a database and of a full-grown one.
    pub smallest_bytes: u64,
    pub largest_bytes: u64,
}

/// A segment to be prepared.
#[derive(Debug)]
pub struct Plan {
    pub number: u64,
    /// The file to use; a new one if there is none.
    pub free: Option<FreeFile>,
    /// Length of a new file, and the least that will do on a full disk.
    pub new_bytes: u64,
    pub least_bytes: u64,
    /// Its space is to be [`Space::Written`].
    pub for_syncs: bool,
    /// A new file's pages are to be in memory: otherwise the first store into each part of them
    /// waits for a read of zeroes.
    pub for_stores: bool,
}

impl Plan {
    /// Length of the file.
    pub fn bytes(&self) -> u64 {
        self.free.as_ref().map_or(self.new_bytes, |free| free.file.len())
    }
}

/// Zeroes are written in pieces of this size.
const ZEROES_BYTES: usize = 1 << 20;

fn write_zeroes(file: &dyn LogFile) -> Result<()> {
    let zeroes = vec![0; usize::try_from(file.len()).unwrap_or(ZEROES_BYTES).min(ZEROES_BYTES)];
    let mut offset = 0;
    while offset < file.len() {
        let step = (file.len() - offset).min(zeroes.len() as u64);
        file.write(offset, &zeroes[..step as usize])?;
        offset += step;
    }
    Ok(())
}

/// The name of the segment file made as number `file`. Recycled files keep their name: which
/// segment a file holds, its header says.
pub fn file_name(file: u64) -> String {
    format!("{}.wal", to_digits(file))
}

/// The number in the name of a segment file.
pub fn file_number(name: &str) -> Option<u64> {
    of_digits(name.strip_suffix(".wal")?)
}

impl SegmentMaker {
    /// Makes a segment ready for its first record. Its header is on the device when this returns.
    pub fn prepare(&self, plan: Plan) -> Result<Arc<Segment>> {
        let Plan { number, free, new_bytes, least_bytes, for_syncs, for_stores } = plan;
        let is_new = free.is_none();
        let FreeFile { path, file, space } = match free {
            Some(free) => free,
            None => {
                let path = self.directory.join(file_name(number));
                let file = self.create(&path, new_bytes, least_bytes)?;
                FreeFile { path, file, space: Space::Found }
            }
        };
        let fills = for_syncs && space < Space::Written;
        let zeroed = if fills { write_zeroes(&*file) } else { Ok(()) };
        let salt = self.env.random();
        let written = zeroed.and_then(|()| file.write(0, &encode_header(number, file.len(), salt)));
        let synced = written.and_then(|()| match space {
            // With its length.
            Space::Found => file.sync(),
            _ if fills => file.sync(),
            // What lies behind the header is of an earlier life: whether it reaches the device does
            // not matter.
            _ => file.sync_range(0, HEADER_BYTES as u64),
        });
        let named = synced.and_then(|()| if is_new { self.env.sync_dir(&self.directory) } else { Ok(()) });
        if let Err(error) = named {
            // Nothing would refer to the file any more, and every attempt would leave one.
            let _ = self.env.remove(&path);
            return Err(error);
        }
        if is_new && for_stores && !fills {
            // Not before the sync, which would write all of it to the device.
            file.fill_new(HEADER_BYTES as u64);
        }
        let space = if fills { Space::Written } else { space.max(Space::Reserved) };
        let file = FreeFile { path, file, space };
        Ok(Segment::new(number, salt, file, HEADER_BYTES as u64, HEADER_BYTES as u64))
    }

    /// A new segment file of `bytes`, or on a disk without room for that a shorter one, of no less
    /// than `least`.
    fn create(&self, path: &Path, bytes: u64, least: u64) -> Result<Arc<dyn LogFile>> {
        let least = least.max(SCARCE_BYTES);
        let mut length = bytes;
        loop {
            match self.env.open_log(path, Some(length), self.mapped) {
                // As long as it can be: each segment costs a file that is open.
                Err(error) if error.is_disk_full() && length > least => length = (length / 2).max(least),
                other => return other,
            }
        }
    }

    /// What the database holds back for opens on a full disk.
    pub fn reserve(&self) -> Reserve<'_> {
        Reserve::new(&*self.env, &self.directory, self.smallest_bytes >= RESERVE_BYTES)
    }

    /// The files of the log in the directory: the number in the name, and the name.
    pub fn files(&self) -> Result<Vec<(u64, String)>> {
        let names = self.env.list(&self.directory)?;
        let numbered = names.into_iter().filter_map(|name| Some((file_number(&name)?, name)));
        let mut files: Vec<_> = numbered.collect();
        // Behind the listing. What tells of such files is there before them, and goes when they are
        // gone, or valid. Others with their numbers come later, and are not in this listing.
        if let Some(unfinished) = self.unfinished
            && let Some(first) = unfinished(&*self.env, &self.directory)?
        {
            files.retain(|&(number, _)| number < first);
        }
        Ok(files)
    }

    /// Whether the directory has the name: a link that leads nowhere has one, and does not open.
    pub fn lists(&self, name: &str) -> Result<bool> {
        Ok(self.env.list(&self.directory)?.iter().any(|other| other == name))
    }

    /// Opens an existing segment file.
    pub fn open(&self, path: &Path) -> Result<Arc<dyn LogFile>> {
        if self.read_only {
            return Ok(Arc::new(ReadOnlySegment { file: self.env.open(path)?, path: path.to_path_buf() }));
        }
        self.env.open_log(path, None, self.mapped)
    }
}

/// A segment file of a database that is only read.
#[derive(Debug)]
struct ReadOnlySegment {
    file: Arc<dyn ReadFile>,
    path: PathBuf,
}

impl ReadOnlySegment {
    fn refuse(&self) -> Result<()> {
        Err(Error::ReadOnly { why: format!("{} was opened for reading", self.path.display()) })
    }
}

impl LogFile for ReadOnlySegment {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn store(&self, _offset: u64, _bytes: &[u8]) -> Result<()> {
        self.refuse()
    }

    fn write(&self, _offset: u64, _bytes: &[u8]) -> Result<()> {
        self.refuse()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn sync(&self) -> Result<()> {
        self.refuse()
    }

    /// No store follows.
    fn prefault(&self, _from: u64, _to: u64) {}

    fn fill_new(&self, _from: u64) {}

    fn release_memory(&self, _from: u64, _to: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::file_number::MAX_NUMBER;

    #[test]
    fn only_digits_name_a_segment_and_only_numbers_below_the_largest() {
        assert_eq!(file_number("000007.wal"), Some(7));
        assert_eq!(file_number("+00007.wal"), None);
        assert_eq!(file_number(".wal"), None);
        assert_eq!(file_number(&file_name(MAX_NUMBER - 1)), Some(MAX_NUMBER - 1));
        assert_eq!(file_number(&file_name(MAX_NUMBER)), None);
    }
}
