//! Databases of other engines, written by the engines themselves.
#![allow(clippy::unwrap_used)]

use esker_engines::{EngineOptions, Operation, WriteMode, registry};
use std::path::{Path, PathBuf};

/// The engines, and the file of a database below its directory.
pub const ENGINES: [(&str, &str); 6] = [
    ("leveldb", ""),
    ("rocksdb", ""),
    ("lmdb", ""),
    ("sqlite", "dbbench.sqlite3"),
    ("redb", "dbbench.redb"),
    ("fjall", ""),
];

/// Whether the library of an engine is here. CI insists on it.
pub fn is_here(name: &str) -> bool {
    let probed = (registry::find(name).unwrap().probe)(None);
    if let Err(missing) = &probed {
        assert!(std::env::var("ESKER_REQUIRE_PEERS").as_deref() != Ok("1"), "{missing}");
        eprintln!("{missing}");
    }
    probed.is_ok()
}

/// Writes so many pairs with the engine itself. `None`: its library is not here.
pub fn write(name: &str, directory: &Path, pairs: u32) -> Option<PathBuf> {
    if !is_here(name) {
        return None;
    }
    let kind = registry::find(name).unwrap();
    std::fs::create_dir_all(directory).unwrap();
    let engine = (kind.open)(directory, &EngineOptions::default(), None).unwrap();
    {
        let mut session = engine.session().unwrap();
        let all: Vec<_> = (0..pairs).map(pair).collect();
        for some in all.chunks(1000) {
            let batch: Vec<_> = some.iter().map(|(key, value)| Operation::Put(key, value)).collect();
            session.write(&batch, WriteMode::default()).unwrap();
        }
    }
    engine.close().unwrap();
    let (_, file) = ENGINES.into_iter().find(|(engine, _)| *engine == name).unwrap();
    Some(if file.is_empty() { directory.to_path_buf() } else { directory.join(file) })
}

/// Keys and values with every byte, some values empty; keys are not in order.
pub fn pair(number: u32) -> (Vec<u8>, Vec<u8>) {
    let mixed = number.wrapping_mul(0x9e37_79b1);
    let key = [&mixed.to_be_bytes()[..], b"\0\xff"].concat();
    let value = mixed.to_le_bytes().repeat(number as usize % 4);
    (key, value)
}
