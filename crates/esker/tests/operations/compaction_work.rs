//! Compaction that writes more than it has to, or loses what it did not write again.

use crate::compaction_support::{Model, check, contents, tiny, verify};
use esker::env::mem::{CrashMode, MemEnv};
use esker::internals::Random;
use esker::{Compression, Db, Keyspace, Options};
use std::sync::Arc;
use std::time::Duration;

fn put(keyspace: &Keyspace, prefix: char, count: u32, model: &mut Model) {
    for n in 0..count {
        let (key, value) = (format!("{prefix}{n:05}").into_bytes(), vec![prefix as u8; 100]);
        keyspace.put(&key, &value).unwrap();
        model.insert(key, value);
    }
}

fn options(env: &MemEnv) -> Options {
    let one_table_each = tiny().write_buffer_bytes(1 << 20).target_file_bytes(256 << 10);
    one_table_each.compression(Compression::None).env(Arc::new(env.clone()))
}

/// Two runs, of which the older has a table that the newer does not touch, and the newer one that
/// the older does not.
#[test]
fn tables_that_overlap_nothing_are_not_written_again() {
    let env = MemEnv::new();
    let mut model = Model::new();
    let db = Db::open("/db", options(&env)).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    for prefix in ['a', 'm', 'a', 'z'] {
        put(&k, prefix, 1000, &mut model);
        db.flush().unwrap();
    }
    let flushed = db.stats().flush_bytes;
    assert_eq!(db.stats().keyspaces[0].runs.len(), 2);
    db.wait_idle().unwrap();
    let stats = db.stats();
    assert_eq!(stats.keyspaces[0].runs.len(), 1, "{stats}");
    assert!(stats.compaction_read_bytes * 10 < flushed * 6, "two tables of four: {stats}");
    check(&k, &model, "merged");
    verify(&db);
    for mode in CrashMode::FIXED {
        let db = Db::open("/db", options(&env.crash(&mode, 1))).unwrap();
        verify(&db);
        let found = contents(&db.keyspace("k", Default::default()).unwrap());
        let flushed: Model = found.into_iter().filter(|(key, _)| model.contains_key(key)).collect();
        assert!(flushed == model, "{mode:?}");
    }
    // A manual compaction leaves everything in its final form.
    db.compact().unwrap();
    let all = db.stats().compaction_read_bytes - stats.compaction_read_bytes;
    assert!(all * 10 > flushed * 4, "{}", db.stats());
    check(&k, &model, "compacted");
    verify(&db);
}

/// A load in random order, into many more tables than are merged at a time.
#[test]
fn a_random_load_is_written_few_times() {
    let seed = 11;
    println!("seed {seed}");
    let env = MemEnv::new();
    let options = tiny().write_buffer_bytes(64 << 10).target_file_bytes(32 << 10).compression(Compression::None);
    let db = Db::open("/db", options.env(Arc::new(env.clone()))).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    let mut random = Random::new(seed);
    let mut model = Model::new();
    for n in 0..60_000u64 {
        let key = format!("{:08}", random.below(60_000)).into_bytes();
        let value = [&n.to_le_bytes()[..], &[7; 60]].concat();
        k.put(&key, &value).unwrap();
        model.insert(key, value);
        if n % 5000 == 0 {
            let stats = db.stats();
            assert!(stats.keyspaces[0].runs.len() <= 13, "{stats}");
        }
    }
    let stats = db.stats();
    assert!(stats.flushes > 60, "{stats}");
    let written = stats.flush_bytes + stats.compaction_bytes;
    println!("each byte was written {:.1} times", written as f64 / stats.flush_bytes as f64);
    assert!(written < 8 * stats.flush_bytes, "{stats}");
    check(&k, &model, "loaded");
    db.wait_idle().unwrap();
    check(&k, &model, "settled");
    verify(&db);
    assert_eq!(db.stats().keyspaces[0].runs.len(), 1);
}

/// The average number of runs while 40,000 keys are read and written in turn, or only written; and
/// how many tables each get searched.
fn updates(filter_bits: u32, reads: bool, model: &mut Model) -> (f64, f64) {
    let seed = 5;
    println!("seed {seed}, {filter_bits} bits, reads: {reads}");
    let env = MemEnv::new();
    let options = tiny().write_buffer_bytes(64 << 10).target_file_bytes(32 << 10).compression(Compression::None);
    let db = Db::open("/db", options.filter_bits_per_key(filter_bits).env(Arc::new(env))).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    let mut random = Random::new(seed);
    let (mut runs, mut looks, mut gets) = (0, 0, 0);
    for n in 0..40_000u64 {
        let key = format!("{:08}", random.below(40_000)).into_bytes();
        if reads {
            assert_eq!(k.get(&key).unwrap().as_deref(), model.get(&key).map(Vec::as_slice));
            gets += 1;
        }
        let value = [&n.to_le_bytes()[..], &[7; 60]].concat();
        k.put(&key, &value).unwrap();
        model.insert(key, value);
        if n >= 10_000 && n % 100 == 0 {
            runs += db.stats().keyspaces[0].runs.len();
            looks += 1;
        }
    }
    check(&k, model, "updated");
    verify(&db);
    (runs as f64 / f64::from(looks), db.stats().tables_searched as f64 / f64::from(gets.max(1)))
}

/// Without filters each run costs every get a block.
#[test]
fn fewer_runs_are_left_while_gets_search_them_in_vain() {
    let (written, _) = updates(0, false, &mut Model::new());
    let (read, searched) = updates(0, true, &mut Model::new());
    let (filtered, searched_filtered) = updates(10, true, &mut Model::new());
    println!(
        "runs: {written:.1} written, {read:.1} read without filters, {filtered:.1} with; searched {searched:.2}, {searched_filtered:.2}"
    );
    assert!(read < 0.7 * written, "gets suffer, and there are as many runs");
    assert!(searched < 4.5);
    assert!((filtered - written).abs() < 0.5, "filters save the searches, and yet there are fewer runs");
    assert!(searched_filtered < 1.1);
}

/// Writers that are faster than flushes, with a thread for these.
#[test]
fn writers_are_slowed_down_and_nothing_is_lost() {
    let env = MemEnv::new();
    let options = tiny().background_threads(1).write_buffer_bytes(512 << 10).target_file_bytes(64 << 10);
    let db = Db::open("/db", options.wal_segment_bytes(1 << 20).env(Arc::new(env.clone()))).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let k = &k;
            scope.spawn(move || {
                for n in 0..20_000u64 {
                    k.put((n * 3 + thread).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), [5; 100]).unwrap();
                }
            });
        }
    });
    let stats = db.stats();
    println!("{} stalls, {} us", stats.stalls, stats.stall_micros);
    assert!(Duration::from_micros(stats.stall_micros) < Duration::from_secs(900), "three threads, {stats}");
    assert_eq!(k.iter().count(), 60_000);
    db.wait_idle().unwrap();
    assert_eq!(k.iter().count(), 60_000);
    assert_eq!(db.health().stall_reason, None);
    verify(&db);
}
