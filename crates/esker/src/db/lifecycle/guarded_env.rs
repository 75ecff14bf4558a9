//! The user's environment as a database calls it: a call that it makes back into the database is
//! recognized (`base/callback.rs`). Environments that call nothing are left as they are: the guard
//! takes some nanoseconds, which show in a write to a mapped log.

use crate::base::callback::{Database, Inside};
use crate::env::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use crate::error::{Error, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The environment, guarded unless it says that it calls nothing.
pub fn environment(database: Database, directory: &Path, env: Arc<dyn Env>) -> Arc<dyn Env> {
    if env.calls_no_database() {
        return env;
    }
    Arc::new(Guarded { caller: Caller { database, directory: directory.into() }, called: env, going: None })
}

/// The caller.
#[derive(Clone)]
struct Caller {
    database: Database,
    directory: Arc<Path>,
}

impl Caller {
    /// Reads that are made in a read, and so on, come to an end.
    fn enter(&self) -> Result<Inside> {
        self.database.enter().ok_or_else(|| Error::InCallback { database: PathBuf::from(&*self.directory) })
    }
}

/// An environment, a file of it or a lock, and the caller. Its drop is a call as any other: files
/// are dropped with locks held.
struct Guarded<C> {
    caller: Caller,
    called: C,
    /// Set when this is dropped, and behind what is dropped then.
    going: Option<Inside>,
}

impl<C> Drop for Guarded<C> {
    fn drop(&mut self) {
        self.going = self.caller.enter().ok();
    }
}

/// A file of a fixed length. It is read once: the log needs it with locks held that statistics
/// take.
#[derive(Debug)]
struct Fixed<F: ?Sized> {
    file: Arc<F>,
    length: u64,
}

impl<C> Guarded<C> {
    /// What the environment has opened for the same caller.
    fn opened<F>(&self, file: F) -> Guarded<F> {
        Guarded { caller: self.caller.clone(), called: file, going: None }
    }
}

impl<C: fmt::Debug> fmt::Debug for Guarded<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.called.fmt(f)
    }
}

impl Env for Guarded<Arc<dyn Env>> {
    fn create_dir_all(&self, directory: &Path) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.create_dir_all(directory)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        let _inside = self.caller.enter()?;
        self.called.list(directory)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let _inside = self.caller.enter()?;
        self.called.exists(path)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let _inside = self.caller.enter()?;
        let file = self.called.open(path)?;
        let length = file.len();
        Ok(Arc::new(self.opened(Fixed { file, length })))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        let _inside = self.caller.enter()?;
        let file = self.called.create(path)?;
        Ok(Box::new(self.opened(file)))
    }

    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>> {
        let _inside = self.caller.enter()?;
        let file = self.called.create_growing(path)?;
        Ok(Arc::new(self.opened(file)))
    }

    fn open_log(&self, path: &Path, create_bytes: Option<u64>, mapped: bool) -> Result<Arc<dyn LogFile>> {
        let _inside = self.caller.enter()?;
        let file = self.called.open_log(path, create_bytes, mapped)?;
        let length = file.len();
        Ok(Arc::new(self.opened(Fixed { file, length })))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.remove(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.hard_link(from, to)
    }

    fn sync_dir(&self, directory: &Path) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.sync_dir(directory)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        let _inside = self.caller.enter()?;
        let lock = self.called.lock(path)?;
        Ok(Box::new(self.opened(lock)))
    }

    fn random(&self) -> u64 {
        let _inside = self.caller.enter();
        self.called.random()
    }
}

impl Lock for Guarded<Box<dyn Lock>> {}

impl ReadFile for Guarded<Fixed<dyn ReadFile>> {
    fn len(&self) -> u64 {
        self.called.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.file.read_at(offset, buffer)
    }

    fn mapping(&self) -> Option<&[u8]> {
        // Without the mapping a table that has one cannot be read; that is an error.
        let _inside = self.caller.enter().ok()?;
        self.called.file.mapping()
    }

    fn check_mapping(&self) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.file.check_mapping()
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        // A call that may not be made is left out: it is a hint.
        let Ok(_inside) = self.caller.enter() else { return };
        self.called.file.will_read(offset, bytes);
    }
}

impl WriteFile for Guarded<Box<dyn WriteFile>> {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.append(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.flush()
    }

    fn sync(&mut self) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.sync()
    }

    fn len(&self) -> u64 {
        let _inside = self.caller.enter();
        self.called.len()
    }
}

impl GrowingFile for Guarded<Arc<dyn GrowingFile>> {
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.write(offset, bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.read_at(offset, buffer)
    }

    fn sync(&self) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.sync()
    }
}

impl LogFile for Guarded<Fixed<dyn LogFile>> {
    fn len(&self) -> u64 {
        self.called.length
    }

    fn store(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.file.store(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.file.write(offset, bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.file.read_at(offset, buffer)
    }

    fn sync(&self) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.file.sync()
    }

    fn sync_range(&self, from: u64, to: u64) -> Result<()> {
        let _inside = self.caller.enter()?;
        self.called.file.sync_range(from, to)
    }

    fn prefault(&self, from: u64, to: u64) {
        let _inside = self.caller.enter();
        self.called.file.prefault(from, to);
    }

    fn fill_new(&self, from: u64) {
        let _inside = self.caller.enter();
        self.called.file.fill_new(from);
    }

    fn release_memory(&self, from: u64, to: u64) {
        let _inside = self.caller.enter();
        self.called.file.release_memory(from, to);
    }
}
