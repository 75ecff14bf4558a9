//! A lookup without the lock beside a batch (`state/between_writes.rs`): it knows that a batch was
//! under way, or finds no part of one.
//!
//! The writer lock is mirrored by its word alone, with the orderings of parking_lot's: there is one
//! writer, and it is only looked at by others. What is called is the engine's.

use super::*;
use crate::base::key::MAX_SEQUENCE;
use crate::base::sync::{self, AtomicBool};
use crate::db::state::between_writes::{begin_changes, look_between_writes};
use loom::thread;
use std::sync::atomic::Ordering::{Acquire, Release};

const KEY: &[u8] = b"k";

/// As much of a database as takes part.
struct Database {
    is_locked: AtomicBool,
    last_sequence: sync::AtomicU64,
    memtable: Arc<Memtable>,
}

impl Database {
    /// The value now, and whether no batch was under way meanwhile.
    fn look(&self) -> (u64, bool) {
        let value = || sum(&self.memtable, KEY, MAX_SEQUENCE);
        look_between_writes(|| self.is_locked.load(Relaxed), &self.last_sequence, value)
    }

    /// Puts two values one after the other in one batch, as `commit_locked` does. Having eight
    /// bytes, they are put in the place of the one before.
    fn commit(&self, writer: &mut MemtableWriter, first: Sequence, values: [u64; 2]) {
        self.is_locked.swap(true, Acquire);
        begin_changes();
        for (sequence, value) in (first..).zip(values) {
            write(writer, Kind::Put, KEY, sequence, &value.to_le_bytes(), 0);
        }
        self.last_sequence.store(first + 1, Release);
        self.is_locked.swap(false, Release);
    }
}

#[test]
fn a_lookup_between_writes_finds_no_part_of_a_batch() {
    explore("a lookup between writes", PREEMPTIONS, || {
        let (memtable, mut writer) = small_memtable();
        write(&mut writer, Kind::Put, KEY, 1, &10u64.to_le_bytes(), 0);
        let (is_locked, last_sequence) = (AtomicBool::new(false), sync::AtomicU64::new(1));
        let database = Arc::new(Database { is_locked, last_sequence, memtable });
        let other = Arc::clone(&database);
        let looking = thread::spawn(move || {
            let (value, is_whole) = other.look();
            assert!(!is_whole || value == 10 || value == 30, "{value} is a part of a batch");
        });
        database.commit(&mut writer, 2, [20, 30]);
        assert_eq!(database.look(), (30, true), "nothing is under way");
        looking.join().unwrap();
    });
}
