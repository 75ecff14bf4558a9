//! Copies of tables and blob files for a checkpoint. Damage does not get into them: it ends the
//! copying, and the error names the file and the place.
//!
//! A table is copied block by block: what is written are the bytes whose checksum was right. Large
//! values have their checksums in the tables that refer to them, in the order of the keys; so a
//! blob file is copied as it is, and every value that is referred to is then read from the copy.

use crate::blob::format::file_name as blob_name;
use crate::blob::{BlobFile, BlobStore};
use crate::db::files::copy;
use crate::db::state::inner::Inner;
use crate::error::{Error, Result};
use crate::options::Compression;
use crate::table::Table;
use std::path::Path;
use std::sync::Arc;

/// The number of copied blob files whose values are verified in one pass over the tables. That many
/// files are open during the pass.
const FILES_AT_ONCE: usize = 64;

/// Writes the table to the file `to`, durably but for its name.
pub fn table(inner: &Inner, table: &Table, to: &Path) -> Result<()> {
    let mut copy = inner.options.env.create(to)?;
    let copied = table.copy(&mut |bytes| copy.append(bytes));
    copied.inspect_err(|error| note_table(inner, table, error))?;
    copy.sync()?;
    inner.error_state.forget_damage(table.path());
    Ok(())
}

/// Notes the table's damage. Not what else may be wrong: damage of the copy is not reported, the
/// copy is removed.
fn note_table(inner: &Inner, table: &Table, error: &Error) {
    if let Error::Corruption { path, .. } = error
        && path == table.path()
    {
        inner.error_state.note_damage(error);
    }
}

/// Copies blob files to the directory `target`. The bytes are durable then, the names are not.
/// `tables` are all tables that may refer to the files. The caller ensures that files which this
/// process writes are not removed meanwhile.
pub fn blobs(inner: &Inner, tables: &[Arc<Table>], files: &[Arc<BlobFile>], target: &Path) -> Result<()> {
    let env = &*inner.options.env;
    let mut known = inner.blobs.damaged();
    for files in files.chunks(FILES_AT_ONCE) {
        let mut originals = Vec::with_capacity(files.len());
        for file in files {
            let content = file.reopen(env)?;
            copy::copy(env, &*content, &target.join(blob_name(file.number())))?;
            originals.push(Arc::new(file.with_content(content)));
        }
        check_blobs(inner, tables, originals, target)?;
    }
    known.retain(|number, _| files.iter().any(|file| file.number() == *number));
    inner.blobs.forget_damage(&known);
    Ok(())
}

/// Reads every value that tables refer to from the copies of these blob files. What is wrong in the
/// copy as a rule was so in the original, which then is the file to name.
fn check_blobs(inner: &Inner, tables: &[Arc<Table>], files: Vec<Arc<BlobFile>>, target: &Path) -> Result<()> {
    let env = &inner.options.env;
    let store =
        |directory: &Path| BlobStore::new(Arc::clone(env), directory.to_path_buf(), u64::MAX, Compression::None);
    let (copies, originals) = (store(target), store(&inner.directory));
    let numbers: Vec<u64> = files.iter().map(|file| file.number()).collect();
    for file in files {
        let noted = || file.check_header().inspect_err(|error| inner.blobs.note_damage(file.number(), error));
        copies.open_file(file.number(), 0).or_else(|error| noted().and(Err(error)))?;
        originals.know(file);
    }
    for table in tables.iter().filter(|table| numbers.iter().any(|number| table.summary().blobs.contains_key(number))) {
        let checked = table.blob_references(&mut |reference| {
            if !numbers.contains(&reference.file) {
                return Ok(());
            }
            let noted =
                || originals.read(reference).inspect_err(|error| inner.blobs.note_damage(reference.file, error));
            copies.read(reference).or_else(|error| noted().and(Err(error))).map(drop)
        });
        checked.inspect_err(|error| note_table(inner, table, error))?;
    }
    Ok(())
}
