//! Everything that was written is counted after the next open: two keyspaces on one log, several
//! threads of background work, files that grew.

use crate::common::{count, keyspace, simulated, synced};
use esker::env::mem::{CrashMode, MemEnv};
use esker::{Db, Keyspace, Options};
use std::sync::atomic::{AtomicU32, Ordering};

/// Another engine gave up a log that one keyspace had flushed while the other still needed it. Here
/// one is written a thousand times as often, so that its flushes come and go while the other's few
/// writes are in the log only, and then the other way round.
#[test]
fn a_log_is_kept_until_both_keyspaces_are_in_tables() {
    const WRITES: u32 = 150_000;
    for threads in [0, 1] {
        let mut env = MemEnv::new();
        let options = |env: &MemEnv| simulated(env.clone()).background_threads(threads).write_buffer_bytes(256 << 10);
        let mut written = [0u32; 2];
        for round in 0..4 {
            let db = Db::open("/db", options(&env)).unwrap();
            let both = [keyspace(&db, "a"), keyspace(&db, "b")];
            let found = [count(&both[0]), count(&both[1])];
            assert_eq!(found, written.map(|count| count as usize), "{threads} threads, round {round}");
            let often = round % 2;
            for number in 0..WRITES {
                let which = if number % 1000 == 999 { 1 - often } else { often };
                both[which].put(written[which].to_be_bytes(), number.to_be_bytes()).unwrap();
                written[which] += 1;
            }
            drop(both);
            match round {
                0 => db.close().unwrap(),
                1 => drop(db),
                // As after a kill, in the middle of the background work.
                _ => env = env.kill(),
            }
        }
        let db = Db::open("/db", options(&env)).unwrap();
        let found = [count(&keyspace(&db, "a")), count(&keyspace(&db, "b"))];
        assert_eq!(found, written.map(|count| count as usize), "{threads} threads");
    }
}

/// Writers, flushes and merges of the whole and of parts beside each other, with three threads for
/// background work: no two merges take the same table, and nothing is left out.
#[test]
fn merges_beside_each_other_lose_no_write() {
    const WRITERS: u32 = 3;
    const WRITES: u32 = 40_000;
    let env = MemEnv::new();
    let options = || {
        let small = simulated(env.clone()).write_buffer_bytes(128 << 10).target_file_bytes(64 << 10);
        small.background_threads(3)
    };
    let db = Db::open("/db", options()).unwrap();
    let k = keyspace(&db, "k");
    let key = |writer: u32, number: u32| [number.wrapping_mul(0x9E37_79B1), writer].map(u32::to_be_bytes).concat();
    let at_work = AtomicU32::new(WRITERS);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (k, at_work) = (k.clone(), &at_work);
            scope.spawn(move || {
                for number in 0..WRITES {
                    k.put(key(writer, number), number.to_be_bytes()).unwrap();
                    // Overwritten and deleted, so that merges have something to drop.
                    k.put(key(writer, number / 2), (number / 2).to_be_bytes()).unwrap();
                    k.put(key(WRITERS, number), "gone").unwrap();
                    k.delete(key(WRITERS, number)).unwrap();
                }
                at_work.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let mergers: [Box<dyn Fn(u8) + Send>; 3] = [
            Box::new(|_| k.compact().unwrap()),
            Box::new(|round| k.compact_range([round.wrapping_mul(16)]..[round.wrapping_mul(16) | 31]).unwrap()),
            Box::new(|_| db.flush().unwrap()),
        ];
        for merge in mergers {
            let at_work = &at_work;
            scope.spawn(move || {
                for round in (0..=255).cycle() {
                    if at_work.load(Ordering::Relaxed) == 0 {
                        break;
                    }
                    merge(round);
                }
            });
        }
    });
    let check = |k: &Keyspace| {
        assert_eq!(count(k), (WRITERS * WRITES) as usize);
        for (writer, number) in (0..WRITERS).flat_map(|writer| (0..WRITES).map(move |number| (writer, number))) {
            assert_eq!(k.get(key(writer, number)).unwrap().as_deref(), Some(&number.to_be_bytes()[..]));
        }
    };
    check(&k);
    db.verify().unwrap();
    drop(k);
    drop(db);
    let db = Db::open("/db", options()).unwrap();
    check(&keyspace(&db, "k"));
    db.verify().unwrap();
}

/// Other engines synced the bytes of a file that had grown, and not its length. A write that was
/// synced is there although it made a file longer, or began another: a segment, a blob file.
#[test]
fn what_made_a_file_longer_is_there_after_a_power_loss() {
    let options = |env: &MemEnv| -> Options {
        simulated(env.clone()).wal_segment_bytes(8 << 10).min_blob_size(2000).target_file_bytes(16 << 10)
    };
    let env = MemEnv::new();
    let db = Db::open("/db", options(&env)).unwrap();
    let k = keyspace(&db, "k");
    let value = |number: u8| vec![number; if number.is_multiple_of(3) { 5000 } else { 700 }];
    for number in 0..60u8 {
        k.put_with([number], value(number), &synced()).unwrap();
        let modes = CrashMode::FIXED.into_iter().map(|mode| (mode, 0));
        for (mode, seed) in modes.chain((0..4).map(|seed| (CrashMode::Random, seed))) {
            let image = env.crash(&mode, seed);
            let db = Db::open("/db", options(&image)).unwrap();
            let k = keyspace(&db, "k");
            for earlier in 0..=number {
                assert!(
                    k.get([earlier]).unwrap().as_deref() == Some(&value(earlier)),
                    "{earlier} of {number}: {mode:?} {seed}"
                );
            }
        }
    }
    assert!(env.files().iter().filter(|path| path.to_string_lossy().ends_with(".wal")).count() > 3);
}
