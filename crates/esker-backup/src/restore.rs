//! Writing a backup to a directory, which becomes a database with the last step.
//!
//! 1. Take the engine's lock on the directory: no other restore and no program works in it. Write
//!    the file `CHECKPOINT`, by which the engine refuses the directory as an unfinished copy.
//! 2. Write all files but `CURRENT`; each is checked while it is written, and synced.
//! 3. Write `CURRENT`, without which a directory is no database, under another name, sync it and
//!    all names, and rename it.
//! 4. Remove `CHECKPOINT`.
//!
//! A restore that fails removes what it has written, but for the file of the lock. One that was cut
//! short leaves the mark; the next one into the same directory begins anew.

use crate::error::{Error, Result};
use crate::layout::{CURRENT, CURRENT_TEMPORARY, LOCK, UNFINISHED};
use crate::record::{BackupRecord, FileRecord};
use crate::store::{Meter, Store};
use crate::transfers::Phase;
use crate::{layout, moving, verify};
use esker::env::Env;
use esker::env::os::OsEnv;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// What the mark says.
const MARK: &[u8] = b"an unfinished restore of a backup\n";

/// Writes one backup, or the newest, to a directory that is empty or does not exist.
///
/// With `end`, none with a later write: the newest of the others, if none is chosen.
pub async fn restore(
    store: &Store<'_>,
    number: Option<u64>,
    end: u64,
    directory: &Path,
) -> Result<(u64, BackupRecord)> {
    let backups = verify::chosen(store, number).await?;
    let is_early = |backup: &std::result::Result<BackupRecord, String>| {
        backup.as_ref().map_or(number.is_some(), |record| record.sequence <= end)
    };
    let found = backups.len();
    let newest = backups.into_iter().rfind(|(_, backup)| end == u64::MAX || is_early(backup));
    if newest.is_none() && found > 0 {
        return Err(Error::no_backup(format_args!("backup that ends at write {end} or before")));
    }
    let (number, backup) = newest.ok_or_else(|| Error::no_backup("backup in the target"))?;
    let backup = backup.map_err(|what| Error::damaged(layout::record(number), what))?;
    if !backup.files.iter().any(|file| file.name == CURRENT) {
        return Err(Error::damaged(layout::record(number), "it has no file CURRENT"));
    }
    make_directory(directory)?;
    // Before there is the file of the lock in it.
    has_leftover(directory)?;
    let _lock = OsEnv::new().lock(&directory.join(LOCK)).map_err(Error::Database)?;
    prepare(directory)?;
    let outcome = write(store, &backup, directory).await;
    if outcome.is_err() {
        // The mark goes last; with it the directory is refused.
        let _ = remove_files(directory);
    }
    outcome.map(|()| (number, backup))
}

/// Refuses a directory with anything in it but what a restore that was cut short has left; whether
/// there is that. The file of the lock does not count.
fn has_leftover(directory: &Path) -> Result<bool> {
    let entries = fs::read_dir(directory).map_err(|error| Error::io("list", directory, error))?;
    let others = entries.filter(|entry| entry.as_ref().map_or(true, |it| it.file_name() != LOCK)).count();
    // The mark is durable before there is anything beside it: one that was cut short is alone.
    let mark = fs::read(directory.join(UNFINISHED));
    let has_leftover = mark.is_ok_and(|text| text == MARK || (others == 1 && MARK.starts_with(&text)));
    if others > 0 && !has_leftover {
        return Err(Error::invalid(format!("{} is not empty; name a new directory", directory.display())));
    }
    Ok(has_leftover)
}

/// Takes away what a restore that was cut short has left in the directory, and marks it.
fn prepare(directory: &Path) -> Result<()> {
    if has_leftover(directory)? {
        remove_files(directory)?;
        has_leftover(directory)?;
    }
    let mark = directory.join(UNFINISHED);
    fs::write(&mark, MARK).map_err(|error| Error::io("write", &mark, error))?;
    let synced = File::open(&mark).and_then(|file| file.sync_all());
    synced.map_err(|error| Error::io("sync", &mark, error))?;
    sync_directory(directory)
}

/// Makes a directory that may be there, and those above it, durably.
pub fn make_directory(directory: &Path) -> Result<()> {
    let made = directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists()).count();
    fs::create_dir_all(directory).map_err(|error| Error::io("create", directory, error))?;
    // The innermost that was there, too: an attempt that was cut short may have made it.
    for parent in directory.ancestors().skip(1).take(made + 1) {
        sync_directory(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })?;
    }
    Ok(())
}

/// Steps 2 to 4.
async fn write(store: &Store<'_>, backup: &BackupRecord, directory: &Path) -> Result<()> {
    let (last, files): (Vec<&FileRecord>, Vec<_>) = backup.files.iter().partition(|file| file.name == CURRENT);
    let total = backup.files.iter().map(|file| file.size).sum();
    let meter = Meter::new(Phase::Restoring, total, store.transfers);
    for files in [files, last] {
        let writes = stream::iter(files).map(|file| {
            let name = if file.name == CURRENT { CURRENT_TEMPORARY } else { &file.name };
            let (path, meter) = (directory.join(name), &meter);
            async move { moving::download(store, file, Some(&path), meter).await }
        });
        writes.buffer_unordered(store.transfers.parallel).try_collect::<()>().await?;
        sync_directory(directory)?;
    }
    store.check_cancelled()?;
    let (temporary, current) = (directory.join(CURRENT_TEMPORARY), directory.join(CURRENT));
    fs::rename(&temporary, &current).map_err(|error| Error::io("rename", &temporary, error))?;
    sync_directory(directory)?;
    let mark = directory.join(UNFINISHED);
    fs::remove_file(&mark).map_err(|error| Error::io("remove", &mark, error))?;
    sync_directory(directory)
}

/// Removes the files of an unfinished restore, `CURRENT` first and the mark last: whatever is left
/// when that is cut short is no database.
fn remove_files(directory: &Path) -> Result<()> {
    let remove = |path: &Path| match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    };
    remove(&directory.join(CURRENT))?;
    sync_directory(directory)?;
    let entries = fs::read_dir(directory).map_err(|error| Error::io("list", directory, error))?;
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("list", directory, error))?;
        if entry.file_name() != UNFINISHED && entry.file_name() != LOCK {
            remove(&entry.path())?;
        }
    }
    sync_directory(directory)?;
    remove(&directory.join(UNFINISHED))
}

/// Makes the names in a directory durable, where the system can. An error as well if its file
/// system has given up before: then syncs before may have succeeded, and be lost.
pub fn sync_directory(directory: &Path) -> Result<()> {
    OsEnv.sync_dir(directory).map_err(|error| match error {
        esker::Error::Io { source, .. } => Error::io("sync", directory, source),
        error => Error::Database(error),
    })
}
