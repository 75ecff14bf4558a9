//! What a read of a keyspace searches, and how that is replaced: always as a whole, by a rotation,
//! a flush or a compaction.
//!
//! A reader loads the read state and has all it needs for as long as it holds it. Changes exclude
//! each other, and each begins with what the one before has left, so that none undoes another. What
//! a reader may miss meanwhile are writes and installations that come after its load; what it finds
//! is complete, because a memtable leaves a read state in the same step in which its tables come
//! into it, and tables in the same step as those that replace them.
//!
//! The interleavings are tried by `db/interleavings/read_states.rs`.

use crate::base::key::Sequence;
use crate::base::sync::{ArcSwap, AtomicU64, Guard, Mutex};
use crate::memtable::{Memtable, MemtableWriter};
use crate::table::Table;
use crate::version::runs::Version;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Everything a read of a keyspace searches, newest first: immutable, replaced as a whole.
#[derive(Debug)]
pub struct ReadState {
    pub active: Arc<Memtable>,
    /// Immutable memtables, newest first.
    pub immutable: Vec<Arc<Memtable>>,
    pub version: Arc<Version>,
}

impl ReadState {
    /// That of a keyspace with nothing but one memtable.
    pub fn of_memtable(active: Arc<Memtable>) -> ReadState {
        ReadState { active, immutable: Vec::new(), version: Arc::default() }
    }

    /// All memtables, newest first.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        [&self.active].into_iter().chain(&self.immutable)
    }
}

/// The current read state of a keyspace. See the module's comment.
pub struct ReadStateCell {
    current: ArcSwap<ReadState>,
    /// Held while it is replaced, never over I/O.
    change: Mutex<()>,
}

impl ReadStateCell {
    pub fn new(first: ReadState) -> ReadStateCell {
        ReadStateCell { current: ArcSwap::from_pointee(first), change: Mutex::new(()) }
    }

    /// The current read state, for one read.
    #[inline(always)]
    pub fn load(&self) -> Guard<Arc<ReadState>> {
        self.current.load()
    }

    /// The same, to be kept.
    #[inline]
    pub fn load_full(&self) -> Arc<ReadState> {
        self.current.load_full()
    }

    /// Replaces the read state by what `change` makes of it.
    fn change(&self, change: impl FnOnce(&ReadState) -> ReadState) {
        let _changing = self.change.lock();
        let next = change(&self.load());
        self.current.store(Arc::new(next));
    }

    /// Puts an empty memtable in the place of the active one, whose writer `writer` is. That waits
    /// for its flush from now on, if anything is in it. Under the writer lock: no write is half in
    /// the one and half in the other.
    pub fn rotate_memtable(&self, writer: &mut MemtableWriter, (active, next): (Arc<Memtable>, MemtableWriter)) {
        let empty = writer.memtable().is_empty();
        *writer = next;
        self.change(|read_state| {
            let old = if empty { None } else { Some(Arc::clone(&read_state.active)) };
            let immutable = old.into_iter().chain(read_state.immutable.iter().cloned()).collect();
            ReadState { active, immutable, version: Arc::clone(&read_state.version) }
        });
    }

    /// Puts `tables`, in run `run`, in the place of an immutable memtable.
    pub fn install_flush(&self, memtable: &Arc<Memtable>, run: u64, tables: &[Arc<Table>]) {
        self.change(|read_state| ReadState {
            active: Arc::clone(&read_state.active),
            immutable: read_state.immutable.iter().filter(|other| !Arc::ptr_eq(other, memtable)).cloned().collect(),
            version: Arc::new(read_state.version.edited(&[], tables.iter().map(|table| (run, Arc::clone(table))))),
        });
    }

    /// Puts `added`, in run `run`, in the place of the tables with the numbers `removed`.
    pub fn replace_tables<'t>(&self, removed: &[u64], run: u64, added: impl IntoIterator<Item = &'t Arc<Table>>) {
        let added = added.into_iter().map(|table| (run, Arc::clone(table)));
        self.change(|read_state| ReadState {
            active: Arc::clone(&read_state.active),
            immutable: read_state.immutable.clone(),
            version: Arc::new(read_state.version.edited(removed, added)),
        });
    }
}

/// The oldest write that is in no table yet, or the next one to come. `views`: the read states of
/// all keyspaces, each loaded when the iterator comes to it. Memtables in `except` count as
/// flushed.
pub fn oldest_unflushed(
    last_sequence: &AtomicU64,
    read_states: impl Iterator<Item = Arc<ReadState>>,
    except: &[Arc<Memtable>],
) -> Sequence {
    // Read first: a write that begins after this has a greater number.
    let next = last_sequence.load(Ordering::Acquire) + 1;
    let mut oldest = next;
    for read_state in read_states {
        for memtable in read_state.memtables() {
            if !memtable.is_empty() && !except.iter().any(|flushed| Arc::ptr_eq(flushed, memtable)) {
                oldest = oldest.min(memtable.first_sequence());
            }
        }
    }
    oldest
}
