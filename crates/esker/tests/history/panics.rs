//! Panics in background threads: what is under the engine panics in the middle of its work.

use crate::common::{count, keyspace, simulated, wait_until};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::{Db, Error, Keyspace, Options};
use std::sync::Arc;

fn options(env: impl esker::env::Env + 'static, threads: usize) -> Options {
    let small = simulated(env).write_buffer_bytes(64 << 10).target_file_bytes(64 << 10);
    small.background_threads(threads)
}

/// All over the order of keys, so that tables overlap.
fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B1).to_be_bytes()
}

/// Writes until that is refused. How many were acknowledged.
fn write_until_refused(k: &Keyspace, what: &str, fault: &FaultEnv) -> (u32, Error) {
    let k = k.clone();
    let writer = std::thread::spawn(move || {
        let refused = |number| k.put(key(number), [5; 1000]).err().map(|error| (number, error));
        (0..20_000).find_map(refused)
    });
    // Nobody who waits for the thread that panicked waits for ever.
    wait_until("the writes return", || writer.is_finished());
    let found = writer.join().unwrap();
    found.unwrap_or_else(|| panic!("{what}: all writes succeeded; {} panics", fault.fired()))
}

/// The background thread, or one that merges for it, panics in a call of this kind on this kind of
/// file, after a number of such calls. Writing ends with an error that says why, also for those who
/// were waiting; reads, snapshots and scans go on; everything that was acknowledged is there after
/// the next open.
#[test]
fn a_panic_in_the_background_ends_writing_and_nothing_else() {
    let places = [
        (Class::Create, ".table", 0),
        (Class::Create, ".table", 9),
        (Class::Append, ".table", 0),
        (Class::Append, ".table", 30),
        (Class::Sync, ".table", 2),
        (Class::Append, "MANIFEST", 1),
        (Class::Sync, "MANIFEST", 2),
        (Class::Remove, ".table", 0),
    ];
    for (threads, (class, names, nth)) in [1, 3].into_iter().flat_map(|threads| places.map(|place| (threads, place))) {
        let what = format!("{threads} threads, {class:?} {nth} of {names}");
        let env = MemEnv::new();
        let fault = FaultEnv::new(Arc::new(env.clone()));
        let db = Db::open("/db", options(fault.clone(), threads)).unwrap();
        let k = keyspace(&db, "k");
        fault.add(Rule::new(class, nth, Action::Panic).on_names_with(names));
        let (acknowledged, error) = write_until_refused(&k, &what, &fault);
        assert!(matches!(error, Error::ReadOnly { .. }), "{what}: {error:?}");
        assert!(!db.health().writable && db.health().problem.is_some(), "{what}: {:?}", db.health());
        for refused in [k.put("late", "v"), db.flush(), db.compact(), db.wait_idle(), k.compact(), db.sync()] {
            assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{what}: {refused:?}");
        }
        let snapshot = db.snapshot();
        assert!((0..acknowledged).all(|number| snapshot.get(&k, key(number)).unwrap().is_some()), "{what}");
        let seen = count(&k) as u32;
        assert!(seen == acknowledged, "{what}: {seen} of {acknowledged}");
        drop(snapshot);
        let closing = std::thread::spawn(move || {
            drop(k);
            db.close()
        });
        wait_until("the close returns", || closing.is_finished());
        let _ = closing.join().unwrap();
        let db = Db::open("/db", options(env, threads)).unwrap();
        let k = keyspace(&db, "k");
        assert!((0..acknowledged).all(|number| k.get(key(number)).unwrap().is_some()), "{what}");
        k.put("late", "v").unwrap();
        db.compact().unwrap();
        db.verify().unwrap();
    }
}
