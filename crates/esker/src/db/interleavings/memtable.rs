//! One writer and its readers: what is found is complete, and what was there is found.
//!
//! Planted and seen: `Slot::publish` relaxed; `Index::grow` publishing its table relaxed;
//! `Memtable::append` storing the end relaxed.

use super::*;
use crate::base::key::MAX_SEQUENCE;
use loom::thread;

#[test]
fn what_is_found_is_complete() {
    explore("publishing", PREEMPTIONS, || {
        let (memtable, mut writer) = small_memtable();
        let reader = Arc::clone(&memtable);
        let reading = thread::spawn(move || {
            // The length of the value is another one each time: it is not changed in place.
            match read(&reader, b"k", MAX_SEQUENCE) {
                None => {}
                Some((1, Kind::Put, value)) => assert_eq!(value, b"first"),
                Some((2, Kind::Put, value)) => assert_eq!(value, b"the second"),
                other => panic!("{other:?}"),
            }
        });
        write(&mut writer, Kind::Put, b"k", 1, b"first", 0);
        write(&mut writer, Kind::Put, b"k", 2, b"the second", 0);
        assert_eq!(read(&memtable, b"k", MAX_SEQUENCE).expect("just written").0, 2);
        reading.join().unwrap();
    });
}

#[test]
fn an_index_that_grows_loses_nothing() {
    explore("growing", PREEMPTIONS, || {
        let (memtable, mut writer) = small_memtable();
        write(&mut writer, Kind::Put, b"there", 1, b"all the time", 0);
        let reader = Arc::clone(&memtable);
        let reading = thread::spawn(move || {
            assert_eq!(read(&reader, b"there", MAX_SEQUENCE).expect("it is there").2, b"all the time");
            if let Some((_, _, value)) = read(&reader, b"3", MAX_SEQUENCE) {
                assert_eq!(value, b"in the larger one");
            }
        });
        write(&mut writer, Kind::Put, b"1", 2, b"", 0);
        write(&mut writer, Kind::Put, b"2", 3, b"", 0);
        write(&mut writer, Kind::Put, b"3", 4, b"in the larger one", 0);
        reading.join().unwrap();
    });
}

#[test]
fn a_walk_in_the_order_of_writing_meets_complete_entries() {
    explore("walking", PREEMPTIONS, || {
        let (memtable, mut writer) = small_memtable();
        let reader = Arc::clone(&memtable);
        let reading = thread::spawn(move || {
            let mut keys = Vec::new();
            reader
                .keys_from(0, &mut |key| {
                    keys.push(key.to_vec());
                    Ok(())
                })
                .unwrap();
            let all = [b"ada".to_vec(), b"grace".to_vec()];
            assert_eq!(keys, all[..keys.len()]);
        });
        write(&mut writer, Kind::Put, b"ada", 1, b"mathematician", 0);
        write(&mut writer, Kind::Put, b"grace", 2, b"", 0);
        reading.join().unwrap();
    });
}

#[test]
fn a_snapshot_keeps_its_value_and_a_replaced_chain_is_whole() {
    explore("replacing a chain", PREEMPTIONS, || {
        let (memtable, mut writer) = small_memtable();
        let one = 1u64.to_le_bytes();
        write(&mut writer, Kind::Put, b"k", 1, &one, 0);
        // A snapshot at 1 keeps this one apart; others at 2 and 3 the next ones.
        write(&mut writer, Kind::Merge, b"k", 2, &one, 1);
        write(&mut writer, Kind::Merge, b"k", 3, &one, 2);
        write(&mut writer, Kind::Merge, b"k", 4, &one, 3);
        let reader = Arc::clone(&memtable);
        let reading = thread::spawn(move || {
            assert_eq!(sum(&reader, b"k", 1), 1, "what the snapshot sees");
            assert_eq!(sum(&reader, b"k", MAX_SEQUENCE), 4);
        });
        // Those at 2 and 3 have left.
        assert!(writer.replace_chain(hash(b"k"), b"k", 4, Some(&4u64.to_le_bytes()), 1));
        reading.join().unwrap();
        assert_eq!(read(&memtable, b"k", MAX_SEQUENCE), Some((4, Kind::Put, 4u64.to_le_bytes().to_vec())));
    });
}
