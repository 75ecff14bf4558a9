//! Syncs of the directory of an open database, none of which is believed after one that failed.
//!
//! One sync makes the names of all files durable that were made before, by any thread: tables,
//! blob files and log segments, by callers and in the background. A sync that fails may have given
//! up any of these names, and tells one caller; the next sync succeeds without them. So for an open
//! handle it fails as well, and what would rely on it: a flush, a load, another segment of the log,
//! a large value that begins a new file. The handle takes no more writes
//! (`ErrorState::note_failure`). The next open relies on none of these names: what the log holds is
//! written to new tables, large values included.
//!
//! Some failures give up no name: a directory that cannot be opened, for want of a descriptor or of
//! permission, and a full disk, where the names stay in memory until there is room.

use super::{Env, GrowingFile, Lock, LogFile, ReadFile, WriteFile};
use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The environment, with such syncs of this directory. Its files are those of `env`.
pub fn environment(directory: &Path, env: Arc<dyn Env>) -> Arc<dyn Env> {
    Arc::new(DirectorySyncs { directory: directory.to_path_buf(), env, failed: Mutex::default() })
}

const SYNC: &str = "sync the directory";

struct DirectorySyncs {
    directory: PathBuf,
    env: Arc<dyn Env>,
    /// What the sync failed with that gave names up. Locked during a sync: of two at once, only one
    /// might be told of a failure.
    failed: Mutex<Option<String>>,
}

/// The cause of an error that says that names were given up.
#[derive(Debug)]
struct NamesLost(String);

impl fmt::Display for NamesLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NamesLost {}

/// Whether the error is that of a sync of the directory that may have given names up, or of one
/// after it.
pub fn names_are_lost(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.get_ref().is_some_and(|cause| cause.is::<NamesLost>()))
}

/// Whether no sync was tried, or one that keeps what it could not write.
fn gives_up_nothing(source: &io::Error) -> bool {
    const NO_DESCRIPTORS: [Option<i32>; 2] = [Some(23), Some(24)];
    use io::ErrorKind::{NotFound, PermissionDenied, QuotaExceeded, StorageFull};
    matches!(source.kind(), NotFound | PermissionDenied | QuotaExceeded | StorageFull)
        || cfg!(unix) && NO_DESCRIPTORS.contains(&source.raw_os_error())
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
        let lost = |kind, what: String| Error::io(SYNC, directory, io::Error::new(kind, NamesLost(what)));
        let mut failed = self.failed.lock();
        if let Some(why) = &*failed {
            let what = format!(
                "an earlier sync of this directory failed ({why}), so that names in it may be lost; open the database \
                 again"
            );
            return Err(lost(io::ErrorKind::Other, what));
        }
        // Where the environment panics, it stays so.
        *failed = Some("a panic".into());
        let synced = self.env.sync_dir(directory);
        *failed = None;
        let (kind, why) = match synced {
            Ok(()) => return Ok(()),
            Err(Error::Io { source, .. }) if !gives_up_nothing(&source) => (source.kind(), source.to_string()),
            Err(error @ Error::Io { .. }) => return Err(error),
            Err(error) => (io::ErrorKind::Other, error.to_string()),
        };
        *failed = Some(why.clone());
        Err(lost(kind, why))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::mem::{MemEnv, SyncFailure};

    /// The handle refuses writes from the first failure on. A sync that waited for the failed one
    /// is past that check, so it has to fail by itself.
    #[test]
    fn no_sync_succeeds_after_one_that_gave_names_up() {
        let mem = MemEnv::default();
        let directory = Path::new("/db");
        mem.create_dir_all(directory).unwrap();
        let env = environment(directory, Arc::new(mem.clone()));
        mem.create(&directory.join("a")).unwrap();
        mem.fail_sync_dir(0, SyncFailure::DropPending);
        let first = env.sync_dir(directory).unwrap_err();
        let second = env.sync_dir(directory).unwrap_err();
        assert!(names_are_lost(&first) && names_are_lost(&second), "{first}, {second}");
        assert!(second.to_string().contains("an earlier sync of this directory failed"), "{second}");
        // The environment itself would succeed, as for the next open of the database.
        environment(directory, Arc::new(mem)).sync_dir(directory).unwrap();
    }

    #[test]
    fn what_no_sync_fails_with_gives_no_name_up() {
        let error = |number| gives_up_nothing(&io::Error::from_raw_os_error(number));
        // No descriptors in the process, none in the system, no space; an I/O error.
        assert_eq!([24, 23, 28, 5].map(error), [true, true, true, false]);
        assert!(!gives_up_nothing(&io::Error::other("whatever it is")));
    }
}
