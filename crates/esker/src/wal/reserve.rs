//! Space of the disk that is held back for a later open.
//!
//! An open needs room for a log segment and a manifest, and only then can something be deleted. On
//! a disk that others have filled, or the database itself, it has none. So a database that has
//! grown holds the file `RESERVE`, which says nothing and is as long as several opens need. An open
//! that finds no room removes it, makes do with a short segment, and holds what is left for the
//! next one.
//!
//! Everything here is an attempt: without the file, an open on a full disk fails as it would.

use crate::env::Env;
use std::path::{Path, PathBuf};

/// The name of the file.
pub const RESERVE: &str = "RESERVE";

/// Room for more than twenty opens on a full disk, each with a segment of [`SCARCE_BYTES`], a
/// manifest and `CURRENT`.
const RESERVE_BYTES: u64 = 1280 << 10;
/// Where there is less room, the file is shorter by a multiple of this.
const STEP_BYTES: u64 = 16 << 10;
/// The length of a segment where there is no room for a longer one: several hundred deletes.
pub(super) const SCARCE_BYTES: u64 = 32 << 10;
/// A database with a segment of this length has grown, and holds a reserve.
pub(super) const SEGMENT_OF_GROWN_BYTES: u64 = 4 << 20;

/// The reserve of a database.
#[derive(Debug)]
pub struct Reserve<'a> {
    env: &'a dyn Env,
    path: PathBuf,
}

impl Reserve<'_> {
    /// That of the database in the directory.
    pub fn new<'a>(env: &'a dyn Env, directory: &Path) -> Reserve<'a> {
        Reserve { env, path: directory.join(RESERVE) }
    }

    /// Whether there is one, of any length.
    pub fn is_held(&self) -> bool {
        self.env.exists(&self.path).unwrap_or(false)
    }

    /// Holds a reserve, as long as there is room for.
    pub fn hold(&self) {
        if self.is_held() && self.env.open(&self.path).is_ok_and(|file| file.len() >= RESERVE_BYTES) {
            return;
        }
        for steps in (1..=RESERVE_BYTES / STEP_BYTES).rev() {
            match self.env.open_log(&self.path, Some(steps * STEP_BYTES), false) {
                Err(error) if error.is_disk_full() => {}
                _ => return,
            }
        }
    }

    /// Gives the reserve up, for what follows. Whether there was one.
    pub fn spend(&self) -> bool {
        self.env.remove(&self.path).is_ok()
    }
}
