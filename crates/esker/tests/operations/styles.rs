//! Every compaction style gives the same answers.

use crate::compaction_support::{Model, Scratch, check, contents, tiny, verify};
use esker::env::mem::MemEnv;
use esker::internals::Random;
use esker::{CompactionStyle, Compression, Db, Keyspace, KeyspaceOptions, Options};
use std::sync::Arc;
use std::time::{Duration, Instant};

const STYLES: [CompactionStyle; 4] = [
    CompactionStyle::LazyLeveling,
    CompactionStyle::Leveled,
    CompactionStyle::Tiered,
    CompactionStyle::Fifo { max_bytes: u64::MAX },
];

fn open(db: &Db, style: Option<CompactionStyle>) -> Keyspace {
    let adds = KeyspaceOptions::default().merge_operator(esker::merge::StringAppend::new(","));
    db.keyspace("k", style.map_or(adds.clone(), |style| adds.compaction_style(style))).unwrap()
}

/// Puts, deletes and merges; keys are drawn from a few, or climb.
fn load(keyspace: &Keyspace, model: &mut Model, random: &mut Random, operations: u64) {
    for _ in 0..operations {
        let key = format!("{:05}", random.below(2000)).into_bytes();
        let value = vec![b'a' + random.below(26) as u8; 20 + random.below(60) as usize];
        match random.below(10) {
            0..6 => {
                keyspace.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            6..9 => {
                keyspace.delete(&key).unwrap();
                model.remove(&key);
            }
            _ => {
                keyspace.merge(&key, "m").unwrap();
                let merged = model.remove(&key).map_or(b"m".to_vec(), |old| [&old, &b",m"[..]].concat());
                model.insert(key, merged);
            }
        }
    }
}

#[test]
fn answers_do_not_depend_on_the_style() {
    for (seed, style) in (1..).zip(STYLES) {
        for threads in [0, 1, 3] {
            println!("{style:?}, {threads} threads, seed {seed}");
            let env = Arc::new(MemEnv::new());
            let options = || tiny().background_threads(threads).env(env.clone());
            let mut random = Random::new(seed);
            let mut model = Model::new();
            let db = Db::open("/db", options()).unwrap();
            let k = open(&db, Some(style));
            let mut snapshots = Vec::new();
            for _ in 0..4 {
                load(&k, &mut model, &mut random, 1500);
                snapshots.push((db.snapshot(), model.clone()));
                for (snapshot, was) in snapshots.iter().rev().take(2) {
                    let seen = snapshot.iter(&k).map(|pair| pair.unwrap());
                    let seen: Model = seen.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
                    assert!(seen == *was, "what a snapshot saw has changed");
                }
                check(&k, &model, "under load");
            }
            drop(snapshots);
            db.wait_idle().unwrap();
            verify(&db);
            check(&k, &model, "when idle");
            drop((k, db));
            let db = Db::open("/db", options()).unwrap();
            let k = open(&db, None);
            check(&k, &model, "after opening again");
            load(&k, &mut model, &mut random, 500);
            db.compact().unwrap();
            verify(&db);
            check(&k, &model, "after compacting");
        }
    }
}

#[test]
fn the_style_is_stored_and_can_be_changed() {
    let scratch = Scratch::new("style-stored");
    let fifo = CompactionStyle::Fifo { max_bytes: u64::MAX };
    let runs = |db: &Db| db.stats().keyspaces[0].runs.len();
    let mut random = Random::new(9);
    let mut model = Model::new();
    {
        let db = Db::open(scratch.path(), tiny()).unwrap();
        load(&open(&db, Some(fifo)), &mut model, &mut random, 4000);
        assert!(runs(&db) > 20, "a FIFO merges nothing");
    }
    {
        let db = Db::open(scratch.path(), tiny()).unwrap();
        let k = open(&db, None);
        db.compact().unwrap();
        db.wait_idle().unwrap();
        assert!(runs(&db) > 20, "it was stored");
        check(&k, &model, "as a FIFO");
        open(&db, Some(CompactionStyle::Leveled));
        db.wait_idle().unwrap();
        assert!(runs(&db) < 6, "{}", db.stats());
        check(&k, &model, "leveled");
    }
    let db = Db::open(scratch.path(), tiny()).unwrap();
    let k = open(&db, None);
    check(&k, &model, "opened again");
    let nothing = KeyspaceOptions::default().compaction_style(CompactionStyle::Fifo { max_bytes: 0 });
    assert!(db.keyspace("k", nothing).is_err());
}

/// Leveled compaction never had a run of its own to go into here: tables must go down one by one,
/// past others of their run.
#[test]
fn levels_form_and_tables_go_down() {
    let options = tiny().compression(Compression::None).env(Arc::new(MemEnv::new()));
    let db = Db::open("/db", options).unwrap();
    let k = db.keyspace("k", KeyspaceOptions::default().compaction_style(CompactionStyle::Leveled)).unwrap();
    let mut random = Random::new(77);
    let mut model = Model::new();
    for at in 0..15_000u64 {
        let (key, value) = (format!("{:08}", random.below(1 << 26)).into_bytes(), at.to_le_bytes().repeat(8));
        k.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    verify(&db);
    let stats = db.stats();
    println!("{stats}");
    let written = (stats.flush_bytes + stats.compaction_bytes) as f64 / stats.flush_bytes as f64;
    assert!(stats.keyspaces[0].runs.len() <= 7 && written < 16.0, "written {written:.1} times");
    assert!(stats.table_files > 100);
    check(&k, &model, "in levels");
}

#[test]
fn a_merge_by_several_threads_gives_what_one_gives() {
    let results = [1, 4].map(|threads| {
        let scratch = Scratch::new(&format!("parallel-{threads}"));
        let db = Db::open(scratch.path(), tiny().background_threads(threads).write_buffer_bytes(1 << 20)).unwrap();
        let k = open(&db, None);
        let mut random = Random::new(4);
        let mut model = Model::new();
        for _ in 0..3 {
            load(&k, &mut model, &mut random, 5000);
            db.flush().unwrap();
        }
        let snapshot = db.snapshot();
        load(&k, &mut model, &mut random, 5000);
        db.compact().unwrap();
        verify(&db);
        check(&k, &model, "with several threads");
        let seen = snapshot.iter(&k).count();
        drop(snapshot);
        db.compact().unwrap();
        assert_eq!(db.stats().keyspaces[0].runs.len(), 1);
        (contents(&k), seen, db.stats().keyspaces[0].entries)
    });
    assert!(results[0] == results[1]);
    assert_eq!(results[0].2, results[0].0.len() as u64, "nothing but live keys is left");
}

#[test]
fn upper_runs_may_be_compressed_differently() {
    let bytes = [Compression::None, Compression::Lz4].map(|upper| {
        let scratch = Scratch::new(&format!("upper-{upper:?}"));
        let options = tiny().write_buffer_bytes(1 << 20).target_file_bytes(1 << 20);
        let db = Db::open(scratch.path(), options.upper_compression(upper)).unwrap();
        let k = db.keyspace("k", Default::default()).unwrap();
        for round in 0..2 {
            for at in 0..2000 {
                k.put(format!("{at:06}"), [round; 100]).unwrap();
            }
            db.flush().unwrap();
        }
        let runs = db.stats().keyspaces[0].runs.clone();
        assert_eq!(runs.len(), 2);
        db.compact().unwrap();
        let last = db.stats().table_bytes;
        (runs[0].bytes, runs[1].bytes, last)
    });
    assert!(bytes[0].0 > 3 * bytes[1].0, "{bytes:?}");
    assert_eq!((bytes[0].1, bytes[0].2), (bytes[1].1, bytes[1].2), "the last run is compressed either way");
}

/// Two runs, to be merged at that pace.
fn two_runs(scratch: &Scratch, threads: usize, bytes_per_second: u64) -> Db {
    let options = Options::default().background_threads(threads).compression(Compression::None);
    let options = options.target_file_bytes(64 << 10).compaction_bytes_per_second(bytes_per_second);
    let db = Db::open(scratch.path(), options).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    for round in 0..2u8 {
        for at in 0..10_000 {
            k.put(format!("{at:06}"), [round; 100]).unwrap();
        }
        db.flush().unwrap();
    }
    db
}

/// A limit that holds back flushes too would stop writes. The merge would take hours; a close ends
/// it.
#[test]
fn flushes_go_on_beside_a_limited_merge() {
    for threads in [1, 2] {
        let scratch = Scratch::new(&format!("pace-flush-{threads}"));
        let db = two_runs(&scratch, threads, 100);
        let other = db.clone();
        let merge = std::thread::spawn(move || other.compact());
        let k = db.keyspace("k", Default::default()).unwrap();
        k.put("new", "new").unwrap();
        db.flush().unwrap();
        assert!(!merge.is_finished());
        db.close().unwrap();
        assert!(merge.join().unwrap().is_err());
    }
}

#[test]
fn a_limited_merge_takes_its_time() {
    for threads in [1, 2] {
        let scratch = Scratch::new(&format!("pace-{threads}"));
        let db = two_runs(&scratch, threads, 4 << 20);
        let bytes = db.stats().table_bytes + db.stats().compaction_read_bytes;
        let started = Instant::now();
        db.compact().unwrap();
        let least = Duration::from_secs_f64(bytes as f64 / f64::from(4 << 20) * 0.5);
        assert!(started.elapsed() >= least, "at least {least:?}");
        assert_eq!(db.existing_keyspace("k").unwrap().iter().count(), 10_000);
    }
}

/// Once everything is deleted, the space is that of an empty database.
#[test]
fn nothing_left_takes_no_space() {
    let sizes = [false, true].map(|used| {
        let scratch = Scratch::new(&format!("nothing-left-{used}"));
        let db = Db::open(scratch.path(), tiny()).unwrap();
        let k = db.keyspace("k", Default::default()).unwrap();
        if used {
            for at in 0..3000u32 {
                k.put(at.to_be_bytes(), [7; 50]).unwrap();
            }
            for at in 0..3000u32 {
                k.delete(at.to_be_bytes()).unwrap();
            }
            k.put("large", vec![1; 100 << 10]).unwrap();
            k.delete("large").unwrap();
            db.compact().unwrap();
        }
        assert_eq!((k.iter().count(), db.stats().table_files), (0, 0));
        let bytes = (scratch.bytes_ending(".table"), scratch.bytes_ending(".wal"));
        k.put("after", "all").unwrap();
        drop((k, db));
        let db = Db::open(scratch.path(), tiny()).unwrap();
        assert_eq!(contents(&db.keyspace("k", Default::default()).unwrap()).len(), 1);
        bytes
    });
    assert_eq!(sizes[0], sizes[1]);
}

/// As above, without a call: when idle.
#[test]
fn deleted_data_goes_when_idle() {
    for style in [CompactionStyle::LazyLeveling, CompactionStyle::Leveled, CompactionStyle::Tiered] {
        let scratch = Scratch::new(&format!("deleted-idle-{style:?}"));
        let db = Db::open(scratch.path(), tiny()).unwrap();
        let k = db.keyspace("k", KeyspaceOptions::default().compaction_style(style)).unwrap();
        let empty = scratch.bytes_ending(".wal");
        for at in 0..3000u32 {
            k.put(at.to_be_bytes(), [7; 50]).unwrap();
        }
        for at in 0..3000u32 {
            k.delete(at.to_be_bytes()).unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert_eq!(db.stats().table_files, 0, "{style:?}: {}", db.stats());
        assert_eq!(scratch.bytes_ending(".wal"), empty);
        assert_eq!(scratch.bytes_ending(".table"), 0);
    }
}
