//! The file system of the machine behind a device of limited speed: each write waits its turn.
//!
//! Stores into a mapped log are memory, and as fast.

use esker::Result;
use esker::env::os::OsEnv;
use esker::env::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a sync costs beside its bytes.
const SYNC: Duration = Duration::from_millis(1);

/// The device.
#[derive(Debug)]
struct Device {
    bytes_per_second: u64,
    /// When it will have done all that it was given.
    idle_from: Mutex<Instant>,
}

impl Device {
    fn work(&self, time: Duration) {
        let mut idle_from = self.idle_from.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let done = (*idle_from).max(now) + time;
        *idle_from = done;
        drop(idle_from);
        std::thread::sleep(done - now);
    }

    fn write(&self, bytes: usize) {
        self.work(Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64));
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct SlowDisk {
    device: Arc<Device>,
}

impl SlowDisk {
    /// One that takes so many bytes a second.
    pub fn new(bytes_per_second: u64) -> SlowDisk {
        SlowDisk { device: Arc::new(Device { bytes_per_second, idle_from: Mutex::new(Instant::now()) }) }
    }
}

impl Env for SlowDisk {
    fn create_dir_all(&self, directory: &Path) -> Result<()> {
        OsEnv.create_dir_all(directory)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        OsEnv.list(directory)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        OsEnv.exists(path)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        OsEnv.open(path)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        Ok(Box::new(Slow { file: OsEnv.create(path)?, device: Arc::clone(&self.device) }))
    }

    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>> {
        Ok(Arc::new(Slow { file: OsEnv.create_growing(path)?, device: Arc::clone(&self.device) }))
    }

    fn open_log(&self, path: &Path, create_bytes: Option<u64>, mapped: bool) -> Result<Arc<dyn LogFile>> {
        let file = OsEnv.open_log(path, create_bytes, mapped)?;
        Ok(Arc::new(Slow { file, device: Arc::clone(&self.device) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        OsEnv.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        OsEnv.remove(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        OsEnv.hard_link(from, to)
    }

    fn sync_dir(&self, directory: &Path) -> Result<()> {
        self.device.work(SYNC);
        OsEnv.sync_dir(directory)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        OsEnv.lock(path)
    }
}

/// A file on it.
#[derive(Debug)]
struct Slow<F> {
    file: F,
    device: Arc<Device>,
}

impl WriteFile for Slow<Box<dyn WriteFile>> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.device.write(bytes.len());
        self.file.append(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }

    fn sync(&mut self) -> Result<()> {
        self.device.work(SYNC);
        self.file.sync()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl GrowingFile for Slow<Arc<dyn GrowingFile>> {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.device.write(bytes.len());
        self.file.write(offset, bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn sync(&self) -> Result<()> {
        self.device.work(SYNC);
        self.file.sync()
    }
}

impl LogFile for Slow<Arc<dyn LogFile>> {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn store(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.store(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.device.write(bytes.len());
        self.file.write(offset, bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn sync(&self) -> Result<()> {
        self.device.work(SYNC);
        self.file.sync()
    }

    fn sync_range(&self, from: u64, to: u64) -> Result<()> {
        self.device.work(SYNC);
        self.file.sync_range(from, to)
    }

    fn prefault(&self, from: u64, to: u64) {
        self.file.prefault(from, to);
    }

    fn fill_new(&self, from: u64) {
        self.file.fill_new(from);
    }

    fn release_memory(&self, from: u64, to: u64) {
        self.file.release_memory(from, to);
    }
}
