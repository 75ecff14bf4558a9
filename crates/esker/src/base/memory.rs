//! Large blocks of zeroed memory, and a pool that keeps a few for reuse.
//!
//! A page that the system has not handed out yet costs from 0.3 to 13 microseconds at its first
//! touch, depending on whether the host has memory behind it; so blocks are given back to a pool
//! instead of the system. There is one pool for the process: a database that is closed leaves its
//! blocks to the next one, as an allocator would, but for long ones: of those one is kept, and one
//! of zeroes, while any database is open. Fresh blocks are prefaulted by a thread that no writer
//! waits for. When every open database is idle, all of it goes back to the system. Huge pages are
//! requested for long blocks only: `doc/decisions/0006-no-huge-pages-for-memtables.md` and
//! `doc/decisions/0022-huge-pages-for-long-memtables.md`.
//!
//! One of the files with `unsafe`: it owns raw memory and hands out a pointer to it.

use super::sync::raw;
use parking_lot::Mutex;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

/// A block of memory, zeroed when fresh, aligned to 64 bytes at least.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    bytes: usize,
    /// So many of the first bytes are known to be backed by the system.
    touched: AtomicUsize,
    pool: Weak<MemoryPool>,
}

// SAFETY: the block is owned; what may be done with it from several threads is for the owner of the
// `Memory` to say.
unsafe impl Send for Memory {}
// SAFETY: as above: shared references give out nothing but a raw pointer.
unsafe impl Sync for Memory {}

impl Memory {
    /// A fresh, zeroed block of at least one byte.
    pub fn zeroed(bytes: usize) -> Memory {
        let bytes = bytes.max(64);
        let start = system::allocate(bytes);
        if bytes > LONG_BYTES {
            // A hardly used block stays small.
            system::prefer_huge_pages(start, HUGE_PAGE_BYTES, bytes - HUGE_PAGE_BYTES);
        }
        Memory { start, bytes, touched: AtomicUsize::new(0), pool: Weak::new() }
    }

    /// Prefaults at least the first `end` bytes, where the system allows it: their next user does
    /// not wait for it. Changes no byte. Others may use the block meanwhile; one thread at a time
    /// should do this.
    pub fn touch_until(&self, end: usize) {
        let mut from = self.touched.load(Ordering::Relaxed);
        while from < end.min(self.bytes) {
            // Whole steps but for the last: the system refuses to begin within a page.
            let next = (from + TOUCH_STEP_BYTES).min(self.bytes);
            system::touch(self.start, self.bytes, from, next - from);
            self.touched.store(next, Ordering::Relaxed);
            from = next;
        }
    }

    /// How many of the first bytes are known to be backed.
    pub fn touched(&self) -> usize {
        self.touched.load(Ordering::Relaxed)
    }

    /// Its first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            let touched = AtomicUsize::new(self.touched());
            let again = Memory { start: self.start, bytes: self.bytes, touched, pool: Weak::new() };
            let refused = pool.give_back(again);
            // A block that the pool does not keep is dropped here, and has no pool any more.
            drop(refused);
            return;
        }
        raw::end(self.start.as_ptr(), self.bytes);
        // SAFETY: allocated in `zeroed` with this length, and owned: the value that was given to
        // the pool, or replaced by it, never gets here twice, because it is only here without a
        // pool.
        unsafe { system::free(self.start, self.bytes) }
    }
}

/// Keeps a few blocks for reuse.
#[derive(Debug)]
pub struct MemoryPool {
    kept: Mutex<Vec<Memory>>,
    zeroes: Mutex<Zeroes>,
    /// The most blocks kept.
    most: usize,
    /// Open databases.
    users: AtomicUsize,
    /// Those of them that are idle.
    idle_users: AtomicUsize,
}

/// A block of zeroes for [`MemoryPool::take_zeroed`].
#[derive(Debug, Default)]
struct Zeroes {
    /// Backed as far as it is touched.
    memory: Option<Memory>,
    /// How often another length was requested since this one was.
    refused: u32,
}

/// The pool of an open database, which keeps long blocks as well meanwhile.
#[derive(Debug)]
pub struct PoolUser {
    pool: Arc<MemoryPool>,
    idle: AtomicBool,
}

impl PoolUser {
    /// One user more.
    pub fn new(pool: &Arc<MemoryPool>) -> PoolUser {
        pool.users.fetch_add(1, Ordering::SeqCst);
        PoolUser { pool: Arc::clone(pool), idle: AtomicBool::new(false) }
    }

    /// Says whether the database is idle: not written to for a while. When all are, unused memory
    /// goes back to the system.
    pub fn note_idle(&self, idle: bool) {
        if self.idle.swap(idle, Ordering::SeqCst) != idle {
            let idle_users = &self.pool.idle_users;
            if idle {
                idle_users.fetch_add(1, Ordering::SeqCst)
            } else {
                idle_users.fetch_sub(1, Ordering::SeqCst)
            };
        }
        // Two that say so at the same time may both do it, and one that is opened meanwhile finds
        // nothing: no harm in either.
        if idle && self.pool.idle_users.load(Ordering::SeqCst) >= self.pool.users.load(Ordering::SeqCst) {
            self.pool.release_unused();
        }
    }
}

impl Deref for PoolUser {
    type Target = Arc<MemoryPool>;

    fn deref(&self) -> &Arc<MemoryPool> {
        &self.pool
    }
}

impl Drop for PoolUser {
    fn drop(&mut self) {
        self.note_idle(false);
        if self.pool.users.fetch_sub(1, Ordering::SeqCst) == 1 {
            // What this database still has is refused when it comes back.
            self.pool.release_long();
        }
    }
}

/// Memory is prefaulted in steps of this many bytes: a thread that needs the same pages may have to
/// wait for one step.
const TOUCH_STEP_BYTES: usize = 1 << 20;
/// Smaller blocks are not worth preparing.
const LEAST_PREPARED_BYTES: usize = 256 << 10;
/// Blocks that the pool of the process keeps.
const KEPT: usize = 2;
/// Of longer blocks than this one is kept, and only while a database is open. They are of huge
/// pages, where the system has them.
const LONG_BYTES: usize = 128 << 20;
/// What a huge page has on most processors.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Zeroes of one length are replaced by another that was requested so often since these were last
/// requested.
const UNWANTED_AFTER: u32 = 32;
/// So much of the next zeroes is prefaulted at a time.
const PREPARED_STEP_BYTES: usize = 8 << 20;

/// The pool of the process.
static PROCESS: LazyLock<Arc<MemoryPool>> = LazyLock::new(Arc::default);

/// Gives the memory that closed databases have left for the next one back to the system. While a
/// database is open, that happens by itself once no open database has been written to for a second.
///
/// ```
/// esker::release_unused_memory();
/// println!("{} bytes are kept for the next database", esker::unused_memory_bytes());
/// ```
pub fn release_unused_memory() {
    PROCESS.release_unused();
}

/// Bytes that no memtable uses, kept for the next one, or for the next database.
///
/// ```
/// esker::release_unused_memory();
/// println!("{} bytes", esker::unused_memory_bytes());
/// ```
pub fn unused_memory_bytes() -> usize {
    PROCESS.unused_bytes()
}

impl Default for MemoryPool {
    fn default() -> MemoryPool {
        MemoryPool::keeping(KEPT)
    }
}

impl MemoryPool {
    /// A pool that keeps at most `most` blocks.
    pub fn keeping(most: usize) -> MemoryPool {
        let (users, idle_users) = (AtomicUsize::new(0), AtomicUsize::new(0));
        MemoryPool { kept: Mutex::default(), zeroes: Mutex::default(), most, users, idle_users }
    }

    /// Gives the unused blocks back to the system.
    fn release_unused(&self) {
        let unused = std::mem::take(&mut *self.kept.lock());
        let zeroes = self.zeroes.lock().memory.take();
        drop((unused, zeroes));
    }

    /// Bytes of the unused blocks.
    pub fn unused_bytes(&self) -> usize {
        let zeroes = self.zeroes.lock().memory.as_ref().map_or(0, Memory::bytes);
        zeroes + self.kept.lock().iter().map(Memory::bytes).sum::<usize>()
    }

    /// The pool that all databases of the process share.
    pub fn of_the_process() -> Arc<MemoryPool> {
        Arc::clone(&PROCESS)
    }

    /// A block of `bytes`, with whatever it held before; it comes back to the pool when dropped.
    pub fn take(self: &Arc<MemoryPool>, bytes: usize) -> Memory {
        let mut kept = self.kept.lock();
        let found = kept.iter().position(|memory| memory.bytes == bytes.max(64)).map(|at| kept.swap_remove(at));
        drop(kept);
        let mut memory = found.unwrap_or_else(|| Memory::zeroed(bytes));
        memory.pool = Arc::downgrade(self);
        memory
    }

    /// A block of `bytes` zeroes, backed already if it was prefaulted. It does not come back.
    pub fn take_zeroed(&self, bytes: usize) -> Memory {
        if bytes < LEAST_PREPARED_BYTES {
            return Memory::zeroed(bytes);
        }
        // A block that was too short for this is not likely to be requested again.
        let ready = self.zeroes.lock().memory.take_if(|memory| memory.bytes <= bytes);
        ready.filter(|memory| memory.bytes == bytes).unwrap_or_else(|| Memory::zeroed(bytes))
    }

    /// Prefaults a part of the next block of so many zeroes, unless one of another length is
    /// wanted: a few MiB at a time, since it takes milliseconds. For threads that no writer waits
    /// for; call it again until the block is taken.
    pub fn prepare_zeroed(&self, bytes: usize) {
        if bytes < LEAST_PREPARED_BYTES || (bytes > LONG_BYTES && !self.keeps_long()) {
            return;
        }
        for _ in 0..PREPARED_STEP_BYTES / TOUCH_STEP_BYTES {
            // Released after each step: a thread that takes the block now takes it as far as it is
            // ready.
            let mut zeroes = self.zeroes.lock();
            let Zeroes { memory, refused } = &mut *zeroes;
            // A length that another database has requested is kept for it: two in turn would
            // discard each other's. It is not kept for ever if it is not taken.
            let others = memory.take_if(|memory| memory.bytes != bytes && *refused >= UNWANTED_AFTER);
            let memory = memory.get_or_insert_with(|| Memory::zeroed(bytes));
            if memory.bytes != bytes {
                *refused += 1;
                return;
            }
            *refused = 0;
            if memory.touched() >= bytes {
                return;
            }
            memory.touch_until(memory.touched() + TOUCH_STEP_BYTES);
            drop(zeroes);
            drop(others);
        }
    }

    fn keeps_long(&self) -> bool {
        self.users.load(Ordering::SeqCst) > 0
    }

    /// Gives the unused long blocks back to the system.
    pub fn release_long(&self) {
        let mut kept = self.kept.lock();
        let (long, others) = std::mem::take(&mut *kept).into_iter().partition(|memory| memory.bytes > LONG_BYTES);
        *kept = others;
        drop(kept);
        let zeroes = self.zeroes.lock().memory.take_if(|memory| memory.bytes > LONG_BYTES);
        let _: (Vec<Memory>, Option<Memory>) = (long, zeroes);
    }

    fn give_back(&self, memory: Memory) -> Option<Memory> {
        let mut kept = self.kept.lock();
        let is_long = |memory: &Memory| memory.bytes > LONG_BYTES;
        if is_long(&memory) && !self.keeps_long() {
            return Some(memory);
        }
        // The one that was kept longest goes: its length may be one that is never requested again.
        let older = if is_long(&memory) { kept.iter().position(is_long) } else { None };
        let older = older.map(|at| kept.remove(at));
        kept.push(memory);
        older.or_else(|| (kept.len() > self.most).then(|| kept.remove(0)))
    }
}

#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri)))]
mod system {
    use super::heap;
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
    use std::alloc::{Layout, handle_alloc_error};
    use std::ptr::{NonNull, null_mut};

    /// Shorter blocks come from the allocator. A mapping of its own costs a short one two system
    /// calls, each of which stops the other threads of the process.
    const LEAST_MAPPED_BYTES: usize = 64 << 10;

    pub fn allocate(bytes: usize) -> NonNull<u8> {
        if bytes < LEAST_MAPPED_BYTES {
            return heap::allocate(bytes);
        }
        // SAFETY: a new private mapping, placed by the system: it overlaps nothing.
        let mapped =
            unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
        let Some(start) = mapped.ok().and_then(|start| NonNull::new(start.cast::<u8>())) else {
            handle_alloc_error(Layout::from_size_align(bytes, 64).unwrap_or(Layout::new::<u8>()))
        };
        start
    }

    /// Backs a part of an allocation of `whole` bytes.
    pub fn touch(start: NonNull<u8>, whole: usize, from: usize, bytes: usize) {
        if whole < LEAST_MAPPED_BYTES {
            return;
        }
        // SAFETY: the part lies in a mapping that the caller owns. The call makes its pages present
        // and writable and changes none of their bytes. Kernels that do not know it refuse; then
        // each page is backed when it is used.
        let _ = unsafe { madvise(start.as_ptr().add(from).cast(), bytes, Advice::LinuxPopulateWrite) };
    }

    /// Asks for huge pages in a part of an allocation. A system without them refuses; nothing else
    /// changes.
    pub fn prefer_huge_pages(start: NonNull<u8>, from: usize, bytes: usize) {
        // SAFETY: the part lies in a mapping that the caller owns. How the system backs it changes
        // none of its bytes.
        let _ = unsafe { madvise(start.as_ptr().add(from).cast(), bytes, Advice::LinuxHugepage) };
    }

    /// # Safety
    /// `start` and `bytes` are those of one allocation of `allocate`, to which nobody refers any
    /// more.
    pub unsafe fn free(start: NonNull<u8>, bytes: usize) {
        if bytes < LEAST_MAPPED_BYTES {
            // SAFETY: the caller promises it; so short a block is from there.
            return unsafe { heap::free(start, bytes) };
        }
        // SAFETY: the caller promises it. Unmapping a whole mapping cannot fail.
        let _ = unsafe { munmap(start.as_ptr().cast(), bytes) };
    }
}

#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(miri))))]
mod system {
    pub use super::heap::{allocate, free};
    use std::ptr::NonNull;

    /// There is no way to ask for it.
    pub fn touch(_start: NonNull<u8>, _whole: usize, _from: usize, _bytes: usize) {}

    /// There is no way to ask for it.
    pub fn prefer_huge_pages(_start: NonNull<u8>, _from: usize, _bytes: usize) {}
}

/// Memory of the allocator.
mod heap {
    use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
    use std::ptr::NonNull;

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 64).expect("memory is never asked for in such lengths")
    }

    pub fn allocate(bytes: usize) -> NonNull<u8> {
        // SAFETY: the length is at least 64.
        let start = unsafe { alloc_zeroed(layout(bytes)) };
        NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout(bytes)))
    }

    /// # Safety
    /// `start` and `bytes` are those of one allocation of `allocate`, to which nobody refers any
    /// more.
    pub unsafe fn free(start: NonNull<u8>, bytes: usize) {
        // SAFETY: the caller promises it, and the layout is the same.
        unsafe { dealloc(start.as_ptr(), layout(bytes)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Page faults of this thread so far.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn page_faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
        fields.clone().nth(7).unwrap().parse().unwrap()
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn what_was_touched_costs_no_page_fault() {
        const BYTES: usize = 8 << 20;
        let faults_of = |memory: &Memory| {
            let before = page_faults();
            for page in 0..BYTES / 4096 {
                // SAFETY: the byte is in the block, which nobody else refers to.
                unsafe { memory.start().as_ptr().add(page * 4096 + 5).write(1) };
            }
            page_faults() - before
        };
        let memory = Memory::zeroed(BYTES);
        // As writers ask for it: anywhere within a page.
        for end in [1, 300_001, 2_000_003, 5_000_007, BYTES] {
            memory.touch_until(end);
        }
        let touched = faults_of(&memory);
        let untouched = faults_of(&Memory::zeroed(BYTES));
        assert!(touched * 10 < untouched, "{touched} page faults where memory was touched, {untouched} elsewhere");
    }

    #[test]
    fn touching_changes_nothing_and_is_remembered() {
        let pool = Arc::new(MemoryPool::default());
        pool.take(3 << 20).touch_until(2 << 20);
        let memory = pool.take(3 << 20);
        assert_eq!((memory.touched(), pool.unused_bytes()), (2 << 20, 0));
        let fresh = Memory::zeroed(2 << 20);
        // SAFETY: the byte is in the block, which nobody else refers to.
        unsafe { fresh.start().as_ptr().add(5000).write(7) };
        fresh.touch_until(1 << 20);
        assert_eq!(fresh.touched(), 1 << 20);
        fresh.touch_until(usize::MAX);
        assert_eq!(fresh.touched(), 2 << 20);
        // SAFETY: as above.
        assert_eq!(unsafe { fresh.start().as_ptr().add(5000).read() }, 7);
        drop(memory);
        assert_eq!(pool.unused_bytes(), 3 << 20);
        pool.prepare_zeroed(1 << 20);
        pool.prepare_zeroed(1 << 20);
        assert_eq!((pool.unused_bytes(), pool.take_zeroed(512 << 10).touched()), (4 << 20, 0));
        assert_eq!((pool.take_zeroed(1 << 20).touched(), pool.unused_bytes()), (1 << 20, 3 << 20));
        pool.prepare_zeroed(1 << 20);
        assert_eq!((pool.take_zeroed(2 << 20).touched(), pool.unused_bytes()), (0, 3 << 20));
    }

    /// Whether huge pages were requested where `address` lies.
    #[cfg(all(target_os = "linux", not(miri)))]
    fn prefers_huge_pages(address: usize) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut found = false;
        for line in maps.lines() {
            let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
            let bound = |text: &str| usize::from_str_radix(text, 16).ok();
            if let Some((Some(start), Some(end))) = range.map(|(start, end)| (bound(start), bound(end))) {
                found = (start..end).contains(&address);
            } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| found) {
                return flags.split_whitespace().any(|flag| flag == "hg");
            }
        }
        panic!("no mapping has the address {address:x}");
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn long_blocks_are_of_huge_pages_but_for_their_beginning() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            eprintln!("no huge pages here: skipped");
            return;
        }
        let (long, short) = (Memory::zeroed(LONG_BYTES + 4096), Memory::zeroed(LONG_BYTES));
        let (start, end) = (long.start().addr().get(), LONG_BYTES);
        assert!(
            !prefers_huge_pages(start) && !prefers_huge_pages(start + HUGE_PAGE_BYTES - 1),
            "one that is hardly used"
        );
        assert!(prefers_huge_pages(start + HUGE_PAGE_BYTES) && prefers_huge_pages(start + end));
        assert!(!prefers_huge_pages(short.start().addr().get() + end / 2));
    }

    #[test]
    fn long_blocks_are_kept_while_a_database_is_open() {
        const LONG: usize = LONG_BYTES + 4096;
        let pool = Arc::new(MemoryPool::default());
        drop(pool.take(LONG));
        pool.prepare_zeroed(LONG);
        assert_eq!(pool.unused_bytes(), 0, "nobody would ask for them");
        let users = [PoolUser::new(&pool), PoolUser::new(&pool)];
        let blocks = [pool.take(LONG), pool.take(LONG), pool.take(1 << 20)];
        drop(blocks);
        assert_eq!(pool.unused_bytes(), LONG + (1 << 20), "one long block");
        pool.prepare_zeroed(LONG);
        assert_eq!(pool.unused_bytes(), 2 * LONG + (1 << 20));
        let [first, last] = users;
        drop(first);
        assert_eq!(pool.unused_bytes(), 2 * LONG + (1 << 20), "the other may ask for them");
        let late = pool.take(LONG);
        drop(last);
        assert_eq!(pool.unused_bytes(), 1 << 20);
        drop(late);
        assert_eq!(pool.unused_bytes(), 1 << 20, "its database is closed");
    }

    #[test]
    fn what_is_unused_goes_when_all_databases_rest() {
        const BYTES: usize = 1 << 20;
        let pool = Arc::new(MemoryPool::default());
        let users = [PoolUser::new(&pool), PoolUser::new(&pool)];
        let used = pool.take(BYTES);
        drop(pool.take(BYTES));
        pool.prepare_zeroed(BYTES);
        users[0].note_idle(true);
        users[0].note_idle(true);
        assert_eq!(pool.unused_bytes(), 2 * BYTES, "the other may ask for it");
        users[0].note_idle(false);
        users[1].note_idle(true);
        assert_eq!(pool.unused_bytes(), 2 * BYTES, "written to again");
        users[0].note_idle(true);
        assert_eq!(pool.unused_bytes(), 0);
        drop(used);
        assert_eq!(pool.unused_bytes(), BYTES);
        users[1].note_idle(true);
        assert_eq!(pool.unused_bytes(), 0, "and again after a while");
        // One that is closed counts neither as open nor as idle.
        let [first, second] = users;
        drop(first);
        let third = PoolUser::new(&pool);
        drop(pool.take(BYTES));
        second.note_idle(true);
        assert_eq!(pool.unused_bytes(), BYTES);
        third.note_idle(true);
        assert_eq!(pool.unused_bytes(), 0);
    }

    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn zeroes_are_made_ready_a_part_at_a_time() {
        let pool = MemoryPool::default();
        pool.prepare_zeroed(PREPARED_STEP_BYTES + 4096);
        pool.prepare_zeroed(4 << 20);
        assert_eq!(pool.zeroes.lock().memory.as_ref().unwrap().touched(), PREPARED_STEP_BYTES);
        pool.prepare_zeroed(PREPARED_STEP_BYTES + 4096);
        assert_eq!(pool.take_zeroed(PREPARED_STEP_BYTES + 4096).touched(), PREPARED_STEP_BYTES + 4096);
        pool.prepare_zeroed(64 << 20);
        assert_eq!(pool.take_zeroed(64 << 20).touched(), PREPARED_STEP_BYTES, "as far as it is ready");
        assert_eq!(pool.unused_bytes(), 0);
    }

    #[test]
    fn of_long_blocks_the_newest_is_kept() {
        let pool = Arc::new(MemoryPool::default());
        let _user = PoolUser::new(&pool);
        drop(pool.take(2 * LONG_BYTES));
        drop(pool.take(LONG_BYTES + 4096));
        assert_eq!(pool.unused_bytes(), LONG_BYTES + 4096, "the other's length may be one of a closed database");
    }

    #[test]
    fn zeroes_that_nobody_wants_make_room_for_others() {
        let pool = MemoryPool::default();
        pool.prepare_zeroed(2 << 20);
        for _ in 0..UNWANTED_AFTER {
            pool.prepare_zeroed(1 << 20);
        }
        assert_eq!(pool.unused_bytes(), 2 << 20, "somebody may be about to take them");
        pool.prepare_zeroed(2 << 20);
        for _ in 0..UNWANTED_AFTER {
            pool.prepare_zeroed(1 << 20);
        }
        assert_eq!(pool.unused_bytes(), 2 << 20, "they were asked for in between");
        pool.prepare_zeroed(1 << 20);
        assert_eq!(pool.take_zeroed(1 << 20).touched(), 1 << 20);
        assert_eq!(pool.unused_bytes(), 0);
    }

    #[test]
    fn blocks_come_back_and_no_more_than_two_are_kept() {
        let pool = Arc::new(MemoryPool::default());
        let blocks: Vec<Memory> = (0..4).map(|_| pool.take(1 << 16)).collect();
        let starts: Vec<_> = blocks.iter().map(|memory| memory.start()).collect();
        drop(blocks);
        assert_eq!(pool.kept.lock().len(), KEPT);
        let again = pool.take(1 << 16);
        assert!(starts.contains(&again.start()));
        assert_eq!(pool.take(5 << 20).bytes(), 5 << 20);
        drop(pool);
        drop(again);
    }
}
