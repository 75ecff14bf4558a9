//! Directories without a database, of which LevelDB's interfaces remove nothing.

use std::path::Path;

/// Whether a directory has no file with a name that an engine gives: then there is nothing to
/// remove from it, and what is there belongs to others. As in LevelDB, what cannot be listed, as a
/// file, is without one too.
///
/// ```
/// assert!(esker_ffi::directory::is_without_database("/dev/null".as_ref()));
/// ```
pub fn is_without_database(directory: &Path) -> bool {
    names(directory).map_or(true, |names| !names.iter().any(|name| is_of_an_engine(name)))
}

fn names(directory: &Path) -> std::io::Result<Vec<String>> {
    std::fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
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

/// A name that this engine or another one gives. `lost` stays in any case: what a repair puts there
/// is for people.
fn is_of_an_engine(name: &str) -> bool {
    matches!(name, "CURRENT" | "CURRENT.tmp" | "LOCK" | "CHECKPOINT" | "REPAIR" | "RESERVE")
        || name.strip_prefix("MANIFEST-").is_some_and(is_number)
        || [".table", ".wal", ".blob"].into_iter().any(|ending| name.strip_suffix(ending).is_some_and(is_number))
        || is_of_another_engine(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `look` says of a directory with these files.
    fn seen<T>(name: &str, files: &[(&str, &str)], look: impl FnOnce(&Path) -> T) -> T {
        let directory = std::env::temp_dir().join(format!("esker-ffi-directory-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (name, text) in files {
            std::fs::write(directory.join(name), text).unwrap();
        }
        let seen = look(&directory);
        std::fs::remove_dir_all(&directory).unwrap();
        seen
    }

    #[test]
    fn a_directory_of_others_is_without_a_database() {
        assert!(is_without_database(Path::new("/dev/null")) && is_without_database(Path::new("/nowhere")));
        assert!(seen("others", &[("notes.txt", "x"), ("x.log", "x"), ("lost", "x")], is_without_database));
        let names = ["CURRENT", "LOCK", "RESERVE", "MANIFEST-000001", "000001.table", "000002.wal", "000003.blob"];
        for name in names.into_iter().chain(["000004.log"]) {
            assert!(!seen("not-others", &[(name, "x"), ("notes.txt", "x")], is_without_database), "{name}");
        }
    }
}
