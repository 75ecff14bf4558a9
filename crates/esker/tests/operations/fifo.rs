//! First in, first out.

use crate::compaction_support::{Scratch, tiny, verify};
use esker::internals::Random;
use esker::merge::StringAppend;
use esker::{CompactionStyle, Db, KeyspaceOptions, Ttl};

const MAX_BYTES: u64 = 64 << 10;

fn fifo() -> KeyspaceOptions {
    KeyspaceOptions::default().compaction_style(CompactionStyle::Fifo { max_bytes: MAX_BYTES })
}

/// Keys climb, as in a series over time.
#[test]
fn the_size_is_kept_and_the_oldest_goes_first() {
    for threads in [0, 1] {
        let scratch = Scratch::new(&format!("fifo-{threads}"));
        let db = Db::open(scratch.path(), tiny().background_threads(threads)).unwrap();
        let k = db.keyspace("k", fifo()).unwrap();
        let mut random = Random::new(5);
        for at in 0..20_000u32 {
            let value: Vec<u8> = (0..50).map(|_| random.below(256) as u8).collect();
            k.put(at.to_be_bytes(), value).unwrap();
        }
        db.wait_idle().unwrap();
        let stats = db.stats();
        println!("{stats}");
        assert!(stats.table_bytes <= MAX_BYTES && stats.table_bytes > MAX_BYTES / 2, "{}", stats.table_bytes);
        assert_eq!(stats.compactions, 0);
        assert!(stats.tables_dropped > 100);
        verify(&db);
        let left: Vec<u32> =
            k.iter().map(|pair| u32::from_be_bytes(pair.unwrap().0.as_ref().try_into().unwrap())).collect();
        let first = left[0];
        assert!(left.iter().copied().eq(first..20_000), "the newest, without a gap");
        drop((k, db));
        let db = Db::open(scratch.path(), tiny()).unwrap();
        assert_eq!(db.keyspace("k", Default::default()).unwrap().iter().count(), left.len());
    }
}

/// Keys come again: what goes must never uncover an older version, and never a deleted one.
#[test]
fn nothing_older_comes_back() {
    let scratch = Scratch::new("fifo-again");
    let db = Db::open(scratch.path(), tiny()).unwrap();
    let k = db.keyspace("k", fifo()).unwrap();
    let mut random = Random::new(6);
    let mut newest = vec![None; 300];
    for at in 0..30_000u64 {
        let key = random.below(300);
        if random.below(4) == 0 {
            k.delete(key.to_be_bytes()).unwrap();
            newest[key as usize] = None;
        } else {
            k.put(key.to_be_bytes(), at.to_be_bytes().repeat(5)).unwrap();
            newest[key as usize] = Some(at);
        }
        if at % 500 == 0 {
            for (key, newest) in (0u64..).zip(&newest) {
                let found = k.get(key.to_be_bytes()).unwrap();
                let found = found.map(|value| u64::from_be_bytes(value[..8].try_into().unwrap()));
                assert!(found.is_none() || found == *newest, "key {key}: {found:?} instead of {newest:?}");
            }
        }
    }
    assert!(db.stats().tables_dropped > 0);
    k.compact().unwrap();
    assert!(db.stats().table_bytes <= MAX_BYTES && db.stats().compactions == 0);
}

/// Where entries expire, what is left in memory on top of a dropped value is none.
#[test]
fn a_merge_onto_an_operand_whose_value_was_dropped_starts_from_nothing() {
    let scratch = Scratch::new("fifo-merge");
    let db = Db::open(scratch.path(), tiny()).unwrap();
    let options = KeyspaceOptions::default()
        .compaction_style(CompactionStyle::Fifo { max_bytes: 1 })
        .ttl(Ttl::Enabled { default: None })
        .merge_operator(StringAppend::new(","));
    let k = db.keyspace("k", options).unwrap();
    for key in ["a", "b"] {
        k.put(key, "1").unwrap();
        db.flush().unwrap();
    }
    k.merge("a", "2").unwrap();
    assert_eq!(k.get("a").unwrap().as_deref(), Some(&b"1,2"[..]));
    db.wait_idle().unwrap();
    let stats = db.stats();
    assert_eq!((stats.tables_dropped, stats.keyspaces[0].memtable_entries), (1, 1));
    assert!(k.get("a").unwrap().is_none());
    k.merge("a", "3").unwrap();
    k.merge("a", "4").unwrap();
    assert_eq!(k.get("a").unwrap().as_deref(), Some(&b"3,4"[..]));
}
