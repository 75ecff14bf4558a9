use esker::env::{
    Env,
    fault::{Action, Class, FaultEnv, Rule},
    mem::{CrashMode, MemEnv},
};
use esker::*;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn tmp(n: &str) -> std::path::PathBuf {
    let d = std::env::temp_dir().join(format!("w-review-db-{n}-{}", std::process::id()));
    std::fs::remove_dir_all(&d).ok();
    d
}

#[test]
fn closed_then_failed_open() {
    let mem = MemEnv::default();
    let o = |e: Arc<dyn Env>| Options::default().env(e).background_threads(0).wal_segment_bytes(1 << 16);
    let db = Db::open("/db", o(Arc::new(mem.clone()))).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    k.put_with("a", "1", &WriteOptions::new().sync(true)).unwrap();
    drop(k);
    db.close().unwrap();
    let f = FaultEnv::new(Arc::new(mem.clone()));
    f.add(Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with("MANIFEST"));
    assert!(Db::open("/db", o(Arc::new(f))).is_err());
    let r = Db::open("/db", o(Arc::new(mem.clone())));
    assert!(r.is_ok(), "CONFIRMED closed: {:?}", r.err());
}

#[test]
fn batch_torn() {
    let mem = MemEnv::default();
    let f = FaultEnv::new(Arc::new(mem.clone()));
    let o = |e: Arc<dyn Env>| Options::default().env(e).background_threads(0).wal_segment_bytes(1 << 16);
    let db = Db::open("/db", o(Arc::new(f.clone()))).unwrap();
    let a = db.keyspace("a", Default::default()).unwrap();
    let b = db.keyspace("b", Default::default()).unwrap();
    let mut batch = db.batch();
    batch.put(&a, "x", "1").unwrap();
    batch.put(&b, "x", "1").unwrap();
    batch.commit().unwrap();
    // second table creation fails: as if power was lost between the two flushes
    f.add(Rule::new(Class::Create, 1, Action::Fail(ErrorKind::Other)).on_names_with(".table").from_then_on());
    let _ = db.flush();
    let after = mem.crash(&CrashMode::LoseAll, 0);
    let db2 = Db::open("/db", o(Arc::new(after))).unwrap();
    let a2 = db2.keyspace("a", Default::default()).unwrap().get("x").unwrap();
    let b2 = db2.keyspace("b", Default::default()).unwrap().get("x").unwrap();
    assert_eq!(a2.is_some(), b2.is_some(), "CONFIRMED torn batch");
}

#[test]
fn poisoned_leak() {
    let d = tmp("leak");
    let f = FaultEnv::new(Arc::new(esker::env::os::OsEnv::new()));
    let db = Db::open(&d, Options::default().env(Arc::new(f.clone()))).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    k.put("a", "1").unwrap();
    // manifest record reaches the device but the error is reported
    f.add(Rule::new(Class::Sync, 0, Action::FailAfter(ErrorKind::Other)).on_names_with("MANIFEST"));
    println!("flush: {:?}", db.flush());
    let count = || {
        std::fs::read_dir(&d)
            .unwrap()
            .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().ends_with(".table"))
            .count()
    };
    let c1 = count();
    std::thread::sleep(Duration::from_millis(2600));
    let c2 = count();
    println!("tables {c1} -> {c2}");
    // now the disk is full: the job fails and clean_up runs
    f.add(Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with(".table").from_then_on());
    std::thread::sleep(Duration::from_millis(1200));
    let c3 = count();
    println!("after disk full: {c3}");
    drop(k);
    drop(db);
    let r = Db::open(&d, Options::default());
    println!("reopen: {:?}", r.as_ref().err());
    assert!(r.is_ok() && c2 <= c1, "CONFIRMED leak {c1}->{c2}, reopen {:?}", r.err());
}

#[test]
fn iter_after_failed_merge() {
    let d = tmp("iter");
    let db = Db::open(&d, Options::default()).unwrap();
    let k = db.keyspace("k", KeyspaceOptions::default().merge_operator(merge::UInt64Add)).unwrap();
    k.put("a", 1u64.to_le_bytes()).unwrap();
    k.put("b", "bad").unwrap();
    k.merge("b", 1u64.to_le_bytes()).unwrap();
    k.put("c", 1u64.to_le_bytes()).unwrap();
    k.put("d", 1u64.to_le_bytes()).unwrap();
    let fwd: Vec<_> = k.iter().map(|r| r.map(|p| p.0.to_vec()).map_err(|_| ())).collect();
    let bwd: Vec<_> = k.iter().rev().map(|r| r.map(|p| p.0.to_vec()).map_err(|_| ())).collect();
    assert!(fwd.len() == 4 && bwd.len() == 4, "CONFIRMED iter {fwd:?} {bwd:?}");
}

#[test]
fn big_record_prepared() {
    let d = tmp("big");
    let o = || Options::default().wal_segment_bytes(256 << 10);
    let db = Db::open(&d, o()).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    k.put("a", "1").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    k.put("big", vec![7u8; 300 << 10]).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let mut n = 0;
    for i in 0..40 {
        k.put_with(format!("s{i:03}"), vec![1u8; 20 << 10], &WriteOptions::new().sync(true)).unwrap();
        n += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("{:?}", std::fs::read_dir(&d).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>());
    drop(k);
    drop(db);
    match Db::open(&d, o()) {
        Err(e) => panic!("CONFIRMED big: {e:?}"),
        Ok(db) => {
            let k = db.keyspace("k", Default::default()).unwrap();
            let have = (0..n).filter(|i| k.get(format!("s{i:03}")).unwrap().is_some()).count();
            assert_eq!(have, n, "CONFIRMED big: lost sync writes");
        }
    }
}

#[test]
fn flush_during_merge() {
    let d = tmp("fdm");
    let o = || Options::default().compression(Compression::None);
    let db = Db::open(&d, o()).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    let key = |i: u32| format!("{i:08}-some-longer-key-so-that-merging-takes-a-while");
    for i in 0..1_000_000u32 {
        k.put(key(i), "old").unwrap();
    }
    db.flush().unwrap();
    db.compact().unwrap();
    println!("{:?}", db.stats().keyspaces[0].runs);
    for round in 0..8u32 {
        for i in 0..100u32 {
            k.put(key(i), format!("low{round}")).unwrap();
        }
        db.flush().unwrap();
        let k2 = k.clone();
        let t = std::thread::spawn(move || k2.compact());
        std::thread::sleep(Duration::from_millis(5 + 10 * round as u64));
        let new = format!("new{round}");
        for i in 999_000..999_100u32 {
            k.put(key(i), &new).unwrap();
        }
        db.flush().unwrap();
        let during = !t.is_finished();
        println!("during {during} compact {:?}", t.join().unwrap());
        let stale =
            (999_000..999_100u32).filter(|i| k.get(key(*i)).unwrap().as_deref() != Some(new.as_bytes())).count();
        println!("stale {stale} {:?}", db.stats().keyspaces[0].runs);
        if stale > 0 {
            break;
        }
    }
    let stale = (999_000..999_100u32).filter(|i| k.get(key(*i)).unwrap().as_deref() == Some(b"old")).count();
    drop(k);
    drop(db);
    let r = Db::open(&d, o());
    assert!(stale == 0 && r.is_ok(), "CONFIRMED merge: stale {stale}, reopen {:?}", r.err());
}

#[test]
fn fast_writer() {
    let o =
        || Options::default().wal_segment_bytes(4 << 20).write_buffer_bytes(16 << 20).compression(Compression::None);
    if let Ok(d) = std::env::var("W_CHILD") {
        let db = Db::open(&d, o()).unwrap();
        let k = db.keyspace("k", Default::default()).unwrap();
        let v = vec![3u8; 1000];
        for i in 0..150_000u32 {
            if let Err(e) = k.put(format!("{:08}", i.wrapping_mul(2654435761) % 100_000_000), &v) {
                println!("put error {i} {e:?}");
            }
        }
        for i in 0..3000u32 {
            k.put_with(format!("z{i:05}"), &v, &WriteOptions::new().sync(i % 500 == 0)).unwrap();
        }
        println!("problem {:?}", db.health().problem);
        std::process::abort();
    }
    for round in 0..6 {
        let d = tmp("fast");
        let out = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["fast_writer", "--exact", "--nocapture"])
            .env("W_CHILD", &d)
            .output()
            .unwrap();
        println!(
            "child: {}",
            String::from_utf8_lossy(&out.stdout)
                .lines()
                .filter(|l| l.contains("problem") || l.contains("error"))
                .take(3)
                .collect::<Vec<_>>()
                .join(" | ")
        );
        match Db::open(&d, o()) {
            Err(e) => panic!("CONFIRMED fast round {round}: {e:?}"),
            Ok(db) => {
                let k = db.keyspace("k", Default::default()).unwrap();
                let have = (0..3000).filter(|i| k.get(format!("z{i:05}")).unwrap().is_some()).count();
                println!("round {round} have {have}");
                assert!(have == 3000, "CONFIRMED fast: round {round} have {have}");
            }
        }
    }
}

#[test]
fn recovery_reuse() {
    // several unsynced segments at the power loss, then a crash while the next open prepares its first segment
    let mut bad = 0;
    let mut tried = 0;
    let mut first = None;
    for seed in 0..4000u64 {
        let mem = MemEnv::default();
        let o = |e: Arc<dyn Env>| {
            Options::default().env(e).background_threads(0).wal_segment_bytes(4096).write_buffer_bytes(1 << 20)
        };
        let db = Db::open("/db", o(Arc::new(mem.clone()))).unwrap();
        let k = db.keyspace("k", Default::default()).unwrap();
        k.put_with("a", "1", &WriteOptions::new().sync(true)).unwrap();
        for i in 0..40 {
            k.put(format!("{i}"), vec![1u8; 600]).unwrap();
        }
        let image = mem.crash(&CrashMode::Random, seed);
        // does it open at all?
        let whole = MemEnv::crash(&image, &CrashMode::KeepAll, 0);
        let r = Db::open("/db", o(Arc::new(whole)));
        if let Err(e) = r {
            println!("first open fails at {seed}: {e:?}");
            continue;
        }
        drop(r);
        for at in 3..14 {
            let image = image.crash(&CrashMode::KeepAll, 0);
            image.crash_after(at);
            let r = Db::open("/db", o(Arc::new(image.clone())));
            if r.is_ok() {
                break;
            }
            tried += 1;
            let again = image.crash(&CrashMode::LoseAll, 0);
            if let Err(e) = Db::open("/db", o(Arc::new(again))) {
                bad += 1;
                first.get_or_insert(format!("seed {seed} at {at}: {e:?}"));
            }
        }
    }
    assert!(bad == 0, "CONFIRMED recovery reuse {bad} of {tried}: {first:?}");
}
