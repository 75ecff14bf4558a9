//! Space of the disk that is held back for a later open.
//!
//! An open needs room for a log segment and a manifest, and only then can something be deleted. On
//! a disk that others have filled, or the database itself, it has none. So a database holds the
//! file `RESERVE`, which says nothing and is as long as many opens need. An open that finds no room
//! removes it, makes do with a short segment, and holds what is left for the next one.
//!
//! Everything here is an attempt: without the file, an open on a full disk fails as it would.

use crate::env::Env;
use std::path::{Path, PathBuf};

/// The name of the file.
pub const RESERVE: &str = "RESERVE";

/// Room for more than twenty opens on a full disk, each with a segment of [`SCARCE_BYTES`], and for
/// the manifest and `CURRENT` of the last. A database whose first segment is shorter has none: it
/// is meant to be small.
pub const RESERVE_BYTES: u64 = 512 << 10;
/// The length of a segment where there is no room for a longer one: some hundred deletes. Where
/// there is no room for all of the file either, it is shorter by a multiple of this.
pub(super) const SCARCE_BYTES: u64 = 16 << 10;

/// The reserve of a database.
#[derive(Debug)]
pub struct Reserve<'a> {
    env: &'a dyn Env,
    path: PathBuf,
    is_wanted: bool,
}

impl Reserve<'_> {
    /// That of the database in the directory, if one `is_wanted`.
    pub(super) fn new<'a>(env: &'a dyn Env, directory: &Path, is_wanted: bool) -> Reserve<'a> {
        Reserve { env, path: directory.join(RESERVE), is_wanted }
    }

    /// Holds a reserve, as long as there is room for.
    pub fn hold(&self) {
        let is_held = |exists| exists && self.env.open(&self.path).is_ok_and(|file| file.len() >= RESERVE_BYTES);
        if !self.is_wanted || self.env.exists(&self.path).is_ok_and(is_held) {
            return;
        }
        for steps in (1..=RESERVE_BYTES / SCARCE_BYTES).rev() {
            match self.env.open_log(&self.path, Some(steps * SCARCE_BYTES), false) {
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
