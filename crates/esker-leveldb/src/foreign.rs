//! Directories that LevelDB, or RocksDB, has written.

use crate::failure::{Done, Failure};
use std::path::Path;

/// Refuses a directory that another engine has written, and says how its pairs get into one of this
/// engine. Nothing in it is changed.
///
/// `CURRENT` of both is the name of a manifest and the end of the line; this engine's has a
/// checksum behind the name.
pub fn refuse_foreign(directory: &Path) -> Done<()> {
    let Ok(current) = std::fs::read(directory.join("CURRENT")) else { return Ok(()) };
    let name = current.strip_suffix(b"\n").and_then(|line| line.strip_prefix(b"MANIFEST-"));
    if !name.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)) {
        return Ok(());
    }
    let (engine, option) = match directory.join("IDENTITY").exists() {
        true => ("RocksDB", "rocksdb"),
        false => ("LevelDB", "leveldb"),
    };
    let directory = directory.display();
    Err(Failure::invalid(format!(
        "{directory} was written by {engine}, whose files this library does not read; copy it with \
         `esker import --db NEW_DIRECTORY --from {option} {directory}` and open the copy"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str, files: &[(&str, &str)]) -> Option<String> {
        let directory = std::env::temp_dir().join(format!("esker-leveldb-foreign-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (name, text) in files {
            std::fs::write(directory.join(name), text).unwrap();
        }
        let refused = refuse_foreign(&directory).err().map(|failure| failure.0);
        std::fs::remove_dir_all(&directory).unwrap();
        refused
    }

    #[test]
    fn the_engine_that_wrote_it_is_told() {
        assert_eq!(refused("nothing", &[]), None);
        assert_eq!(refused("own", &[("CURRENT", "MANIFEST-000001 0123abcd\n")]), None);
        assert_eq!(refused("damaged", &[("CURRENT", "MANIFEST-")]), None);
        let leveldb = refused("leveldb", &[("CURRENT", "MANIFEST-000005\n")]).unwrap();
        assert!(leveldb.contains("esker import") && leveldb.contains("--from leveldb"), "{leveldb}");
        let rocksdb = refused("rocksdb", &[("CURRENT", "MANIFEST-000005\n"), ("IDENTITY", "x")]).unwrap();
        assert!(rocksdb.contains("--from rocksdb"), "{rocksdb}");
    }
}
