//! Changes in place beside the writer, snapshots, flushes and a close (`memtable/in_place.rs`):
//! none is lost, and none comes where nothing may change any more.
//!
//! Planted and seen: no fence in `ThreadGate::enter`, or in `wait`; `is_left` loading relaxed;
//! `GatePass` leaving relaxed; `wait` not waiting for the open count; `Eight::add` in two steps;
//! the writer folding by reading; chains open to changes, or replaced from two operands on;
//! barriers not looked at, or not waited behind; the number of a chain's newest operand read
//! without the writer lock.

use super::*;
use crate::base::clock::ManualClock;
use crate::base::key::MAX_SEQUENCE;
use crate::base::sync::{AtomicBool, AtomicUsize, Mutex};
use crate::db::state::read_state::{ReadState, ReadStateCell};
use crate::db::state::snapshots::{SnapshotGuard, SnapshotList};
use crate::db::state::thread_gate::ThreadGate;
use crate::db::write::in_place_write::change_in_place;
use crate::memtable::Change;
use loom::thread;
use std::sync::atomic::Ordering::Release;

const KEY: &[u8] = b"k";
const ONE: [u8; 8] = 1u64.to_le_bytes();

/// As much of a database as takes part. What `Inner` does under its writer lock is mirrored; what
/// is called is the engine's.
struct Database {
    writer: Mutex<Writer>,
    read_state: ReadStateCell,
    gate: ThreadGate,
    snapshots: Arc<SnapshotList>,
    barriers: AtomicUsize,
}

struct Writer {
    memtable: MemtableWriter,
    last_sequence: Sequence,
}

impl Database {
    /// With a counter that stands at one.
    fn new() -> Arc<Database> {
        let (active, mut memtable) = small_memtable();
        write(&mut memtable, Kind::Put, KEY, 1, &ONE, 0);
        Arc::new(Database {
            writer: Mutex::new(Writer { memtable, last_sequence: 1 }),
            read_state: ReadStateCell::new(ReadState::of_memtable(active)),
            gate: ThreadGate::default(),
            snapshots: Arc::default(),
            barriers: AtomicUsize::new(0),
        })
    }

    /// Makes a change in place, as a thread with this slot; whether it could.
    fn change(&self, slot: usize, change: Change) -> bool {
        let gate = self.gate.enter_slot(slot);
        change_in_place(gate, &self.barriers, &self.read_state, &self.snapshots, KEY, hash(KEY), change)
    }

    /// Adds one in place, as a thread with this slot; whether it could.
    fn add(&self, slot: usize) -> bool {
        self.change(slot, Change::Add(1))
    }

    /// Puts a value, as a thread with this slot; whether in place, which it does if it can.
    fn put(&self, slot: usize, value: u64) -> bool {
        let in_place = self.change(slot, Change::Put(value));
        if !in_place {
            self.commit(Kind::Put, &value.to_le_bytes());
        }
        in_place
    }

    /// Adds one as `commit.rs` does.
    fn merge(&self) {
        self.commit(Kind::Merge, &ONE);
    }

    /// Writes as `commit.rs` does.
    fn commit(&self, kind: Kind, value: &[u8]) {
        let mut writer = self.writer.lock();
        writer.last_sequence += 1;
        let sequence = writer.last_sequence;
        write(&mut writer.memtable, kind, KEY, sequence, value, self.snapshots.newest());
    }

    /// Adds ten to what it reads, as a conditional write does (`in_place_write::Barrier`).
    fn replace(&self) {
        let mut writer = self.writer.lock();
        self.barriers.fetch_add(1, Relaxed);
        self.gate.wait_for_all();
        let value = self.sum(MAX_SEQUENCE) + 10;
        writer.last_sequence += 1;
        let sequence = writer.last_sequence;
        write(&mut writer.memtable, Kind::Put, KEY, sequence, &value.to_le_bytes(), self.snapshots.newest());
        drop(writer);
        self.barriers.fetch_sub(1, Release);
    }

    /// As `Inner::register_snapshot`.
    fn snapshot(&self) -> SnapshotGuard {
        let writer = self.writer.lock();
        let snapshot_guard = self.snapshots.register(writer.last_sequence, Some(&ManualClock::new(1)));
        self.gate.wait_for_all();
        snapshot_guard
    }

    /// Rotates the active memtable, and returns it.
    fn rotate(&self) -> Arc<Memtable> {
        let mut writer = self.writer.lock();
        let old = Arc::clone(writer.memtable.memtable());
        self.read_state.rotate_memtable(&mut writer.memtable, small_memtable());
        old
    }

    /// The counter at `sequence`, through all memtables.
    fn sum(&self, sequence: Sequence) -> u64 {
        let read_state = self.read_state.load();
        [&read_state.active].into_iter().chain(&read_state.immutable).map(|memtable| sum(memtable, KEY, sequence)).sum()
    }

    /// What was put last at `sequence`, in any memtable; none if that was deleted since.
    fn value(&self, sequence: Sequence) -> Option<u64> {
        let read_state = self.read_state.load();
        let mut memtables = [&read_state.active].into_iter().chain(&read_state.immutable);
        let (_, kind, value) = memtables.find_map(|memtable| read(memtable, KEY, sequence))?;
        (kind == Kind::Put).then(|| u64::from_le_bytes(value.try_into().expect("eight bytes")))
    }
}

/// A thread that adds one, in place if it can.
fn adding(database: &Arc<Database>, slot: usize) -> thread::JoinHandle<()> {
    let database = Arc::clone(database);
    thread::spawn(move || {
        if !database.add(slot) {
            database.merge();
        }
    })
}

#[test]
fn none_is_lost_among_threads_and_the_writer() {
    explore("additions", PREEMPTIONS, || {
        let database = Database::new();
        let threads = [adding(&database, 0), adding(&database, 1)];
        database.merge();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(database.sum(MAX_SEQUENCE), 4);
    });
}

#[test]
fn what_a_snapshot_sees_does_not_change() {
    explore("a snapshot", PREEMPTIONS, || {
        let database = Database::new();
        let threads = [adding(&database, 0), adding(&database, 0)];
        let snapshot = database.snapshot();
        let seen = database.sum(snapshot.sequence());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(database.sum(snapshot.sequence()), seen);
        assert_eq!(database.sum(MAX_SEQUENCE), 3);
    });
}

#[test]
fn a_flush_reads_what_nobody_changes() {
    explore("a flush", PREEMPTIONS, || {
        let database = Database::new();
        let threads = [adding(&database, 0), adding(&database, 1)];
        let immutable = database.rotate();
        database.gate.wait_for_all();
        let flushed = sum(&immutable, KEY, MAX_SEQUENCE);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(sum(&immutable, KEY, MAX_SEQUENCE), flushed);
        assert_eq!(database.sum(MAX_SEQUENCE), 3);
    });
}

#[test]
fn nothing_is_acknowledged_after_a_close() {
    explore("a close", PREEMPTIONS, || {
        let database = Database::new();
        let other = Arc::clone(&database);
        let thread = thread::spawn(move || u64::from(other.add(0)) + u64::from(other.add(0)));
        database.barriers.fetch_add(1, Relaxed);
        database.gate.wait_for_all();
        let kept = database.sum(MAX_SEQUENCE);
        assert_eq!(thread.join().unwrap() + 1, kept);
    });
}

#[test]
fn a_conditional_write_replaces_what_it_has_seen() {
    explore("a conditional write", PREEMPTIONS, || {
        let database = Database::new();
        let threads = [adding(&database, 0), adding(&database, 1)];
        database.replace();
        if !database.add(0) {
            database.merge();
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(database.sum(MAX_SEQUENCE), 14);
    });
}

/// As `collapse` does, while others add: a chain that snapshots have made.
#[test]
fn a_chain_is_replaced_by_all_that_was_added() {
    for operands in [2, 3] {
        explore(&format!("a chain of {operands}"), PREEMPTIONS, move || {
            let database = Database::new();
            let thread = adding(&database, 0);
            for _ in 0..operands {
                let snapshot = database.snapshot();
                // It may leave while the writer still counts with it.
                let leaving = thread::spawn(move || drop(snapshot));
                database.merge();
                leaving.join().unwrap();
            }
            collapse(&database);
            thread.join().unwrap();
            assert_eq!(database.sum(MAX_SEQUENCE), 2 + operands);
        });
    }
}

/// Mirrors `collapse_operands.rs`.
fn collapse(database: &Database) {
    let writer = database.writer.lock();
    let newest = read(&database.read_state.load().active, KEY, MAX_SEQUENCE).expect("it is there");
    drop(writer);
    let value = database.sum(newest.0);
    if newest.1 == Kind::Merge {
        let mut writer = database.writer.lock();
        let newest_snapshot = database.snapshots.newest();
        writer.memtable.replace_chain(hash(KEY), KEY, newest.0, Some(&value.to_le_bytes()), newest_snapshot);
    }
}

/// A thread that puts these values one after the other, in place if it can. Where there are such
/// puts there are no merges.
fn putting<const COUNT: usize>(database: &Arc<Database>, values: [u64; COUNT]) -> thread::JoinHandle<()> {
    let database = Arc::clone(database);
    thread::spawn(move || {
        for value in values {
            database.put(0, value);
        }
    })
}

#[test]
fn the_last_put_stays_among_threads_and_the_writer() {
    explore("puts", PREEMPTIONS, || {
        let database = Database::new();
        let thread = putting(&database, [2, 3]);
        database.commit(Kind::Delete, &[]);
        database.put(1, 4);
        let seen = database.value(MAX_SEQUENCE);
        thread.join().unwrap();
        let last = database.value(MAX_SEQUENCE);
        assert!([Some(2), Some(3), Some(4)].contains(&seen), "{seen:?}");
        assert!([Some(3), Some(4)].contains(&last), "{last:?}");
        // What was seen instead of the four came behind it.
        assert!(seen == Some(4) || last == Some(3), "the four was put before {seen:?}");
    });
}

/// A put into an entry that is superseded meanwhile comes before its successor (rule 3). A thread
/// that finds the successor goes to the writer.
#[test]
fn a_put_into_what_is_superseded_comes_before_its_successor() {
    explore("a put beside a delete", PREEMPTIONS, || {
        let database = Database::new();
        let other = Arc::clone(&database);
        let thread = thread::spawn(move || (other.put(0, 2), other.value(MAX_SEQUENCE)));
        database.commit(Kind::Delete, &[]);
        let seen = database.value(MAX_SEQUENCE);
        let (in_place, seen_by_thread) = thread.join().unwrap();
        let last = database.value(MAX_SEQUENCE);
        assert_eq!(last, if in_place { None } else { Some(2) });
        assert!([None, last].contains(&seen), "{seen:?} after the delete");
        assert!([Some(2), last].contains(&seen_by_thread), "{seen_by_thread:?} after the put");
    });
}

#[test]
fn what_a_snapshot_sees_is_changed_by_no_put() {
    explore("puts beside a snapshot", PREEMPTIONS, || {
        let database = Database::new();
        let thread = putting(&database, [2, 3]);
        let snapshot = database.snapshot();
        let seen = database.value(snapshot.sequence());
        database.commit(Kind::Put, &4u64.to_le_bytes());
        thread.join().unwrap();
        assert_eq!(database.value(snapshot.sequence()), seen);
        let last = database.value(MAX_SEQUENCE);
        assert!([Some(3), Some(4)].contains(&last), "{last:?}");
        // Both puts came before the snapshot, and that before the four.
        assert!(seen != Some(3) || last == Some(4), "the four is lost");
    });
}

/// A put into a memtable that is rotated meanwhile comes before all that the next one has (rule 5).
#[test]
fn a_put_beside_a_flush_is_in_one_memtable_and_in_its_order() {
    explore("puts beside a flush", PREEMPTIONS, || {
        let database = Database::new();
        let thread = putting(&database, [2, 3]);
        let immutable = database.rotate();
        // The writer goes on before the flush waits.
        database.commit(Kind::Put, &4u64.to_le_bytes());
        database.gate.wait_for_all();
        let flushed = read(&immutable, KEY, MAX_SEQUENCE);
        thread.join().unwrap();
        assert_eq!(read(&immutable, KEY, MAX_SEQUENCE), flushed);
        let last = database.value(MAX_SEQUENCE);
        assert!([Some(3), Some(4)].contains(&last), "{last:?}");
        // In the order of writes both puts stand before the rotation, and the four behind it.
        let both_flushed = flushed.is_some_and(|(_, _, value)| value == 3u64.to_le_bytes());
        assert!(!both_flushed || last == Some(4), "the four is lost");
    });
}

#[test]
fn a_conditional_write_loses_no_put() {
    explore("a conditional write beside a put", PREEMPTIONS, || {
        let database = Database::new();
        let thread = putting(&database, [2]);
        database.replace();
        thread.join().unwrap();
        // The put came behind it, or was what it has seen.
        let last = database.value(MAX_SEQUENCE);
        assert!([Some(2), Some(12)].contains(&last), "{last:?}");
    });
}

/// A thread that waits finishes although others enter and leave the same slot, and sees all that
/// the threads it waited for did.
#[test]
fn threads_that_share_a_slot_are_waited_for() {
    explore("shared slots", PREEMPTIONS, || {
        let (gate, closed, value) =
            (Arc::new(ThreadGate::default()), Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(0u64)));
        let threads = [0, 0].map(|slot| {
            let (gate, closed, value) = (Arc::clone(&gate), Arc::clone(&closed), Arc::clone(&value));
            thread::spawn(move || {
                let _at_work = gate.enter_slot(slot);
                if !closed.load(Relaxed) {
                    *value.lock() += 1;
                }
            })
        });
        closed.store(true, Relaxed);
        gate.wait_for_all();
        let seen = *value.lock();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(*value.lock(), seen);
    });
}
