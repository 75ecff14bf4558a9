//! Power loss and kills at every call of a script of large values.

use super::{repetitive, simulated, synced, value};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, Keyspace, KeyspaceOptions, Options, WriteOptions, merge::StringAppend};
use std::collections::BTreeMap;

fn options(env: MemEnv) -> Options {
    simulated(env).wal_segment_bytes(2048).write_buffer_bytes(6000).target_file_bytes(500)
}

fn append() -> KeyspaceOptions {
    KeyspaceOptions::default().merge_operator(StringAppend::new(","))
}

fn open(env: MemEnv) -> esker::Result<(Db, Keyspace, Keyspace)> {
    let db = Db::open("/db", options(env))?;
    let (a, b) = (db.keyspace("a", append())?, db.keyspace("b", append())?);
    Ok((db, a, b))
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// Both keyspaces, and the number of the last commit among it.
fn contents(a: &Keyspace, b: &Keyspace) -> (u64, Contents) {
    let read = |k: &Keyspace, name: &str| -> Vec<_> {
        k.iter()
            .map(|pair| pair.unwrap())
            .map(|(key, value)| ([name.as_bytes(), &key].concat(), value.to_vec()))
            .collect()
    };
    let all: Contents = read(a, "a").into_iter().chain(read(b, "b")).collect();
    (all.get(&b"an"[..]).map_or(0, |n| u64::from_be_bytes(n[..].try_into().unwrap())), all)
}

/// Commit `n`, in the model as well. Every commit is on both keyspaces.
fn commit(db: &Db, a: &Keyspace, b: &Keyspace, n: u64, model: &mut Contents) -> esker::Result<()> {
    let mut batch = db.batch();
    batch.put(a, "n", n.to_be_bytes())?;
    let key = format!("{}", n % 5);
    let bytes = 150 + (n as usize * 37) % 400;
    // What is compressed by a compaction, and what is not.
    let large = if n.is_multiple_of(2) { repetitive(n, bytes) } else { value(n, bytes) };
    batch.put(b, &key, &large)?;
    if n.is_multiple_of(4) {
        batch.merge(b, "1", "tail")?;
    }
    if n.is_multiple_of(6) {
        batch.delete(b, "2")?;
    }
    batch.put(a, format!("large {}", n % 3), &large)?;
    let options = if n.is_multiple_of(3) { synced() } else { WriteOptions::new() };
    batch.commit_with(&options)?;
    model.insert(b"an".to_vec(), n.to_be_bytes().to_vec());
    model.insert([b"b", key.as_bytes()].concat(), large.clone());
    if n.is_multiple_of(4) {
        let old = model.entry(b"b1".to_vec()).or_default();
        if !old.is_empty() {
            old.push(b',');
        }
        old.extend_from_slice(b"tail");
    }
    if n.is_multiple_of(6) {
        model.remove(&b"b2"[..]);
    }
    model.insert(format!("alarge {}", n % 3).into_bytes(), large);
    Ok(())
}

struct Outcome {
    /// The contents after each commit; the first of none.
    states: Vec<Contents>,
    acknowledged: u64,
    durable: u64,
}

/// Runs until the power goes, which a failed call tells.
fn run(env: &MemEnv) -> Outcome {
    let mut outcome = Outcome { states: vec![Contents::new()], acknowledged: 0, durable: 0 };
    let _ = script(env, &mut outcome);
    outcome
}

fn script(env: &MemEnv, outcome: &mut Outcome) -> esker::Result<()> {
    let mut model = Contents::new();
    for life in 0..3u64 {
        let (db, a, b) = open(env.clone())?;
        for n in life * 10 + 1..=life * 10 + 10 {
            let mut next = model.clone();
            let result = commit(&db, &a, &b, n, &mut next);
            if result.is_err() {
                // It may be there all the same.
                let mut maybe = Contents::new();
                let spare = MemEnv::default();
                let (db, a, b) = open(spare)?;
                (1..=n).for_each(|n| commit(&db, &a, &b, n, &mut maybe).unwrap());
                outcome.states.push(maybe);
            }
            result?;
            model = next;
            outcome.states.push(model.clone());
            outcome.acknowledged = n;
            if n.is_multiple_of(3) {
                outcome.durable = n;
            }
            match n % 10 {
                4 => db.flush()?,
                7 if life > 0 => db.compact()?,
                9 if life == 1 => db.checkpoint("/copy")?,
                _ => {}
            }
            if n % 10 == 4 || (n % 10 == 7 && life > 0) {
                outcome.durable = n;
            }
        }
        drop((a, b));
        if life == 1 {
            db.close()?;
            outcome.durable = outcome.acknowledged;
        }
    }
    Ok(())
}

fn check(image: MemEnv, outcome: &Outcome, at_least: u64, note: &str) -> MemEnv {
    let (db, a, b) = open(image.clone()).unwrap_or_else(|error| panic!("{note}: {error}"));
    let (n, found) = contents(&a, &b);
    assert!(n >= at_least, "{note}: {n} commits of {at_least}");
    assert!(found == outcome.states[n as usize], "{note}: not the state after {n} commits");
    db.verify().unwrap_or_else(|error| panic!("{note}: {error}"));
    image
}

#[test]
fn every_call_may_be_the_last() {
    let calls = {
        let env = MemEnv::default();
        assert_eq!(run(&env).acknowledged, 30);
        env.mutations()
    };
    assert!(calls > 300, "{calls} calls: the script must reach flushes, merges and collections");
    for call in 0..calls {
        let env = MemEnv::default();
        env.crash_after(call);
        let outcome = run(&env);
        check(env.kill(), &outcome, outcome.acknowledged, &format!("killed after {call} calls"));
        for mode in CrashMode::FIXED {
            let note = format!("after {call} calls, {mode:?}");
            let image = check(env.crash(&mode, 0), &outcome, outcome.durable, &note);
            // What a reader saw after the recovery is what it sees after another power loss.
            check(image.crash(&CrashMode::LoseAll, 0), &outcome, outcome.durable, &format!("{note}, and again"));
        }
        for seed in 0..3 {
            let note = format!("after {call} calls, seed {seed}");
            check(env.crash(&CrashMode::Random, call * 10 + seed), &outcome, outcome.durable, &note);
        }
    }
}

/// After a kill the system shows bytes of blob files that no sync ever saw. What recovery builds on
/// them must not go away with the power.
#[test]
fn what_recovery_showed_stays_after_a_failed_sync_and_a_power_loss() {
    let env = MemEnv::default();
    let (db, a, b) = open(env.clone()).unwrap();
    let mut model = Contents::new();
    (1..=2).for_each(|n| commit(&db, &a, &b, n, &mut model).unwrap());
    env.fail_sync(0, esker::env::mem::SyncFailure::DropPending);
    commit(&db, &a, &b, 3, &mut Contents::new()).unwrap_err();
    drop((a, b, db));
    let (db, a, b) = open(env.clone()).unwrap();
    let seen = contents(&a, &b);
    a.put_with("later", "x", &synced()).unwrap();
    drop((a, b, db));
    let (_db, a, b) = open(env.crash(&CrashMode::LoseAll, 0)).unwrap();
    assert_eq!(a.get("later").unwrap().as_deref(), Some(&b"x"[..]));
    let mut found = contents(&a, &b);
    found.1.remove(&b"alater"[..]);
    assert!(found == seen);
}

/// A flush of the only keyspace does not sync the log: what its table refers to must be durable all
/// the same.
#[test]
fn what_a_flushed_table_refers_to_is_durable() {
    for logged in [true, false] {
        let env = MemEnv::default();
        let (db, _, b) = open(env.clone()).unwrap();
        b.put_with("key", value(1, 1000), &WriteOptions::new().disable_wal(!logged)).unwrap();
        db.flush().unwrap();
        let (_db, _, b) = open(env.crash(&CrashMode::LoseAll, 0)).unwrap();
        assert_eq!(b.get("key").unwrap().as_deref(), Some(&value(1, 1000)[..]), "logged: {logged}");
    }
}
