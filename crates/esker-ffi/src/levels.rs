//! What LevelDB calls levels: runs of the engine, newest first.

use esker::Keyspace;

/// LevelDB has so many.
const LEVELS: usize = 7;

/// The tables at the level that these digits name, as text. The last level stands for all runs from
/// there on. `None` if there is no such level.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// let names = db.keyspace("names", Default::default())?;
/// names.put("ada", "1815")?;
/// db.flush()?;
/// assert_eq!(esker_ffi::levels::tables_at(&names, b"0").as_deref(), Some("1"));
/// assert_eq!(esker_ffi::levels::tables_at(&names, b"6").as_deref(), Some("0"));
/// assert_eq!(esker_ffi::levels::tables_at(&names, b"7"), None);
/// assert_eq!(esker_ffi::levels::tables_at(&names, b"+1"), None);
/// # Ok::<(), esker::Error>(())
/// ```
pub fn tables_at(keyspace: &Keyspace, level: &[u8]) -> Option<String> {
    // A sign would be parsed too.
    let digits = level.iter().all(u8::is_ascii_digit);
    let level: usize = std::str::from_utf8(level).ok()?.parse().ok().filter(|level| digits && *level < LEVELS)?;
    let is_there = |run: usize| if level + 1 == LEVELS { run >= level } else { run == level };
    let runs = keyspace.runs();
    let tables: u64 = runs.iter().enumerate().filter(|(run, _)| is_there(*run)).map(|(_, run)| run.tables).sum();
    Some(tables.to_string())
}
