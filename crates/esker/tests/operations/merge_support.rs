//! What the tests of merging share: a directory that goes away, and operators of the user's own.

use esker::{Db, Error, Keyspace, KeyspaceOptions, MergeError, MergeOperator, Options};
use std::path::{Path, PathBuf};

/// A directory of this test's own, removed at its end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("esker-operations-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&path).ok();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Options under which nothing happens behind the test's back.
pub fn inline() -> Options {
    Options::default().background_threads(0)
}

/// Appends operands. `panic` and `error` do what they say, wherever they are met; `delete` deletes.
pub struct Moody {
    /// Whether it combines operands with each other.
    pub partial: bool,
}

impl MergeOperator for Moody {
    fn name(&self) -> &str {
        "moody"
    }

    fn full_merge(&self, _: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Result<Option<Vec<u8>>, MergeError> {
        let mut value = existing.map(<[u8]>::to_vec);
        for &operand in operands {
            match operand {
                b"panic" => panic!("the operator was told to panic"),
                b"error" => return Err(MergeError("told to fail".into())),
                b"delete" => value = None,
                more => value.get_or_insert_default().extend_from_slice(more),
            }
        }
        Ok(value)
    }

    fn partial_merge(&self, _: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        let special = [b"panic".as_slice(), b"error", b"delete"];
        assert!(older != b"panic" && newer != b"panic", "the operator was told to panic");
        (self.partial && !special.contains(&older) && !special.contains(&newer)).then(|| [older, newer].concat())
    }

    fn check_operand(&self, operand: &[u8]) -> Result<(), MergeError> {
        assert_ne!(operand, b"panic at check", "the operator was told to panic");
        if operand == b"refused" { Err(MergeError("told to refuse".into())) } else { Ok(()) }
    }
}

/// The keyspace `k`, with that operator.
pub fn moody(db: &Db, partial: bool) -> Keyspace {
    db.keyspace("k", KeyspaceOptions::default().merge_operator(Moody { partial })).unwrap()
}

pub fn text(value: Option<esker::Slice>) -> Option<String> {
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

pub fn is_merge_failure<T>(result: &esker::Result<T>) -> bool {
    matches!(result, Err(Error::MergeFailed { .. }))
}
