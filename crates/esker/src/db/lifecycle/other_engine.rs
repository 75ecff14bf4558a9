//! Directories that another engine has written.
//!
//! LevelDB and RocksDB give files the names `CURRENT`, `LOCK` and `MANIFEST-`, too. Taken for a
//! damaged database of this engine, theirs would be repaired to an empty one.

use crate::env::Env;
use crate::error::{Error, Result};
use crate::version::file_name::{CURRENT, table_number};
use crate::version::manifest::{current_number, is_current_of_another_engine};
use crate::wal::segment::file_number;
use std::path::Path;

/// Refuses a directory that another engine has written, and says how its pairs get into a database
/// of this engine. Nothing is changed.
///
/// `CURRENT` of both is the name of a manifest and the end of the line; this engine's has a
/// checksum behind the name. Where it is damaged or missing, the names of the other files tell. A
/// directory with a log or a table of this engine is its own, whatever `CURRENT` says.
pub fn refuse_other_engine(env: &dyn Env, directory: &Path) -> Result<()> {
    let is_there = env.exists(&directory.join(CURRENT))?;
    if is_there && current_number(env, directory)?.is_some() || !env.exists(directory)? {
        return Ok(());
    }
    let is_theirs = is_there && is_current_of_another_engine(env, directory)?;
    let names = env.list(directory)?;
    // Neither of them has such files; RocksDB has blob files.
    let is_ours = |name: &String| table_number(name).is_some() || file_number(name).is_some();
    if names.iter().any(is_ours) || !is_theirs && !names.iter().any(|name| is_of_another_engine(name)) {
        return Ok(());
    }
    let (engine, option) = match names.iter().any(|name| is_of_rocksdb(name)) {
        true => ("RocksDB", "rocksdb"),
        false => ("LevelDB", "leveldb"),
    };
    let directory = directory.display();
    Err(Error::invalid(format!(
        "{directory} was written by {engine}, whose files this library does not read; copy it with \
         `esker import --db NEW_DIRECTORY --from {option} {directory}` and open the copy"
    )))
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

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::lifecycle::{destroy, open};
    use crate::db::maintenance::{repair, verify_directory};
    use crate::env::mem::MemEnv;
    use crate::options::Options;
    use std::sync::Arc;

    const DIRECTORY: &str = "data";

    fn directory_of(files: &[(&str, &str)]) -> Options {
        let env = MemEnv::new();
        env.create_dir_all(Path::new(DIRECTORY)).unwrap();
        for (name, text) in files {
            env.create(&Path::new(DIRECTORY).join(name)).unwrap().append(text.as_bytes()).unwrap();
        }
        Options::default().env(Arc::new(env))
    }

    fn refused(files: &[(&str, &str)]) -> Option<String> {
        let options = directory_of(files);
        refuse_other_engine(&*options.env, Path::new(DIRECTORY)).err().map(|error| error.to_string())
    }

    #[test]
    fn the_engine_that_wrote_it_is_told() {
        assert_eq!(refused(&[]), None);
        assert_eq!(refused(&[("CURRENT", "MANIFEST-"), ("000001.table", "x"), ("LOG", "x")]), None);
        assert_eq!(refused(&[("CURRENT", "MANIFEST-000005\n"), ("000001.wal", "x")]), None);
        assert_eq!(refused(&[("notes.txt", "x"), ("x.log", "x")]), None);
        assert!(refused(&[("CURRENT", "MANIFEST-000005\n"), ("000009.blob", "x")]).is_some());
        let leveldb = refused(&[("CURRENT", "MANIFEST-000005\n")]).unwrap();
        assert!(leveldb.contains("esker import --db NEW_DIRECTORY --from leveldb data"), "{leveldb}");
        let rocksdb = refused(&[("CURRENT", "MANIFEST-000005\n"), ("IDENTITY", "x")]).unwrap();
        assert!(rocksdb.contains("--from rocksdb"), "{rocksdb}");
        assert!(refused(&[("OPTIONS-000008", "x")]).unwrap().contains("--from rocksdb"));
    }

    #[test]
    fn the_other_files_tell_where_current_does_not() {
        for name in ["LOG", "LOG.old", "000003.log", "000005.ldb", "000005.sst", "000007.dbtmp"] {
            for current in ["", "MANIF", "MANIFEST-\n", "MANIFEST-000005", "\0\0\0\0"] {
                let told = refused(&[("CURRENT", current), (name, "x"), ("MANIFEST-000005", "x")]);
                assert!(told.is_some_and(|told| told.contains("--from leveldb")), "{name} {current:?}");
            }
            assert!(refused(&[(name, "x"), ("MANIFEST-000005", "x")]).is_some(), "{name}");
        }
    }

    /// No call takes such a directory for a damaged database, and none writes to it.
    #[test]
    fn no_call_touches_such_a_directory() {
        let directory = Path::new(DIRECTORY);
        for current in ["MANIFEST-000005\n", "MANIF"] {
            let files = [("CURRENT", current), ("MANIFEST-000005", "x"), ("000003.log", "x"), ("000005.ldb", "x")];
            let options = directory_of(&files);
            let before = options.env.list(directory).unwrap();
            let refused = [
                open::open(directory, options.clone()).err(),
                open::open_read_only(directory, options.clone()).err(),
                repair::repair(directory, &options).err(),
                verify_directory::verify_directory(directory, &options, &mut |_| ()).err(),
                destroy::destroy(&*options.env, directory).err(),
            ];
            for (call, error) in refused.into_iter().enumerate() {
                let told = error.map(|error| error.to_string()).unwrap_or_default();
                assert!(told.contains("was written by LevelDB"), "{current:?}, call {call}: {told}");
            }
            assert_eq!(options.env.list(directory).unwrap(), before);
            for (name, text) in files {
                let file = options.env.open(&directory.join(name)).unwrap();
                let mut bytes = vec![0; file.len() as usize];
                file.read_at(0, &mut bytes).unwrap();
                assert_eq!(bytes, text.as_bytes());
            }
        }
    }
}
