//! An ordered map in memory behind the engine interface: slow, certainly right, and with no files.
//! The program is checked against it, and `--engine=reference` runs it. It keeps its data in the
//! process, by directory, so that closing and opening finds them again.

use esker_engines::*;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The engine's name.
pub const NAME: &str = "reference";

/// The file that stands for the data; data without it are forgotten.
const FILE: &str = "REFERENCE";

type Map = Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>;

static DATABASES: Mutex<Option<HashMap<PathBuf, Map>>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked left whole entries behind: every critical section makes one change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Its registry row.
pub const KIND: EngineKind = EngineKind {
    name: NAME,
    title: NAME,
    capabilities: Capabilities { disable_wal: true, compact: true, ..Capabilities::ORDERED },
    memory: MemorySplit::cache_only("none"),
    open,
    probe: |_| Ok("in memory".into()),
};

fn open(directory: &Path, options: &EngineOptions, _: Option<&Path>) -> Result<Opened> {
    let failed = |error: std::io::Error| EngineError(format!("{}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    let file = directory.join(FILE);
    let mut databases = lock(&DATABASES);
    let databases = databases.get_or_insert_default();
    if !file.exists() {
        databases.remove(directory);
        std::fs::write(&file, "").map_err(failed)?;
    }
    let map = databases.entry(directory.to_path_buf()).or_default().clone();
    let settings = [("durability", "process"), ("memory", "unbounded"), ("compression", "none")].into_iter();
    let settings = settings.chain([("sync", if options.sync { "1" } else { "0" })]);
    let description = Description {
        name: NAME,
        version: "in memory".into(),
        capabilities: KIND.capabilities,
        durability: Durability::Process,
        settings: settings.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
    };
    Ok(Opened::new(Reference { map, operator: options.merge_operator.clone() }, description))
}

struct Reference {
    map: Map,
    operator: Option<String>,
}

impl Engine for Reference {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(ReferenceSession { engine: self }))
    }
    fn property(&self, name: &str) -> Option<String> {
        (name == "stats").then(|| format!("entries: {}", lock(&self.map).len()))
    }
}

struct ReferenceSession<'a> {
    engine: &'a Reference,
}

impl Session for ReferenceSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8], _: WriteMode) -> Result<()> {
        lock(&self.engine.map).insert(key.to_vec(), value.to_vec());
        Ok(())
    }
    fn delete(&mut self, key: &[u8], _: WriteMode) -> Result<()> {
        lock(&self.engine.map).remove(key);
        Ok(())
    }
    fn merge(&mut self, key: &[u8], operand: &[u8], _: WriteMode) -> Result<()> {
        let mut map = lock(&self.engine.map);
        let old = map.get(key).map(Vec::as_slice);
        let new = combine(self.engine.operator.as_deref(), old, operand)?;
        map.insert(key.to_vec(), new);
        Ok(())
    }
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        Ok(lock(&self.engine.map).get(key).map(|found| value.extend_from_slice(found)).is_some())
    }
    fn iterate(&mut self) -> Result<Box<dyn Iteration + '_>> {
        Ok(Box::new(ReferenceIteration { map: &self.engine.map, here: None }))
    }
}

fn combine(operator: Option<&str>, old: Option<&[u8]>, operand: &[u8]) -> Result<Vec<u8>> {
    let number = |bytes: &[u8]| <[u8; 8]>::try_from(bytes).map_or(0, u64::from_le_bytes);
    match (operator, old) {
        (Some("uint64add"), old) => Ok(number(old.unwrap_or(&[])).wrapping_add(number(operand)).to_le_bytes().to_vec()),
        (Some("stringappend"), Some(old)) => Ok([old, b",", operand].concat()),
        (Some("max"), Some(old)) => Ok(old.max(operand).to_vec()),
        (Some("max" | "stringappend" | "put"), _) => Ok(operand.to_vec()),
        _ => Err(EngineError("no merge operator".into())),
    }
}

struct ReferenceIteration<'a> {
    map: &'a Map,
    here: Option<(Vec<u8>, Vec<u8>)>,
}

impl ReferenceIteration<'_> {
    fn take(&mut self, from: Bound<Vec<u8>>, to: Bound<Vec<u8>>, last: bool) -> Result<bool> {
        let map = lock(self.map);
        let mut range = map.range((from, to));
        let entry = if last { range.next_back() } else { range.next() };
        self.here = entry.map(|(key, value)| (key.clone(), value.clone()));
        Ok(self.here.is_some())
    }
    fn here_key(&self) -> Vec<u8> {
        self.key().to_vec()
    }
}

impl Iteration for ReferenceIteration<'_> {
    fn seek_to_first(&mut self) -> Result<bool> {
        self.take(Bound::Unbounded, Bound::Unbounded, false)
    }
    fn seek_to_last(&mut self) -> Result<bool> {
        self.take(Bound::Unbounded, Bound::Unbounded, true)
    }
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.take(Bound::Included(key.to_vec()), Bound::Unbounded, false)
    }
    fn next(&mut self) -> Result<bool> {
        self.take(Bound::Excluded(self.here_key()), Bound::Unbounded, false)
    }
    fn prev(&mut self) -> Result<bool> {
        self.take(Bound::Unbounded, Bound::Excluded(self.here_key()), true)
    }
    fn key(&self) -> &[u8] {
        self.here.as_ref().map_or(&[], |(key, _)| key)
    }
    fn value(&self) -> &[u8] {
        self.here.as_ref().map_or(&[], |(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_combine() {
        let three = 3u64.to_le_bytes();
        assert_eq!(combine(Some("uint64add"), Some(&three), &three).unwrap(), 6u64.to_le_bytes());
        assert_eq!(combine(Some("uint64add"), None, &three).unwrap(), three);
        assert_eq!(combine(Some("stringappend"), Some(b"a"), b"b").unwrap(), b"a,b");
        assert_eq!(combine(Some("max"), Some(b"b"), b"a").unwrap(), b"b");
        assert_eq!(combine(Some("put"), Some(b"b"), b"a").unwrap(), b"a");
        assert!(combine(None, None, b"a").is_err());
    }
}
