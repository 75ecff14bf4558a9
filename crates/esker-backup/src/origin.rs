//! Which database the backups of a target are of, and which directories are no targets.
//!
//! A database has no identity of its own in its files. That a create is of the database that the
//! backups of the target are of is taken for shown by a table or blob file that one of them has
//! too, by name and hash: such files never change. Without one, as after everything was rewritten,
//! it goes by the directory that the database is in, and by the number of its last write, which
//! never gets smaller.

use crate::error::{Error, Result};
use crate::layout;
use crate::log::ReadBackup;
use crate::moving::LocalFile;
use crate::record::BackupRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What the record says of a backup besides its files.
pub struct About {
    /// The time, in milliseconds since 1970.
    pub time_ms: u64,
    /// The last write that it holds.
    pub sequence: u64,
    /// The names of the keyspaces.
    pub keyspaces: Vec<String>,
    /// The directory of the database.
    pub directory: String,
    /// The newest record of the target before the files were gathered: those up to there are of an
    /// earlier moment.
    pub newest_before: u64,
    /// Whether backups of another database in the target are no reason to refuse.
    pub any_database: bool,
}

/// Refuses a database that is not the one that the backups are of.
pub fn refuse_another_database(
    about: &About,
    files: &[LocalFile],
    hashes: &[String],
    backups: &BTreeMap<u64, ReadBackup>,
) -> Result<()> {
    let backups: Vec<(u64, &BackupRecord)> =
        backups.iter().filter_map(|(number, backup)| Some((*number, backup.as_ref().ok()?))).collect();
    let Some((newest, _)) = backups.last().filter(|_| !about.any_database) else { return Ok(()) };
    let own = files.iter().zip(hashes).filter(|(file, _)| never_changes(&file.name));
    let own: BTreeSet<(&str, &str)> = own.map(|(file, hash)| (&*file.name, &**hash)).collect();
    let mut kept = backups.iter().flat_map(|(_, backup)| &backup.files);
    if kept.any(|file| own.contains(&(&*file.name, &*file.sha256))) {
        return Ok(());
    }
    // Records of earlier versions do not say where.
    let is_there = |backup: &BackupRecord| backup.directory.as_ref().is_none_or(|there| *there == about.directory);
    let Some((number, backup)) = backups.iter().rev().find(|(_, backup)| is_there(backup)) else {
        let others: BTreeSet<&str> = backups.iter().filter_map(|(_, backup)| backup.directory.as_deref()).collect();
        let others: Vec<&str> = others.into_iter().collect();
        return Err(Error::AnotherDatabase {
            what: format!(
                "the target holds backups of the database in {}, the newest with number {newest}; that in {} is \
                 another one, or has no table or blob file in common with any of them",
                others.join(" and "),
                about.directory
            ),
        });
    };
    // A backup that was committed meanwhile may be of a later moment.
    if *number <= about.newest_before && backup.sequence > about.sequence {
        return Err(Error::AnotherDatabase {
            what: format!(
                "backup {number} ends at write {}, and the database in {} at write {}, without a table or blob file \
                 in common: it is another one",
                backup.sequence, about.directory, about.sequence
            ),
        });
    }
    Ok(())
}

/// Whether a file of this name is written once: all but the log, the manifest and what names it.
fn never_changes(name: &str) -> bool {
    name.ends_with(".table") || name.ends_with(".blob")
}

/// Refuses a directory in that of the database, and one that holds anything but backups. Before
/// anything is written.
pub fn refuse_directory(target: &Path, database: &Path) -> Result<()> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    if real(target).starts_with(real(database)) {
        return Err(Error::invalid(format!(
            "the target {} is in the directory of the database, {}; name one outside of it",
            target.display(),
            database.display()
        )));
    }
    // The first thing that is put, so that what has it is a target.
    if target.join(layout::MARK).exists() {
        return Ok(());
    }
    let entries = fs::read_dir(target).map_err(|error| Error::io("list", target, error))?;
    for entry in entries {
        let name = entry.map_err(|error| Error::io("list", target, error))?.file_name();
        let name = name.to_string_lossy();
        // What systems and a put that was cut short leave.
        let is_harmless = name.starts_with('.') || name == "lost+found" || name.starts_with("esker-backup#");
        // What another create has put meanwhile comes behind its mark.
        if !is_harmless && !target.join(layout::MARK).exists() {
            return Err(Error::invalid(format!(
                "{} holds something else than backups ({name}); name an empty directory, or a target",
                target.display()
            )));
        }
    }
    Ok(())
}
