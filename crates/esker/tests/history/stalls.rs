//! Writers that wait, and databases that are opened again in that state.

use crate::common::{count, keyspace, simulated, wait_until};
use esker::env::Env;
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::{CompactionStyle, Db, Keyspace, KeyspaceOptions};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

const VALUE: [u8; 1000] = [5; 1000];

/// All over the order of keys, so that tables overlap.
fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

/// Writes these keys in another thread, and panics if that never ends.
fn write(k: &Keyspace, keys: std::ops::Range<u32>) {
    let k = k.clone();
    let writer = std::thread::spawn(move || keys.for_each(|number| k.put(key(number), VALUE).unwrap()));
    wait_until("the writes return", || writer.is_finished());
    writer.join().unwrap();
}

/// Nothing holds writers up.
fn nobody_waits(db: &Db) {
    assert_eq!(db.health().stall_reason, None);
}

/// A scan, or many of them, is no reason to hold writers back, nor to say so.
#[test]
fn scans_hold_nobody_back() {
    let db = Db::open("/db", simulated(MemEnv::new()).background_threads(1).write_buffer_bytes(64 << 10)).unwrap();
    let k = keyspace(&db, "k");
    for scans in [1, 1000] {
        k.put(b"k", VALUE).unwrap();
        (0..scans).for_each(|_| assert_eq!(count_of(&k), 1));
        db.flush().unwrap();
        nobody_waits(&db);
    }
    assert_eq!((db.stats().delays, db.stats().stalls), (0, 0));
}

fn count_of(k: &Keyspace) -> u32 {
    count(k) as u32
}

/// Killed while writers waited for flushes that could not be done. What was acknowledged is there
/// after the next open, and writes go on, as many as there were.
#[test]
fn a_database_killed_in_a_stall_takes_writes_when_it_is_opened_again() {
    for threads in [1, 3] {
        let env = MemEnv::new();
        let fault = FaultEnv::new(Arc::new(env.clone()));
        fault.add(
            Rule::new(Class::Create, 0, Action::Fail(ErrorKind::StorageFull)).on_names_with(".table").from_then_on(),
        );
        let options = |env| simulated(MemEnv::new()).env(env).background_threads(threads).write_buffer_bytes(64 << 10);
        let db = Db::open("/db", options(Arc::new(fault) as Arc<dyn Env>)).unwrap();
        let k = keyspace(&db, "k");
        // Until the memtables that wait are too many, and the writer is told why.
        let acknowledged = (0u32..).take_while(|&number| k.put(key(number), VALUE).is_ok()).count() as u32;
        assert!(acknowledged > 64, "only {acknowledged} writes");
        let image = env.kill();
        for round in 0..2 {
            let db = Db::open("/db", options(Arc::new(image.clone()) as Arc<dyn Env>)).unwrap();
            let k = keyspace(&db, "k");
            // The write that failed may be there.
            let found = count_of(&k);
            assert!(found >= acknowledged, "{found} of {acknowledged}, round {round}");
            write(&k, 0..3 * acknowledged);
            assert_eq!(count_of(&k), 3 * acknowledged);
            db.wait_idle().unwrap();
            nobody_waits(&db);
        }
    }
}

/// Killed while writers waited for merges that failed: there are more runs than may be left to
/// them. After the next open writers wait for the merge, and it comes.
#[test]
fn a_database_opened_with_too_many_runs_takes_writes() {
    for style in [CompactionStyle::LazyLeveling, CompactionStyle::Leveled, CompactionStyle::Tiered] {
        let env = MemEnv::new();
        let fault = FaultEnv::new(Arc::new(env.clone()));
        let options = |env| simulated(MemEnv::new()).env(env).background_threads(1).write_buffer_bytes(64 << 10);
        let db = Db::open("/db", options(Arc::new(fault.clone()) as Arc<dyn Env>)).unwrap();
        let styled = || KeyspaceOptions::default().compaction_style(style);
        let k = db.keyspace("k", styled()).unwrap();
        // All tables overlap the first.
        for end in [[0; 5], [255; 5]] {
            k.put(end, VALUE).unwrap();
        }
        db.flush().unwrap();
        let is_table = |path: &PathBuf| path.extension().is_some_and(|end| end == "table");
        let first = env.files().into_iter().find(is_table).unwrap();
        // Nothing reads a table but merges.
        let name = first.file_name().unwrap().to_str().unwrap();
        fault.add(Rule::new(Class::Read, 0, Action::Fail(ErrorKind::Other)).on_names_with(name).from_then_on());
        let acknowledged = (0u32..50_000).take_while(|&number| k.put(key(number), VALUE).is_ok()).count() as u32;
        let runs = db.stats().keyspaces[0].runs.len();
        assert!(acknowledged < 50_000, "{style:?}: no stall, {runs} runs");
        assert!(runs >= 32, "{style:?}: a write that had to wait for a flush alone failed, {runs} runs");
        let image = env.kill();
        let db = Db::open("/db", options(Arc::new(image) as Arc<dyn Env>)).unwrap();
        let k = db.keyspace("k", styled()).unwrap();
        assert!(count_of(&k) >= 2 + acknowledged, "{style:?}");
        write(&k, 0..3 * acknowledged);
        assert_eq!(count_of(&k), 2 + 3 * acknowledged);
        db.wait_idle().unwrap();
        assert!(db.stats().keyspaces[0].runs.len() < 32, "{style:?}");
        nobody_waits(&db);
    }
}
