//! Copies of tables and blob files for a checkpoint. Damage does not get into them: it ends the copying, and the error names the file and the place.
//!
//! A table is copied block by block: what is written are the bytes whose checksum was right. Large values have their checksums in the tables that refer to them, in the order
//! of the keys; so a blob file is copied as it is, and every value that is referred to is then read from the copy.

use super::copying;
use super::inner::Inner;
use super::verify::each_reference;
use crate::blob::BlobStore;
use crate::blob::format::file_name as blob_name;
use crate::error::{Error, Result};
use crate::options::Compression;
use crate::table::Table;
use std::path::Path;
use std::sync::Arc;

/// Of so many copies of blob files the values are checked in one pass over the tables that refer to them: as many files are open meanwhile.
const FILES_AT_ONCE: usize = 64;

/// Writes the table to the file `to`, durably but for its name.
pub fn table(inner: &Inner, table: &Table, to: &Path) -> Result<()> {
    let mut copy = inner.options.env.create(to)?;
    table.copy(&mut |bytes| copy.append(bytes)).inspect_err(|error| note(inner, error))?;
    copy.sync()?;
    inner.condition.was_intact(table.path());
    Ok(())
}

/// Copies blob files to the directory `target`, durably but for their names. `tables` are all that may refer to them. The caller sees to it that the files stay.
pub fn blobs(inner: &Inner, tables: &[Arc<Table>], numbers: &[u64], target: &Path) -> Result<()> {
    let env = &*inner.options.env;
    for numbers in numbers.chunks(FILES_AT_ONCE) {
        for number in numbers {
            let name = blob_name(*number);
            copying::copy(env, &*env.open(&inner.directory.join(&name))?, &target.join(&name))?;
        }
        check_blobs(inner, tables, numbers, target).inspect_err(|error| note(inner, error))?;
        numbers.iter().for_each(|number| inner.condition.was_intact(&inner.directory.join(blob_name(*number))));
    }
    Ok(())
}

/// Reads every value that tables refer to from the copies of these blob files.
fn check_blobs(inner: &Inner, tables: &[Arc<Table>], numbers: &[u64], target: &Path) -> Result<()> {
    let store = |directory: &Path| {
        BlobStore::new(Arc::clone(&inner.options.env), directory.to_path_buf(), u64::MAX, Compression::None)
    };
    // What is wrong in the copy as a rule was so in the original, which then is the file to name.
    let original = |number| store(&inner.directory).open_file(number, 0);
    let copies = store(target);
    for number in numbers {
        copies.open_file(*number, 0).or_else(|error| original(*number).and(Err(error)))?;
    }
    for table in tables.iter().filter(|table| numbers.iter().any(|number| table.summary().blobs.contains_key(number))) {
        each_reference(table, &mut |reference| {
            if !numbers.contains(&reference.file) {
                return Ok(());
            }
            let read = copies.read(&reference).map(drop);
            read.or_else(|error| original(reference.file)?.read(&reference).and(Err(error)))
        })?;
    }
    Ok(())
}

/// Notes damage of a file of this database. Not of the copy: that is taken away.
fn note(inner: &Inner, error: &Error) {
    if let Error::Corruption { path, .. } = error
        && path.parent() == Some(&inner.directory)
    {
        inner.condition.note_damage(error);
    }
}
