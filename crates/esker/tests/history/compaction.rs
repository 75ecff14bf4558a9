//! Flushes and merges beside each other, and what they leave.

use crate::common::{Scratch, keyspace, wait_until};
use esker::{Compression, Db, Options};
use std::time::Duration;

/// Seen: reads returned what had been overwritten. Trigger: a flush in the middle of a merge put
/// its table into the run that the merge was about to replace, below newer data. Cost: wrong
/// values, and runs that overlap.
#[test]
fn a_flush_in_the_middle_of_a_merge_stays_above_it() {
    let scratch = Scratch::new("flush-in-merge");
    let options = || Options::default().compression(Compression::None);
    let db = Db::open(scratch.path(), options()).unwrap();
    let k = keyspace(&db, "k");
    let key = |i: u32| format!("{i:08}-some-longer-key-so-that-merging-takes-a-while");
    for i in 0..300_000 {
        k.put(key(i), "old").unwrap();
    }
    db.compact().unwrap();
    let mut beside = 0;
    for round in 0..5u64 {
        for i in 0..100 {
            k.put(key(i), format!("low{round}")).unwrap();
        }
        db.flush().unwrap();
        let other = k.clone();
        let merge = std::thread::spawn(move || other.compact());
        std::thread::sleep(Duration::from_millis(2 + 8 * round));
        let new = format!("new{round}");
        for i in 299_000..299_100 {
            k.put(key(i), &new).unwrap();
        }
        db.flush().unwrap();
        beside += u32::from(!merge.is_finished());
        merge.join().unwrap().unwrap();
        let stale = (299_000..299_100).filter(|&i| k.get(key(i)).unwrap().as_deref() != Some(new.as_bytes())).count();
        assert_eq!(stale, 0, "round {round}");
    }
    println!("{beside} flushes finished before the merge beside them");
    drop((k, db));
    let db = Db::open(scratch.path(), options()).unwrap();
    assert_eq!(keyspace(&db, "k").get(key(299_050)).unwrap().as_deref(), Some(&b"new4"[..]));
}

/// Seen: twice the space. Trigger: `compact` on a database that then rested: the tables merged
/// stayed until the next job, which never came. Cost: disk space.
#[test]
fn compacting_gives_the_space_of_its_inputs_back() {
    let scratch = Scratch::new("space");
    let db = Db::open(scratch.path(), Options::default()).unwrap();
    let k = keyspace(&db, "k");
    for round in 0..2 {
        for i in 0..5000 {
            k.put(format!("{i}"), format!("{round}")).unwrap();
        }
        db.flush().unwrap();
    }
    db.compact().unwrap();
    let left = || scratch.names_ending(".table").len() as u64;
    wait_until("the inputs are removed", || left() == db.stats().table_files);
}
