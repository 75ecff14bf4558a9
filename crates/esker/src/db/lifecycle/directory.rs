//! The directory of a database: what may be in it, and what is made in it.

use crate::blob::BlobStore;
use crate::blob::format::file_number as blob_number;
use crate::db::files::repair_mark;
use crate::error::{Error, Result};
use crate::options::{Options, WalMode};
use crate::version::file_name::{
    CURRENT, CURRENT_TEMPORARY, LOCK, LOST, REPAIR, UNFINISHED, manifest_number, table_number,
};
use crate::wal::format::MAX_SEGMENT_BYTES;
use crate::wal::reader::holds_history;
use crate::wal::reserve::RESERVE;
use crate::wal::segment::{SegmentMaker, Unfinished, file_number};
use std::path::Path;
use std::sync::Arc;

/// The first log segment of a database: small, so that opening an empty one is quick.
const FIRST_SEGMENT_BYTES: u64 = 1 << 20;

/// The blob files in the directory.
pub fn blob_store(directory: &Path, options: &Options) -> Arc<BlobStore> {
    let (env, directory) = (Arc::clone(&options.env), directory.to_path_buf());
    Arc::new(BlobStore::new(env, directory, options.blob_file_bytes(), options.compression))
}

pub fn segment_maker(directory: &Path, options: &Options) -> SegmentMaker {
    // Room for the header, the link and a small record, whatever size was requested.
    let largest_bytes = options.wal_segment_bytes.clamp(256, MAX_SEGMENT_BYTES);
    SegmentMaker {
        env: Arc::clone(&options.env),
        directory: directory.to_path_buf(),
        mapped: options.wal_mode == WalMode::Mapped,
        in_foreground: options.background_threads == 0,
        read_only: false,
        unfinished: None,
        smallest_bytes: FIRST_SEGMENT_BYTES.min(largest_bytes),
        largest_bytes,
    }
}

/// For the log of a directory that another process may be at work in, or has left as it is.
pub fn segments_to_read(directory: &Path, options: &Options) -> SegmentMaker {
    let unfinished: Option<Unfinished> = Some(repair_mark::first_of_unfinished);
    SegmentMaker { read_only: true, unfinished, ..segment_maker(directory, options) }
}

/// Whether the engine makes files of that name.
pub fn is_ours(name: &str) -> bool {
    matches!(name, CURRENT | CURRENT_TEMPORARY | LOCK | LOST | REPAIR | RESERVE | UNFINISHED)
        || file_number(name).is_some()
        || table_number(name).is_some()
        || blob_number(name).is_some()
        || manifest_number(name).is_some()
}

/// A directory that holds something else is not made a database.
pub fn refuse_foreign_directory(options: &Options, directory: &Path) -> Result<()> {
    if !options.env.exists(directory)? || options.env.exists(&directory.join(CURRENT))? {
        return Ok(());
    }
    match options.env.list(directory)?.into_iter().find(|name| !is_ours(name)) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!(
            "{} holds files of something else ({name}); choose an empty directory",
            directory.display()
        ))),
    }
}

/// A copy of a database that was not finished is neither one nor an empty directory.
pub fn refuse_unfinished_checkpoint(options: &Options, directory: &Path) -> Result<()> {
    let exists = |name: &str| options.env.exists(&directory.join(name));
    if !exists(UNFINISHED)? || exists(CURRENT)? {
        return Ok(());
    }
    Err(Error::invalid(format!("{} is an unfinished checkpoint; make another one", directory.display())))
}

/// Without `CURRENT`, only what creating a database leaves when it is interrupted may be there.
pub fn refuse_missing_current(options: &Options, directory: &Path) -> Result<()> {
    let missing =
        |what: String| Err(Error::corruption(directory.join(CURRENT), 0, format!("the file is missing, but {what}")));
    for name in options.env.list(directory)? {
        let what = match (table_number(&name), blob_number(&name)) {
            (Some(_), _) => "table",
            (_, Some(_)) => "blob file",
            _ => continue,
        };
        // Of a repair that was undone a power loss can bring names back, but no contents
        // (`remover.rs`).
        if !options.env.open(&directory.join(&name))?.is_empty() {
            return missing(format!("there is a {what}, {name}"));
        }
    }
    // A log that was written to, or continues an earlier one, belongs to a database whose `CURRENT`
    // was lost.
    let maker = SegmentMaker { read_only: true, ..segment_maker(directory, options) };
    if holds_history(&maker)? { missing("the log holds writes".into()) } else { Ok(()) }
}

/// Creates the directory and its parents, and makes all their names durable.
///
/// One at a time, outermost first, each durable before the next is made: so all that contains a
/// directory that exists is durable, and after an attempt that was cut short only the innermost may
/// not be.
pub fn create_directory(env: &dyn crate::env::Env, directory: &Path) -> Result<()> {
    let named = |path: &Path| !path.as_os_str().is_empty();
    let mut unsure = Vec::new();
    for ancestor in directory.ancestors().filter(|path| named(path)) {
        unsure.push(ancestor);
        if env.exists(ancestor)? {
            break;
        }
    }
    for path in unsure.iter().rev() {
        env.create_dir_all(path)?;
        let parent = path.parent().filter(|path| named(path)).unwrap_or(Path::new("."));
        env.sync_dir(parent)?;
    }
    Ok(())
}

/// A number above that of every file there is, named by the manifest or not.
pub fn first_free_number(env: &dyn crate::env::Env, directory: &Path, at_least: u64) -> Result<u64> {
    let names = env.list(directory)?;
    let number_in = |name: &String| table_number(name).or_else(|| manifest_number(name)).or_else(|| blob_number(name));
    let numbers = names.iter().filter_map(number_in);
    Ok(numbers.map(|number| number + 1).chain([at_least]).max().unwrap_or(at_least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_made_as_the_options_say() {
        let maker = |options: Options| segment_maker(Path::new("data"), &options);
        let usual = maker(Options::default());
        assert!(usual.mapped && !usual.in_foreground && !usual.read_only);
        assert!(!maker(Options::default().wal_mode(WalMode::Plain)).mapped);
        assert!(maker(Options::default().background_threads(0)).in_foreground);
    }
}
