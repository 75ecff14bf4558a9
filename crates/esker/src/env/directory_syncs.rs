//! Syncs of the directory of an open database, none of which is believed after one that failed.
//!
//! One sync makes the names of all files durable that were made before, by any thread: tables,
//! blob files and log segments, by callers and in the background. A sync that fails may have given
//! up any of these names, and tells one caller; the next sync succeeds without them. So for an open
//! handle it fails as well, and what would rely on it: a flush, a load, another segment of the log,
//! a sync of writes with large values that are in a new file. The next open relies on none of these
//! names: what the log holds is written to new tables, large values included.

use super::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The environment, with such syncs of this directory. Its files are those of `env`.
pub fn environment(directory: &Path, env: Arc<dyn Env>) -> Arc<dyn Env> {
    Arc::new(DirectorySyncs { directory: directory.to_path_buf(), env, has_failed: Mutex::new(false) })
}

struct DirectorySyncs {
    directory: PathBuf,
    env: Arc<dyn Env>,
    /// Locked during a sync: of two at once, only one might be told of a failure.
    has_failed: Mutex<bool>,
}

impl fmt::Debug for DirectorySyncs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.env.fmt(f)
    }
}

impl Env for DirectorySyncs {
    fn create_dir_all(&self, directory: &Path) -> Result<()> {
        self.env.create_dir_all(directory)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>> {
        self.env.list(directory)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.env.exists(path)
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.env.open(path)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn WriteFile>> {
        self.env.create(path)
    }

    fn create_growing(&self, path: &Path) -> Result<Arc<dyn GrowingFile>> {
        self.env.create_growing(path)
    }

    fn open_log(&self, path: &Path, create_bytes: Option<u64>, mapped: bool) -> Result<Arc<dyn LogFile>> {
        self.env.open_log(path, create_bytes, mapped)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.env.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.env.remove(path)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.env.hard_link(from, to)
    }

    fn sync_dir(&self, directory: &Path) -> Result<()> {
        if directory != self.directory {
            return self.env.sync_dir(directory);
        }
        let mut has_failed = self.has_failed.lock();
        if *has_failed {
            let what =
                "an earlier sync of this directory failed, so that names in it may be lost; open the database again";
            return Err(Error::io("sync the directory", directory, io::Error::other(what)));
        }
        // Also where the environment panics.
        *has_failed = true;
        let synced = self.env.sync_dir(directory);
        *has_failed = synced.is_err();
        synced
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.env.lock(path)
    }

    fn random(&self) -> u64 {
        self.env.random()
    }

    fn calls_no_database(&self) -> bool {
        self.env.calls_no_database()
    }
}
