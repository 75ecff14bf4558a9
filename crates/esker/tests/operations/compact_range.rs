//! Compacting a part.

use crate::compaction_support::{Model, Scratch, check, tiny, verify};
use esker::internals::Random;
use esker::{CompactionStyle, Db, KeyspaceOptions};
use std::ops::Bound;

/// A table that is taken along must not pass an older one beside the range.
#[test]
fn any_range_in_any_shape_changes_no_answer() {
    let styles = [CompactionStyle::LazyLeveling, CompactionStyle::Tiered, CompactionStyle::Leveled];
    for (seed, style) in (20..).zip(styles) {
        println!("{style:?}, seed {seed}");
        let scratch = Scratch::new(&format!("range-{seed}"));
        let db = Db::open(scratch.path(), tiny()).unwrap();
        let k = db.keyspace("k", KeyspaceOptions::default().compaction_style(style)).unwrap();
        let mut random = Random::new(seed);
        let mut model = Model::new();
        for round in 0..40 {
            // Each round in a part of its own, so that runs have tables of different extents.
            let (start, width) = (random.below(900), 20 + random.below(400));
            for at in 0..200 {
                let key = format!("{:04}", start + random.below(width)).into_bytes();
                if random.below(3) == 0 {
                    k.delete(&key).unwrap();
                    model.remove(&key);
                } else {
                    let value = format!("{round} {at}").repeat(4).into_bytes();
                    k.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
            let mut key = || format!("{:04}", random.below(1300));
            let (a, b) = (key(), key());
            match round % 4 {
                0 => k.compact_range(a..b).unwrap(),
                1 => k.compact_range(a.clone()..=a).unwrap(),
                2 => k.compact_range((Bound::Excluded(a), Bound::<String>::Unbounded)).unwrap(),
                _ => k.compact_range(..b).unwrap(),
            }
            verify(&db);
            check(&k, &model, &format!("in round {round}"));
        }
        drop((k, db));
        let db = Db::open(scratch.path(), tiny()).unwrap();
        check(&db.keyspace("k", Default::default()).unwrap(), &model, "after opening again");
    }
}

#[test]
fn the_range_is_reclaimed_and_the_rest_is_left_alone() {
    let scratch = Scratch::new("range-rest");
    let options = tiny().write_buffer_bytes(1 << 20);
    let db = Db::open(scratch.path(), options).unwrap();
    let k = db.keyspace("k", Default::default()).unwrap();
    for at in 0..5000 {
        k.put(format!("{at:04}"), format!("{at}").repeat(10)).unwrap();
    }
    db.compact().unwrap();
    let before = db.stats();
    for at in 1000..1100 {
        k.delete(format!("{at:04}")).unwrap();
    }
    k.compact_range("1000".."1100").unwrap();
    let after = db.stats();
    assert_eq!(after.keyspaces[0].entries, 4900);
    assert_eq!(after.keyspaces[0].runs.len(), 1);
    let read = after.compaction_read_bytes - before.compaction_read_bytes;
    assert!(read > 0 && read < before.table_bytes / 8, "{read} of {}", before.table_bytes);
    k.compact_range("1000".."1100").unwrap();
    k.compact_range("b".."a").unwrap();
    k.compact_range(.."").unwrap();
    assert_eq!(db.stats().compactions, after.compactions, "there was nothing to do");
}
