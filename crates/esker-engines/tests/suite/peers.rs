//! Every adapter keeps the contract of the engine traits. A C library that is not installed is a
//! skipped line, or a failure with `ESKER_REQUIRE_PEERS=1`.

#![allow(clippy::unwrap_used)]

use esker_engines::{
    Compression, Durability, Engine, EngineKind, EngineOptions, Iteration, Opened, Operation, Session, WriteMode,
    registry,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const ASYNC: WriteMode = WriteMode { sync: false, disable_wal: false };
const SYNC: WriteMode = WriteMode { sync: true, disable_wal: false };
const NO_LOG: WriteMode = WriteMode { sync: false, disable_wal: true };

/// A directory of its own for one test, removed afterwards.
struct TempDir(PathBuf);

impl TempDir {
    fn new(name: &str) -> TempDir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("esker-peers-{}-{}-{name}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        TempDir(std::env::temp_dir().join(unique))
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn options(operator: &str) -> EngineOptions {
    EngineOptions {
        cache_bytes: Some(8 << 20),
        merge_operator: Some(operator.to_string()),
        expected_data_bytes: 64 << 20,
        ..EngineOptions::default()
    }
}

/// Runs `test` on an engine, in a fresh directory, unless its library is missing.
fn with_engine(name: &str, test: impl Fn(&EngineKind, &Path)) {
    let kind = registry::find(name).unwrap();
    match (kind.probe)(None) {
        Ok(version) => eprintln!("{name}: {version}"),
        Err(missing) => {
            assert_ne!(std::env::var("ESKER_REQUIRE_PEERS").as_deref(), Ok("1"), "{missing}");
            assert!(!missing.0.contains('\n') && missing.0.contains("install"), "{missing}");
            eprintln!("skipped: {missing}");
            return;
        }
    }
    let directory = TempDir::new(name);
    test(&kind, &directory.0);
}

fn open(kind: &EngineKind, directory: &Path, options: &EngineOptions) -> Opened {
    (kind.open)(directory, options, None).unwrap()
}

fn read(session: &mut dyn Session, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = b"left over".to_vec();
    session.get(key, &mut value).unwrap().then_some(value)
}

fn key(number: u32) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

fn value(number: u32) -> Vec<u8> {
    format!("value-{number}-").repeat(5).into_bytes()
}

fn entry(iteration: &dyn Iteration) -> (Vec<u8>, Vec<u8>) {
    (iteration.key().to_vec(), iteration.value().to_vec())
}

fn writes_and_reads(engine: &dyn Engine) {
    let mut session = engine.session().unwrap();
    assert_eq!(read(&mut *session, b"absent"), None);
    session.put(b"a", b"1", ASYNC).unwrap();
    assert_eq!(read(&mut *session, b"a").unwrap(), b"1");
    session.put(b"a", b"22", SYNC).unwrap();
    assert_eq!(read(&mut *session, b"a").unwrap(), b"22");
    session.put(b"a", b"", NO_LOG).unwrap();
    assert_eq!(read(&mut *session, b"a").unwrap(), b"");
    let long: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
    session.put(b"a", &long, ASYNC).unwrap();
    assert_eq!(read(&mut *session, b"a").unwrap(), long);
    session.delete(b"a", ASYNC).unwrap();
    session.delete(b"a", ASYNC).unwrap();
    session.delete(b"never", SYNC).unwrap();
    assert_eq!(read(&mut *session, b"a"), None);
    session.put(b"gone", b"x", ASYNC).unwrap();
    let batch = [
        Operation::Put(b"b", b"1"),
        Operation::Put(b"c", b"2"),
        Operation::Delete(b"gone"),
        Operation::Put(b"b", b"3"),
    ];
    session.write(&batch, ASYNC).unwrap();
    session.write(&batch, SYNC).unwrap();
    session.write(&[], ASYNC).unwrap();
    assert_eq!(read(&mut *session, b"b").unwrap(), b"3");
    assert_eq!(read(&mut *session, b"c").unwrap(), b"2");
    assert_eq!(read(&mut *session, b"gone"), None);
    session.delete(b"b", ASYNC).unwrap();
    session.delete(b"c", ASYNC).unwrap();
    drop(session);
    engine.finish_writes().unwrap();
}

fn merges(engine: &dyn Engine) {
    let mut session = engine.session().unwrap();
    let counter =
        |session: &mut dyn Session| read(session, b"counter").map(|v| u64::from_le_bytes(v.try_into().unwrap()));
    let five = 5u64.to_le_bytes();
    session.merge(b"counter", &five, ASYNC).unwrap();
    session.merge(b"counter", &five, SYNC).unwrap();
    assert_eq!(counter(&mut *session), Some(10));
    session.write(&[Operation::Merge(b"counter", &five), Operation::Merge(b"counter", &five)], ASYNC).unwrap();
    assert_eq!(counter(&mut *session), Some(20));
    session.put(b"counter", &u64::MAX.to_le_bytes(), ASYNC).unwrap();
    session.merge(b"counter", &five, ASYNC).unwrap();
    assert_eq!(counter(&mut *session), Some(4));
    let again = [Operation::Delete(b"counter"), Operation::Merge(b"counter", &five)];
    session.write(&again, ASYNC).unwrap();
    assert_eq!(counter(&mut *session), Some(5));
    session.delete(b"counter", ASYNC).unwrap();
}

/// Leaves the even keys of 0..2000.
fn iterates(engine: &dyn Engine) {
    let mut session = engine.session().unwrap();
    {
        let mut empty = session.iterate().unwrap();
        assert!(!empty.seek_to_first().unwrap());
        assert!(!empty.seek_to_last().unwrap());
        assert!(!empty.seek(b"x").unwrap());
        assert!(!empty.next().unwrap());
        assert!(!empty.prev().unwrap());
    }
    for number in (0..2000).rev() {
        session.put(&key(number), &value(number), ASYNC).unwrap();
    }
    for number in (1..2000).step_by(2) {
        session.delete(&key(number), ASYNC).unwrap();
    }
    let mut iteration = session.iterate().unwrap();
    let mut positioned = iteration.seek_to_first().unwrap();
    for number in (0..2000).step_by(2) {
        assert!(positioned);
        assert_eq!(entry(&*iteration), (key(number), value(number)));
        positioned = iteration.next().unwrap();
    }
    assert!(!positioned);
    assert!(!iteration.next().unwrap());
    let mut positioned = iteration.seek_to_last().unwrap();
    for number in (0..2000).step_by(2).rev() {
        assert!(positioned);
        assert_eq!(entry(&*iteration), (key(number), value(number)));
        positioned = iteration.prev().unwrap();
    }
    assert!(!positioned);
    assert!(iteration.seek(&key(500)).unwrap());
    assert_eq!(iteration.key(), key(500));
    assert!(iteration.seek(&key(501)).unwrap());
    assert_eq!(entry(&*iteration), (key(502), value(502)));
    // Turning round, repeatedly, also at both ends.
    assert!(iteration.prev().unwrap() && iteration.key() == key(500));
    assert!(iteration.prev().unwrap() && iteration.key() == key(498));
    assert!(iteration.next().unwrap() && iteration.key() == key(500));
    assert!(iteration.next().unwrap() && iteration.key() == key(502));
    assert!(iteration.prev().unwrap() && iteration.key() == key(500));
    assert!(iteration.seek(&key(1998)).unwrap());
    assert!(iteration.prev().unwrap() && iteration.key() == key(1996));
    assert!(iteration.next().unwrap() && iteration.key() == key(1998));
    assert!(!iteration.next().unwrap());
    assert!(!iteration.seek(&key(1999)).unwrap());
    assert!(iteration.seek_to_first().unwrap());
    assert!(!iteration.prev().unwrap());
    drop(iteration);
    assert_eq!(read(&mut *session, &key(4)).unwrap(), value(4));
}

/// What an iteration has pinned goes before what keeps it from being used again: redb (with its
/// debug assertions) lets its writer panic otherwise.
fn walks_beside_a_writer(engine: &dyn Engine) {
    std::thread::scope(|scope| {
        // More threads than processors: some of them are interrupted while they let go.
        for _ in 0..8 {
            scope.spawn(|| {
                let mut session = engine.session().unwrap();
                for _ in 0..10_000 {
                    let mut iteration = session.iterate().unwrap();
                    assert!(iteration.seek(&key(1000)).unwrap());
                }
            });
        }
        let mut session = engine.session().unwrap();
        for round in 0..2_000 {
            session.put(&key(1001), &value(round), ASYNC).unwrap();
        }
        session.delete(&key(1001), ASYNC).unwrap();
    });
}

fn threads_share(engine: &dyn Engine) {
    std::thread::scope(|scope| {
        for thread in 0..2u32 {
            scope.spawn(move || {
                let mut session = engine.session().unwrap();
                for i in 0..500 {
                    let number = 10_000 + thread * 1000 + i;
                    session.put(&key(number), &value(number), ASYNC).unwrap();
                    assert_eq!(read(&mut *session, &key(number)).unwrap(), value(number));
                    session.merge(b"shared", &1u64.to_le_bytes(), ASYNC).unwrap();
                    if i % 100 == 0 {
                        let mut iteration = session.iterate().unwrap();
                        assert!(iteration.seek(&key(10_000)).unwrap());
                    }
                }
            });
        }
    });
    let mut session = engine.session().unwrap();
    assert_eq!(read(&mut *session, b"shared").unwrap(), 1000u64.to_le_bytes());
}

fn conforms(kind: &EngineKind, directory: &Path) {
    let options = options("uint64add");
    let engine = open(kind, directory, &options);
    assert_eq!(engine.description.name, kind.name);
    assert!(!engine.description.version.is_empty());
    let settings = engine.description.settings.clone();
    for name in ["durability", "memory", "compression"] {
        assert!(settings.iter().any(|(n, v)| n == name && !v.is_empty()), "{}: no {name}", kind.name);
    }
    eprintln!("{} {}: {settings:?}", engine.description.name, engine.description.version);
    writes_and_reads(&*engine);
    merges(&*engine);
    iterates(&*engine);
    threads_share(&*engine);
    walks_beside_a_writer(&*engine);
    engine.finish_writes().unwrap();
    engine.compact_all().unwrap();
    engine.wait_idle().unwrap();
    eprintln!("{}: stats {:?}", kind.name, engine.property("stats").map(|text| text.len()));
    assert!(engine.property("no such property").is_none());
    engine.close().unwrap();

    let engine = open(kind, directory, &options);
    let mut session = engine.session().unwrap();
    for number in 0..2000 {
        assert_eq!(read(&mut *session, &key(number)), (number % 2 == 0).then(|| value(number)), "{}", kind.name);
    }
    assert_eq!(read(&mut *session, &key(11_499)).unwrap(), value(11_499));
    assert_eq!(read(&mut *session, b"shared").unwrap(), 1000u64.to_le_bytes());
    drop(session);
    engine.close().unwrap();
}

fn variants(kind: &EngineKind, directory: &Path) {
    let cases = [("put", "b"), ("max", "c"), ("stringappend", "a,c,b")];
    for (index, (operator, expected)) in cases.into_iter().enumerate() {
        let mut options = options(operator);
        options.compression = if index == 0 { Compression::None } else { Compression::Lz };
        options.sync = index == 1;
        options.disable_wal = index == 2;
        options.bloom_bits = [Some(-1), Some(0), Some(12)][index];
        options.open_files = 100;
        for flag in ["num_levels=6", "level0_file_num_compaction_trigger=4", "level0_slowdown_writes_trigger=8"] {
            let (name, value) = flag.split_once('=').unwrap();
            options.extra.insert(name.to_string(), value.to_string());
        }
        options.extra.insert("level0_stop_writes_trigger".into(), "12".into());
        options.extra.insert("min_level_to_compress".into(), "2".into());
        options.extra.insert("max_bytes_for_level_base".into(), "10485760".into());
        options.extra.insert("page_size".into(), "1024".into());
        options.extra.insert("num_pages".into(), "4096".into());
        options.extra.insert("use_rowids".into(), (index % 2).to_string());
        options.extra.insert("statistics".into(), "1".into());
        options.extra.insert("wal_plain".into(), (index % 2).to_string());
        options.extra.insert("mmap_read".into(), (index % 2).to_string());
        let engine = open(kind, &directory.join(operator), &options);
        let mut session = engine.session().unwrap();
        // What one merge leaves in the session's buffer is no part of the next one.
        session.merge(b"before", b"stale", ASYNC).unwrap();
        for operand in [b"a", b"c", b"b"] {
            session.merge(b"k", operand, ASYNC).unwrap();
        }
        assert_eq!(read(&mut *session, b"k").unwrap(), expected.as_bytes(), "{} {operator}", kind.name);
        drop(session);
        engine.compact_all().unwrap();
        let mut session = engine.session().unwrap();
        assert_eq!(read(&mut *session, b"k").unwrap(), expected.as_bytes(), "{} {operator}", kind.name);
        drop(session);
        let settings = engine.description.settings.clone();
        let class = settings.iter().find(|(name, _)| name == "durability").map(|(_, class)| class.as_str());
        assert_eq!(class, Some(engine.description.durability.name()), "{settings:?}");
        if kind.name == "esker" {
            assert_eq!(class, Some(["operating_system", "device", "process"][index]), "{settings:?}");
            assert!(settings.contains(&("block_bytes".into(), "4096".into())), "{settings:?}");
        }
        if kind.name == "sqlite" {
            assert!(settings.contains(&("page_size".into(), "1024".into())), "{settings:?}");
        }
        if kind.name == "rocksdb" && index == 0 {
            assert!(engine.counters().wal_bytes > 0, "{:?}", engine.counters());
        }
        engine.close().unwrap();
    }
    let refused = options("no such operator");
    assert!((kind.open)(&directory.join("refused"), &refused, None).is_err());
}

/// Names the engine and the directory for the process that is to die.
const CHILD: &str = "ESKER_PEERS_CHILD";

/// Not a test of its own: the process that [`survives_its_process`] starts writes and dies in here.
#[test]
fn dying_child() {
    let Ok(work) = std::env::var(CHILD) else { return };
    let (name, directory) = work.split_once(':').unwrap();
    let engine = open(&registry::find(name).unwrap(), Path::new(directory), &options("uint64add"));
    let mut session = engine.session().unwrap();
    for number in 0..300 {
        session.put(&key(number), &value(number), ASYNC).unwrap();
    }
    session.write(&[Operation::Put(b"batch 1", b"x"), Operation::Put(b"batch 2", b"y")], ASYNC).unwrap();
    session.merge(b"counter", &7u64.to_le_bytes(), ASYNC).unwrap();
    std::process::abort();
}

/// An engine that claims the class `operating_system` has every acknowledged write after its
/// process died.
fn survives_its_process(kind: &EngineKind, directory: &Path) {
    std::fs::create_dir_all(directory).unwrap();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "peers::dying_child"])
        .env(CHILD, format!("{}:{}", kind.name, directory.display()))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success() && status.code().is_none(), "{}: {status}", kind.name);
    let engine = open(kind, directory, &options("uint64add"));
    if engine.description.durability == Durability::Process {
        eprintln!("{}: claims nothing", kind.name);
        return;
    }
    let mut session = engine.session().unwrap();
    for number in 0..300 {
        assert_eq!(read(&mut *session, &key(number)), Some(value(number)), "{}", kind.name);
    }
    assert_eq!(read(&mut *session, b"batch 2").unwrap(), b"y");
    assert_eq!(read(&mut *session, b"counter").unwrap(), 7u64.to_le_bytes());
}

macro_rules! peers {
    ($($name:ident),*) => {$(
        mod $name {
            #[test]
            fn conforms() {
                super::with_engine(stringify!($name), super::conforms);
            }

            #[test]
            fn variants() {
                super::with_engine(stringify!($name), super::variants);
            }

            #[test]
            fn survives_its_process() {
                super::with_engine(stringify!($name), super::survives_its_process);
            }
        }
    )*};
}

peers!(esker, leveldb, rocksdb, sqlite, kyoto, lmdb, redb, fjall);

#[test]
fn a_missing_library_is_one_line() {
    for name in ["leveldb", "rocksdb", "kyoto"] {
        let kind = registry::find(name).unwrap();
        let error = (kind.probe)(Some(Path::new("/nonexistent/library.so"))).unwrap_err().0;
        assert!(!error.contains('\n'), "{error}");
        assert!(error.starts_with(name) && error.contains("scripts/peers") && error.contains("--lib"), "{error}");
    }
}
