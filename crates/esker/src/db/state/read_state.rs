//! What a read of a keyspace searches, and how that is replaced: always as a whole, by whoever puts a memtable aside, has flushed one, or has merged tables.
//!
//! A reader loads the view and has all it needs for as long as it holds it. Changes exclude each other, and each begins with what the one before has left, so that none undoes
//! another. What a reader may miss meanwhile are writes and installations that come after its load; what it finds is complete, because a memtable leaves a view in the
//! same step in which its tables come into it, and tables in the same step as those that replace them.
//!
//! The interleavings are tried by `db/interleavings/views.rs`.

use crate::base::key::Sequence;
use crate::base::sync::{ArcSwap, AtomicU64, Guard, Mutex};
use crate::memtable::{Memtable, MemtableWriter};
use crate::table::Table;
use crate::version::tree::Tree;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Everything a read of a keyspace searches, newest first: immutable, replaced as a whole.
#[derive(Debug)]
pub struct View {
    pub active: Arc<Memtable>,
    /// Full memtables not in tables yet, newest first.
    pub frozen: Vec<Arc<Memtable>>,
    pub tree: Arc<Tree>,
}

/// The view of a keyspace. See the module's comment.
pub struct Views {
    current: ArcSwap<View>,
    /// Held while it is replaced, never over I/O.
    change: Mutex<()>,
}

impl Views {
    pub fn new(first: View) -> Views {
        Views { current: ArcSwap::from_pointee(first), change: Mutex::new(()) }
    }

    /// The view of now, for one read.
    #[inline(always)]
    pub fn load(&self) -> Guard<Arc<View>> {
        self.current.load()
    }

    /// The same, to be kept.
    #[inline]
    pub fn load_full(&self) -> Arc<View> {
        self.current.load_full()
    }

    /// Replaces the view by what `change` makes of it.
    fn change(&self, change: impl FnOnce(&View) -> View) {
        let _changing = self.change.lock();
        let next = change(&self.load());
        self.current.store(Arc::new(next));
    }

    /// Puts an empty memtable in the place of the active one, whose writer `writer` is. That waits for its flush from now on, if anything is in it. Under the writer
    /// lock: no write is half in the one and half in the other.
    pub fn put_aside(&self, writer: &mut MemtableWriter, (active, next): (Arc<Memtable>, MemtableWriter)) {
        let empty = writer.memtable().is_empty();
        *writer = next;
        self.change(|view| {
            let old = if empty { None } else { Some(Arc::clone(&view.active)) };
            let frozen = old.into_iter().chain(view.frozen.iter().cloned()).collect();
            View { active, frozen, tree: Arc::clone(&view.tree) }
        });
    }

    /// Puts `tables`, in run `run`, in the place of a memtable that was put aside.
    pub fn install_flush(&self, memtable: &Arc<Memtable>, run: u64, tables: &[Arc<Table>]) {
        self.change(|view| View {
            active: Arc::clone(&view.active),
            frozen: view.frozen.iter().filter(|other| !Arc::ptr_eq(other, memtable)).cloned().collect(),
            tree: Arc::new(view.tree.edited(&[], tables.iter().map(|table| (run, Arc::clone(table))))),
        });
    }

    /// Puts `added`, in run `run`, in the place of the tables with the numbers `removed`.
    pub fn replace_tables<'t>(&self, removed: &[u64], run: u64, added: impl IntoIterator<Item = &'t Arc<Table>>) {
        let added = added.into_iter().map(|table| (run, Arc::clone(table)));
        self.change(|view| View {
            active: Arc::clone(&view.active),
            frozen: view.frozen.clone(),
            tree: Arc::new(view.tree.edited(removed, added)),
        });
    }
}

/// The oldest write that is in no table yet, or the next one to come. `views`: of all keyspaces, loaded when they are asked for. Memtables in `except` count as flushed.
pub fn oldest_unflushed(
    last_sequence: &AtomicU64,
    views: impl Iterator<Item = Arc<View>>,
    except: &[Arc<Memtable>],
) -> Sequence {
    // Read first: a write that begins after this has a greater number.
    let next = last_sequence.load(Ordering::Acquire) + 1;
    let mut oldest = next;
    for view in views {
        for memtable in view.frozen.iter().chain([&view.active]) {
            if !memtable.is_empty() && !except.iter().any(|flushed| Arc::ptr_eq(flushed, memtable)) {
                oldest = oldest.min(memtable.first_sequence());
            }
        }
    }
    oldest
}
