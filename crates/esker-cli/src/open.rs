//! Opening databases and keyspaces the way each kind of command needs it.

use crate::failure::Failure;
use esker::{ChangeRetention, Db, Error, Follower, Options};
use serde_json::Value;
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

/// A database that is to be copied.
pub enum Copied {
    /// No other process has it open.
    Own(Db),
    /// Another process has, that one where it is known: the files are read beside it.
    Beside(Follower, Option<u32>),
}

/// Opens a database to make a copy of it: for writing, or beside the process that has it open so.
pub fn for_copying(directory: &Path) -> Result<Copied, Failure> {
    require_directory(directory)?;
    match Db::open(directory, for_writing().create_if_missing(false)) {
        Err(Error::Locked { holder, .. }) => {
            Ok(Copied::Beside(Db::open_follower(directory, Options::default())?, holder))
        }
        opened => Ok(Copied::Own(opened?)),
    }
}

impl Copied {
    /// The handle that makes the copy.
    pub fn db(&self) -> &Db {
        match self {
            Copied::Own(db) => db,
            Copied::Beside(follower, _) => follower.db(),
        }
    }

    /// Closes it, if it is this process that has it open.
    pub fn close(self) -> Result<(), Failure> {
        match self {
            Copied::Own(db) => Ok(db.close()?),
            Copied::Beside(..) => Ok(()),
        }
    }

    /// The process that has it open, if that is not this one.
    pub fn beside(&self) -> Option<Beside> {
        match self {
            Copied::Own(_) => None,
            Copied::Beside(_, holder) => Some(Beside(*holder)),
        }
    }
}

/// A process that has the database open which is copied; its number, where it is known.
#[derive(Clone, Copy)]
pub struct Beside(Option<u32>);

impl Beside {
    /// What is to be told of it, behind a line of text.
    pub fn text(self) -> String {
        let process = self.0.map_or_else(|| "another process".to_owned(), |number| format!("process {number}"));
        format!("\nread beside {process}, which has the database open")
    }

    /// The same in a line of JSON.
    pub fn put_into(self, line: &mut Value) {
        line["beside_process"] = self.0.into();
    }
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
