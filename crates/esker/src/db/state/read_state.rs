//! What a read of a keyspace searches, and how that is replaced: always as a whole, by a rotation,
//! a flush or a compaction.
//!
//! A reader loads the read state and has all it needs for as long as it holds it. Changes exclude
//! each other, and each begins with what the one before has left, so that none undoes another. What
//! a reader may miss meanwhile are writes and installations that come after its load; what it finds
//! is complete, because a memtable leaves a read state in the same step in which its tables come
//! into it, and tables in the same step as those that replace them.
//!
//! A dropped keyspace has an empty read state, which holds the one before it for as long as a
//! snapshot sees that. Until the drop is durable it may be taken back: jobs go on, and install in
//! what was before. From then on nothing is installed any more, and a job is told so.
//!
//! The interleavings are tried by `db/interleavings/read_states.rs`.

use crate::base::key::Sequence;
use crate::base::sync::{ArcSwap, AtomicU64, Guard, Mutex};
use crate::db::state::merge_settings::MergeEpoch;
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
    /// That the keyspace was dropped.
    pub dropped: Option<Box<Dropped>>,
    /// Which merge settings of the keyspace its operands are combined by
    /// (`state/merge_settings.rs`).
    pub merge_epoch: MergeEpoch,
}

/// The end of a keyspace.
#[derive(Debug)]
pub struct Dropped {
    /// The place of the drop in the order of writes: what reads below it still sees the keyspace.
    pub sequence: Sequence,
    /// What those readers search; none if there are none.
    pub before: Option<Arc<ReadState>>,
    /// The manifest says so, durably.
    pub is_final: bool,
}

impl ReadState {
    /// That of a keyspace with nothing but one memtable.
    pub fn of_memtable(active: Arc<Memtable>) -> ReadState {
        let (version, merge_epoch) = (Arc::default(), MergeEpoch::default());
        ReadState { active, immutable: Vec::new(), version, dropped: None, merge_epoch }
    }

    /// All memtables, newest first. They include those of a dropped keyspace while a snapshot sees
    /// them: the log must keep their writes until the drop is durable.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        let before = self.before_drop();
        let earlier = before.into_iter().flat_map(|before| [&before.active].into_iter().chain(&before.immutable));
        [&self.active].into_iter().chain(&self.immutable).chain(earlier)
    }

    /// What jobs work on: this, or, while a drop may still be taken back, what was there before it.
    pub fn of_jobs(self: &Arc<ReadState>) -> &Arc<ReadState> {
        match self.dropped.as_deref() {
            Some(Dropped { before: Some(before), is_final: false, .. }) => before,
            _ => self,
        }
    }

    /// What of the keyspace is in files that must stay: this, or what was there before the drop.
    pub fn stored(self: &Arc<ReadState>) -> &Arc<ReadState> {
        self.before_drop().unwrap_or(self)
    }

    /// What was there before the keyspace was dropped, if it was and a reader may see it.
    pub fn before_drop(&self) -> Option<&Arc<ReadState>> {
        self.dropped.as_ref()?.before.as_ref()
    }

    /// That of a dropped keyspace, with the same empty memtable.
    fn after_drop(&self, sequence: Sequence, before: Option<Arc<ReadState>>, is_final: bool) -> ReadState {
        let dropped = Some(Box::new(Dropped { sequence, before, is_final }));
        let merge_epoch = Arc::clone(&self.merge_epoch);
        ReadState { dropped, merge_epoch, ..ReadState::of_memtable(Arc::clone(&self.active)) }
    }

    /// The read state for a reader at `sequence`; none if the keyspace was dropped before that.
    #[inline(always)]
    pub fn at(self: &Arc<ReadState>, sequence: Sequence) -> Option<&Arc<ReadState>> {
        match &self.dropped {
            None => Some(self),
            Some(dropped) => dropped.at(sequence),
        }
    }
}

impl Dropped {
    #[cold]
    fn at(&self, sequence: Sequence) -> Option<&Arc<ReadState>> {
        self.before.as_ref().filter(|_| sequence < self.sequence)
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

    /// Replaces the read state by what `change` makes of it. False if the keyspace was dropped for
    /// good: nothing is changed then.
    fn change(&self, change: impl FnOnce(&ReadState) -> ReadState) -> bool {
        let _changing = self.change.lock();
        let current = self.load();
        let next = match current.dropped.as_deref() {
            None => change(&current),
            Some(Dropped { sequence, before: Some(before), is_final: false }) => {
                current.after_drop(*sequence, Some(Arc::new(change(before))), false)
            }
            Some(_) => return false,
        };
        self.current.store(Arc::new(next));
        true
    }

    /// Puts what a follower has read of the keyspace in the place of what it had.
    /// Operands in it are combined by the merge settings of `merge_epoch`.
    pub fn follow(
        &self,
        active: Arc<Memtable>,
        immutable: Vec<Arc<Memtable>>,
        version: Arc<Version>,
        merge_epoch: MergeEpoch,
    ) {
        // A dropped keyspace is not followed.
        let _ = self.change(|_| ReadState { active, immutable, version, dropped: None, merge_epoch });
    }

    /// Ends the keyspace at `sequence`: `empty` takes the place of what it holds. Under the writer
    /// lock, so that every snapshot is registered either before or after. [`Self::finish_drop`] or
    /// [`Self::take_back_drop`] follows.
    pub fn begin_drop(&self, sequence: Sequence, empty: Arc<Memtable>) {
        let _changing = self.change.lock();
        let next = ReadState::of_memtable(empty).after_drop(sequence, Some(self.load_full()), false);
        self.current.store(Arc::new(next));
    }

    /// The drop is durable: from here on nothing is installed. What readers may still search.
    pub fn finish_drop(&self) -> Option<Arc<ReadState>> {
        let _changing = self.change.lock();
        let current = self.load();
        let Dropped { sequence, before, .. } = current.dropped.as_deref()?;
        self.current.store(Arc::new(current.after_drop(*sequence, before.clone(), true)));
        before.clone()
    }

    /// The drop has failed, without a trace: the keyspace is there again. Under the writer lock.
    pub fn take_back_drop(&self) {
        let _changing = self.change.lock();
        if let Some(before) = self.load().before_drop() {
            self.current.store(Arc::clone(before));
        }
    }

    /// Releases what was there before the drop, when no snapshot sees it any more.
    pub fn release_dropped(&self) {
        let _changing = self.change.lock();
        let current = self.load();
        if let Some(Dropped { sequence, .. }) = current.dropped.as_deref() {
            self.current.store(Arc::new(current.after_drop(*sequence, None, true)));
        }
    }

    /// Puts an empty memtable in the place of the active one, whose writer `writer` is. That waits
    /// for its flush from now on, if anything is in it. Under the writer lock: no write is half in
    /// the one and half in the other.
    pub fn rotate_memtable(&self, writer: &mut MemtableWriter, next: (Arc<Memtable>, MemtableWriter)) {
        self.rotate_in_epoch(writer, next, None);
    }

    /// The same, for a memtable whose operands are combined by the merge settings of another epoch.
    pub fn rotate_in_epoch(
        &self,
        writer: &mut MemtableWriter,
        (active, next): (Arc<Memtable>, MemtableWriter),
        epoch: Option<MergeEpoch>,
    ) {
        let empty = writer.memtable().is_empty();
        *writer = next;
        // A dropped keyspace has no writer.
        let _ = self.change(|read_state| {
            let old = if empty { None } else { Some(Arc::clone(&read_state.active)) };
            let immutable = old.into_iter().chain(read_state.immutable.iter().cloned()).collect();
            let merge_epoch = epoch.unwrap_or_else(|| Arc::clone(&read_state.merge_epoch));
            let version = Arc::clone(&read_state.version);
            ReadState { active, immutable, version, dropped: None, merge_epoch }
        });
    }

    /// Puts `tables`, in run `run`, in the place of an immutable memtable. False if the keyspace
    /// was dropped: then no reader finds them.
    #[must_use]
    pub fn install_flush(&self, memtable: &Arc<Memtable>, run: u64, tables: &[Arc<Table>]) -> bool {
        self.change(|read_state| ReadState {
            active: Arc::clone(&read_state.active),
            immutable: read_state.immutable.iter().filter(|other| !Arc::ptr_eq(other, memtable)).cloned().collect(),
            version: Arc::new(read_state.version.edited(&[], tables.iter().map(|table| (run, Arc::clone(table))))),
            dropped: None,
            merge_epoch: Arc::clone(&read_state.merge_epoch),
        })
    }

    /// Puts `added`, in run `run`, in the place of the tables with the numbers `removed`. False if
    /// the keyspace was dropped: then no reader finds what was added.
    #[must_use]
    pub fn replace_tables<'t>(
        &self,
        removed: &[u64],
        run: u64,
        added: impl IntoIterator<Item = &'t Arc<Table>>,
    ) -> bool {
        let added = added.into_iter().map(|table| (run, Arc::clone(table)));
        self.change(|read_state| ReadState {
            active: Arc::clone(&read_state.active),
            immutable: read_state.immutable.clone(),
            version: Arc::new(read_state.version.edited(removed, added)),
            dropped: None,
            merge_epoch: Arc::clone(&read_state.merge_epoch),
        })
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
