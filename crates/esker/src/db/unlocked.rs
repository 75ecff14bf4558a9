//! Writes without the writer lock: values of eight bytes in the active memtable, changed in place.
//!
//! A write that is in no log, to a key whose newest value has eight bytes and is seen by no snapshot, has nothing to put in order: no record, no
//! sequence number, no entry. It is one atomic operation in memory (`memtable/in_place.rs`), done by any number of threads at once. Everything else
//! goes through `write.rs`.
//!
//! What must not happen meanwhile waits for the threads at work: each announces itself in its slot before it looks at anything, and whoever
//! changes what they rely on does so first and then waits until each slot was seen empty. Who comes later sees the change. There are two
//! such changes:
//! * a snapshot is registered: what it sees must not change, and what was written before must be in it;
//! * a memtable is put aside: a flush reads what nobody changes any more.
//!
//! In the order of writes such a write stands right behind the entry that it changes. Nobody can tell: no reader is registered between the two, and
//! transactions look for conflicts among all keys that were appended after their snapshot, of which that entry is one.

use super::inner::{Inner, KeyspaceInner};
use crate::base::key::{Kind, hash};
use crate::error::Result;
use crate::memtable::Change;
use crate::options::WriteOptions;
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// Threads beyond this number share slots.
const SLOTS: usize = 64;
/// A slot counts the threads at work in its lowest bits, and in the others all that ever were.
const ENTERED: u64 = 1 << 16;
/// How often a thread that waits looks before it lets others run.
const LOOKS: u32 = 64;

/// On a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Slot(AtomicU64);

/// The threads at work without the writer lock.
pub struct Unlocked {
    slots: [Slot; SLOTS],
    /// No slot from this one on was ever used.
    used: AtomicUsize,
}

impl Default for Unlocked {
    fn default() -> Unlocked {
        Unlocked { slots: std::array::from_fn(|_| Slot::default()), used: AtomicUsize::new(0) }
    }
}

impl fmt::Debug for Unlocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unlocked").field("writes", &self.writes()).finish_non_exhaustive()
    }
}

/// A thread at work, until dropped.
struct AtWork<'a>(&'a Slot);

impl Drop for AtWork<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

impl Unlocked {
    /// Announces this thread. What it loads afterwards was not changed before everybody who changes it waits for the thread.
    #[inline]
    fn enter(&self) -> AtWork<'_> {
        let slot = slot_of_this_thread();
        if slot >= self.used.load(Ordering::Relaxed) {
            // Before the slot is used: whoever does not see this sees nothing of the thread's, which in turn sees all of theirs.
            self.used.fetch_max(slot + 1, Ordering::SeqCst);
        }
        let slot = &self.slots[slot];
        slot.0.fetch_add(ENTERED + 1, Ordering::SeqCst);
        // Pairs with the fence in `wait_for_all`: one of the two threads sees what the other did before its fence.
        fence(Ordering::SeqCst);
        AtWork(slot)
    }

    /// Returns when no thread is at work that may have missed what the caller did before.
    pub fn wait_for_all(&self) {
        fence(Ordering::SeqCst);
        let used = self.used.load(Ordering::SeqCst);
        for slot in &self.slots[..used.min(SLOTS)] {
            let mut looks = 0;
            // The load that ends the loop sees what the threads did.
            while slot.0.load(Ordering::Acquire) % ENTERED != 0 {
                looks += 1;
                if looks % LOOKS == 0 {
                    std::thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// Writes tried so far: whether there were any between two looks.
    pub fn writes(&self) -> u64 {
        let used = self.used.load(Ordering::Relaxed);
        self.slots[..used.min(SLOTS)].iter().map(|slot| slot.0.load(Ordering::Relaxed) / ENTERED).fold(0, u64::wrapping_add)
    }
}

thread_local! {
    static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[inline]
fn slot_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    SLOT.with(|slot| {
        if slot.get() == usize::MAX {
            slot.set(NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS);
        }
        slot.get()
    })
}

/// Makes the write, if it can be made without the lock and without a record; `false` if it has to go the usual way. The operation was checked.
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
        Kind::Put if keyspace.puts_in_place => Change::Put(number),
        Kind::Merge if keyspace.adds_in_place => Change::Add(number),
        _ => return Ok(false),
    };
    if !options.disable_wal || options.sync || inner.log.is_none() {
        return Ok(false);
    }
    inner.condition.check()?;
    let hash = hash(key);
    let _at_work = inner.unlocked.enter();
    let view = keyspace.view.load();
    let changed = view.active.change_in_place(key, hash, change, inner.snapshots.newest());
    if changed {
        view.active.note_unlogged();
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{flushing, keyspaces, open};
    use crate::env::mem::MemEnv;
    use crate::options::{KeyspaceOptions, Options};
    use std::path::Path;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    #[test]
    fn snapshots_and_flushes_wait_for_threads_at_work() {
        let options = Options::default().env(Arc::new(MemEnv::default())).background_threads(0);
        let inner = Arc::new(open::open(Path::new("/db"), options).unwrap());
        let keyspace = keyspaces::open_or_create(&inner, "k", KeyspaceOptions::default()).unwrap();
        let log = WriteOptions::new();
        assert!(!write(&inner, &keyspace, Kind::Put, b"k", &[0; 8], &log).unwrap(), "it is to be in the log");
        keyspace.view.load().active.note_unlogged();
        let snapshot: fn(&Inner) = |inner| drop(inner.register_snapshot());
        for waits in [snapshot, |inner| flushing::flush_exactly(inner, || Ok(())).unwrap()] {
            // Something to flush.
            let mut writer = inner.writer.lock();
            let entry = crate::base::key::Entry { key: b"k", sequence: 1, kind: Kind::Put, expiry_ms: 0, value: b"v" };
            let context = crate::memtable::WriteContext {
                newest_snapshot: 0,
                operator: None,
                adds_uint64: false,
                reserved: 0,
            };
            let target = writer.keyspaces[keyspace.id as usize].as_mut().unwrap();
            target.memtable.apply(hash(b"k"), entry, context);
            drop(writer);
            let (done, is_done) = mpsc::channel();
            std::thread::scope(|scope| {
                let at_work = inner.unlocked.enter();
                scope.spawn(|| {
                    waits(&inner);
                    done.send(()).unwrap();
                });
                assert!(is_done.recv_timeout(Duration::from_millis(100)).is_err(), "it did not wait");
                drop(at_work);
                is_done.recv_timeout(Duration::from_secs(60)).unwrap();
            });
        }
    }

    #[test]
    fn whoever_waits_sees_what_threads_at_work_did_and_those_to_come_see_the_change() {
        let unlocked = Unlocked::default();
        let (closed, value, late) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let at_work = unlocked.enter();
                        if closed.load(Ordering::Relaxed) {
                            return;
                        }
                        value.fetch_add(1, Ordering::Relaxed);
                        drop(at_work);
                    }
                });
            }
            while unlocked.writes() < 20_000 {
                std::thread::yield_now();
            }
            closed.store(true, Ordering::Relaxed);
            unlocked.wait_for_all();
            let seen = value.load(Ordering::Relaxed);
            for _ in 0..1000 {
                std::thread::yield_now();
                late.fetch_max(value.load(Ordering::Relaxed) - seen, Ordering::Relaxed);
            }
        });
        assert_eq!(late.load(Ordering::Relaxed), 0);
        assert!(value.load(Ordering::Relaxed) <= unlocked.writes());
    }
}
