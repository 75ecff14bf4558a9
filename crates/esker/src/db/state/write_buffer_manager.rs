//! The write buffer manager: the bytes that memtables hold of the memory budget. `memory.rs` keeps
//! them up to date.

use crate::memtable::Memtable;
use crate::options::Options;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// The bytes of memtables, and their share of the budget.
#[derive(Debug)]
pub struct WriteBufferManager {
    /// What all memtables may take together, if there is a budget.
    memtable_limit: Option<usize>,
    /// Bytes that writes may take before the next sum. Changed under the writer lock only.
    credit: AtomicUsize,
    /// Memtables that were flushed; readers may hold them.
    flushed: Mutex<Vec<Weak<Memtable>>>,
}

impl WriteBufferManager {
    /// That of a database with these options, which are resolved.
    pub fn new(options: &Options) -> WriteBufferManager {
        let memtable_limit = options.memtable_limit_bytes();
        WriteBufferManager { memtable_limit, credit: AtomicUsize::new(0), flushed: Mutex::default() }
    }

    /// Whether a write with these needs, bytes by keyspace, go on without a closer look. Under the
    /// writer lock.
    #[inline]
    pub fn has_credit(&self, needs: &[(u64, usize)]) -> bool {
        self.memtable_limit.is_none() || self.use_credit(needs)
    }

    fn use_credit(&self, needs: &[(u64, usize)]) -> bool {
        let needed = sum(needs);
        let credit = self.credit.load(Relaxed);
        self.credit.store(credit.saturating_sub(needed), Relaxed);
        needed <= credit
    }

    /// Uses up what a write took beyond its needs. Under the writer lock.
    pub fn charge(&self, bytes: usize) {
        self.credit.store(self.credit.load(Relaxed).saturating_sub(bytes), Relaxed);
    }

    /// Lets writes take so much before the next sum. Under the writer lock.
    pub fn give_credit(&self, bytes: usize) {
        self.credit.store(bytes, Relaxed);
    }

    /// What all memtables may take together, if there is a budget.
    pub fn memtable_limit(&self) -> Option<usize> {
        self.memtable_limit
    }

    /// Notes that `memtable` is in tables, so that only readers can hold it.
    pub fn note_flushed(&self, memtable: &Arc<Memtable>) {
        let mut flushed = self.flushed.lock();
        flushed.retain(|memtable| memtable.strong_count() > 0);
        flushed.push(Arc::downgrade(memtable));
    }

    /// Visits the flushed memtables that readers still hold.
    pub fn for_each_flushed(&self, mut visit: impl FnMut(&Memtable)) {
        self.flushed.lock().retain(|memtable| memtable.upgrade().inspect(|memtable| visit(memtable)).is_some());
    }

    /// Bytes of flushed memtables that readers hold.
    pub fn pinned_bytes(&self) -> usize {
        let mut bytes = 0;
        self.for_each_flushed(|memtable| bytes += memtable.resident_bytes());
        bytes
    }
}

/// The bytes that a write needs.
fn sum(needs: &[(u64, usize)]) -> usize {
    needs.iter().map(|(_, bytes)| bytes).sum()
}
