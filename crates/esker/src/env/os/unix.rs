//! The system calls of the Unix path. No unsafe code here; mappings are in `map.rs`.

use super::confirm::confirm_sync;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file read and written at given offsets, from any thread.
#[derive(Debug)]
pub(super) struct Positioned {
    file: File,
}

impl Positioned {
    pub(super) fn new(file: File) -> Positioned {
        Positioned { file }
    }

    /// Reads some bytes; zero means the end of the file.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    /// Of no use here: a sync of the directory makes the name durable.
    pub(super) fn sync_name(&self) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    pub(super) fn sync_data(&self) -> io::Result<()> {
        sync_data(&self.file)
    }

    /// To be called behind a sync of a mapping: see `confirm.rs`.
    pub(super) fn confirm_sync(&self) -> io::Result<()> {
        confirm_sync(&self.file)
    }

    /// Has the system load a range that is about to be read, if its middle is not in memory: its
    /// ends share pages with what was read before or behind it. The call that loads looks at every
    /// page, which a scan of what is in memory would notice; the one that asks does not wait. Where
    /// a system has neither, a scan waits for each page.
    pub(super) fn will_read(&self, offset: u64, bytes: u64) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            use rustix::fs::{Advice, fadvise};
            use rustix::io::{ReadWriteFlags, preadv2};
            let mut byte = [0];
            let (mut buffer, middle) = ([io::IoSliceMut::new(&mut byte)], offset + bytes / 2);
            if preadv2(&self.file, &mut buffer, middle, ReadWriteFlags::NOWAIT).is_err() {
                // An error shows again when the bytes are read.
                let _ = fadvise(&self.file, offset, std::num::NonZeroU64::new(bytes), Advice::WillNeed);
            }
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = (offset, bytes);
    }

    pub(super) fn file_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

/// Opens a file that is one of the engine's: nothing but a file, which a pipe or a device is not,
/// and neither is waited for. What may be written is not opened through a link, which could lead
/// out of the directory.
pub(super) fn open_own(options: &mut OpenOptions, path: &Path, may_write: bool) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = if may_write { OFlags::NONBLOCK | OFlags::NOFOLLOW } else { OFlags::NONBLOCK };
    let file = options.custom_flags(flags.bits() as i32).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

/// Makes the bytes of a file durable, with its length.
pub(super) fn sync_data(file: &File) -> io::Result<()> {
    file.sync_data()?;
    confirm_sync(file)
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    let directory = File::open(directory)?;
    directory.sync_all()?;
    confirm_sync(&directory)
}

/// Reserves disk blocks, and sets the length, where the file system can; whether it could.
pub(super) fn reserve(file: &File, bytes: u64) -> io::Result<bool> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if bytes > 0 {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        loop {
            match fallocate(file, FallocateFlags::empty(), 0, bytes) {
                Ok(()) => return Ok(true),
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => break,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (file, bytes);
    Ok(false)
}

/// An `flock` held until dropped. It belongs to the open file description, so a second one
/// conflicts with it even within the same process.
#[derive(Debug)]
pub(super) struct Locked {
    file: File,
    /// The process that took the lock: a fork shares the description and must not give the lock of
    /// its parent back.
    holder: u32,
}

impl Locked {
    /// Takes the lock, or returns `None` if someone else has it.
    pub(super) fn try_new(path: &Path) -> io::Result<Option<Locked>> {
        Self::try_new_where(path, has_name)
    }

    /// Takes the lock of the file that `has_name` says is the one of that name.
    fn try_new_where(path: &Path, has_name: impl Fn(&File, &Path) -> io::Result<bool>) -> io::Result<Option<Locked>> {
        /// Removals that an open may meet one after the other. A file system that shows an open
        /// file and its name as different ones looks like one without end.
        const MOST_REMOVALS: u32 = 100;
        use rustix::fs::{FlockOperation, flock};
        use rustix::io::Errno;
        let open = || open_own(OpenOptions::new().read(true).write(true).create(true).truncate(false), path, true);
        let mut file = open()?;
        let mut removals = 0;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if has_name(&file, path)? => return Ok(Some(Locked { file, holder: std::process::id() })),
                // Between the two calls the database was removed, with the file: another opener
                // would not meet this lock.
                Ok(()) if removals < MOST_REMOVALS => {
                    removals += 1;
                    file = open()?;
                }
                Ok(()) => return Err(io::Error::other("the lock file is another one than that of its name")),
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }
}

/// Whether the open file is the one of that name.
fn has_name(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match std::fs::symlink_metadata(path) {
        Ok(named) => Ok(id(named) == id(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for Locked {
    /// Closing the file would not do: a process that another thread is about to start holds a copy
    /// of the description from `fork` until `exec` closes it, and with it the lock.
    fn drop(&mut self) {
        if self.holder == std::process::id() {
            let _ = rustix::fs::flock(&self.file, rustix::fs::FlockOperation::Unlock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As on a file system that shows an open file and its name as different ones.
    #[test]
    fn a_lock_file_that_never_has_its_name_is_an_error() {
        let path = std::env::temp_dir().join(format!("esker-lock-without-name-{}", std::process::id()));
        let tried = Locked::try_new_where(&path, |_, _| Ok(false));
        assert!(tried.unwrap_err().to_string().contains("another one than that of its name"));
        assert!(Locked::try_new(&path).unwrap().is_some());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_lock_file_that_was_removed_meanwhile_is_made_again() {
        let path = std::env::temp_dir().join(format!("esker-lock-removed-{}", std::process::id()));
        let removals = std::cell::Cell::new(0);
        let lock = Locked::try_new_where(&path, |file, path| {
            if removals.get() < 3 {
                removals.set(removals.get() + 1);
                std::fs::remove_file(path)?;
            }
            has_name(file, path)
        });
        assert!(lock.unwrap().is_some());
        assert_eq!(removals.get(), 3);
        std::fs::remove_file(&path).unwrap();
    }
}
