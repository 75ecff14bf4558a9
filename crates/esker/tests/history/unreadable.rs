//! Files that cannot be read for a while, or end too early.

use crate::common::{keyspace, simulated, synced};
use esker::env::fault::{Action, Class, FaultEnv, Rule};
use esker::env::mem::MemEnv;
use esker::{Db, Error, Options};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

const KEYS: u32 = 300;

fn options(env: impl esker::env::Env + 'static) -> Options {
    simulated(env).wal_segment_bytes(8 << 10)
}

/// A database that was killed, with its writes in several log segments.
fn killed(is_synced: bool) -> MemEnv {
    let env = MemEnv::new();
    let db = Db::open("/db", options(env.clone())).unwrap();
    let k = keyspace(&db, "k");
    for key in 0..KEYS {
        let write = if is_synced { synced() } else { Default::default() };
        k.put_with(key.to_be_bytes(), [7; 100], &write).unwrap();
    }
    env.kill()
}

/// How many keys there are. They must be the first ones.
fn prefix(db: &Db) -> u32 {
    let keys: Vec<_> = keyspace(db, "k").iter().map(|item| item.unwrap().0.to_vec()).collect();
    assert!(keys.iter().zip(0u32..).all(|(key, number)| *key == number.to_be_bytes()), "a hole before {}", keys.len());
    keys.len() as u32
}

/// Another engine took a read error in its log for the end of it. Here every single read of a
/// segment fails in turn.
#[test]
fn a_log_that_cannot_be_read_does_not_end_there() {
    let env = killed(true);
    for read_only in [true, false] {
        for nth in 0.. {
            let image = env.kill();
            let fault = FaultEnv::new(Arc::new(image.clone()));
            fault.add(Rule::new(Class::Read, nth, Action::Fail(ErrorKind::Other)).on_names_with(".wal"));
            let open = if read_only { Db::open_read_only } else { Db::open };
            let opened = open(std::path::Path::new("/db"), options(fault.clone()));
            let is_done = fault.fired() == 0;
            match opened {
                Ok(db) => assert_eq!(prefix(&db), KEYS, "read {nth}"),
                Err(Error::Io { .. }) => assert!(!is_done, "read {nth}"),
                Err(other) => panic!("read {nth}: {other}"),
            }
            assert_eq!(prefix(&Db::open("/db", options(image)).unwrap()), KEYS, "after read {nth}");
            if is_done {
                assert!(nth >= 5, "only {nth} reads");
                break;
            }
        }
    }
}

/// The segment with the greatest number of those that hold a batch.
fn last_in_use(env: &MemEnv, segments: &[PathBuf]) -> PathBuf {
    let number = |path: &PathBuf| {
        let bytes = env.file_bytes(path).unwrap();
        let number = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
        bytes[112..].iter().any(|&byte| byte != 0).then_some((number, path.clone()))
    };
    segments.iter().filter_map(number).max().unwrap().1
}

/// A segment that is not the last, whose end is missing: zeroes from some place on. What was synced
/// is missed with an error; what was not may end there, and nothing comes behind it.
#[test]
fn a_record_cut_short_in_a_segment_that_is_not_the_last_leaves_no_hole() {
    for is_synced in [true, false] {
        let env = killed(is_synced);
        let segments: Vec<PathBuf> =
            env.files().into_iter().filter(|path| path.extension().is_some_and(|end| end == "wal")).collect();
        assert!(segments.len() >= 4, "{segments:?}");
        let last = last_in_use(&env, &segments);
        let mut shorter = 0;
        for (path, from) in segments.iter().flat_map(|path| (0..8192).step_by(331).map(move |from| (path, from))) {
            let image = env.kill();
            let mut bytes = image.file_bytes(path).unwrap();
            let Some(tail) = bytes.get_mut(from..) else { continue };
            tail.fill(0);
            image.set_file_bytes(path, bytes);
            match Db::open("/db", options(image.clone())) {
                Ok(db) => {
                    let found = prefix(&db);
                    // Behind the last segment nothing vouches for it.
                    let is_vouched = is_synced && *path != last;
                    assert!(!is_vouched || found == KEYS, "{} from {from}: {found} keys", path.display());
                    shorter += u32::from(found < KEYS);
                    keyspace(&db, "k").put(found.to_be_bytes(), [7; 100]).unwrap();
                    drop(db);
                    assert_eq!(prefix(&Db::open("/db", options(image.kill())).unwrap()), (found + 1).max(found));
                }
                Err(Error::Corruption { .. }) => {}
                Err(other) => panic!("{} from {from}: {other}", path.display()),
            }
        }
        assert!(is_synced || shorter > 0, "nothing was cut short");
    }
}

/// Another engine left a table out of a merge because its first block could not be read, and then
/// removed it. Here every single read of a table fails in turn.
#[test]
fn a_merge_that_cannot_read_a_table_leaves_nothing_out() {
    let env = MemEnv::new();
    let db = Db::open("/db", options(env.clone())).unwrap();
    let k = keyspace(&db, "k");
    for run in 0..3 {
        for key in (run..KEYS).step_by(3) {
            k.put(key.to_be_bytes(), [run as u8; 100]).unwrap();
        }
        db.flush().unwrap();
    }
    drop((k, db));
    let mut failed = 0;
    for nth in 0.. {
        let image = env.kill();
        let fault = FaultEnv::new(Arc::new(image.clone()));
        let db = Db::open("/db", options(fault.clone())).unwrap();
        fault.add(Rule::new(Class::Read, nth, Action::Fail(ErrorKind::Other)).on_names_with(".table"));
        let merged = db.compact();
        let is_done = fault.fired() == 0;
        fault.clear();
        if let Err(error) = merged {
            assert!(matches!(error, Error::Io { .. }), "read {nth}: {error}");
            failed += 1;
        }
        assert_eq!(prefix(&db), KEYS, "read {nth}");
        db.compact().unwrap();
        assert_eq!(prefix(&db), KEYS, "read {nth}");
        drop(db);
        assert_eq!(prefix(&Db::open("/db", options(image)).unwrap()), KEYS, "after read {nth}");
        if is_done {
            break;
        }
    }
    assert!(failed >= 3, "only {failed} merges failed");
}

/// Two runs have each key, and one of them cannot be read for a while: no answer is the older
/// value, and none is that the key is missing. A scan that has failed does not go on as if it had
/// not.
#[test]
fn a_block_that_cannot_be_read_is_no_older_value() {
    let env = MemEnv::new();
    let options = |env: FaultEnv| options(env).block_bytes(512).block_cache_bytes(0);
    let fault = FaultEnv::new(Arc::new(env.clone()));
    let db = Db::open("/db", options(fault.clone())).unwrap();
    let k = keyspace(&db, "k");
    // The newer run is the smaller one, so that they stay two.
    for (value, step) in [(b"older", 1), (b"newer", 10)] {
        (0..KEYS).step_by(step).for_each(|key| k.put(key.to_be_bytes(), value).unwrap());
        db.flush().unwrap();
    }
    assert_eq!(db.stats().keyspaces[0].runs.len(), 2);
    let keys: Vec<[u8; 4]> = (0..KEYS).step_by(10).map(u32::to_be_bytes).collect();
    let mut failed = 0;
    for nth in 0..200 {
        let arm = || {
            fault.clear();
            fault.add(Rule::new(Class::Read, nth % 50, Action::Fail(ErrorKind::Other)).on_names_with(".table"));
        };
        let mut check = |result: esker::Result<Option<esker::Slice>>| match result {
            Ok(found) => assert_eq!(found.as_deref(), Some(&b"newer"[..])),
            Err(error) => {
                assert!(matches!(error, Error::Io { .. }), "{error}");
                failed += 1;
            }
        };
        arm();
        keys.iter().for_each(|key| check(k.get(key)));
        arm();
        k.multi_get(&keys).into_iter().for_each(&mut check);
        for backwards in [false, true] {
            arm();
            let mut scan = k.iter();
            let mut step = || if backwards { scan.next_back() } else { scan.next() };
            let (mut last, mut ended) = (None, false);
            while let Some(item) = step() {
                let Ok((key, value)) = item else {
                    ended = true;
                    break;
                };
                let number = u32::from_be_bytes((*key).try_into().unwrap());
                let expected: &[u8] = if number % 10 == 0 { b"newer" } else { b"older" };
                assert_eq!(&*value, expected, "{number}");
                let next = last
                    .map_or(if backwards { KEYS - 1 } else { 0 }, |last| if backwards { last - 1 } else { last + 1 });
                assert_eq!(number, next, "a hole in a scan");
                last = Some(number);
            }
            let is_whole = last == Some(if backwards { 0 } else { KEYS - 1 });
            assert!(ended || is_whole, "a scan ended early without an error");
            failed += u32::from(ended);
        }
    }
    fault.clear();
    assert!(failed >= 200, "only {failed} answers failed");
}
