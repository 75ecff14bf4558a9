//! Transactions of several threads at once, with flushes and merges all the time.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn busy() -> Options {
    let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(1);
    options.wal_segment_bytes(1 << 16).write_buffer_bytes(4096)
}

fn number(value: Option<Slice>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes((&*value).try_into().unwrap()))
}

/// Read, add one, write: no step of any thread is lost.
#[test]
fn counters_reach_the_exact_sum() {
    const THREADS: u64 = 4;
    const STEPS: u64 = 300;
    for options in [busy(), busy().write_buffer_bytes(1 << 20)] {
        let db = Db::open("/db", options).unwrap();
        let c = counters(&db, "c");
        let conflicts = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (db, c, conflicts) = (&db, &c, &conflicts);
                scope.spawn(move || {
                    for step in 0..STEPS {
                        db.transact(usize::MAX, |t| {
                            conflicts.fetch_add(1, Ordering::Relaxed);
                            let key = format!("{}", (thread + step) % 3);
                            let now = number(t.get(c, &key)?);
                            match step % 2 {
                                0 => t.put(c, &key, (now + 1).to_le_bytes()),
                                _ => t.merge(c, &key, 1u64.to_le_bytes()),
                            }
                        })
                        .unwrap();
                    }
                });
            }
        });
        let sum: u64 = (0..3).map(|key| number(c.get(format!("{key}")).unwrap())).sum();
        assert_eq!(sum, THREADS * STEPS, "after {} runs", conflicts.load(Ordering::Relaxed));
    }
}

/// Money goes from account to account; every transaction that reads all of it sees the same sum,
/// also one that commits after the reads.
#[test]
fn transfers_keep_the_sum() {
    const ACCOUNTS: u64 = 40;
    const EACH: u64 = 100;
    let db = Db::open("/db", busy()).unwrap();
    let (accounts, audits) = (plain(&db, "accounts"), plain(&db, "audits"));
    let name = |account: u64| format!("{account:04}");
    for account in 0..ACCOUNTS {
        accounts.put(name(account), EACH.to_le_bytes()).unwrap();
    }
    let done = AtomicBool::new(false);
    let audited = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..3u64)
            .map(|thread| {
                let (db, accounts) = (&db, &accounts);
                scope.spawn(move || {
                    let mut seed = thread + 1;
                    for step in 0..250u64 {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        let (from, to) = ((seed >> 33) % ACCOUNTS, (seed >> 43) % ACCOUNTS);
                        let amount = (seed >> 53) % 50;
                        db.transact(usize::MAX, |t| {
                            let left = number(t.get(accounts, name(from))?);
                            if from == to || left < amount {
                                return Ok(());
                            }
                            // An account without money is closed, and opened again.
                            match left - amount {
                                0 => t.delete(accounts, name(from))?,
                                left => t.put(accounts, name(from), left.to_le_bytes())?,
                            }
                            let there = number(t.get(accounts, name(to))?);
                            t.put(accounts, name(to), (there + amount).to_le_bytes())
                        })
                        .unwrap();
                        match step % 50 {
                            20 => db.flush().unwrap(),
                            40 => accounts.compact().unwrap(),
                            _ => {}
                        }
                    }
                })
            })
            .collect();
        let (db, accounts, audits, done, audited) = (&db, &accounts, &audits, &done, &audited);
        scope.spawn(move || {
            // At least once, however quick the others are.
            loop {
                let mut t = db.transaction();
                let backward = audited.load(Ordering::Relaxed) % 2 == 1;
                let scan = t.iter(accounts);
                let values: Vec<u64> = match backward {
                    true => scan.rev().map(|pair| number(Some(pair.unwrap().1))).collect(),
                    false => scan.map(|pair| number(Some(pair.unwrap().1))).collect(),
                };
                assert_eq!(values.iter().sum::<u64>(), ACCOUNTS * EACH);
                t.put(audits, "last", (values.len() as u64).to_le_bytes()).unwrap();
                conflict(t.commit());
                audited.fetch_add(1, Ordering::Relaxed);
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let results: Vec<_> = movers.into_iter().map(|mover| mover.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(results.iter().all(|result| result.is_ok()));
    });
    let sum: u64 = accounts.iter().map(|pair| number(Some(pair.unwrap().1))).sum();
    assert_eq!(sum, ACCOUNTS * EACH);
    assert!(audited.load(Ordering::Relaxed) > 0);
}

/// Phantoms beside threads: each puts the next number after the greatest it sees, found from the
/// back. Two with the same number would be one lost.
#[test]
fn a_sequence_has_no_gap_and_no_double() {
    const THREADS: usize = 4;
    const STEPS: usize = 150;
    let db = Db::open("/db", busy()).unwrap();
    let k = plain(&db, "k");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, k) = (&db, &k);
            scope.spawn(move || {
                for _ in 0..STEPS {
                    db.transact(usize::MAX, |t| {
                        let last = t.iter(k).next_back().transpose()?;
                        let next = last.map_or(0, |(key, _)| u32::from_be_bytes((&*key).try_into().unwrap()) + 1);
                        // The key that it found is read, the one that comes is not there yet: the
                        // phantom is behind it.
                        t.put(k, next.to_be_bytes(), [thread as u8; 40])
                    })
                    .unwrap();
                }
            });
        }
    });
    let keys: Vec<u32> = k.iter().map(|pair| u32::from_be_bytes((&*pair.unwrap().0).try_into().unwrap())).collect();
    assert_eq!(keys.len(), THREADS * STEPS);
    assert!(keys.iter().enumerate().all(|(at, key)| at == *key as usize));
}
