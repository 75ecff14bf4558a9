//! The environment of the machine itself: files, directories and locks of the operating system.
//!
//! On Unix, reads and writes are positioned system calls, tables can be read through a mapping, and
//! on Linux log segments can be written through one. Elsewhere everything goes through the standard
//! library and nothing is mapped.
//!
//! A mapping trusts the file: if the medium fails under it, another program shortens it, or a store
//! needs a block of a full disk, the system answers the access with a signal. On Linux, Android and
//! Apple's systems the signal is caught, and the call that met it fails (`guard.rs`,
//! doc/decisions/0033); elsewhere nothing is mapped. The engine never shortens a file that it has
//! open, and log segments are only mapped where every block is allocated, as far as can be told
//! (see [`OsEnv`]).

use super::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use crate::error::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

#[cfg(unix)]
mod confirm;
#[cfg(unix)]
mod guard;
#[cfg(unix)]
mod map;
#[cfg(any(test, not(unix)))]
#[cfg_attr(unix, allow(dead_code))]
mod plain;
#[cfg(unix)]
mod unix;

#[cfg(unix)]
use map::{LogMap, ReadMap};
#[cfg(not(unix))]
use plain as system;
#[cfg(not(unix))]
use plain::{LogMap, ReadMap};
#[cfg(unix)]
use unix as system;

#[cfg(test)]
mod tests;

/// Appends are gathered up to this size; larger ones go to the system at once.
const APPEND_BUFFER: usize = 256 << 10;

/// A new log segment is filled with zeroes in steps of this size, where it has to be.
const ZERO_CHUNK: usize = 1 << 20;

/// The operating system's files. All values are alike and cost nothing.
///
/// - A file made by [`Env::create`] keeps up to 256 KiB of appended bytes in memory; `sync` passes
///   them on. Dropping the file discards them.
/// - [`Env::open_log`] with a size first gets a like-named file out of the way, so that other links
///   to it keep their bytes. The new file's space is reserved, or filled with zeroes where the file
///   system cannot reserve; if that fails, for example on a full disk, it is removed again.
/// - A log segment opened as `mapped` is mapped on Linux, unless its file has unallocated parts or
///   lies on a copy-on-write file system: a store that needs a new block cannot tell that the disk
///   is full before it is lost. Where that shows later (a segment shared by `cp --reflink`, a
///   copy-on-write file system below an overlay), [`LogFile::store`] fails, and every sync after
///   it. Unmapped segments work the same, one system call per store.
/// - With the first mapping a handler for SIGBUS is installed in the process, which makes faults
///   under mappings errors. Faults anywhere else, and signals that are sent, go on to the handler
///   that was installed before. A program that installs one later must call this one for faults
///   that are not its own, or else faults end the process as they would have without it. At most
///   16384 files are mapped at a time; others are read and written by system calls.
/// - [`LogFile::sync_range`] of a mapped segment touches the pages of that range only; elsewhere it
///   syncs the file. Pre-faulting touches pages for writing, so a `sync` after it writes them all.
/// - What is opened must be a file, not a pipe or a device, and what is opened for writing not a
///   link: a directory prepared by another user leads nowhere else. (Elsewhere than on Unix, links
///   are followed.)
/// - Ext4 and XFS report success for a sync in whose course they give up, after an error of the
///   device for example. On Linux and Android every sync of a file and of a directory therefore
///   fails if the file system has given up before its end.
/// - [`Env::lock`] is an advisory `flock` on Unix and a share mode on Windows: the system drops it
///   with the process. Elsewhere it excludes only other handles of the same process.
///
/// ```
/// use esker::env::{Env, os::OsEnv};
/// assert!(OsEnv.exists(&std::env::temp_dir())?);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEnv;

impl OsEnv {
    /// The operating system's environment.
    ///
    /// ```
    /// let options = esker::Options::default().env(std::sync::Arc::new(esker::env::os::OsEnv::new())); // the default
    /// ```
    pub fn new() -> OsEnv {
        OsEnv
    }
}

impl Env for OsEnv {
    fn create_dir_all(&self, directory: &Path) -> Result<()> {
        fs::create_dir_all(or_here(directory)).map_err(|e| Error::io("create the directory", directory, e))
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        let failed = |e| Error::io("list", directory, e);
        let mut names = Vec::new();
        for entry in fs::read_dir(or_here(directory)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_dir() {
                continue;
            }
            // A name that is not UTF-8 cannot be one of the engine's.
            if let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        or_here(path).try_exists().map_err(|e| Error::io("look for", path, e))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let failed = |e| Error::io("open", path, e);
        let file = system::open_own(OpenOptions::new().read(true), path, false).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let file = system::Positioned::new(file);
        Ok(Arc::new(OsReadFile { path: path.to_path_buf(), file, len, map: OnceLock::new() }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let opened = system::open_own(OpenOptions::new().write(true).create(true).truncate(true), path, true);
        let file = opened.map_err(|e| Error::io("create", path, e))?;
        Ok(Box::new(OsWriteFile { path: path.to_path_buf(), file, buffer: Vec::new(), len: 0, failed: false }))
    }

    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>> {
        // A file of that name belongs to another program: numbers are never reused.
        let opened = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = system::Positioned::new(opened.map_err(|e| Error::io("create", path, e))?);
        if let Err(e) = file.sync_name() {
            let _ = fs::remove_file(path);
            return Err(Error::io("sync", path, e));
        }
        Ok(Arc::new(OsGrowingFile { path: path.to_path_buf(), file, failed: AtomicBool::new(false) }))
    }

    fn open_log(&self, path: &Path, create_bytes: Option<u64>, mapped: bool) -> Result<Arc<dyn LogFile>> {
        let file = match create_bytes {
            Some(bytes) => create_zeroed(path, bytes)?,
            None => {
                let opened = system::open_own(OpenOptions::new().read(true).write(true), path, true);
                opened.map_err(|e| Error::io("open the log", path, e))?
            }
        };
        let len = file.metadata().map_err(|e| Error::io("open the log", path, e))?.len();
        let map = if mapped { LogMap::new(&file, len) } else { None };
        let file = system::Positioned::new(file);
        Ok(Arc::new(OsLogFile { path: path.to_path_buf(), file, len, map, failed: AtomicBool::new(false) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|e| Error::io("rename", from, e))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|e| Error::io("remove", path, e))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        fs::hard_link(from, to).map_err(|e| Error::io("link to", from, e))
    }

    fn sync_dir(&self, directory: &Path) -> Result<()> {
        system::sync_directory(or_here(directory)).map_err(|e| Error::io("sync the directory", directory, e))
    }

    fn calls_no_database(&self) -> bool {
        true
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        let failed = |e| Error::io("lock", path, e);
        let Some(mut guard) = system::Locked::try_new(path).map_err(failed)? else {
            return Err(Error::Locked { path: path.to_path_buf(), holder: read_holder(path) });
        };
        match write_holder(guard.file()) {
            // The process id only helps people. A database on a full disk must still open for
            // reading.
            Err(e) if !matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => Err(failed(e)),
            _ => Ok(Box::new(OsLock { _guard: guard })),
        }
    }
}

/// `Path::parent` of a bare name is the empty path; the system calls that directory `.`.
fn or_here(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Makes a file of `bytes` that is allocated and reads as zeroes, or leaves none of that name.
fn create_zeroed(path: &Path, bytes: u64) -> Result<File> {
    let failed = |e| Error::io("create the log", path, e);
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).map_err(failed)?;
    allocate(&file, bytes).map_err(|e| {
        // The name was free before this call and the error already tells the cause, so a failing
        // removal adds nothing.
        let _ = fs::remove_file(path);
        failed(e)
    })?;
    Ok(file)
}

fn allocate(mut file: &File, bytes: u64) -> io::Result<()> {
    // Reserved blocks read as zeroes. Writing them as well would make later syncs cheaper, which is
    // for the caller to decide.
    if system::reserve(file, bytes)? {
        return Ok(());
    }
    let zeroes = vec![0u8; ZERO_CHUNK.min(usize::try_from(bytes).unwrap_or(ZERO_CHUNK))];
    let mut left = bytes;
    while left > 0 {
        let step = left.min(zeroes.len() as u64);
        file.write_all(&zeroes[..step as usize])?;
        left -= step;
    }
    Ok(())
}

fn read_holder(path: &Path) -> Option<u32> {
    let mut text = String::new();
    system::open_own(OpenOptions::new().read(true), path, false).ok()?.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

/// Reads until `buffer` is full. An end of file is damage: every caller knows how long the file has
/// to be.
fn read_full(file: &system::Positioned, path: &Path, offset: u64, buffer: &mut [u8]) -> Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        let Some(at) = offset.checked_add(done as u64) else {
            return Err(Error::corruption(path, offset, "the offset is beyond every file"));
        };
        match file.read_at(&mut buffer[done..], at) {
            Ok(0) => {
                let what = format!("the file ends at {at}, {} bytes were expected from here", buffer.len());
                return Err(Error::corruption(path, offset, what));
            }
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("read", path, e)),
        }
    }
    Ok(())
}

/// After a failed write or sync the system may have dropped the bytes and forgotten that it did, so
/// that a second sync would succeed without them. Nothing may succeed on such a file any more.
fn refuse_after_failure(operation: &'static str, path: &Path) -> Error {
    Error::io(operation, path, io::Error::other("an earlier write or sync of this file failed"))
}

#[derive(Debug)]
struct OsLock {
    _guard: system::Locked,
}

impl Lock for OsLock {}

#[derive(Debug)]
struct OsReadFile {
    path: PathBuf,
    file: system::Positioned,
    len: u64,
    map: OnceLock<Option<ReadMap>>,
}

impl ReadFile for OsReadFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        read_full(&self.file, &self.path, offset, buffer)
    }

    #[inline]
    fn mapping(&self) -> Option<&[u8]> {
        self.map.get_or_init(|| ReadMap::new(&self.file, self.len)).as_ref().map(ReadMap::bytes)
    }

    fn check_mapping(&self) -> Result<()> {
        match self.map.get() {
            Some(Some(map)) if map.has_failed() => {
                let what = "a page of the mapped file could not be read: the medium failed, or the file was cut short";
                Err(Error::io("read", &self.path, io::Error::other(what)))
            }
            _ => Ok(()),
        }
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        self.file.will_read(offset, bytes);
    }
}

#[derive(Debug)]
struct OsWriteFile {
    path: PathBuf,
    file: File,
    /// Bytes appended but not yet given to the system; never longer than `APPEND_BUFFER`.
    buffer: Vec<u8>,
    len: u64,
    failed: bool,
}

impl OsWriteFile {
    fn append_inner(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > APPEND_BUFFER {
            self.flush_inner()?;
        }
        if bytes.len() >= APPEND_BUFFER {
            return self.file.write_all(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush_inner(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl WriteFile for OsWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.failed {
            return Err(refuse_after_failure("append to", &self.path));
        }
        if let Err(e) = self.append_inner(bytes) {
            self.failed = true;
            return Err(Error::io("append to", &self.path, e));
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.failed {
            return Err(refuse_after_failure("append to", &self.path));
        }
        if let Err(e) = self.flush_inner() {
            self.failed = true;
            return Err(Error::io("append to", &self.path, e));
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        if self.failed {
            return Err(refuse_after_failure("sync", &self.path));
        }
        // Syncing the data alone includes the length, without which the data could not be read.
        if let Err(e) = self.flush_inner().and_then(|()| system::sync_data(&self.file)) {
            self.failed = true;
            return Err(Error::io("sync", &self.path, e));
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }
}

/// A new log file's zeroes are written in aligned pieces of this size: the larger the piece, the
/// larger the pages that the system keeps them in, and the fewer page faults.
const ZEROES_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct OsLogFile {
    path: PathBuf,
    file: system::Positioned,
    len: u64,
    map: Option<LogMap>,
    failed: AtomicBool,
}

impl OsLogFile {
    #[cold]
    fn beyond_end(&self, offset: u64, bytes: usize) -> Error {
        Error::invalid(format!(
            "{bytes} bytes at offset {offset} do not fit into {}, a log of {} bytes",
            self.path.display(),
            self.len
        ))
    }

    fn fits(&self, offset: u64, bytes: usize) -> bool {
        offset.checked_add(bytes as u64).is_some_and(|end| end <= self.len)
    }

    #[cold]
    fn fail(&self, operation: &'static str, error: io::Error) -> Error {
        self.failed.store(true, Ordering::Release);
        Error::io(operation, &self.path, error)
    }

    /// The error that the store of `bytes` at `offset` was lost. The system does not report the
    /// cause: a write is tried for it, and its error, as a full disk, is the cause. In any case the
    /// file is not written again: stores since may have been lost besides.
    #[cold]
    fn lost(&self, offset: u64, bytes: &[u8]) -> Error {
        let what = "a page of the mapped log could not be written: the disk was full for a moment, the medium \
                    failed, or the file was cut short";
        let is_short = self.file.file_bytes().is_ok_and(|len| len < self.len);
        let written = if is_short { Ok(()) } else { self.file.write_all_at(bytes, offset) };
        self.fail("write to", written.err().unwrap_or_else(|| io::Error::other(what)))
    }

    /// Refuses a sync after a failure.
    fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Acquire) || self.map.as_ref().is_some_and(LogMap::has_failed) {
            return Err(refuse_after_failure("sync", &self.path));
        }
        Ok(())
    }
}

impl LogFile for OsLogFile {
    fn len(&self) -> u64 {
        self.len
    }

    fn store(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        if !self.fits(offset, bytes.len()) {
            return Err(self.beyond_end(offset, bytes.len()));
        }
        match &self.map {
            Some(map) if map.store(offset, bytes) => {
                if map.has_failed() {
                    return Err(self.lost(offset, bytes));
                }
                Ok(())
            }
            _ => self.file.write_all_at(bytes, offset).map_err(|e| self.fail("write to", e)),
        }
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        if !self.fits(offset, bytes.len()) {
            return Err(self.beyond_end(offset, bytes.len()));
        }
        self.file.write_all_at(bytes, offset).map_err(|e| self.fail("write to", e))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        read_full(&self.file, &self.path, offset, buffer)
    }

    fn sync(&self) -> Result<()> {
        self.check()?;
        self.file.sync_data().map_err(|e| self.fail("sync", e))
    }

    fn sync_range(&self, from: u64, to: u64) -> Result<()> {
        let Some(map) = &self.map else { return self.sync() };
        self.check()?;
        map.sync_range(from, to).and_then(|()| self.file.confirm_sync()).map_err(|e| self.fail("sync", e))
    }

    fn prefault(&self, from: u64, to: u64) {
        if let Some(map) = &self.map {
            map.prefault(from, to);
        }
    }

    fn fill_new(&self, from: u64) {
        if self.map.is_none() {
            return;
        }
        let zeroes = vec![0; ZEROES_BYTES];
        let mut at = from;
        while at < self.len {
            let step = (self.len - at).min(ZEROES_BYTES as u64 - at % ZEROES_BYTES as u64);
            // The bytes are zeroes in any case.
            if self.file.write_all_at(&zeroes[..step as usize], at).is_err() {
                return;
            }
            at += step;
        }
    }

    fn release_memory(&self, from: u64, to: u64) {
        if let Some(map) = &self.map {
            map.release_memory(from, to);
        }
    }
}

#[derive(Debug)]
struct OsGrowingFile {
    path: PathBuf,
    file: system::Positioned,
    /// A sync failed.
    failed: AtomicBool,
}

impl GrowingFile for OsGrowingFile {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|e| Error::io("write to", &self.path, e))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        read_full(&self.file, &self.path, offset, buffer)
    }

    fn sync(&self) -> Result<()> {
        if self.failed.load(Ordering::Acquire) {
            return Err(refuse_after_failure("sync", &self.path));
        }
        // Syncing the data alone includes the length, without which the data could not be read.
        self.file.sync_data().map_err(|e| {
            self.failed.store(true, Ordering::Release);
            Error::io("sync", &self.path, e)
        })
    }
}
