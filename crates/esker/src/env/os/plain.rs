//! The path for systems other than Unix: the standard library alone, nothing mapped.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file read and written at given offsets, from any thread.
#[derive(Debug)]
pub(super) struct Positioned {
    /// The lock spans a seek and the transfer after it.
    file: Mutex<File>,
}

impl Positioned {
    pub(super) fn new(file: File) -> Positioned {
        Positioned { file: Mutex::new(file) }
    }

    /// Reads some bytes; zero means the end of the file.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut file = self.file.lock();
        file.seek(SeekFrom::Start(offset))?;
        file.read(buffer)
    }

    pub(super) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut file = self.file.lock();
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    pub(super) fn sync_data(&self) -> io::Result<()> {
        sync_data(&self.file.lock())
    }

    /// Makes the name of a new file durable, as far as the system does: a sync of its directory
    /// does nothing here.
    pub(super) fn sync_name(&self) -> io::Result<()> {
        self.file.lock().sync_all()
    }

    /// Of no use here: nothing is mapped.
    pub(super) fn confirm_sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Nothing is mapped, so that nothing is read ahead either.
    pub(super) fn will_read(&self, offset: u64, bytes: u64) {
        let _ = (self, offset, bytes);
    }

    pub(super) fn file_bytes(&self) -> io::Result<u64> {
        Ok(self.file.lock().metadata()?.len())
    }
}

/// Opens a file that is one of the engine's. Links are followed here.
pub(super) fn open_own(options: &mut OpenOptions, path: &Path, _may_write: bool) -> io::Result<File> {
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

/// Makes the bytes of a file durable, with its length.
pub(super) fn sync_data(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Directories cannot be synced here; their names are as durable as the system makes them. A sync
/// of a file brings its own.
pub(super) fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}

/// There is no call for it here; the caller writes every block anyway.
pub(super) fn reserve(_file: &File, _bytes: u64) -> io::Result<bool> {
    Ok(false)
}

/// Never made: nothing is mapped here.
#[derive(Debug)]
pub(super) enum ReadMap {}

impl ReadMap {
    pub(super) fn new(_file: &Positioned, _len: u64) -> Option<ReadMap> {
        None
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match *self {}
    }

    pub(super) fn has_failed(&self) -> bool {
        match *self {}
    }
}

/// Never made: nothing is mapped here.
#[derive(Debug)]
pub(super) enum LogMap {}

impl LogMap {
    pub(super) fn new(_file: &File, _len: u64) -> Option<LogMap> {
        None
    }

    pub(super) fn store(&self, _offset: u64, _bytes: &[u8]) -> bool {
        match *self {}
    }

    pub(super) fn has_failed(&self) -> bool {
        match *self {}
    }

    pub(super) fn sync_range(&self, _from: u64, _to: u64) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn prefault(&self, _from: u64, _to: u64) {
        match *self {}
    }

    pub(super) fn release_memory(&self, _from: u64, _to: u64) {
        match *self {}
    }
}

/// The lock files held by this process.
static HELD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A lock held until dropped: a share mode that lets others only read on Windows, an entry in a
/// list of this process elsewhere.
#[derive(Debug)]
pub(super) struct Locked {
    file: File,
    key: PathBuf,
}

impl Locked {
    /// Takes the lock, or returns `None` if someone else has it.
    pub(super) fn try_new(path: &Path) -> io::Result<Option<Locked>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(windows)]
        {
            const FILE_SHARE_READ: u32 = 1;
            std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, FILE_SHARE_READ);
        }
        let mut held = HELD.lock();
        let file = match options.open(path) {
            Ok(file) => file,
            // ERROR_SHARING_VIOLATION of Windows.
            Err(e) if cfg!(windows) && e.raw_os_error() == Some(32) => return Ok(None),
            Err(e) => return Err(e),
        };
        let key = fs::canonicalize(path)?;
        // Only the holder may have a value whose drop gives the lock back.
        if held.insert(key.clone()) { Ok(Some(Locked { file, key })) } else { Ok(None) }
    }

    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        HELD.lock().remove(&self.key);
    }
}
