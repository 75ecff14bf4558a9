//! Many versions of one key, more than a table's worth.

use crate::common::{keyspace, simulated};
use esker::env::mem::MemEnv;
use esker::{Db, Keyspace, Options, Snapshot};

fn options(env: &MemEnv) -> Options {
    simulated(env.clone()).write_buffer_bytes(16 << 10).target_file_bytes(2 << 10).block_bytes(512)
}

/// Snapshots with what each sees of the key `m`.
type Taken = Vec<(Snapshot, Option<Vec<u8>>)>;

fn check(k: &Keyspace, taken: &Taken, newest: Option<&[u8]>) {
    assert_eq!(k.get("m").unwrap().as_deref(), newest);
    assert_eq!(
        k.iter().filter(|item| item.as_ref().is_ok_and(|(key, _)| &**key == b"m")).count(),
        newest.iter().count()
    );
    for (snapshot, expected) in taken {
        assert_eq!(snapshot.get(k, "m").unwrap().as_deref(), expected.as_deref(), "as of {}", snapshot.sequence());
        let scanned = snapshot.range(k, "m"..="m").next().map(|item| item.unwrap().1.to_vec());
        assert_eq!(&scanned, expected, "as of {}", snapshot.sequence());
    }
}

/// Other engines have split the versions of a key over two tables of a level, and then merged the
/// one with the newer versions away from above the older ones, which came back. Here one key has
/// ten tables' worth of versions, all of them held by snapshots; then ranges that end at the key,
/// begin at it or go past it are merged alone.
#[test]
fn an_old_version_does_not_surface_when_a_part_of_the_tables_is_merged() {
    let env = MemEnv::new();
    let db = Db::open("/db", options(&env)).unwrap();
    let k = keyspace(&db, "k");
    let mut taken = Taken::new();
    for round in 0..200 {
        for key in ["a", "l", "m", "n", "z"] {
            k.put(key, format!("{key}{round} ").repeat(20)).unwrap();
        }
        if round % 7 == 6 {
            k.delete("m").unwrap();
        }
        taken.push((db.snapshot(), k.get("m").unwrap().map(|value| value.to_vec())));
        if round % 25 == 24 {
            db.flush().unwrap();
        }
    }
    let newest = taken.last().unwrap().1.clone();
    let merge_parts = |taken: &Taken, newest: Option<&[u8]>| {
        for (from, to) in [("a", "l"), ("a", "m"), ("m", "m"), ("m", "n"), ("l", "m"), ("n", "z"), ("a", "z")] {
            k.compact_range(from..=to).unwrap();
            check(&k, taken, newest);
            k.compact_range(from..to).unwrap();
            check(&k, taken, newest);
        }
    };
    assert!(db.stats().table_files > 6, "{} tables", db.stats().table_files);
    merge_parts(&taken, newest.as_deref());
    k.delete("m").unwrap();
    db.flush().unwrap();
    while !taken.is_empty() {
        merge_parts(&taken, None);
        // Every other one goes, so that merges may drop what lies between.
        let mut number = 0;
        taken.retain(|_| {
            number += 1;
            number % 2 == 0
        });
    }
    merge_parts(&taken, None);
    drop((k, db));
    assert_eq!(keyspace(&Db::open("/db", options(&env)).unwrap(), "k").get("m").unwrap(), None);
}
