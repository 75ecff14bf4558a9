//! A run directory: the plan of a study, and what became of its cells.
//!
//! ```text
//! run.json           { "schema": 1, "plan": plan }    every cell that anybody requested here
//! cells/HASH.json    finished                         one file for each cell that was done, by the hash of its content
//! lock               empty; locked while a process adds cells
//! ```
//!
//! Files are written beside their place, synced, and renamed, so whatever ends a run, a power
//! failure included, leaves whole cells only.

use super::cell::{Finished, Plan, SCHEMA, StudyRun};
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

const PLAN: &str = "run.json";
/// Where the plan is written before it is renamed.
const BESIDE_PLAN: &str = "run.new";
const CELLS: &str = "cells";
const LOCK: &str = "lock";

/// A run directory on disk.
pub struct RunDirectory {
    path: PathBuf,
    plan: Plan,
    /// Held by the process that adds cells.
    _lock: Option<Flock<File>>,
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    schema: u32,
    plan: Plan,
}

/// Only what tells versions apart: the rest may have changed.
#[derive(Deserialize)]
struct Version {
    schema: u32,
}

impl RunDirectory {
    /// Makes the directory for a plan, or takes one that holds cells of the same study already:
    /// their cells stay, and those of `plan` join them. The error is one line.
    pub fn create_or_resume(path: &Path, plan: &Plan) -> Result<RunDirectory, String> {
        let failed = |error: io::Error| format!("cannot use {}: {error}", path.display());
        let known = path.join(PLAN).exists();
        if !known && fs::read_dir(path).is_ok_and(|mut entries| entries.any(|entry| !entry.is_ok_and(is_beginning))) {
            return Err(format!("{} is not empty and holds no run: choose another directory", path.display()));
        }
        fs::create_dir_all(path).map_err(failed)?;
        let lock = lock(&path.join(LOCK))?;
        let mut directory = if known {
            let kept = RunDirectory::open(path)?;
            if kept.plan.study != plan.study {
                let (there, here) = (&kept.plan.study, &plan.study);
                return Err(format!(
                    "{} holds a run of `{there}`, not of `{here}`: choose another directory",
                    path.display()
                ));
            }
            RunDirectory { plan: joined(kept.plan, plan), ..kept }
        } else {
            RunDirectory { path: path.to_path_buf(), plan: plan.clone(), _lock: None }
        };
        directory._lock = Some(lock);
        let manifest = Manifest { schema: SCHEMA, plan: directory.plan.clone() };
        write_json(&path.join(PLAN), &manifest)?;
        // After the plan: until that is there, nothing is but what `is_beginning` knows.
        fs::create_dir_all(path.join(CELLS)).map_err(failed)?;
        Ok(directory)
    }

    /// Opens a directory to read it. The error is one line.
    pub fn open(path: &Path) -> Result<RunDirectory, String> {
        let manifest = path.join(PLAN);
        if !manifest.exists() {
            return Err(format!("{} is no run directory: it has no {PLAN}", path.display()));
        }
        let Manifest { plan, .. } = read_json(&manifest)?;
        Ok(RunDirectory { path: path.to_path_buf(), plan, _lock: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Every cell that was requested here.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What became of a cell; `None` if it was not done yet. The error is one line.
    pub fn find(&self, hash: &str) -> Result<Option<Finished>, String> {
        let path = self.cell_path(hash);
        if path.exists() { read_json(&path).map(Some) } else { Ok(None) }
    }

    /// The cells that were done, in the plan's order. The error is one line.
    pub fn finished(&self) -> Result<Vec<Finished>, String> {
        let found = self.plan.cells.iter().map(|cell| self.find(&cell.hash()));
        found.filter_map(Result::transpose).collect()
    }

    /// All that reports read. The error is one line.
    pub fn load(&self) -> Result<StudyRun, String> {
        let finished = self.finished()?;
        let missing = self.plan.cells.len() - finished.len();
        Ok(StudyRun { study: self.plan.study.clone(), title: self.plan.title.clone(), finished, missing })
    }

    /// Keeps what became of a cell. The error is one line; everything that was kept before stays.
    pub fn keep(&self, finished: &Finished) -> Result<(), String> {
        write_json(&self.cell_path(&finished.cell.hash()), finished)
    }

    fn cell_path(&self, hash: &str) -> PathBuf {
        self.path.join(CELLS).join(format!("{hash}.json"))
    }
}

/// Whether the directory holds only what a run leaves that ended before it wrote its plan, as on a
/// full disk or after a power failure. A run may then begin there.
fn is_beginning(entry: DirEntry) -> bool {
    let is_empty = || entry.metadata().is_ok_and(|data| data.is_file() && data.len() == 0);
    entry.file_name() == BESIDE_PLAN || (entry.file_name() == LOCK && is_empty())
}

/// The cells of `kept`, then those of `plan` that are new.
fn joined(kept: Plan, plan: &Plan) -> Plan {
    let known: BTreeSet<String> = kept.cells.iter().map(|cell| cell.hash()).collect();
    let new = plan.cells.iter().filter(|cell| !known.contains(&cell.hash())).cloned();
    let cells = kept.cells.iter().cloned().chain(new).collect();
    Plan { study: kept.study, title: plan.title.clone(), cells }
}

fn lock(path: &Path) -> Result<Flock<File>, String> {
    let file = File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock)
        .map_err(|(_, _)| format!("{} is locked: another process adds to this run", path.display()))
}

fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if let Ok(Version { schema }) = serde_json::from_str(&text)
        && schema != SCHEMA
    {
        let remedy = "use the version that made it, or another directory";
        return Err(format!("{} is of schema {schema}, this program knows {SCHEMA}: {remedy}", path.display()));
    }
    serde_json::from_str(&text).map_err(|error| format!("{} is damaged or of another version: {error}", path.display()))
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), String> {
    let failed = |error: io::Error| {
        let full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        let remedy = if full { "; make room, and the same command goes on" } else { "" };
        format!("cannot write {}: {error}{remedy}", path.display())
    };
    let text = serde_json::to_string(value).map_err(|error| format!("cannot write as JSON: {error}"))?;
    let beside = path.with_extension("new");
    let written = write_synced(&beside, &format!("{text}\n")).and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        // A full disk may hold half of it.
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

/// Without the sync, a name could outlive a power failure that its content does not.
fn write_synced(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
