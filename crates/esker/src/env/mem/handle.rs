//! The open files and locks of the environment in memory. They keep working on a file that has lost
//! its name.

use super::state::{Change, Inode, Shared, disk_full};
use crate::env::{GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use crate::error::{Error, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

pub(super) struct MemReadFile {
    pub(super) shared: Arc<Shared>,
    pub(super) inode: Arc<Inode>,
    pub(super) path: PathBuf,
    pub(super) len: usize,
    /// None where files cannot be mapped.
    pub(super) mapping: Option<Mapping>,
}

/// The bytes of a mapped file: a copy for every damage it has taken, so that none of them changes
/// under a reader.
#[derive(Default)]
pub(super) struct Mapping {
    copy: OnceLock<Box<Copy>>,
}

struct Copy {
    bytes: Vec<u8>,
    damages: u64,
    next: Mapping,
}

impl Mapping {
    fn newest(&self, inode: &Inode) -> &[u8] {
        let damages = inode.damages.load(Ordering::Acquire);
        let make = || {
            let bytes = inode.data.lock().visible.to_vec();
            Box::new(Copy { bytes, damages, next: Mapping::default() })
        };
        let mut copy = self.copy.get_or_init(make);
        while copy.damages < damages {
            copy = copy.next.copy.get_or_init(make);
        }
        &copy.bytes
    }
}

pub(super) struct MemWriteFile {
    pub(super) shared: Arc<Shared>,
    pub(super) inode: Arc<Inode>,
    pub(super) path: PathBuf,
    pub(super) len: usize,
}

pub(super) struct MemLogFile {
    pub(super) shared: Arc<Shared>,
    pub(super) inode: Arc<Inode>,
    pub(super) path: PathBuf,
    pub(super) len: usize,
}

pub(super) struct MemGrowingFile {
    pub(super) shared: Arc<Shared>,
    pub(super) inode: Arc<Inode>,
    pub(super) path: PathBuf,
}

pub(super) struct MemLock {
    pub(super) shared: Arc<Shared>,
    pub(super) key: PathBuf,
}

macro_rules! debug_by_path {
    ($($name:ident: $field:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.$field).finish()
            }
        }
    )*};
}
debug_by_path!(MemReadFile: path, MemWriteFile: path, MemLogFile: path, MemGrowingFile: path, MemLock: key);

fn read(shared: &Shared, inode: &Inode, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<()> {
    shared.check_alive("read", path)?;
    let data = inode.data.lock();
    if usize::try_from(offset).is_ok_and(|offset| data.visible.read(offset, buffer)) {
        return Ok(());
    }
    let what = format!("the file ends at {}, {} bytes were expected from here", data.visible.len(), buffer.len());
    Err(Error::corruption(path, offset, what))
}

impl ReadFile for MemReadFile {
    fn len(&self) -> u64 {
        self.len as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        read(&self.shared, &self.inode, &self.path, offset, buffer)
    }

    fn mapping(&self) -> Option<&[u8]> {
        let bytes = self.mapping.as_ref()?.newest(&self.inode);
        Some(&bytes[..bytes.len().min(self.len)])
    }

    /// Memory cannot fail.
    fn check_mapping(&self) -> Result<()> {
        Ok(())
    }
}

impl WriteFile for MemWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let change = |bytes: &[u8]| Change::Write { offset: self.len, bytes: bytes.into(), append: true };
        let state = self.shared.begin_write("append to", &self.path, &self.inode, &change(bytes))?;
        let room = usize::try_from(state.room()).unwrap_or(usize::MAX);
        let written = &bytes[..bytes.len().min(room)];
        self.inode.data.lock().change(change(written));
        self.len += written.len();
        if written.len() < bytes.len() {
            return Err(disk_full("append to", &self.path));
        }
        Ok(())
    }

    /// Nothing is buffered.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.shared.sync(&self.inode, &self.path)
    }

    fn len(&self) -> u64 {
        self.len as u64
    }
}

impl GrowingFile for MemGrowingFile {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let Some((offset, end)) = usize::try_from(offset).ok().and_then(|at| Some((at, at.checked_add(bytes.len())?)))
        else {
            return Err(disk_full("write to", &self.path));
        };
        let change = Change::Write { offset, bytes: bytes.into(), append: true };
        let state = self.shared.begin_write("write to", &self.path, &self.inode, &change)?;
        // The room is counted before this file's own lock is taken: counting takes the locks of all
        // files.
        let len = self.inode.data.lock().visible.len();
        if end.saturating_sub(len) as u64 > state.room() {
            return Err(disk_full("write to", &self.path));
        }
        self.inode.data.lock().change(change);
        Ok(())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        read(&self.shared, &self.inode, &self.path, offset, buffer)
    }

    fn sync(&self) -> Result<()> {
        self.shared.sync(&self.inode, &self.path)
    }
}

impl LogFile for MemLogFile {
    fn len(&self) -> u64 {
        self.len as u64
    }

    /// With the zeroes that the contract allows.
    fn store(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let padded = bytes.len().next_multiple_of(8);
        let fits = offset.checked_add(padded as u64).is_some_and(|end| end <= self.len as u64);
        if padded == bytes.len() || !offset.is_multiple_of(8) || !fits {
            return self.write(offset, bytes);
        }
        let mut bytes = bytes.to_vec();
        bytes.resize(padded, 0);
        self.write(offset, &bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let fits = |&offset: &usize| offset.checked_add(bytes.len()).is_some_and(|end| end <= self.len);
        let Some(offset) = usize::try_from(offset).ok().filter(fits) else {
            return Err(Error::invalid(format!(
                "{} bytes at offset {offset} do not fit into {}, a log of {} bytes",
                bytes.len(),
                self.path.display(),
                self.len
            )));
        };
        let change = Change::Write { offset, bytes: bytes.into(), append: false };
        let _order = self.shared.begin_write("write to", &self.path, &self.inode, &change)?;
        self.inode.data.lock().change(change);
        Ok(())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        read(&self.shared, &self.inode, &self.path, offset, buffer)
    }

    fn sync(&self) -> Result<()> {
        self.shared.sync(&self.inode, &self.path)
    }

    /// Exactly these bytes and nothing more: no page is rounded to, and a length that is not
    /// durable stays so.
    fn sync_range(&self, from: u64, to: u64) -> Result<()> {
        let [from, to] = [from, to].map(|at| usize::try_from(at).unwrap_or(usize::MAX).min(self.len));
        self.shared.sync_range(&self.inode, &self.path, from..to)
    }

    /// All of it is memory.
    fn prefault(&self, _from: u64, _to: u64) {}

    fn fill_new(&self, _from: u64) {}

    fn release_memory(&self, _from: u64, _to: u64) {}
}

impl Lock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.shared.state.lock().locks.remove(&self.key);
    }
}
