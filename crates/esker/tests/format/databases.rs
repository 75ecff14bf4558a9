//! Random databases, decoded and compared with what the engine says of them.

use crate::changes;
use crate::compare::{answers, assert_same};
use crate::directory::{Database, Files, Left};
use crate::features::{Features, assert_usual};
use crate::machine::{DIRECTORY, Machine};
use crate::random::{Random, seeds};
use crate::script::Script;
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Clock, Db, KeyspaceOptions};

/// Decodes the files.
fn decoded(files: &Files, left: Left, features: &mut Features) -> Database {
    let database = Database::read(files, left).unwrap_or_else(|what| panic!("{left:?}: {what}"));
    database.add_features(features);
    database
}

#[test]
fn what_was_closed_or_dropped_is_as_the_pages_say() {
    let mut features = Features::new();
    for seed in seeds(30) {
        println!("ESKER_SEED={seed}");
        let machine = Machine::new(seed);
        let mut script = Script::new(seed, machine.clock.clone());
        for _life in 0..3 {
            let db = machine.open().unwrap();
            let steps = script.random.below(600);
            script.run(&db, steps).unwrap();
            if script.random.one_in(2) {
                db.close().unwrap();
            } else {
                drop(db);
            }
            let database = decoded(&machine.files(), Left::InOrder, &mut features);
            let contents = database.contents(machine.clock.now_ms()).unwrap();
            let follower = Db::open_follower(DIRECTORY, machine.options()).unwrap();
            assert_same(&contents, &answers(follower.db()));
            if let Some(changes) = database.changes().unwrap() {
                let answered = changes::answered(follower.db());
                let differ = changes.iter().zip(&answered).find(|(ours, theirs)| ours != theirs);
                assert_eq!((changes.len(), None), (answered.len(), differ), "changes: decoded, and answered");
            }
        }
    }
    assert_usual(&features, &["log that was closed", "field 8"]);
}

/// What a disk may hold once the process or the machine is gone.
fn left_behind(env: &MemEnv, random: &mut Random) -> MemEnv {
    let mode = match random.below(8) {
        0 | 1 => return env.kill(),
        2 => return env.kill_losing_buffers(),
        fixed @ 3..6 => CrashMode::FIXED[fixed as usize - 3],
        _ => CrashMode::Random,
    };
    env.crash(&mode, random.next())
}

#[test]
fn what_a_kill_or_a_power_loss_leaves_is_read_as_the_engine_reads_it() {
    let mut features = Features::new();
    let mut seen = 0;
    let seeds = seeds(60);
    for seed in seeds.clone() {
        println!("ESKER_SEED={seed}");
        let mut machine = Machine::new(seed);
        let mut script = Script::new(seed, machine.clock.clone());
        for _life in 0..3 {
            let until = machine.env.mutations() + 20 + script.random.below(1500);
            if script.random.one_in(2) {
                machine.env.crash_after(until);
            } else {
                machine.env.crash_inside(until, script.random.next());
            }
            if let Ok(db) = machine.open() {
                let ended = script.run(&db, 3000);
                assert!(ended.is_ok() || machine.env.is_dead(), "by itself: {ended:?}");
            }
            machine = machine.with(left_behind(&machine.env, &mut script.random));
            let files = machine.files();
            if !files.contains_key("CURRENT") {
                continue;
            }
            seen += 1;
            let contents = decoded(&files, Left::Anyhow, &mut features).contents(machine.clock.now_ms()).unwrap();
            let db = machine.open().unwrap();
            assert_same(&contents, &answers(&db));
            drop(db);
            let contents =
                decoded(&machine.files(), Left::Recovered, &mut features).contents(machine.clock.now_ms()).unwrap();
            assert_same(&contents, &answers(&Db::open_read_only(DIRECTORY, machine.options()).unwrap()));
        }
    }
    assert_usual(&features, &["manifest with a torn end", "manifest whose last edit has no voucher"]);
    assert!(seen >= seeds.end - seeds.start, "only {seen} databases");
}

/// Of several segments that were never synced, a power loss may leave any bytes, and of some not
/// even the link.
#[test]
fn what_a_power_loss_leaves_of_segments_that_were_never_synced_is_read_as_the_engine_reads_it() {
    let machine = Machine::new(1);
    let db = Db::open(DIRECTORY, machine.options().wal_segment_bytes(16 << 10)).unwrap();
    let keyspace = db.keyspace("k", KeyspaceOptions::default()).unwrap();
    for number in 0..400u32 {
        keyspace.put(number.to_be_bytes(), [number as u8; 100]).unwrap();
    }
    let (mut cut, mut lost_links) = (0, 0);
    for loss in 0..300 {
        let left = machine.with(machine.env.crash(&CrashMode::Random, loss));
        let files = left.files();
        let mut features = Features::new();
        let contents = decoded(&files, Left::Anyhow, &mut features).contents(left.clock.now_ms()).unwrap();
        cut += usize::from(features.contains("log that ends before its last segment"));
        lost_links += usize::from(features.contains("log that ends before a segment without link"));
        assert_same(&contents, &answers(&left.open().unwrap()));
    }
    assert!(cut > 30 && lost_links > 10, "{cut} logs were cut, {lost_links} at a segment without link");
}
