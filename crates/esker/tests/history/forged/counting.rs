//! An environment that counts the bytes that are read of files, and those that are written to
//! growing ones, which blob files are. None is mapped, so that every byte comes through a call.

use esker::Result;
use esker::env::mem::MemEnv;
use esker::env::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

type Bytes = Arc<Mutex<BTreeMap<PathBuf, u64>>>;

/// Clones share the files and the counts.
#[derive(Clone, Debug)]
pub struct CountingEnv {
    inner: MemEnv,
    reads: Bytes,
    writes: Bytes,
}

impl CountingEnv {
    pub fn new(inner: &MemEnv) -> CountingEnv {
        CountingEnv { inner: inner.clone(), reads: Bytes::default(), writes: Bytes::default() }
    }

    /// Bytes read so far of files whose names end so.
    pub fn bytes_read(&self, ending: &str) -> u64 {
        sum(&self.reads, ending)
    }

    /// Bytes written so far to growing files whose names end so.
    pub fn bytes_written(&self, ending: &str) -> u64 {
        sum(&self.writes, ending)
    }

    fn counted<F>(&self, path: &Path, inner: F) -> Counted<F> {
        let (reads, writes) = (Arc::clone(&self.reads), Arc::clone(&self.writes));
        Counted { inner, path: path.to_path_buf(), reads, writes }
    }
}

fn sum(bytes: &Bytes, ending: &str) -> u64 {
    let bytes = bytes.lock().unwrap();
    bytes.iter().filter(|(path, _)| path.to_string_lossy().ends_with(ending)).map(|(_, bytes)| bytes).sum()
}

/// An open file.
#[derive(Debug)]
struct Counted<F> {
    inner: F,
    path: PathBuf,
    reads: Bytes,
    writes: Bytes,
}

impl<F> Counted<F> {
    fn count(&self, bytes: usize) {
        *self.reads.lock().unwrap().entry(self.path.clone()).or_default() += bytes as u64;
    }

    fn count_written(&self, bytes: usize) {
        *self.writes.lock().unwrap().entry(self.path.clone()).or_default() += bytes as u64;
    }
}

impl Env for CountingEnv {
    fn create_dir_all(&self, directory: &Path) -> Result<()> {
        self.inner.create_dir_all(directory)
    }
    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.inner.list(directory)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(self.counted(path, self.inner.open(path)?)))
    }
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        self.inner.create(path)
    }
    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>> {
        Ok(Arc::new(self.counted(path, self.inner.create_growing(path)?)))
    }
    fn open_log(&self, path: &Path, create_bytes: Option<u64>, mapped: bool) -> Result<Arc<dyn LogFile>> {
        Ok(Arc::new(self.counted(path, self.inner.open_log(path, create_bytes, mapped)?)))
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.hard_link(from, to)
    }
    fn sync_dir(&self, directory: &Path) -> Result<()> {
        self.inner.sync_dir(directory)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.inner.lock(path)
    }
    fn random(&self) -> u64 {
        self.inner.random()
    }
}

impl ReadFile for Counted<Arc<dyn ReadFile>> {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.count(buffer.len());
        self.inner.read_at(offset, buffer)
    }
    fn mapping(&self) -> Option<&[u8]> {
        None
    }
    fn check_mapping(&self) -> Result<()> {
        Ok(())
    }
}

impl GrowingFile for Counted<Arc<dyn GrowingFile>> {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.count_written(bytes.len());
        self.inner.write(offset, bytes)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.count(buffer.len());
        self.inner.read_at(offset, buffer)
    }
    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }
}

impl LogFile for Counted<Arc<dyn LogFile>> {
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn store(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.inner.store(offset, bytes)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.inner.write(offset, bytes)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.count(buffer.len());
        self.inner.read_at(offset, buffer)
    }
    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }
    fn sync_range(&self, from: u64, to: u64) -> Result<()> {
        self.inner.sync_range(from, to)
    }
    fn prefault(&self, from: u64, to: u64) {
        self.inner.prefault(from, to);
    }
    fn fill_new(&self, from: u64) {
        self.inner.fill_new(from);
    }
    fn release_memory(&self, from: u64, to: u64) {
        self.inner.release_memory(from, to);
    }
}
