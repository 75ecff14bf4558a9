//! A reader that is not registered beside a batch that deletes a range and writes into it: it finds
//! what was there before the batch, or what the batch has put there, never nothing and never what
//! was deleted before.
//!
//! Planted and seen: `search_covered` without its last look at `last_sequence`; `search_active`
//! content with operands found while the first tombstone came; `TombstoneSets::add` told that the
//! batch at work is finished; tombstones of a batch at work that count for what it has not written.

use super::*;
use crate::base::key::MAX_SEQUENCE;
use crate::base::sync;
use crate::db::read::get::{Base, Lookup, Sources, look_up};
use crate::db::state::read_state::ReadState;
use crate::db::state::read_stats::ReadStats;
use loom::thread;
use std::sync::atomic::Ordering::Release;

/// A memtable, its readers, and the end of the last batch.
struct Shared {
    read_state: ReadState,
    last_sequence: sync::AtomicU64,
    read_stats: ReadStats,
}

impl Shared {
    fn new() -> (Arc<Shared>, MemtableWriter) {
        let (active, writer) = small_memtable();
        let read_state = ReadState::of_memtable(active);
        (
            Arc::new(Shared { read_state, last_sequence: sync::AtomicU64::new(0), read_stats: ReadStats::default() }),
            writer,
        )
    }

    /// What a reader that is not registered finds.
    fn look_up(&self, key: &[u8]) -> Lookup {
        let Shared { read_state, last_sequence, read_stats } = self;
        look_up(Sources { read_state, last_sequence, read_stats }, key, MAX_SEQUENCE, 0).expect("memory")
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        match self.look_up(key).base {
            Base::Value(value) => Some(value.to_vec()),
            Base::None | Base::Absent => None,
            other => panic!("{other:?}"),
        }
    }
}

/// Applies a batch that deletes a range and then puts a key in it, as `commit.rs` does.
fn replace(writer: &mut MemtableWriter, shared: &Shared, first: Sequence, then: Option<&[u8]>) {
    writer.delete_range(b"a", b"z", first, 0, first - 1);
    if let Some(value) = then {
        write(writer, Kind::Put, b"k", first + 1, value, 0);
    }
    shared.last_sequence.store(first + u64::from(then.is_some()), Release);
}

#[test]
fn who_replaces_a_range_never_shows_it_empty() {
    explore("replacing a range", PREEMPTIONS, || {
        let (shared, mut writer) = Shared::new();
        replace(&mut writer, &shared, 1, Some(b"old"));
        let reader = Arc::clone(&shared);
        let reading = thread::spawn(move || {
            let found = reader.get(b"k").expect("there is always one");
            assert!(found == b"old" || found == b"newer" || found == b"the newest", "{found:?}");
        });
        replace(&mut writer, &shared, 3, Some(b"newer"));
        replace(&mut writer, &shared, 5, Some(b"the newest"));
        reading.join().unwrap();
    });
}

#[test]
fn what_was_deleted_does_not_come_back() {
    explore("deleting twice", PREEMPTIONS, || {
        let (shared, mut writer) = Shared::new();
        write(&mut writer, Kind::Put, b"k", 1, b"old", 0);
        replace(&mut writer, &shared, 2, None);
        let reader = Arc::clone(&shared);
        let reading = thread::spawn(move || assert_eq!(reader.get(b"k"), None));
        replace(&mut writer, &shared, 3, None);
        replace(&mut writer, &shared, 4, None);
        reading.join().unwrap();
    });
}

/// The first range tombstone of a memtable comes while a reader is under way that has found none:
/// an operand above it must not meet what lies below.
#[test]
fn operands_do_not_reach_below_the_first_range_tombstone() {
    explore("operands above a new range tombstone", PREEMPTIONS, || {
        let (shared, mut writer) = Shared::new();
        let number = |number: u64| number.to_le_bytes();
        write(&mut writer, Kind::Put, b"k", 1, &number(10), 0);
        shared.last_sequence.store(1, Release);
        let reader = Arc::clone(&shared);
        let reading = thread::spawn(move || {
            let Lookup { operands, base, .. } = reader.look_up(b"k");
            let base = match base {
                Base::Value(value) => Some(value),
                _ => None,
            };
            let values: Vec<&[u8]> = operands.iter().chain(&base).map(|value| &**value).collect();
            assert!(values == [number(10)] || values == [number(5)], "{values:?}");
        });
        // A snapshot at 1 keeps the put apart from the operand.
        writer.delete_range(b"a", b"z", 2, 1, 1);
        write(&mut writer, Kind::Merge, b"k", 3, &number(5), 1);
        shared.last_sequence.store(3, Release);
        reading.join().unwrap();
    });
}
