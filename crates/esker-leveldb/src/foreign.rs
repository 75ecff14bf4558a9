//! Directories that LevelDB, or RocksDB, has written.

use crate::failure::{Done, Failure};
use std::path::Path;

/// Refuses a directory that another engine has written, and says how its pairs get into one of this
/// engine. Nothing in it is changed.
///
/// `CURRENT` of both is the name of a manifest and the end of the line; this engine's has a
/// checksum behind the name. Where it is damaged or missing, the names of the other files tell: an
/// engine that takes the directory for its own would repair it to an empty database.
pub fn refuse_foreign(directory: &Path) -> Done<()> {
    // One that cannot be listed is the error of what follows.
    let Ok(names) = names(directory) else { return Ok(()) };
    let current = std::fs::read(directory.join("CURRENT")).unwrap_or_default();
    match writer_of(&current) {
        Writer::ThisEngine => return Ok(()),
        Writer::AnotherEngine => {}
        Writer::Unknown => {
            if !names.iter().any(|name| is_of_another_engine(name)) {
                return Ok(());
            }
        }
    }
    let (engine, option) = match names.iter().any(|name| is_of_rocksdb(name)) {
        true => ("RocksDB", "rocksdb"),
        false => ("LevelDB", "leveldb"),
    };
    let directory = directory.display();
    Err(Failure::invalid(format!(
        "{directory} was written by {engine}, whose files this library does not read; copy it with \
         `esker import --db NEW_DIRECTORY --from {option} {directory}` and open the copy"
    )))
}

/// Whether a directory has no file with a name that an engine gives: then there is nothing to
/// remove from it, and what is there belongs to others.
pub fn is_without_database(directory: &Path) -> bool {
    names(directory).is_ok_and(|names| !names.iter().any(|name| is_of_an_engine(name)))
}

fn names(directory: &Path) -> std::io::Result<Vec<String>> {
    std::fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

enum Writer {
    ThisEngine,
    AnotherEngine,
    /// There is none, or it is damaged.
    Unknown,
}

/// The engine that writes a `CURRENT` like this one.
fn writer_of(current: &[u8]) -> Writer {
    let name = current.strip_suffix(b"\n").and_then(|line| line.strip_prefix(b"MANIFEST-"));
    let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else { return Writer::Unknown };
    match name.split_once(' ') {
        None if is_number(name) => Writer::AnotherEngine,
        Some((number, checksum))
            if is_number(number) && !checksum.is_empty() && checksum.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            Writer::ThisEngine
        }
        _ => Writer::Unknown,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A name of LevelDB or RocksDB that this engine gives to no file.
fn is_of_another_engine(name: &str) -> bool {
    let is_numbered = |ending: &str| name.strip_suffix(ending).is_some_and(is_number);
    name == "LOG"
        || name.starts_with("LOG.old")
        || [".ldb", ".sst", ".log", ".dbtmp"].into_iter().any(is_numbered)
        || is_of_rocksdb(name)
}

fn is_of_rocksdb(name: &str) -> bool {
    name == "IDENTITY" || name.strip_prefix("OPTIONS-").is_some_and(is_number)
}

/// A name that this engine or another one gives.
fn is_of_an_engine(name: &str) -> bool {
    matches!(name, "CURRENT" | "CURRENT.tmp" | "LOCK" | "CHECKPOINT" | "REPAIR" | "lost")
        || name.strip_prefix("MANIFEST-").is_some_and(is_number)
        || [".table", ".wal", ".blob"].into_iter().any(|ending| name.strip_suffix(ending).is_some_and(is_number))
        || is_of_another_engine(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `look` says of a directory with these files.
    fn seen<T>(name: &str, files: &[(&str, &str)], look: impl FnOnce(&Path) -> T) -> T {
        let directory = std::env::temp_dir().join(format!("esker-leveldb-foreign-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (name, text) in files {
            std::fs::write(directory.join(name), text).unwrap();
        }
        let seen = look(&directory);
        std::fs::remove_dir_all(&directory).unwrap();
        seen
    }

    fn refused(name: &str, files: &[(&str, &str)]) -> Option<String> {
        seen(name, files, |directory| refuse_foreign(directory).err().map(|failure| failure.0))
    }

    #[test]
    fn the_engine_that_wrote_it_is_told() {
        assert_eq!(refused("nothing", &[]), None);
        assert_eq!(refused("own", &[("CURRENT", "MANIFEST-000001 0123abcd\n")]), None);
        assert_eq!(refused("own-beside", &[("CURRENT", "MANIFEST-000001 0123abcd\n"), ("LOG", "x")]), None);
        assert_eq!(refused("damaged", &[("CURRENT", "MANIFEST-"), ("000001.table", "x")]), None);
        let leveldb = refused("leveldb", &[("CURRENT", "MANIFEST-000005\n")]).unwrap();
        assert!(leveldb.contains("esker import") && leveldb.contains("--from leveldb"), "{leveldb}");
        let rocksdb = refused("rocksdb", &[("CURRENT", "MANIFEST-000005\n"), ("IDENTITY", "x")]).unwrap();
        assert!(rocksdb.contains("--from rocksdb"), "{rocksdb}");
    }

    #[test]
    fn the_other_files_tell_where_current_does_not() {
        for name in ["LOG", "LOG.old", "000003.log", "000005.ldb", "000005.sst", "000007.dbtmp"] {
            for current in ["", "MANIF", "MANIFEST-000005", "\0\0\0\0"] {
                let told = refused("other-files", &[("CURRENT", current), (name, "x"), ("MANIFEST-000005", "x")]);
                assert!(told.is_some_and(|told| told.contains("--from leveldb")), "{name} {current:?}");
            }
            assert!(refused("no-current", &[(name, "x"), ("MANIFEST-000005", "x")]).is_some(), "{name}");
        }
        assert!(refused("options", &[("OPTIONS-000008", "x")]).unwrap().contains("--from rocksdb"));
    }

    #[test]
    fn a_directory_of_others_is_without_a_database() {
        assert!(seen("others", &[("notes.txt", "x"), ("x.log", "x")], is_without_database));
        for name in ["CURRENT", "LOCK", "MANIFEST-000001", "000001.table", "000002.wal", "000003.blob", "000004.log"] {
            assert!(!seen("not-others", &[(name, "x"), ("notes.txt", "x")], is_without_database), "{name}");
        }
    }
}
