//! The removal of a whole database.

use super::database::Db;
use crate::db::lifecycle::destroy;
use crate::error::Result;
use crate::options::Options;
use std::path::Path;

impl Db {
    /// Removes the database in a directory, with all that is in it. The directory stays, empty; so
    /// do files that the engine has not made, and the directory `lost` of a repair. Where there is
    /// none, nothing happens. Of the options only the environment matters.
    ///
    /// One that is cut short leaves what opens as no database; the same call removes the rest.
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
