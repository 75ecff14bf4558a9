//! `esker import`: copies a database of another engine, if this build has the engines.

#[cfg(feature = "import")]
mod copying;
#[cfg(feature = "import")]
mod marker;
#[cfg(feature = "import")]
mod running;
#[cfg(feature = "import")]
mod source_error;
#[cfg(feature = "import")]
mod verifying;

use crate::arguments::DatabaseArguments;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  esker import --db data --from leveldb old/
  esker import --db data --keyspace users --from sqlite --table users \\
    --key-column id --value-column body app.sqlite3
  esker import --db data --from redb --table names --limit 1000000 old.redb

The keyspace must be empty: it becomes a copy of what is there, in batches that each note how far they are, in the
keyspace `import progress`. An import that was interrupted, also by a power failure, goes on when the same command is
run again. At the end both sides are read once more: the number of pairs and a hash of all of them must agree.
Nothing may write to the source meanwhile. LMDB, SQLite and redb are opened for reading only; the others as by their
own programs, so that they replay their logs, and LevelDB and RocksDB may compact.

SQLite: columns are taken as their bytes, numbers as decimal text; keys must be different and not NULL.";

/// Copy a database of another engine into an empty keyspace; goes on where it was interrupted
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Import {
    #[command(flatten)]
    database: DatabaseArguments,
    /// The keyspace
    #[arg(long, value_name = "NAME", default_value = "default")]
    keyspace: String,
    /// The engine that wrote it
    #[arg(long, value_name = "ENGINE", value_parser = ["leveldb", "rocksdb", "lmdb", "sqlite", "redb", "fjall"])]
    from: String,
    /// The table (SQLite, redb), keyspace (fjall) or named database (LMDB); if left out, the only
    /// one
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// SQLite: the column with the keys; if left out, the first two columns are taken
    #[arg(long, value_name = "COLUMN", requires = "value_column")]
    key_column: Option<String>,
    /// SQLite: the column with the values
    #[arg(long, value_name = "COLUMN", requires = "key_column")]
    value_column: Option<String>,
    /// LevelDB and RocksDB: the library, if it is not the one that is found
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
    /// Stop after about so many pairs; the same command goes on later
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// The directory of the database, or its file
    path: PathBuf,
}

#[cfg(not(feature = "import"))]
impl Import {
    /// Says how to get a build that can do it.
    pub fn run(self) -> Result<(), crate::failure::Failure> {
        let asked = format!("{} of {} into {}", self.path.display(), self.from, self.database.db.display());
        let remedy = "install it with `cargo install --path crates/esker-cli --features import`";
        Err(crate::failure::Failure::Usage(format!("this build has no engine to import {asked}; {remedy}")))
    }
}
