//! Opening databases and keyspaces the way each kind of command needs it.

use crate::failure::Failure;
use esker::{ChangeRetention, Db, Options};
use std::path::Path;

/// Opens for reading: takes no lock and writes nothing, so it works beside a running writer and on
/// damaged data.
pub fn read_only(directory: &Path) -> Result<Db, Failure> {
    require_directory(directory)?;
    Ok(Db::open_read_only(directory, Options::default().create_if_missing(false))?)
}

/// Opens an existing database for writing.
pub fn existing(directory: &Path) -> Result<Db, Failure> {
    require_directory(directory)?;
    Ok(Db::open(directory, for_writing().create_if_missing(false))?)
}

/// Opens for writing and creates the database if it is not there.
pub fn or_create(directory: &Path) -> Result<Db, Failure> {
    if directory.as_os_str().is_empty() {
        return Err(Failure::Usage("the database directory is empty text; name one with --db".into()));
    }
    Ok(Db::open(directory, for_writing())?)
}

/// The program whose database it is may keep changes for their readers.
fn for_writing() -> Options {
    Options::default().keep_changes(ChangeRetention::AsBefore)
}

/// Says what is wrong with a path that is no directory.
pub fn require_directory(directory: &Path) -> Result<(), Failure> {
    match std::fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(Failure::Operation(format!(
            "{} is not a directory; give the directory of a database with --db",
            directory.display()
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Failure::Operation(format!(
            "{} does not exist; check --db (`esker put`, `esker load` and `esker keyspaces create` make a database)",
            directory.display()
        ))),
        Err(error) => Err(Failure::io(&format!("cannot open {}", directory.display()), &error)),
    }
}
