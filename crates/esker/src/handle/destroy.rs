//! The removal of a whole database.

use super::database::Db;
use crate::db::lifecycle::destroy;
use crate::error::Result;
use crate::options::Options;
use std::path::Path;

impl Db {
    /// Removes the database in a directory. The directory itself stays, and so do files that are
    /// not of the engine and the sub-directory `lost` of a repair. Does nothing if the directory
    /// has no database. Only the environment of the options is used.
    ///
    /// A call that is cut short leaves a directory that does not open as a database. The same call
    /// then removes the rest.
    ///
    /// # Errors
    /// `Locked` if it is open; `InvalidArgument` if the files are not certainly those of a database
    /// of this engine: nothing is removed then; `Io`.
    ///
    /// ```
    /// use esker::{Db, Options, env::mem::MemEnv};
    /// let options = Options::default().env(std::sync::Arc::new(MemEnv::new()));
    /// Db::open("data", options.clone())?.close()?;
    /// Db::destroy("data", options.clone())?;
    /// assert!(Db::open("data", options.create_if_missing(false)).is_err());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn destroy(path: impl AsRef<Path>, options: Options) -> Result<()> {
        destroy::destroy(&*options.env, path.as_ref())
    }
}
