//! Memory mappings. `guard.rs` handles accesses to unavailable pages.

use super::guard::{Guard, RANGES, Ranges};
use super::unix::Positioned;
use crate::env::mapping_fault_seen;
use memmap2::{Mmap, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// A whole file mapped for reading.
#[derive(Debug)]
pub(super) struct ReadMap {
    /// Before the mapping: it is dropped first.
    guard: Guard,
    map: Mmap,
}

impl ReadMap {
    /// Maps the first `len` bytes, or returns `None` if that is nothing or not possible.
    pub(super) fn new(file: &Positioned, len: u64) -> Option<ReadMap> {
        ReadMap::guarded(file, len, &RANGES)
    }

    /// As `new`, guarded by an entry in `ranges`.
    pub(super) fn guarded(file: &Positioned, len: u64, ranges: &'static Ranges) -> Option<ReadMap> {
        let file = file.file();
        let len = usize::try_from(len).ok().filter(|&len| len > 0)?;
        // Pages wholly beyond the end of a file that has shrunk since it was opened cannot be
        // touched.
        if file.metadata().ok()?.len() < len as u64 {
            return None;
        }
        // SAFETY: the mapping is private to reading, its length was just checked against the
        // file's, and the engine maps only table files, which nothing writes to or shortens once
        // they are complete. A foreign program that changes them breaks the same rule as one that
        // changes the memory of this process; the module text says so.
        let map = unsafe { MmapOptions::new().len(len).map(file) }.ok()?;
        // Lookups touch a page here and there. Otherwise the system would read megabytes around
        // each of them, if that is how far the device reads ahead. Scans say what they will read.
        // A system that cannot do it reads more than is needed.
        let _ = map.advise(memmap2::Advice::Random);
        let guard = ranges.guard(map.as_ptr() as usize, map.len())?;
        Some(ReadMap { guard, map })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Whether a page was unavailable. Its bytes read as zeroes.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        mapping_fault_seen() && self.guard.has_failed()
    }
}

/// The unit in which pages are taken out of the mapping. Where pages are larger, the system rounds:
/// that takes a page too many, which comes back at its next touch.
const PAGE_BYTES: usize = 4096;
/// Stores are made in words of this size.
const WORD_BYTES: usize = size_of::<u64>();

/// A whole log segment mapped for writing, shared with the file.
#[derive(Debug)]
pub(super) struct LogMap {
    /// Before the mapping: it is dropped first.
    guard: Guard,
    map: MmapRaw,
}

impl LogMap {
    /// Maps the segment, or returns `None` where stores into it are likely to fail or would not be
    /// seen by `read` and `sync`.
    pub(super) fn new(file: &File, len: u64) -> Option<LogMap> {
        LogMap::guarded(file, len, &RANGES)
    }

    /// As `new`, guarded by an entry in `ranges`.
    pub(super) fn guarded(file: &File, len: u64, ranges: &'static Ranges) -> Option<LogMap> {
        if len == 0 || !cfg!(any(target_os = "linux", target_os = "android")) || !stores_hardly_fail(file, len) {
            return None;
        }
        let map = MmapRaw::map_raw(file).ok()?;
        if map.len() as u64 != len {
            return None;
        }
        let guard = ranges.guard(map.as_mut_ptr() as usize, map.len())?;
        Some(LogMap { guard, map })
    }

    /// Whether a store has failed: it, and all later ones into its page, are lost.
    #[inline]
    pub(super) fn has_failed(&self) -> bool {
        mapping_fault_seen() && self.guard.has_failed()
    }

    /// The part of a range of the file that is mapped, as offset and length.
    fn clip(&self, from: u64, to: u64) -> (usize, usize) {
        let inside = |at: u64| usize::try_from(at).map_or(self.map.len(), |at| at.min(self.map.len()));
        (inside(from), inside(to).saturating_sub(inside(from)))
    }

    /// Makes a range of the file durable, however it was written, as `fdatasync` does the whole
    /// file.
    ///
    /// On Linux, `msync` with `MS_SYNC` is `fdatasync` limited to a range of the file that the
    /// mapping was made of: it writes the dirty pages of the range out of the one page cache that
    /// stores and writes share and waits for them; it commits what the file system still owes the
    /// inode for them to be found (reserved blocks that were written for the first time); it
    /// flushes the device's cache; and it returns the error of any page of the file that could not
    /// be written since the last sync through the same open file, each once. Whether the file
    /// system gave up meanwhile it does not tell: the caller asks (`confirm.rs`).
    ///
    /// Before a page is written, the system makes it read-only in every mapping that has it
    /// writable, and interrupts the other processors for each such page, so that they forget how it
    /// was. Pages that the writer has left are therefore taken out of the mapping first, all at
    /// once with one interrupt; their bytes are the file's and stay dirty.
    pub(super) fn sync_range(&self, from: u64, to: u64) -> io::Result<()> {
        let (from, len) = self.clip(from, to);
        if len == 0 {
            return Ok(());
        }
        self.leave(from, len);
        self.map.flush_range(from, len)
    }

    /// Makes the pages of a range writable now, instead of at their first store.
    pub(super) fn prefault(&self, from: u64, to: u64) {
        let (from, len) = self.clip(from, to);
        // Older kernels do not know the call; then each page faults at its first store.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ = self.map.advise_range(memmap2::Advice::PopulateWrite, from, len);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = (from, len);
    }

    /// Takes the pages of a range out of the process's memory, but for the one that its end is in.
    /// What was stored is the system's, and comes back at the next touch.
    pub(super) fn release_memory(&self, from: u64, to: u64) {
        let (from, len) = self.clip(from, to);
        self.leave(from, len);
    }

    fn leave(&self, from: usize, len: usize) {
        let (first, behind) = (from - from % PAGE_BYTES, from + len - (from + len) % PAGE_BYTES);
        if behind > first {
            // SAFETY: the mapping is shared with its file: dropping pages from it loses no bytes,
            // because they are the file's, and no Rust reference to them exists. A store that runs
            // meanwhile brings its page back.
            #[cfg(any(target_os = "linux", target_os = "android"))]
            let _ =
                unsafe { self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, first, behind - first) };
        }
    }

    /// Copies `bytes` to `offset`, and zeroes up to the next multiple of 8. False, with nothing
    /// written, if they do not begin at such a multiple or do not fit.
    #[inline]
    pub(super) fn store(&self, offset: u64, bytes: &[u8]) -> bool {
        let Ok(offset) = usize::try_from(offset) else { return false };
        let end = offset.checked_add(bytes.len()).and_then(|end| end.checked_next_multiple_of(WORD_BYTES));
        if !offset.is_multiple_of(WORD_BYTES) || end.is_none_or(|end| end > self.map.len()) {
            return false;
        }
        let (whole, rest) = bytes.as_chunks();
        let mut last = [0; WORD_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        let last = if rest.is_empty() { &[][..] } else { std::slice::from_ref(&last) };
        let mut at = offset;
        for &word in whole.iter().chain(last) {
            // SAFETY: `at` is a multiple of the word size below `end`, which lies inside the
            // mapping, as checked above; the mapping begins at a page and lives as long as `self`.
            // The memory is reached only here and only atomically, in words that never overlap in
            // part, so that stores of several threads are no data race whatever their ranges;
            // readers go through system calls. A store that the system cannot take is caught
            // (`guard.rs`).
            let place = unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at).cast::<u64>()) };
            place.store(u64::from_ne_bytes(word), Ordering::Relaxed);
            at += WORD_BYTES;
        }
        true
    }
}

/// Whether every block of the file is allocated and will be overwritten in place, as far as that
/// can be told. A store into a page that still needs a block cannot return "disk full": it is lost,
/// and found so afterwards, which makes the database read-only. A write that needs one fails by
/// itself.
fn stores_hardly_fail(file: &File, len: u64) -> bool {
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
        // The field's width and sign differ between architectures; the magic numbers are 32 bits
        // wide.
        Ok(status) => COPY_ON_WRITE.contains(&(status.f_type as u64 & 0xffff_ffff)),
        Err(_) => true,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn copies_on_write(_file: &File) -> bool {
    true
}
