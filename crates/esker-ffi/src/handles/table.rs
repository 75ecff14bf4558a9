//! The slots of the process, which handles name, and what they hold.

use super::error::HandleError;
use super::object::Object;
use crate::lent::Lent;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::any::Any;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(super) const MARK: usize = 0x5;
const MARK_BITS: u32 = 4;
pub(super) const SLOT_BITS: u32 = 28;
const GENERATION_BITS: u32 = 31;
pub(super) const LAST_GENERATION: u32 = (1 << GENERATION_BITS) - 1;

/// The first chunk of slots; each of the others has twice as many as the one before.
pub(super) const FIRST_CHUNK: usize = 64;
pub(super) const CHUNKS: usize = (SLOT_BITS - FIRST_CHUNK.trailing_zeros()) as usize;

pub(super) enum Held {
    Shared(Arc<dyn Any + Send + Sync>),
    Owned(Box<dyn Any + Send + Sync>),
}

#[derive(Default)]
pub(super) struct Slot {
    pub(super) occupant: RwLock<Occupant>,
    /// The thread that uses what the slot owns; 0 if there is none.
    pub(super) user: AtomicUsize,
    pub(super) lent: Lent,
}

#[derive(Default)]
pub(super) struct Occupant {
    pub(super) generation: u32,
    /// The name of its type, and the object.
    pub(super) object: Option<(&'static str, Held)>,
}

thread_local! {
    static THREAD: u8 = const { 0 };
    /// The slot that this thread has left last, for its next object: what is made and closed often,
    /// as snapshots and iterators are, takes no lock that all threads share.
    static SPARE: Spare = const { Spare(Cell::new(None)) };
}

/// The lock of the free slots is held for some instructions.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A slot that nothing is in, which all threads can have when the thread ends.
struct Spare(Cell<Option<u32>>);

impl Drop for Spare {
    fn drop(&mut self) {
        // In a child of fork the lock may be another thread's for ever, and the slot is no loss.
        if let Some(slot) = self.0.take()
            && let Some(mut free) = TABLE.free.try_lock_for(LONGEST_WAIT)
        {
            free.push(slot);
        }
    }
}

/// A number that no other living thread has.
#[inline]
fn this_thread() -> usize {
    THREAD.with(|thread| std::ptr::from_ref(thread).addr())
}

impl Slot {
    /// Only a call from inside of a call of what the slot owns finds its own thread here.
    fn not_within(&self, expected: &'static str) -> Result<(), HandleError> {
        if self.user.load(Relaxed) == this_thread() { Err(HandleError::Within { expected }) } else { Ok(()) }
    }

    #[inline]
    pub(super) fn read(&self, expected: &'static str) -> Result<RwLockReadGuard<'_, Occupant>, HandleError> {
        if let Some(occupant) = self.occupant.try_read() {
            return Ok(occupant);
        }
        self.not_within(expected)?;
        Ok(self.occupant.read())
    }

    #[inline]
    pub(super) fn write(&self, expected: &'static str) -> Result<RwLockWriteGuard<'_, Occupant>, HandleError> {
        if let Some(occupant) = self.occupant.try_write() {
            return Ok(occupant);
        }
        self.not_within(expected)?;
        Ok(self.occupant.write())
    }
}

/// The thread as the user of what a slot owns, until dropped.
pub(super) struct Use<'a>(&'a AtomicUsize);

impl<'a> Use<'a> {
    #[inline]
    pub(super) fn begin(user: &'a AtomicUsize) -> Use<'a> {
        user.store(this_thread(), Relaxed);
        Use(user)
    }
}

impl Drop for Use<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(0, Relaxed);
    }
}

/// The slots of the process.
pub(super) struct Table {
    chunks: [OnceLock<Box<[Slot]>>; CHUNKS],
    /// The first slot that was never used.
    pub(super) unused: AtomicU32,
    free: Mutex<Vec<u32>>,
}

pub(super) static TABLE: Table = Table::new();

/// The parts of a handle.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub(super) generation: u32,
    pub(super) slot: u32,
}

impl Parts {
    pub(super) fn of(handle: usize) -> Option<Parts> {
        let slot = (handle >> MARK_BITS) as u32 & ((1 << SLOT_BITS) - 1);
        let generation = (handle >> (MARK_BITS + SLOT_BITS)) as u32 & LAST_GENERATION;
        let marked = handle & ((1 << MARK_BITS) - 1) == MARK && handle >> 63 == 0;
        marked.then_some(Parts { generation, slot })
    }

    pub(super) fn handle(self) -> usize {
        (((self.generation as usize) << SLOT_BITS | self.slot as usize) << MARK_BITS) | MARK
    }
}

impl Table {
    const fn new() -> Table {
        let free = Mutex::new(Vec::new());
        Table { chunks: [const { OnceLock::new() }; CHUNKS], unused: AtomicU32::new(0), free }
    }

    /// The chunk and the place in it of a slot.
    pub(super) fn place(slot: u32) -> (usize, usize) {
        let from_first = slot as usize + FIRST_CHUNK;
        let chunk = (from_first.ilog2() - FIRST_CHUNK.ilog2()) as usize;
        (chunk, from_first - (FIRST_CHUNK << chunk))
    }

    pub(super) fn slot(&self, slot: u32) -> Option<&Slot> {
        let (chunk, place) = Table::place(slot);
        self.chunks.get(chunk)?.get()?.get(place)
    }

    /// A slot that nothing is in.
    pub(super) fn take_slot(&self) -> Result<u32, HandleError> {
        // At the end of a thread it has none any more.
        if let Some(slot) = SPARE.try_with(|spare| spare.0.take()).ok().flatten().or_else(|| self.free.lock().pop()) {
            return Ok(slot);
        }
        let next = |slot: u32| (slot < 1 << (SLOT_BITS - 1)).then_some(slot + 1);
        let slot = self.unused.fetch_update(Relaxed, Relaxed, next).map_err(|_| HandleError::Full)?;
        let (chunk, _) = Table::place(slot);
        let chunk_of = self.chunks.get(chunk).ok_or(HandleError::Full)?;
        chunk_of.get_or_init(|| (0..FIRST_CHUNK << chunk).map(|_| Slot::default()).collect());
        Ok(slot)
    }

    /// A slot in which nothing is any more; one whose generations are used up is left.
    pub(super) fn give_slot(&self, slot: u32, is_usable: bool) {
        if !is_usable {
            return;
        }
        // At the end of a thread it keeps none any more.
        let before = SPARE.try_with(|spare| spare.0.replace(Some(slot))).unwrap_or(Some(slot));
        if let Some(other) = before {
            self.free.lock().push(other);
        }
    }
}

/// The slot that a handle names.
#[inline]
pub(super) fn find(handle: usize, expected: &'static str) -> Result<(&'static Slot, Parts), HandleError> {
    let found = Parts::of(handle).and_then(|parts| Some((TABLE.slot(parts.slot)?, parts)));
    match found {
        Some(found) => Ok(found),
        None if handle == 0 => Err(HandleError::Null { expected }),
        None => Err(HandleError::NoHandle { expected }),
    }
}

impl Occupant {
    /// Why it is no `T` of that generation that is held so.
    #[cold]
    fn mistake(&self, generation: u32, expected: &'static str) -> HandleError {
        match &self.object {
            _ if generation > self.generation => HandleError::NoHandle { expected },
            _ if generation < self.generation => HandleError::Closed { expected },
            Some((found, _)) => HandleError::OtherType { expected, found },
            None => HandleError::NoHandle { expected },
        }
    }

    /// The object of that generation, if it is a shared `T`.
    #[inline]
    pub(super) fn shared<T: Object>(&self, generation: u32) -> Result<&Arc<dyn Any + Send + Sync>, HandleError> {
        match &self.object {
            Some((_, Held::Shared(object))) if generation == self.generation && object.is::<T>() => Ok(object),
            _ => Err(self.mistake(generation, T::NAME)),
        }
    }

    /// The object of that generation, if it is an owned `T`.
    #[inline]
    pub(super) fn owned<T: Object>(&mut self, generation: u32) -> Result<&mut T, HandleError> {
        let is_one = match &self.object {
            Some((_, Held::Owned(object))) => generation == self.generation && object.is::<T>(),
            _ => false,
        };
        if !is_one {
            return Err(self.mistake(generation, T::NAME));
        }
        let object = match &mut self.object {
            Some((_, Held::Owned(object))) => object.downcast_mut::<T>(),
            _ => None,
        };
        object.ok_or(HandleError::NoHandle { expected: T::NAME })
    }

    /// Takes the object out. Whether the slot can be used again.
    pub(super) fn take(&mut self) -> (Option<Held>, bool) {
        self.generation += 1;
        (self.object.take().map(|(_, object)| object), self.generation <= LAST_GENERATION)
    }
}
