//! Power loss around everything that compaction and the reclaiming of log files make durable.

use crate::compaction_support::{Model, contents, tiny, verify};
use esker::env::mem::{CrashMode, MemEnv};
use esker::internals::Random;
use esker::{CompactionStyle, Db, KeyspaceOptions, Options, Result, WriteOptions};
use std::sync::Arc;

fn options(env: &MemEnv) -> Options {
    let small = tiny().write_buffer_bytes(1 << 10).target_file_bytes(256).wal_segment_bytes(2 << 10);
    small.env(Arc::new(env.clone()))
}

/// What was written: the state after each write, how many were acknowledged, and how many of these
/// were known to be on the device.
#[derive(Default)]
struct History {
    states: Vec<Model>,
    acknowledged: usize,
    synced: usize,
}

/// Writes, compacts in every way, deletes everything, compacts that, and writes a little more.
fn work(env: &MemEnv, style: CompactionStyle, seed: u64, history: &mut History) -> Result<()> {
    let mut model = Model::new();
    history.states.push(model.clone());
    let db = Db::open("/db", options(env))?;
    let k = db.keyspace("k", KeyspaceOptions::default().compaction_style(style))?;
    let mut random = Random::new(seed);
    let mut write = |key: Vec<u8>, value: Option<Vec<u8>>, sync: bool, history: &mut History| {
        match &value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(&key),
        };
        history.states.push(model.clone());
        let options = WriteOptions::new().sync(sync);
        match &value {
            Some(value) => k.put_with(&key, value, &options)?,
            None => k.delete_with(&key, &options)?,
        }
        history.acknowledged += 1;
        if sync {
            history.synced = history.acknowledged;
        }
        Ok(())
    };
    for at in 0..240u64 {
        let key = vec![b'a' + random.below(26) as u8];
        let value = (random.below(4) > 0).then(|| vec![at as u8; 30]);
        write(key, value, random.below(8) == 0, history)?;
        match at {
            60 => k.compact_range("c".."m")?,
            120 => db.wait_idle()?,
            180 => db.compact()?,
            _ => {}
        }
    }
    for key in b'a'..=b'z' {
        write(vec![key], None, false, history)?;
    }
    db.compact()?;
    history.synced = history.acknowledged;
    write(b"after".to_vec(), Some(b"all".to_vec()), true, history)?;
    write(b"and".to_vec(), Some(b"more".to_vec()), false, history)
}

#[test]
fn whatever_is_lost_comes_back_as_one_moment_after_the_last_sync() {
    let styles = [
        CompactionStyle::LazyLeveling,
        CompactionStyle::Leveled,
        CompactionStyle::Tiered,
        CompactionStyle::Fifo { max_bytes: u64::MAX },
    ];
    for (seed, style) in (1..).zip(styles) {
        let whole = MemEnv::new();
        work(&whole, style, seed, &mut History::default()).unwrap();
        let calls = whole.mutations();
        println!("{style:?}, seed {seed}: {calls} calls");
        for at in (seed..calls).step_by(5) {
            let env = MemEnv::new();
            env.crash_after(at);
            let mut history = History::default();
            let died = work(&env, style, seed, &mut history).is_err();
            let mode = if at % 2 == 0 { CrashMode::Random } else { CrashMode::FIXED[(at / 2 % 4) as usize] };
            let image = env.crash(&mode, at);
            let db = Db::open("/db", options(&image)).unwrap();
            let k = db.keyspace("k", Default::default()).unwrap();
            let found = contents(&k);
            let possible = &history.states[history.synced..(history.acknowledged + 2).min(history.states.len())];
            assert!(possible.contains(&found), "{style:?}, {at} calls, {mode:?}, died {died}: {found:?}");
            verify(&db);
            k.put("again", "1").unwrap();
            db.compact().unwrap();
            assert!(k.get("again").unwrap().is_some());
        }
    }
}
