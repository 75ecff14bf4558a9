//! The directory of one engine's benchmark database, and the rule that protects everybody else's:
//! nothing is ever removed from a directory that does not carry our marker, and only an empty or
//! missing directory is given one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The marker file.
pub const MARKER: &str = "ESKER_BENCH";

/// A directory that this program may use, and empty if it carries the marker.
#[derive(Debug, Clone)]
pub struct BenchDirectory {
    path: PathBuf,
}

impl BenchDirectory {
    /// Takes `path` for benchmarks, creating it if missing. With `keep`, a directory without marker
    /// is accepted too; it can then be used, but not emptied. The error is one line.
    pub fn claim(path: &Path, keep: bool) -> Result<BenchDirectory, String> {
        let failed = |error: io::Error| format!("cannot use {}: {error}", path.display());
        let directory = BenchDirectory { path: path.to_path_buf() };
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if directory.is_marked() {
                    return Ok(directory);
                }
                if entries.next().is_some() {
                    return if keep { Ok(directory) } else { Err(directory.refusal()) };
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(path).map_err(failed)?,
            Err(error) => return Err(failed(error)),
        }
        let text = "Made by `esker bench`, which empties this directory when it starts.\n";
        fs::write(path.join(MARKER), text).map_err(failed)?;
        Ok(directory)
    }

    /// Removes what was left in `path` if that carries the marker; anything else is left alone. The
    /// error is one line.
    pub fn empty_if_marked(path: &Path) -> Result<(), String> {
        let directory = BenchDirectory { path: path.to_path_buf() };
        if directory.is_marked() { directory.empty() } else { Ok(()) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the engine keeps its files: apart from the marker, because an engine may refuse a
    /// directory with files it does not know.
    pub fn database(&self) -> PathBuf {
        self.path.join("db")
    }

    fn is_marked(&self) -> bool {
        fs::symlink_metadata(self.path.join(MARKER)).is_ok_and(|data| data.is_file())
    }

    fn refusal(&self) -> String {
        format!(
            "{} is not empty and was not made by esker bench (no {MARKER} file in it): left alone",
            self.path.display()
        )
    }

    /// Removes everything but the marker. The error is one line.
    pub fn empty(&self) -> Result<(), String> {
        if !self.is_marked() {
            return Err(self.refusal());
        }
        self.remove_entries().map_err(|error| format!("cannot empty {}: {error}", self.path.display()))
    }

    fn remove_entries(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name() == MARKER {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Bytes that the files below take on the device: sparse files count only what they hold.
    pub fn disk_bytes(&self) -> u64 {
        allocated_bytes(&self.path)
    }
}

fn allocated_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    entries
        .flatten()
        .filter_map(|entry| {
            let data = entry.metadata().ok()?;
            Some(if data.is_dir() { allocated_bytes(&entry.path()) } else { data.blocks() * 512 })
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_directory_is_left_alone() {
        let base = tempfile::tempdir().unwrap();
        let foreign = base.path().join("photos");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("cat.jpg"), "cat").unwrap();
        assert!(BenchDirectory::claim(&foreign, false).unwrap_err().contains("left alone"));
        let kept = BenchDirectory::claim(&foreign, true).unwrap();
        assert!(kept.empty().unwrap_err().contains("left alone"));
        BenchDirectory::empty_if_marked(&foreign).unwrap();
        BenchDirectory::empty_if_marked(&base.path().join("missing")).unwrap();
        assert_eq!(fs::read_dir(&foreign).unwrap().count(), 1);
        let file = foreign.join("cat.jpg");
        assert!(BenchDirectory::claim(&file, false).unwrap_err().contains("cannot use"));
    }

    #[test]
    fn our_own_is_emptied() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("a/b");
        let ours = BenchDirectory::claim(&path, false).unwrap();
        fs::create_dir(path.join("sub")).unwrap();
        fs::write(path.join("sub/file"), vec![1; 10_000]).unwrap();
        assert!(ours.disk_bytes() >= 10_000);
        let again = BenchDirectory::claim(&path, false).unwrap();
        again.empty().unwrap();
        fs::write(path.join("file"), "1").unwrap();
        BenchDirectory::empty_if_marked(&path).unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
        assert!(path.join(MARKER).exists());
    }
}
