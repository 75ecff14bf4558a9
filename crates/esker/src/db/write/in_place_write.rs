//! In-place writes, without the writer lock: values of eight bytes in the active memtable are
//! changed in place.
//!
//! A write that is in no log, to a key whose newest value has eight bytes and is seen by no
//! snapshot, has nothing to put in order: no record, no sequence number, no entry. It is one atomic
//! operation in memory (`memtable/in_place.rs`), done by any number of threads at once. Everything
//! else goes through `commit.rs`.
//!
//! Why none is lost, and which threads wait for them: `memtable/in_place.rs`. Transactions look for
//! conflicts among all keys that were appended after their snapshot: the entry that such a write
//! changes is one of them.

use crate::base::key::{Kind, hash};
use crate::base::sync::AtomicUsize;
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::db::state::read_state::ReadStateCell;
use crate::db::state::snapshots::SnapshotList;
use crate::db::state::thread_gate::GatePass;
use crate::error::Result;
use crate::memtable::Change;
use crate::options::WriteOptions;
use std::sync::atomic::Ordering;

/// Makes the write, if it can be made without the lock and without a record; `false` if it has to
/// go the usual way. The operation was checked.
#[inline]
pub fn write(
    inner: &Inner,
    keyspace: &KeyspaceInner,
    kind: Kind,
    key: &[u8],
    value: &[u8],
    options: &WriteOptions,
) -> Result<bool> {
    let Ok(eight) = <[u8; 8]>::try_from(value) else { return Ok(false) };
    let number = u64::from_le_bytes(eight);
    let change = match kind {
        Kind::Put if keyspace.puts_in_place() => Change::Put(number),
        Kind::Merge if keyspace.adds_in_place() => Change::Add(number),
        _ => return Ok(false),
    };
    if !options.disable_wal || options.sync || inner.log.is_none() {
        return Ok(false);
    }
    inner.refuse_in_callback()?;
    inner.error_state.check()?;
    let hash = hash(key);
    let Inner { thread_gate, in_place_barriers, snapshots, .. } = inner;
    let pass = thread_gate.enter();
    // Who forbids it waits for all that have not seen that.
    if !(keyspace.puts_in_place() || keyspace.adds_in_place()) {
        return Ok(false);
    }
    Ok(change_in_place(pass, in_place_barriers, &keyspace.read_state, snapshots, key, hash, change))
}

/// Keeps values from being changed in place: from its raising on, until it is dropped, every write
/// takes the writer lock.
pub struct Barrier<'a>(&'a Inner);

impl<'a> Barrier<'a> {
    /// Call under the writer lock. Returns when no thread changes anything in place any more.
    pub fn raise(inner: &'a Inner) -> Barrier<'a> {
        inner.in_place_barriers.fetch_add(1, Ordering::Relaxed);
        inner.thread_gate.wait_for_all();
        Barrier(inner)
    }

    /// It stays, for good or until it is lowered.
    pub fn keep(self) {
        std::mem::forget(self);
    }

    /// Takes away one that was kept.
    pub fn lower(inner: &'a Inner) {
        drop(Barrier(inner));
    }
}

impl Drop for Barrier<'_> {
    fn drop(&mut self) {
        self.0.in_place_barriers.fetch_sub(1, Ordering::Release);
    }
}

/// The change itself, by a thread inside the gate: everything that it reads, it reads in here.
#[inline]
pub fn change_in_place(
    _at_work: GatePass<'_>,
    barriers: &AtomicUsize,
    read_state: &ReadStateCell,
    snapshots: &SnapshotList,
    key: &[u8],
    hash: u64,
    change: Change,
) -> bool {
    // A thread that finds a barrier gone sees what was written behind it.
    if barriers.load(Ordering::Acquire) > 0 {
        return false;
    }
    let read_state = read_state.load();
    let changed = read_state.active.change_in_place(key, hash, change, snapshots.newest());
    if changed {
        read_state.active.note_unlogged();
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::batch::{Operation, encode};
    use crate::db::background::flush;
    use crate::db::lifecycle::{keyspaces, open, settings};
    use crate::db::state::thread_gate::{SLOTS, slot_of_this_thread};
    use crate::db::write::batch_size::{reservation_bytes, start_record};
    use crate::db::write::commit::{Content, commit};
    use crate::env::mem::MemEnv;
    use crate::options::{KeyspaceOptions, Options};
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    #[test]
    fn no_put_where_there_are_merges_and_nothing_once_the_database_closes() {
        let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(0);
        let inner = Arc::new(open::open(Path::new("/db"), options).unwrap());
        let adding = KeyspaceOptions::default().merge_operator(crate::merge_operator::UInt64Add);
        let adding = keyspaces::open_or_create(&inner, "adding", adding).unwrap();
        assert!(adding.adds_in_place() && !adding.puts_in_place());
        let plain = keyspaces::open_or_create(&inner, "plain", KeyspaceOptions::default()).unwrap();
        assert!(!plain.adds_in_place() && plain.puts_in_place());
        let entry = crate::base::key::Entry { key: b"k", sequence: 1, kind: Kind::Put, expiry_ms: 0, value: &[0; 8] };
        let context =
            crate::memtable::WriteContext { newest_snapshot: 0, operator: None, adds_uint64: false, reserved: 0 };
        for keyspace in [&adding, &plain] {
            let mut writer = inner.writer.lock();
            writer.keyspaces[keyspace.id as usize].as_mut().unwrap().memtable.apply(hash(b"k"), entry, context);
        }
        let unlogged = WriteOptions::new().disable_wal(true);
        let put = |keyspace| write(&inner, keyspace, Kind::Put, b"k", &[1; 8], &unlogged).unwrap();
        assert!(!put(&adding) && put(&plain));
        assert!(write(&inner, &adding, Kind::Merge, b"k", &[1; 8], &unlogged).unwrap());
        drop(Barrier::raise(&inner));
        assert!(put(&plain), "it is gone");
        let other = keyspaces::open_or_create(&inner, "other", KeyspaceOptions::default()).unwrap();
        settings::set_ttl(&inner, &other, crate::base::expiry::Ttl::Enabled { default: None }).unwrap();
        assert!(!other.puts_in_place() && !put(&other), "an entry that expires may be there");
        let more = keyspaces::open_or_create(&inner, "more", KeyspaceOptions::default()).unwrap();
        settings::set_merge_operator(&inner, &more, Arc::new(crate::merge_operator::UInt64Add)).unwrap();
        assert!(!more.puts_in_place() && !put(&more), "an operand may be there");
        Barrier::raise(&inner).keep();
        assert!(!put(&plain), "it would be acknowledged and lost");
    }

    #[test]
    fn snapshots_and_flushes_wait_for_threads_at_work() {
        let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(0);
        let inner = Arc::new(open::open(Path::new("/db"), options).unwrap());
        let keyspace = keyspaces::open_or_create(&inner, "k", KeyspaceOptions::default()).unwrap();
        let log = WriteOptions::new();
        assert!(!write(&inner, &keyspace, Kind::Put, b"k", &[0; 8], &log).unwrap(), "it is to be in the log");
        keyspace.read_state.load().active.note_unlogged();
        let snapshot: fn(&Inner) = |inner| drop(inner.register_snapshot().unwrap());
        for waits in [snapshot, |inner| flush::flush_exactly(inner, || Ok(())).unwrap()] {
            // Something to flush.
            let mut writer = inner.writer.lock();
            let entry = crate::base::key::Entry { key: b"k", sequence: 1, kind: Kind::Put, expiry_ms: 0, value: b"v" };
            let context =
                crate::memtable::WriteContext { newest_snapshot: 0, operator: None, adds_uint64: false, reserved: 0 };
            let target = writer.keyspaces[keyspace.id as usize].as_mut().unwrap();
            target.memtable.apply(hash(b"k"), entry, context);
            drop(writer);
            std::thread::scope(|scope| {
                let before = inner.thread_gate.open_count();
                let gate = inner.thread_gate.enter();
                let waiting = scope.spawn(|| waits(&inner));
                // What waits for this thread has opened the other counts.
                while inner.thread_gate.open_count() == before && !waiting.is_finished() {
                    std::thread::yield_now();
                }
                assert!(!waiting.is_finished(), "it did not wait");
                drop(gate);
                waiting.join().unwrap();
            });
        }
    }

    /// Of the threads that share a slot, each leaves only when another one has come: no slot is
    /// ever empty. A thread that waits to see it empty waits until all of them give up.
    #[test]
    fn snapshots_and_logged_writes_come_through_among_512_threads() {
        const THREADS: u64 = 512;
        // So often a thread enters a slot before all give up; a few times are enough for what is
        // done here.
        const GIVE_UP: u64 = 20_000;
        let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(0);
        let inner = Arc::new(open::open(Path::new("/db"), options).unwrap());
        let adding = KeyspaceOptions::default().merge_operator(crate::merge_operator::UInt64Add);
        let adding = keyspaces::open_or_create(&inner, "adding", adding).unwrap();
        let logged = |value: u64| {
            let operation = Operation {
                keyspace: adding.id,
                kind: Kind::Put,
                expiry_ms: 0,
                key: b"k",
                value: &value.to_le_bytes(),
            };
            let mut record = Vec::new();
            start_record(&mut record);
            encode(&mut record, &operation);
            let needs = [(adding.id, reservation_bytes(&operation))];
            commit(&inner, &mut record, Content::One(operation), &needs, &WriteOptions::new()).unwrap();
        };
        logged(0);
        let (came, added, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
        let slots: [AtomicU64; SLOTS] = std::array::from_fn(|_| AtomicU64::new(0));
        let most = || slots.iter().map(|slot| slot.load(Ordering::Relaxed)).max().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let unlogged = WriteOptions::new().disable_wal(true);
                    let entered = &slots[slot_of_this_thread()];
                    came.fetch_add(1, Ordering::Relaxed);
                    while !done.load(Ordering::Relaxed) && entered.load(Ordering::Relaxed) < GIVE_UP {
                        let _at_work = inner.thread_gate.enter();
                        let mine = entered.fetch_add(1, Ordering::Relaxed) + 1;
                        let one = 1u64.to_le_bytes();
                        // Where a snapshot sees the value, only the writer could add to it.
                        if write(&inner, &adding, Kind::Merge, b"k", &one, &unlogged).unwrap() {
                            added.fetch_add(1, Ordering::Relaxed);
                        }
                        while entered.load(Ordering::Relaxed) == mine && mine < GIVE_UP && !done.load(Ordering::Relaxed)
                        {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            while came.load(Ordering::Relaxed) < THREADS {
                std::thread::yield_now();
            }
            for _ in 0..3 {
                drop(inner.register_snapshot().unwrap());
                logged(0);
            }
            let when_done = most();
            done.store(true, Ordering::Relaxed);
            assert!(when_done < GIVE_UP, "they gave up before a snapshot was there");
        });
        assert!(added.load(Ordering::Relaxed) > 0);
    }
}
