//! Figures under names that do not change.

use crate::common::*;
use esker::env::mem::MemEnv;

#[test]
fn properties_say_what_the_statistics_say() {
    let env = MemEnv::default();
    let db = open(&env);
    let dotted = keyspace(&db, "a.b c");
    dotted.put("k", "v").unwrap();
    db.flush().unwrap();
    dotted.put("l", "w").unwrap();
    let stats = db.stats();
    let number = |name: &str| db.property(name).unwrap_or_else(|| panic!("no {name}")).parse::<u64>().unwrap();
    assert_eq!(number("esker.flush.count"), 1);
    assert_eq!(number("esker.table.bytes"), stats.table_bytes);
    assert_eq!(number("esker.memtable.bytes"), stats.memtable_bytes);
    assert_eq!(number("esker.keyspace.count"), 1);
    assert_eq!(number("esker.keyspace.a.b c.runs"), 1);
    assert_eq!(number("esker.keyspace.a.b c.memtable_entries"), 1);
    assert_eq!(db.property("esker.health.writable").as_deref(), Some("true"));
    assert_eq!(db.property("esker.health.problem").as_deref(), Some(""));
    for missing in ["", "esker", "esker.keyspace.a.runs", "flush.count"] {
        assert_eq!(db.property(missing), None, "{missing}");
    }
    let all = db.properties();
    let mut names: Vec<&String> = all.iter().map(|(name, _)| name).collect();
    assert!(names.iter().all(|name| name.starts_with("esker.")));
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all.len());
}

/// Seen: 4680 bytes of memtables, and of their memory 0.
#[test]
fn statistics_agree_on_the_memory_of_memtables() {
    let env = MemEnv::default();
    let db = open(&env);
    let keyspace = keyspace(&db, "a");
    let agree = |what: &str| {
        let stats = db.stats();
        let memory = stats.memory.memtable_bytes + stats.memory.immutable_memtable_bytes;
        assert_eq!(stats.memtable_bytes, memory, "{what}: {stats}");
        let text = |name: &str| db.property(name).unwrap().parse::<u64>().unwrap();
        let parts = text("esker.memory.memtable_bytes") + text("esker.memory.immutable_memtable_bytes");
        assert_eq!(text("esker.memtable.bytes"), parts, "{what}");
    };
    agree("empty");
    keyspace.put("k", "v").unwrap();
    assert!(db.stats().memtable_bytes > 0);
    agree("written");
    db.compact().unwrap();
    agree("compacted");
}
