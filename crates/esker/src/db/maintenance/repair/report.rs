//! The report of a repair.

use crate::error::escape_key;
use crate::table::LostRange;
use std::fmt;
use std::path::PathBuf;

/// What a repair found, kept and lost.
///
/// ```
/// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
/// # esker::Db::open("data", options.clone())?.close()?;
/// let report = esker::Db::repair("data", options)?;
/// if !report.healthy {
///     println!("{report}"); // every damaged file, what was kept of it, and where it is now
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Nothing was wrong, and nothing was changed.
    pub healthy: bool,
    /// Every file that was damaged, missing or could not be used.
    pub files: Vec<RepairedFile>,
    /// The keyspaces that the database has now.
    pub keyspaces: Vec<String>,
    /// Entries in its tables now: versions, not keys.
    pub entries: u64,
    /// Reads may find what was not there, as `warnings` says: an older value of a key, one that was
    /// deleted, operands of a merge that count twice or were combined by another operator, or a
    /// keyspace under another name.
    pub may_be_wrong: bool,
    /// What a reader of the database must expect.
    pub warnings: Vec<String>,
    /// Where the files are now that are not used any more, if there are any: damaged ones, and
    /// those whose content is in other files.
    pub lost_directory: Option<PathBuf>,
}

/// A file in which the repair found a problem.
///
/// ```
/// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
/// # esker::Db::open("data", options.clone())?.close()?;
/// for file in esker::Db::repair("data", options)?.files {
///     println!("{}: {}, {} entries kept", file.path.display(), file.problem, file.entries_kept);
/// }
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedFile {
    /// The file as it was named before; the directory, for a file that is missing and whose name is
    /// not known.
    pub path: PathBuf,
    /// Whose table it was, if that is known.
    pub keyspace: Option<String>,
    /// What was wrong with it.
    pub problem: String,
    /// Entries that were read out of it; 0 for a file that holds none, as `CURRENT` or a manifest.
    pub entries_kept: u64,
    /// Entries that were not; none if their number is not known, as that of a log.
    pub entries_lost: Option<u64>,
    /// Where in the order of keys the lost ones are; empty if that is not known.
    pub lost_ranges: Vec<LostRange>,
}

impl RepairReport {
    /// Whether entries are lost, or may be.
    ///
    /// ```
    /// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
    /// # esker::Db::open("data", options.clone())?.close()?;
    /// assert!(!esker::Db::repair("data", options)?.lost_entries());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn lost_entries(&self) -> bool {
        self.files.iter().any(|file| file.entries_lost != Some(0))
    }
}

impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.healthy {
            return writeln!(f, "nothing is wrong; nothing was changed");
        }
        for file in &self.files {
            write!(f, "{}: {}", file.path.display(), file.problem)?;
            if let Some(keyspace) = &file.keyspace {
                write!(f, "; a table of keyspace {keyspace:?}")?;
            }
            match (file.entries_kept, file.entries_lost) {
                // A file that holds no entries.
                (0, Some(0)) => writeln!(f)?,
                (kept, Some(lost)) => writeln!(f, "; {kept} entries kept, {lost} lost")?,
                (0, None) => writeln!(f, "; an unknown number of entries lost")?,
                (kept, None) => writeln!(f, "; {kept} entries kept, an unknown number lost")?,
            }
            for range in &file.lost_ranges {
                let from = range.after.as_deref().map_or("the first key".to_owned(), escape_key);
                let to = range.through.as_deref().map_or("the last key".to_owned(), escape_key);
                writeln!(f, "  lost between {from} and {to}")?;
            }
        }
        for warning in &self.warnings {
            writeln!(f, "note: {warning}")?;
        }
        writeln!(f, "repaired: {} keyspaces, {} entries in tables", self.keyspaces.len(), self.entries)?;
        match &self.lost_directory {
            Some(directory) => writeln!(f, "files that are not used any more are in {}", directory.display()),
            None => Ok(()),
        }
    }
}
