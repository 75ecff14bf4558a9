use esker::env::{
    Env,
    fault::{Action, Class, FaultEnv, Rule},
    mem::{CrashMode, MemEnv, SyncFailure},
};
use esker::*;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
fn tmp(n: &str) -> std::path::PathBuf {
    let d = std::env::temp_dir().join(format!("w-review-db-{n}-{}", std::process::id()));
    std::fs::remove_dir_all(&d).ok();
    d
}
fn sync() -> WriteOptions {
    WriteOptions::new().sync(true)
}

#[test]
fn name_collision_at_start() {
    let d = tmp("names");
    let o = || Options::default().background_threads(0).write_buffer_bytes(64 << 10).wal_segment_bytes(1 << 20);
    let db = Db::open(&d, o()).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    k.put_with("a", "1", &sync()).unwrap();
    drop(k);
    drop(db);
    // what a kill between create_new and fallocate of segment 2 leaves
    std::fs::write(d.join("000002.wal"), b"").unwrap();
    let db = Db::open(&d, o()).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    db.flush().unwrap();
    k.put_with("b", "2", &sync()).unwrap();
    println!("{:?}", std::fs::read_dir(&d).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>());
    drop(k);
    drop(db);
    match Db::open(&d, o()) {
        Err(e) => panic!("CONFIRMED names: {e:?}"),
        Ok(db) => {
            let g = db.keyspace("k", Default::default()).unwrap().get("b").unwrap();
            assert!(g.is_some(), "CONFIRMED names: sync write lost");
        }
    }
}

#[test]
fn failed_sync_then_reopen() {
    let mem = MemEnv::default();
    let o = |e: Arc<dyn Env>| Options::default().env(e).background_threads(0).wal_segment_bytes(1 << 16);
    let db = Db::open("/db", o(Arc::new(mem.clone()))).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    k.put_with("a", "1", &sync()).unwrap();
    mem.fail_sync(0, SyncFailure::DropPending);
    println!("{:?}", k.put_with("b", "2", &sync()));
    drop(k);
    drop(db);
    let db = Db::open("/db", o(Arc::new(mem.clone()))).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    println!("b after reopen {:?}", k.get("b").unwrap().is_some());
    k.put_with("c", "3", &sync()).unwrap();
    let after = mem.crash(&CrashMode::LoseAll, 0);
    match Db::open("/db", o(Arc::new(after))) {
        Err(e) => panic!("CONFIRMED failed sync: {e:?}"),
        Ok(db) => {
            let k = db.keyspace("k", Default::default()).unwrap();
            assert!(k.get("b").unwrap().is_some() && k.get("c").unwrap().is_some(), "CONFIRMED lost");
        }
    }
}

#[test]
fn append_failure_poisons() {
    let mem = MemEnv::default();
    let f = FaultEnv::new(Arc::new(mem));
    let db = Db::open("/db", Options::default().env(Arc::new(f.clone())).background_threads(0)).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    f.add(Rule::new(Class::LogStore, 0, Action::Partial { kind: ErrorKind::Other, bytes: 9 }));
    assert!(k.put("a", "1").is_err());
    assert!(k.put("b", "1").is_err(), "CONFIRMED not poisoned after failed append");
}

#[test]
fn compact_frees() {
    let d = tmp("frees");
    let db = Db::open(&d, Options::default()).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    for r in 0..2 {
        for i in 0..20_000 {
            k.put(format!("{i}"), format!("{r}")).unwrap();
        }
        db.flush().unwrap();
    }
    db.compact().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let n = std::fs::read_dir(&d)
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().ends_with(".table"))
        .count();
    assert!(
        n == db.stats().table_files as usize,
        "CONFIRMED compact leaves {n} tables, {} live",
        db.stats().table_files
    );
}

struct P;
impl MergeOperator for P {
    fn name(&self) -> &str {
        "p"
    }
    fn full_merge(&self, _: &[u8], e: Option<&[u8]>, _: &[&[u8]]) -> std::result::Result<Option<Vec<u8>>, MergeError> {
        Ok(e.map(|e| e.to_vec()))
    }
    fn partial_merge(&self, _: &[u8], _: &[u8], n: &[u8]) -> Option<Vec<u8>> {
        Some(n.to_vec())
    }
}
#[test]
fn operator_panic_under_writer_lock() {
    let d = tmp("panic");
    let db = Db::open(&d, Options::default().background_threads(0)).unwrap();
    let k = db.keyspace("k", KeyspaceOptions::default().merge_operator(P)).unwrap();
    k.put("a", "12345678").unwrap();
    let k2 = k.clone();
    let _ = std::thread::spawn(move || k2.merge("a", "12345678")).join();
    println!("next put {:?}", k.put("b", "x"));
    drop(k);
    drop(db);
    let r = Db::open(&d, Options::default());
    assert!(r.is_ok(), "CONFIRMED panic: {:?}", r.err());
}
