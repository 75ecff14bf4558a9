//! Where a database under test lives: in the simulated environment, or in a real directory.

use esker::Options;
use esker::env::mem::MemEnv;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The path of the database inside a simulated environment.
pub const MEMORY_PATH: &str = "/db";

/// A place for a database.
#[derive(Clone, Debug)]
pub enum Place {
    /// A simulated environment, at [`MEMORY_PATH`].
    Memory(MemEnv),
    /// A real directory.
    Disk(PathBuf),
}

impl Place {
    /// An empty simulated environment.
    pub fn memory() -> Place {
        Place::Memory(MemEnv::new())
    }

    /// The path to open.
    pub fn path(&self) -> &Path {
        match self {
            Place::Memory(_) => Path::new(MEMORY_PATH),
            Place::Disk(path) => path,
        }
    }

    /// The options, with this place's environment.
    pub fn attach(&self, options: Options) -> Options {
        match self {
            Place::Memory(env) => options.env(Arc::new(env.clone())),
            Place::Disk(_) => options,
        }
    }
}

/// A real directory of its own, removed when dropped unless a check failed there.
#[derive(Debug)]
pub struct ScratchDirectory {
    path: PathBuf,
    keep: bool,
}

impl ScratchDirectory {
    /// A fresh directory below `parent`. Campaigns of one process may use the same `name` at the
    /// same time.
    pub fn new(parent: &Path, name: &str) -> std::io::Result<ScratchDirectory> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("esker-check-{}-{number}-{name}", std::process::id()));
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)?;
        Ok(ScratchDirectory { path, keep: false })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the directory for inspection.
    pub fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        if !self.keep {
            // Nothing depends on the removal, and a failed one must not hide the outcome of the
            // check.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
