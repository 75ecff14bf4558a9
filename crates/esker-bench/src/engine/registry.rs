//! All engines that can be measured, in the order in which reports show them.

use super::{ENGINES, EngineError, EngineKind, Result, esker, fjall, kyoto, leveldb, lmdb, redb, rocksdb, sqlite};

/// The rows of all engines.
pub fn kinds() -> Vec<EngineKind> {
    vec![
        esker::kind(),
        leveldb::kind(),
        rocksdb::kind(),
        sqlite::kind(),
        kyoto::kind(),
        lmdb::kind(),
        redb::kind(),
        fjall::kind(),
    ]
}

/// The row of one engine; the error lists the names there are.
pub fn find(name: &str) -> Result<EngineKind> {
    kinds()
        .into_iter()
        .find(|kind| kind.name == name)
        .ok_or_else(|| EngineError(format!("no engine `{name}`: there are {}", ENGINES.join(", "))))
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_and_in_order() {
        let places: Vec<usize> =
            kinds().iter().map(|kind| ENGINES.iter().position(|name| *name == kind.name).unwrap()).collect();
        assert!(places.is_sorted(), "{places:?}");
        assert!(find("leveldb").is_ok());
        for problem in ["leveldb: library not found", "library not found"] {
            assert_eq!(left_out("leveldb", problem), "leveldb: left out: library not found");
        }
        assert!(find("oracle").err().unwrap().0.contains("leveldb"));
    }
}
