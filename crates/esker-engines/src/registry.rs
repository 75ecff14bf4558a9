//! All engines that can be measured, in the order in which reports show them. One more engine is
//! one more file beside this one, which says all that is known of it in its row, and is named here.

use super::{EngineError, EngineKind, Result, esker, fjall, kyoto, leveldb, lmdb, redb, rocksdb, sqlite};

/// The rows of all engines.
pub const KINDS: [EngineKind; 8] =
    [esker::KIND, leveldb::KIND, rocksdb::KIND, sqlite::KIND, kyoto::KIND, lmdb::KIND, redb::KIND, fjall::KIND];

/// The names of all engines, in the same order.
pub const ENGINES: [&str; KINDS.len()] = {
    let mut names = [""; KINDS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = KINDS[at].name;
        at += 1;
    }
    names
};

/// The row of the engine with this name.
pub fn row(name: &str) -> Option<EngineKind> {
    KINDS.into_iter().find(|kind| kind.name == name)
}

/// The row of one engine; the error lists the names there are.
pub fn find(name: &str) -> Result<EngineKind> {
    row(name).ok_or_else(|| EngineError(format!("no engine `{name}`: there are {}", ENGINES.join(", "))))
}

/// The line that tells why an engine is not measured; most problems begin with its name already.
pub fn left_out(name: &str, problem: &str) -> String {
    format!("{name}: left out: {}", without_name(name, problem))
}

/// What an adapter says begins with its engine's name; this is the rest.
pub fn without_name<'a>(name: &str, problem: &'a str) -> &'a str {
    problem.strip_prefix(name).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_found_by_their_names() {
        assert!(ENGINES.iter().all(|name| find(name).unwrap().name == *name));
        for problem in ["leveldb: library not found", "library not found"] {
            assert_eq!(left_out("leveldb", problem), "leveldb: left out: library not found");
        }
        assert!(find("oracle").err().unwrap().0.contains("leveldb"));
    }
}
