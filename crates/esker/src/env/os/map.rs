//! Memory mappings: the only unsafe code of the environment.

use super::unix::Positioned;
use memmap2::{Mmap, MmapOptions, MmapRaw};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

/// A whole file mapped for reading.
#[derive(Debug)]
pub(super) struct ReadMap {
    map: Mmap,
}

impl ReadMap {
    /// Maps the first `len` bytes, or returns `None` if that is nothing or not possible.
    pub(super) fn new(file: &Positioned, len: u64) -> Option<ReadMap> {
        let file = file.file();
        let len = usize::try_from(len).ok().filter(|&len| len > 0)?;
        // Pages wholly beyond the end of a file that has shrunk since it was opened cannot be touched.
        if file.metadata().ok()?.len() < len as u64 {
            return None;
        }
        // SAFETY: the mapping is private to reading, its length was just checked against the file's, and the engine maps
        // only table files, which nothing writes to or shortens once they are complete. A foreign program that changes
        // them breaks the same rule as one that changes the memory of this process; the module text says so.
        let map = unsafe { MmapOptions::new().len(len).map(file) }.ok()?;
        Some(ReadMap { map })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.map
    }
}

/// A whole log segment mapped for writing, shared with the file.
#[derive(Debug)]
pub(super) struct LogMap {
    map: MmapRaw,
    /// Set while a store is running, so that stores never overlap in time.
    storing: AtomicBool,
}

impl LogMap {
    /// Maps the segment, or returns `None` where stores into it could fail or would not be seen by `read` and `sync`.
    pub(super) fn new(file: &File, len: u64) -> Option<LogMap> {
        if len == 0 || !cfg!(any(target_os = "linux", target_os = "android")) || !stores_cannot_fail(file, len) {
            return None;
        }
        let map = MmapRaw::map_raw(file).ok()?;
        if map.len() as u64 != len {
            return None;
        }
        Some(LogMap { map, storing: AtomicBool::new(false) })
    }

    /// Makes every page writable now, instead of at its first store.
    pub(super) fn prefault(&self) {
        // Older kernels do not know the call; then each page faults at its first store.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ = self.map.advise(memmap2::Advice::PopulateWrite);
    }

    /// Takes the pages out of the process's memory. What was stored is the system's, and comes back at the next touch.
    pub(super) fn release_memory(&self) {
        // SAFETY: the mapping is shared with its file: dropping pages from it loses no bytes, because they are the file's, and no Rust reference to them exists.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ = unsafe { self.map.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
    }

    /// Copies `bytes` to `offset`. False, with nothing written, if they do not fit or another store is running.
    pub(super) fn store(&self, offset: u64, bytes: &[u8]) -> bool {
        let Ok(offset) = usize::try_from(offset) else { return false };
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.map.len()) {
            return false;
        }
        if self.storing.swap(true, Ordering::Acquire) {
            return false;
        }
        // SAFETY: the target range lies inside the mapping, as checked above, and the mapping lives as long as `self`.
        // No Rust reference to the mapped memory exists: it is reached only through this raw pointer, only here, and
        // readers go through system calls. `storing` admits one thread at a time, so there is no data race either, and
        // `bytes` cannot overlap memory that no reference covers. Every block is allocated (`stores_cannot_fail`).
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.as_mut_ptr().add(offset), bytes.len()) };
        self.storing.store(false, Ordering::Release);
        true
    }
}

/// Whether every block of the file is allocated and will be overwritten in place. A store into a page that still needs
/// a block cannot return "disk full": the system would kill the process.
fn stores_cannot_fail(file: &File, len: u64) -> bool {
    use std::os::unix::fs::MetadataExt;
    /// `MetadataExt::blocks` counts in this unit whatever the file system's block size is.
    const BLOCK_UNIT: u64 = 512;
    let Ok(metadata) = file.metadata() else { return false };
    metadata.len() == len && metadata.blocks().saturating_mul(BLOCK_UNIT) >= len && !copies_on_write(file)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn copies_on_write(file: &File) -> bool {
    // Magic numbers of statfs(2): btrfs, ZFS, bcachefs.
    const COPY_ON_WRITE: [u64; 3] = [0x9123_683e, 0x2fc1_2fc1, 0xca45_1a4e];
    match rustix::fs::fstatfs(file) {
        // The field's width and sign differ between architectures; the magic numbers are 32 bits wide.
        Ok(status) => COPY_ON_WRITE.contains(&(status.f_type as u64 & 0xffff_ffff)),
        Err(_) => true,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn copies_on_write(_file: &File) -> bool {
    true
}
