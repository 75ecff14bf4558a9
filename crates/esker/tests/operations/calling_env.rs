//! An environment that tells of each call, before it makes it.

use esker::Result;
use esker::env::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// What is told of calls.
pub type Told = Arc<dyn Fn(&'static str) + Send + Sync>;

/// The environment, or a file of it.
pub struct Telling<C> {
    pub told: Told,
    pub called: C,
}

impl<C> Telling<C> {
    fn opened<F>(&self, file: F) -> Telling<F> {
        Telling { told: Arc::clone(&self.told), called: file }
    }
}

impl<C: fmt::Debug> fmt::Debug for Telling<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.called.fmt(f)
    }
}

impl Env for Telling<Arc<dyn Env>> {
    fn create_dir_all(&self, directory: &Path) -> Result<()> {
        (self.told)("create_dir_all");
        self.called.create_dir_all(directory)
    }
    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        (self.told)("list");
        self.called.list(directory)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        (self.told)("exists");
        self.called.exists(path)
    }
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        (self.told)("open");
        Ok(Arc::new(self.opened(self.called.open(path)?)))
    }
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        (self.told)("create");
        Ok(Box::new(self.opened(self.called.create(path)?)))
    }
    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>> {
        (self.told)("create_growing");
        Ok(Arc::new(self.opened(self.called.create_growing(path)?)))
    }
    fn open_log(&self, path: &Path, create_bytes: Option<u64>, mapped: bool) -> Result<Arc<dyn LogFile>> {
        (self.told)("open_log");
        Ok(Arc::new(self.opened(self.called.open_log(path, create_bytes, mapped)?)))
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        (self.told)("rename");
        self.called.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        (self.told)("remove");
        self.called.remove(path)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        (self.told)("hard_link");
        self.called.hard_link(from, to)
    }
    fn sync_dir(&self, directory: &Path) -> Result<()> {
        (self.told)("sync_dir");
        self.called.sync_dir(directory)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.called.lock(path)
    }
    fn random(&self) -> u64 {
        (self.told)("random");
        self.called.random()
    }
}

impl ReadFile for Telling<Arc<dyn ReadFile>> {
    fn len(&self) -> u64 {
        (self.told)("len");
        self.called.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        (self.told)("read_at");
        self.called.read_at(offset, buffer)
    }
    fn mapping(&self) -> Option<&[u8]> {
        (self.told)("mapping");
        self.called.mapping()
    }
    fn check_mapping(&self) -> Result<()> {
        (self.told)("check_mapping");
        self.called.check_mapping()
    }
}

impl WriteFile for Telling<Box<dyn WriteFile>> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        (self.told)("append");
        self.called.append(bytes)
    }
    fn flush(&mut self) -> Result<()> {
        (self.told)("flush");
        self.called.flush()
    }
    fn sync(&mut self) -> Result<()> {
        (self.told)("sync");
        self.called.sync()
    }
    fn len(&self) -> u64 {
        self.called.len()
    }
}

impl GrowingFile for Telling<Arc<dyn GrowingFile>> {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        (self.told)("growing write");
        self.called.write(offset, bytes)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        (self.told)("growing read_at");
        self.called.read_at(offset, buffer)
    }
    fn sync(&self) -> Result<()> {
        (self.told)("growing sync");
        self.called.sync()
    }
}

impl LogFile for Telling<Arc<dyn LogFile>> {
    fn len(&self) -> u64 {
        (self.told)("log len");
        self.called.len()
    }
    fn store(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        (self.told)("log store");
        self.called.store(offset, bytes)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        (self.told)("log write");
        self.called.write(offset, bytes)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.called.read_at(offset, buffer)
    }
    fn sync(&self) -> Result<()> {
        (self.told)("log sync");
        self.called.sync()
    }
    fn sync_range(&self, from: u64, to: u64) -> Result<()> {
        (self.told)("log sync");
        self.called.sync_range(from, to)
    }
    fn prefault(&self, from: u64, to: u64) {
        (self.told)("prefault");
        self.called.prefault(from, to);
    }
    fn fill_new(&self, from: u64) {
        (self.told)("fill_new");
        self.called.fill_new(from);
    }
    fn release_memory(&self, from: u64, to: u64) {
        (self.told)("release_memory");
        self.called.release_memory(from, to);
    }
}
