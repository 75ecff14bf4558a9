//! Random databases, decoded and compared with what the engine says of them.

use crate::changes;
use crate::compare::{answers, assert_same};
use crate::directory::{Database, Files, Left};
use crate::features::{Features, assert_usual};
use crate::machine::{DIRECTORY, Machine};
use crate::random::{Random, seeds};
use crate::script::Script;
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Clock, Db};

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
    let torn = [
        "manifest with a torn end",
        "manifest whose last edit has no voucher",
        "log that ends before its last segment",
    ];
    assert_usual(&features, &torn);
    assert!(seen >= seeds.end - seeds.start, "only {seen} databases");
}
