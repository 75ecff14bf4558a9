//! An environment that tells of each call, before it makes it.

use esker::Result;
use esker::env::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// What is told of calls: the trait and the call, or that something goes, as "Lock dropped".
pub type Told = Arc<dyn Fn(&'static str) + Send + Sync>;

/// The environment.
pub struct Telling<C> {
    pub told: Told,
    pub called: C,
}

/// A file of it, or a lock.
struct Opened<C> {
    told: Told,
    called: C,
    dropped: &'static str,
}

impl<C> Telling<C> {
    fn opened<F>(&self, file: F, dropped: &'static str) -> Opened<F> {
        Opened { told: Arc::clone(&self.told), called: file, dropped }
    }
}

impl<C: fmt::Debug> fmt::Debug for Telling<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.called.fmt(f)
    }
}

impl<C: fmt::Debug> fmt::Debug for Opened<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.called.fmt(f)
    }
}

impl<C> Drop for Opened<C> {
    fn drop(&mut self) {
        (self.told)(self.dropped);
    }
}

impl Env for Telling<Arc<dyn Env>> {
    fn create_dir_all(&self, directory: &Path) -> Result<()> {
        (self.told)("Env::create_dir_all");
        self.called.create_dir_all(directory)
    }
    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        (self.told)("Env::list");
        self.called.list(directory)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        (self.told)("Env::exists");
        self.called.exists(path)
    }
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        (self.told)("Env::open");
        Ok(Arc::new(self.opened(self.called.open(path)?, "ReadFile dropped")))
    }
    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        (self.told)("Env::create");
        Ok(Box::new(self.opened(self.called.create(path)?, "WriteFile dropped")))
    }
    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>> {
        (self.told)("Env::create_growing");
        Ok(Arc::new(self.opened(self.called.create_growing(path)?, "GrowingFile dropped")))
    }
    fn open_log(&self, path: &Path, create_bytes: Option<u64>, mapped: bool) -> Result<Arc<dyn LogFile>> {
        (self.told)("Env::open_log");
        Ok(Arc::new(self.opened(self.called.open_log(path, create_bytes, mapped)?, "LogFile dropped")))
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        (self.told)("Env::rename");
        self.called.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        (self.told)("Env::remove");
        self.called.remove(path)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        (self.told)("Env::hard_link");
        self.called.hard_link(from, to)
    }
    fn sync_dir(&self, directory: &Path) -> Result<()> {
        (self.told)("Env::sync_dir");
        self.called.sync_dir(directory)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        (self.told)("Env::lock");
        Ok(Box::new(self.opened(self.called.lock(path)?, "Lock dropped")))
    }
    fn random(&self) -> u64 {
        (self.told)("Env::random");
        self.called.random()
    }
}

impl ReadFile for Opened<Arc<dyn ReadFile>> {
    fn len(&self) -> u64 {
        (self.told)("ReadFile::len");
        self.called.len()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        (self.told)("ReadFile::read_at");
        self.called.read_at(offset, buffer)
    }
    fn mapping(&self) -> Option<&[u8]> {
        (self.told)("ReadFile::mapping");
        self.called.mapping()
    }
    fn check_mapping(&self) -> Result<()> {
        (self.told)("ReadFile::check_mapping");
        self.called.check_mapping()
    }
    fn will_read(&self, offset: u64, bytes: u64) {
        (self.told)("ReadFile::will_read");
        self.called.will_read(offset, bytes);
    }
}

impl WriteFile for Opened<Box<dyn WriteFile>> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        (self.told)("WriteFile::append");
        self.called.append(bytes)
    }
    fn flush(&mut self) -> Result<()> {
        (self.told)("WriteFile::flush");
        self.called.flush()
    }
    fn sync(&mut self) -> Result<()> {
        (self.told)("WriteFile::sync");
        self.called.sync()
    }
    fn len(&self) -> u64 {
        (self.told)("WriteFile::len");
        self.called.len()
    }
}

impl GrowingFile for Opened<Arc<dyn GrowingFile>> {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        (self.told)("GrowingFile::write");
        self.called.write(offset, bytes)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        (self.told)("GrowingFile::read_at");
        self.called.read_at(offset, buffer)
    }
    fn sync(&self) -> Result<()> {
        (self.told)("GrowingFile::sync");
        self.called.sync()
    }
}

impl LogFile for Opened<Arc<dyn LogFile>> {
    fn len(&self) -> u64 {
        (self.told)("LogFile::len");
        self.called.len()
    }
    fn store(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        (self.told)("LogFile::store");
        self.called.store(offset, bytes)
    }
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        (self.told)("LogFile::write");
        self.called.write(offset, bytes)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        (self.told)("LogFile::read_at");
        self.called.read_at(offset, buffer)
    }
    fn sync(&self) -> Result<()> {
        (self.told)("LogFile::sync");
        self.called.sync()
    }
    fn sync_range(&self, from: u64, to: u64) -> Result<()> {
        (self.told)("LogFile::sync_range");
        self.called.sync_range(from, to)
    }
    fn prefault(&self, from: u64, to: u64) {
        (self.told)("LogFile::prefault");
        self.called.prefault(from, to);
    }
    fn fill_new(&self, from: u64) {
        (self.told)("LogFile::fill_new");
        self.called.fill_new(from);
    }
    fn release_memory(&self, from: u64, to: u64) {
        (self.told)("LogFile::release_memory");
        self.called.release_memory(from, to);
    }
}

impl Lock for Opened<Box<dyn Lock>> {}
