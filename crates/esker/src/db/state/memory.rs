//! The memory of a database, part by part, and keeping it within the budget if there is one.
//!
//! Memtables grow with every write, so they are limited where writes make room (`commit.rs`): where
//! all active ones together reach half of their share, the largest is rotated; where all reach the
//! whole share, writes wait for a flush. The sums behind that are taken only now and then: each
//! time the writer gets a credit of bytes that it may use up before the next sum.
//!
//! The block cache yields to everything else: after each flush and compaction it gets what is left.

use crate::base::key_order::KeyOrder;
use crate::base::memory::MemoryPool;
use crate::db::state::inner::{Inner, KeyspaceInner};
use crate::memtable::{Memtable, MemtableWriter};
use crate::options::{Options, memtable_reservation, working_memory};
use crate::table::BlockCache;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The least that a writer may use up before the next sum.
const LEAST_CREDIT_BYTES: usize = 4 << 10;
/// The most of the memtables' share that a writer may use up before the next sum, as a divisor: an
/// index grows in steps.
const CREDIT_DIVISOR: usize = 16;

/// Bytes of memory of an open database, by part. Those of an index, a filter or a memtable are the
/// bytes requested of the system, those of the cache the bytes of its blocks.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let directory = std::env::temp_dir().join(format!("esker-doc-memory-{}", std::process::id()));
/// use esker::{Db, Options};
/// let db = Db::open(&directory, Options::default().memory_budget_bytes(64 << 20))?;
/// db.keyspace("names", Default::default())?.put("ada", "1815")?;
/// let memory = db.stats().memory;
/// assert!(memory.memtable_bytes > 0 && memory.total_bytes() <= memory.budget_bytes);
/// # drop(db);
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// [`crate::Options::memory_budget_bytes`]; 0 if there is none.
    pub budget_bytes: u64,
    /// Memtables that are written to.
    pub memtable_bytes: u64,
    /// Full memtables that wait for their flush.
    pub immutable_memtable_bytes: u64,
    /// Blocks in the cache, and memory kept for the next ones.
    pub cache_bytes: u64,
    /// The most that the cache may hold at the moment.
    pub cache_capacity_bytes: u64,
    /// Indexes of open tables, and the places of their blocks in the cache.
    pub index_bytes: u64,
    /// Filters of open tables.
    pub filter_bytes: u64,
    /// What only readers still hold: blocks that are not in the cache, memtables that were flushed,
    /// tables that were compacted.
    pub pinned_bytes: u64,
    /// Memory of flushed memtables kept for the next ones. Without a budget it is that of the whole
    /// process: [`crate::unused_memory_bytes`].
    pub unused_pool_bytes: u64,
}

impl MemoryStats {
    /// All parts together, without the working memory of flush and compaction.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// let memory = db.stats().memory;
    /// assert!(memory.total_bytes() >= memory.memtable_bytes + memory.cache_bytes);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn total_bytes(&self) -> u64 {
        let tables = self.index_bytes + self.filter_bytes;
        let memtables = self.memtable_bytes + self.immutable_memtable_bytes + self.unused_pool_bytes;
        memtables + tables + self.cache_bytes + self.pinned_bytes
    }
}

impl fmt::Display for MemoryStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "memtables {:.1} MiB, waiting {:.1} MiB, block cache {:.1} of {:.1} MiB, indexes {:.1} MiB, filters {:.1} MiB, pinned {:.1} MiB, \
             unused {:.1} MiB, all {:.1} MiB",
            mib(self.memtable_bytes),
            mib(self.immutable_memtable_bytes),
            mib(self.cache_bytes),
            mib(self.cache_capacity_bytes),
            mib(self.index_bytes),
            mib(self.filter_bytes),
            mib(self.pinned_bytes),
            mib(self.unused_pool_bytes),
            mib(self.total_bytes())
        )?;
        match self.budget_bytes {
            0 => f.write_str(", no budget"),
            budget => write!(f, " of a budget of {:.1} MiB", mib(budget)),
        }
    }
}

/// The pool that the memory of memtables comes from.
pub fn pool(options: &Options) -> Arc<MemoryPool> {
    match options.memory_budget_bytes {
        0 => MemoryPool::of_the_process(),
        // What is not in use goes back to the system: kept, it would be missing elsewhere.
        _ => Arc::new(MemoryPool::keeping(0)),
    }
}

/// An empty memtable for keys in this order with room for at least `bytes`, and its writer.
pub fn new_memtable(
    order: &KeyOrder,
    options: &Options,
    bytes: usize,
    expected_keys: usize,
    pool: &Arc<MemoryPool>,
) -> (Arc<Memtable>, MemtableWriter) {
    if bytes <= options.write_buffer_bytes {
        return Memtable::create_in(order.clone(), options.write_buffer_bytes, expected_keys, pool);
    }
    // Longer than memtables are, for one batch: this memory is of no use to the next one.
    Memtable::create_in(order.clone(), bytes, expected_keys, &Arc::new(MemoryPool::keeping(0)))
}

/// Lets the background thread prefault memory ahead of the writer. Not with a budget, which counts
/// memory in use.
#[cold]
pub fn want_touched(inner: &Inner) {
    if !inner.inline_jobs() && inner.options.memory_budget_bytes == 0 {
        inner.memory_wanted.store(true, Ordering::Relaxed);
        inner.wake();
    }
}

/// Prefaults the memory that active memtables will come to, if a writer requested it.
pub fn touch_ahead(inner: &Inner) {
    if !inner.memory_wanted.swap(false, Ordering::Relaxed) {
        return;
    }
    for keyspace in inner.all_keyspaces() {
        let active = Arc::clone(&keyspace.read_state.load().active);
        active.touch_ahead();
    }
}

/// The block cache.
pub fn cache(options: &Options) -> Arc<BlockCache> {
    Arc::new(match options.memory_budget_bytes {
        0 => BlockCache::new(options.block_cache_bytes),
        _ => BlockCache::counting_pinned(options.block_cache_bytes),
    })
}

/// What all memtables take.
#[derive(Default)]
struct Memtables {
    active: usize,
    immutable: usize,
    /// The keyspace whose active memtable is the largest, and its bytes; none if all are empty.
    largest: Option<(u64, usize)>,
}

fn memtables(keyspaces: &[Arc<KeyspaceInner>]) -> Memtables {
    let mut found = Memtables::default();
    for keyspace in keyspaces {
        let read_state = keyspace.read_state.load();
        let active = read_state.active.resident_bytes();
        found.active += active;
        found.immutable += read_state.immutable.iter().map(|memtable| memtable.resident_bytes()).sum::<usize>();
        if active > found.largest.map_or(0, |(_, bytes)| bytes) {
            found.largest = Some((keyspace.id, active));
        }
    }
    found
}

/// What has to happen before a write may take more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Rotate the memtable of this keyspace.
    Rotate(u64),
    /// Wait for a flush.
    Wait,
}

/// What has to happen before a write may take `needed` bytes; none if nothing has to, and then
/// there is credit again. Under the writer lock.
#[cold]
pub fn next_step(inner: &Inner, needed: usize) -> Option<Step> {
    let limit = inner.write_buffer_manager.memtable_limit()?;
    let Memtables { active, immutable, largest } = memtables(&inner.all_keyspaces());
    if immutable > 0 && active + immutable + needed > limit {
        return Some(Step::Wait);
    }
    if let Some((keyspace, _)) = largest.filter(|_| active + needed > limit / 2) {
        return Some(Step::Rotate(keyspace));
    }
    let left = (limit / 2).saturating_sub(active).min(limit.saturating_sub(active + immutable));
    let credit = (left.saturating_sub(needed) / 2).min(limit / CREDIT_DIVISOR).max(LEAST_CREDIT_BYTES);
    inner.write_buffer_manager.give_credit(credit);
    None
}

/// Whether a write of `needed` bytes has to wait until one of these keyspaces, which are all, has
/// flushed something.
pub fn exceeds_budget(inner: &Inner, keyspaces: &[Arc<KeyspaceInner>], needed: usize) -> bool {
    let Some(limit) = inner.write_buffer_manager.memtable_limit() else { return false };
    let Memtables { active, immutable, .. } = memtables(keyspaces);
    immutable > 0 && active + immutable + needed > limit
}

/// Notes that `memtable` is in tables now, and gives the cache what is left.
pub fn flushed(inner: &Inner, memtable: &Arc<Memtable>) {
    inner.write_buffer_manager.note_flushed(memtable);
    rebalance(inner);
}

/// Gives the cache what the other parts leave of the budget.
pub fn rebalance(inner: &Inner) {
    let budget = inner.options.memory_budget_bytes;
    if budget == 0 {
        return;
    }
    let keyspaces = inner.all_keyspaces();
    let tables: usize = keyspaces
        .iter()
        .map(|keyspace| {
            keyspace.read_state.load().version.tables().map(|(_, table)| table.memory_bytes()).sum::<usize>()
        })
        .sum();
    let taken = working_memory(budget)
        + memtable_reservation(&inner.options, keyspaces.len())
        + tables
        + pinned_tables(inner)
        + inner.write_buffer_manager.pinned_bytes();
    inner.cache.set_budget(budget.saturating_sub(taken).min(inner.options.block_cache_bytes));
}

/// Bytes of tables that are in no version, but in use.
fn pinned_tables(inner: &Inner) -> usize {
    let mut bytes = 0;
    inner.obsolete.for_each(|table| bytes += table.memory_bytes());
    bytes
}

/// The figures of this moment.
pub fn collect(inner: &Inner) -> MemoryStats {
    let keyspaces = inner.all_keyspaces();
    let Memtables { active, immutable, .. } = memtables(&keyspaces);
    let (mut index, mut filter) = (0, 0);
    for keyspace in &keyspaces {
        for (_, table) in keyspace.read_state.load().version.tables() {
            index += table.index_bytes();
            filter += table.filter_bytes();
        }
    }
    let cached = inner.cache.usage_bytes();
    let blocks = inner.cache.charged_bytes().saturating_sub(cached);
    MemoryStats {
        budget_bytes: inner.options.memory_budget_bytes as u64,
        memtable_bytes: active as u64,
        immutable_memtable_bytes: immutable as u64,
        cache_bytes: (cached + inner.cache.pooled_bytes()) as u64,
        cache_capacity_bytes: inner.cache.budget_bytes() as u64,
        index_bytes: index as u64,
        filter_bytes: filter as u64,
        pinned_bytes: (blocks + pinned_tables(inner) + inner.write_buffer_manager.pinned_bytes()) as u64,
        unused_pool_bytes: inner.memory.unused_bytes() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_long_batch_needs_is_not_kept_for_the_next_memtable() {
        let options = Options::default().write_buffer_bytes(1 << 20);
        let pool = Arc::new(MemoryPool::default());
        drop(new_memtable(&KeyOrder::Bytewise, &options, 4 << 20, 0, &pool));
        assert_eq!(pool.unused_bytes(), 0);
        drop(new_memtable(&KeyOrder::Bytewise, &options, 0, 0, &pool));
        assert!((1 << 20..2 << 20).contains(&pool.unused_bytes()), "{}", pool.unused_bytes());
    }
}
