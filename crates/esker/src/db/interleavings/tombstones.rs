//! A reader that is not registered beside a batch that deletes a range and writes into it: it finds what was there before the batch, or what the batch has put there, never
//! nothing and never what was deleted before.
//!
//! Planted and seen: the loop without its last look at `last_sequence`; `TombstoneSets::add` told that the batch at work is finished; tombstones of a batch at work that count for what
//! it has not written.

use super::*;
use crate::base::key::MAX_SEQUENCE;
use crate::base::sync;
use loom::thread;

/// As `search_covered` in `read.rs`, for one memtable with puts only.
fn get(memtable: &Memtable, last_sequence: &sync::AtomicU64, key: &[u8]) -> Option<Vec<u8>> {
    use std::sync::atomic::Ordering::Acquire;
    loop {
        let finished = last_sequence.load(Acquire);
        let mut found = None;
        let mut bound = None;
        let _ = memtable.get(key, hash(key), MAX_SEQUENCE, &mut |entry| {
            let newest = finished.max(entry.sequence);
            bound = Some((newest, memtable.cover(key, newest)));
            found = Some((entry.sequence, entry.value.to_vec()));
            ControlFlow::Break(())
        });
        let (newest, cover) = bound.unwrap_or_else(|| (finished, memtable.cover(key, finished)));
        if memtable.cover(key, MAX_SEQUENCE) <= newest || last_sequence.load(Acquire) == finished {
            return found.filter(|(sequence, _)| *sequence > cover).map(|(_, value)| value);
        }
    }
}

/// A batch of a range delete and a put of the same key, as `commit_locked` applies it.
fn replace(writer: &mut MemtableWriter, last_sequence: &sync::AtomicU64, first: Sequence, value: Option<&[u8]>) {
    writer.delete_range(b"a", b"z", first, 0, first - 1);
    if let Some(value) = value {
        write(writer, Kind::Put, b"k", first + 1, value, 0);
    }
    last_sequence.store(first + u64::from(value.is_some()), std::sync::atomic::Ordering::Release);
}

#[test]
fn who_replaces_a_range_never_shows_it_empty() {
    explore("replacing a range", PREEMPTIONS, || {
        let (memtable, mut writer) = small_memtable();
        let last_sequence = Arc::new(sync::AtomicU64::new(0));
        replace(&mut writer, &last_sequence, 1, Some(b"old"));
        let (reader, finished) = (Arc::clone(&memtable), Arc::clone(&last_sequence));
        let reading = thread::spawn(move || {
            let found = get(&reader, &finished, b"k").expect("there is always one");
            assert!(found == b"old" || found == b"newer" || found == b"the newest", "{found:?}");
        });
        replace(&mut writer, &last_sequence, 3, Some(b"newer"));
        replace(&mut writer, &last_sequence, 5, Some(b"the newest"));
        reading.join().unwrap();
    });
}

#[test]
fn what_was_deleted_does_not_come_back() {
    explore("deleting twice", PREEMPTIONS, || {
        let (memtable, mut writer) = small_memtable();
        let last_sequence = Arc::new(sync::AtomicU64::new(0));
        write(&mut writer, Kind::Put, b"k", 1, b"old", 0);
        replace(&mut writer, &last_sequence, 2, None);
        let (reader, finished) = (Arc::clone(&memtable), Arc::clone(&last_sequence));
        let reading = thread::spawn(move || assert_eq!(get(&reader, &finished, b"k"), None));
        replace(&mut writer, &last_sequence, 3, None);
        replace(&mut writer, &last_sequence, 4, None);
        reading.join().unwrap();
    });
}
