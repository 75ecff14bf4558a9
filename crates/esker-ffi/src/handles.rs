//! The handles that C holds: numbers in the place of pointers.
//!
//! A handle names a slot of a table and the generation of its object. A slot is used again with the
//! next generation, and not at all after the last one, so that no two objects of a process have the
//! same handle. One that was closed, is of another type, or is no handle at all, is told from a
//! good one, whatever its bits are.
//!
//! ```text
//! handle := zero:1 generation:31 slot:28 mark:4      (most significant bits first)
//! ```
//! The mark is odd: no pointer to anything that C aligns has it.
//!
//! Threads: most objects are shared. A call holds a reference to its object, so that a close in
//! another thread waits for no call and frees nothing under one. Others are owned by their slot,
//! for what one thread at a time uses, often: a call holds the lock of the slot, which is all that
//! it takes, and a close waits for it. What such an object lends is read without a lock
//! (`lent.rs`).
//!
//! Lock order: the lock of a slot, then, in a call of an owned object, whatever that takes; the
//! lock of the free slots, then nothing. A thread keeps the slot that it has left last for itself,
//! without a lock. A call that is made from inside of one of the same owned object fails, and waits
//! for nothing.

use crate::lent::{Lent, Loan};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::num::NonZero;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("handles have 64 bits");

/// What a handle may name.
///
/// ```
/// struct Session;
/// impl esker_ffi::handles::Object for Session {
///     const NAME: &'static str = "a session";
/// }
/// ```
pub trait Object: Any + Send + Sync {
    /// What it is, with an article, for messages.
    const NAME: &'static str;
}

/// What a slot may own: it is used by one call at a time, and lends a pair of slices, if it is at
/// one.
///
/// ```
/// struct Position(Vec<u8>);
/// impl esker_ffi::handles::Object for Position {
///     const NAME: &'static str = "a position";
/// }
/// impl esker_ffi::handles::Lender for Position {
///     const KIND: std::num::NonZero<u32> = std::num::NonZero::<u32>::MIN;
///     fn loan(&mut self) -> Option<(&[u8], &[u8])> {
///         Some((&self.0, &[]))
///     }
/// }
/// ```
pub trait Lender: Object {
    /// Tells it from the other lenders of the library.
    const KIND: NonZero<u32>;

    /// A key and its value, which stay where they are until the next call of the object.
    fn loan(&mut self) -> Option<(&[u8], &[u8])>;
}

/// Why a handle names nothing that can be used.
///
/// ```
/// use esker_ffi::handles::HandleError;
/// let error = HandleError::Null { expected: "a session" };
/// assert_eq!(error.to_string(), "NULL instead of a session");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleError {
    /// The null pointer.
    Null {
        /// What was to be passed.
        expected: &'static str,
    },
    /// A pointer that no function of the library has returned.
    NoHandle {
        /// What was to be passed.
        expected: &'static str,
    },
    /// It was closed.
    Closed {
        /// What was to be passed.
        expected: &'static str,
    },
    /// It names something else.
    OtherType {
        /// What was to be passed.
        expected: &'static str,
        /// What was passed.
        found: &'static str,
    },
    /// The call is made from inside of a call of the same object, as by a comparator.
    Within {
        /// What was passed.
        expected: &'static str,
    },
    /// There are too many handles.
    Full,
}

impl fmt::Display for HandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandleError::Null { expected } => write!(f, "NULL instead of {expected}"),
            HandleError::NoHandle { expected } => write!(f, "a pointer that is no handle instead of {expected}"),
            HandleError::Closed { expected } => {
                write!(f, "{expected} was to be passed, and the handle was closed before")
            }
            HandleError::OtherType { expected, found } => write!(f, "{found} instead of {expected}"),
            HandleError::Within { expected } => {
                write!(f, "{expected} is in use by the call that this one is made from; return from that first")
            }
            HandleError::Full => write!(f, "there are too many handles; close some"),
        }
    }
}

impl std::error::Error for HandleError {}

const MARK: usize = 0x5;
const MARK_BITS: u32 = 4;
const SLOT_BITS: u32 = 28;
const GENERATION_BITS: u32 = 31;
const LAST_GENERATION: u32 = (1 << GENERATION_BITS) - 1;

/// The first chunk of slots; each of the others has twice as many as the one before.
const FIRST_CHUNK: usize = 64;
const CHUNKS: usize = (SLOT_BITS - FIRST_CHUNK.trailing_zeros()) as usize;

enum Held {
    Shared(Arc<dyn Any + Send + Sync>),
    Owned(Box<dyn Any + Send + Sync>),
}

#[derive(Default)]
struct Slot {
    occupant: RwLock<Occupant>,
    /// The thread that uses what the slot owns; 0 if there is none.
    user: AtomicUsize,
    lent: Lent,
}

#[derive(Default)]
struct Occupant {
    generation: u32,
    /// The name of its type, and the object.
    object: Option<(&'static str, Held)>,
}

thread_local! {
    static THREAD: u8 = const { 0 };
    /// The slot that this thread has left last, for its next object: what is made and closed often,
    /// as snapshots and iterators are, takes no lock that all threads share.
    static SPARE: Spare = const { Spare(Cell::new(None)) };
}

/// A slot that nothing is in, which all threads can have when the thread ends.
struct Spare(Cell<Option<u32>>);

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            TABLE.free.lock().push(slot);
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
    fn read(&self, expected: &'static str) -> Result<RwLockReadGuard<'_, Occupant>, HandleError> {
        if let Some(occupant) = self.occupant.try_read() {
            return Ok(occupant);
        }
        self.not_within(expected)?;
        Ok(self.occupant.read())
    }

    #[inline]
    fn write(&self, expected: &'static str) -> Result<RwLockWriteGuard<'_, Occupant>, HandleError> {
        if let Some(occupant) = self.occupant.try_write() {
            return Ok(occupant);
        }
        self.not_within(expected)?;
        Ok(self.occupant.write())
    }
}

/// The thread as the user of what a slot owns, until dropped.
struct Use<'a>(&'a AtomicUsize);

impl<'a> Use<'a> {
    #[inline]
    fn begin(user: &'a AtomicUsize) -> Use<'a> {
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
struct Table {
    chunks: [OnceLock<Box<[Slot]>>; CHUNKS],
    /// The first slot that was never used.
    unused: AtomicU32,
    free: Mutex<Vec<u32>>,
}

static TABLE: Table = Table::new();

/// The parts of a handle.
#[derive(Clone, Copy)]
struct Parts {
    generation: u32,
    slot: u32,
}

impl Parts {
    fn of(handle: usize) -> Option<Parts> {
        let slot = (handle >> MARK_BITS) as u32 & ((1 << SLOT_BITS) - 1);
        let generation = (handle >> (MARK_BITS + SLOT_BITS)) as u32 & LAST_GENERATION;
        let marked = handle & ((1 << MARK_BITS) - 1) == MARK && handle >> 63 == 0;
        marked.then_some(Parts { generation, slot })
    }

    fn handle(self) -> usize {
        (((self.generation as usize) << SLOT_BITS | self.slot as usize) << MARK_BITS) | MARK
    }
}

impl Table {
    const fn new() -> Table {
        let free = Mutex::new(Vec::new());
        Table { chunks: [const { OnceLock::new() }; CHUNKS], unused: AtomicU32::new(0), free }
    }

    /// The chunk and the place in it of a slot.
    fn place(slot: u32) -> (usize, usize) {
        let from_first = slot as usize + FIRST_CHUNK;
        let chunk = (from_first.ilog2() - FIRST_CHUNK.ilog2()) as usize;
        (chunk, from_first - (FIRST_CHUNK << chunk))
    }

    fn slot(&self, slot: u32) -> Option<&Slot> {
        let (chunk, place) = Table::place(slot);
        self.chunks.get(chunk)?.get()?.get(place)
    }

    /// A slot that nothing is in.
    fn take_slot(&self) -> Result<u32, HandleError> {
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
    fn give_slot(&self, slot: u32, is_usable: bool) {
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

/// Makes a handle of an object.
///
/// # Errors
/// If there are too many.
///
/// ```
/// # use esker_ffi::handles::{self, Object};
/// # struct Session;
/// # impl Object for Session { const NAME: &'static str = "a session"; }
/// let handle = handles::insert(std::sync::Arc::new(Session))?;
/// assert_ne!(handle, 0);
/// # handles::remove::<Session>(handle)?;
/// # Ok::<(), handles::HandleError>(())
/// ```
pub fn insert<T: Object>(object: Arc<T>) -> Result<usize, HandleError> {
    put(T::NAME, Held::Shared(object))
}

/// Makes a handle of an object that its slot owns.
///
/// # Errors
/// As [`insert`].
///
/// ```
/// # use esker_ffi::handles::{self, Lender, Object};
/// # struct Position(Vec<u8>);
/// # impl Object for Position { const NAME: &'static str = "a position"; }
/// # impl Lender for Position {
/// #     const KIND: std::num::NonZero<u32> = std::num::NonZero::<u32>::MIN;
/// #     fn loan(&mut self) -> Option<(&[u8], &[u8])> { (!self.0.is_empty()).then_some((&self.0, &[])) }
/// # }
/// let handle = handles::insert_owned(Box::new(Position(Vec::new())))?;
/// assert!(handles::loan::<Position>(handle)?.is_none());
/// handles::with(handle, |position: &mut Position| position.0.push(7))?;
/// assert!(handles::loan::<Position>(handle)?.is_some());
/// handles::remove_owned::<Position>(handle)?;
/// assert!(handles::loan::<Position>(handle).is_err());
/// # Ok::<(), handles::HandleError>(())
/// ```
pub fn insert_owned<T: Lender>(object: Box<T>) -> Result<usize, HandleError> {
    let handle = put(T::NAME, Held::Owned(object))?;
    with::<T, ()>(handle, |_| ())?;
    Ok(handle)
}

fn put(name: &'static str, object: Held) -> Result<usize, HandleError> {
    let slot = TABLE.take_slot()?;
    let mut occupant = TABLE.slot(slot).ok_or(HandleError::Full)?.occupant.write();
    occupant.object = Some((name, object));
    Ok(Parts { generation: occupant.generation, slot }.handle())
}

/// The slot that a handle names.
#[inline]
fn find(handle: usize, expected: &'static str) -> Result<(&'static Slot, Parts), HandleError> {
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
    fn shared<T: Object>(&self, generation: u32) -> Result<&Arc<dyn Any + Send + Sync>, HandleError> {
        match &self.object {
            Some((_, Held::Shared(object))) if generation == self.generation && object.is::<T>() => Ok(object),
            _ => Err(self.mistake(generation, T::NAME)),
        }
    }

    /// The object of that generation, if it is an owned `T`.
    #[inline]
    fn owned<T: Object>(&mut self, generation: u32) -> Result<&mut T, HandleError> {
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
    fn take(&mut self) -> (Option<Held>, bool) {
        self.generation += 1;
        (self.object.take().map(|(_, object)| object), self.generation <= LAST_GENERATION)
    }
}

/// The object that a handle names.
///
/// # Errors
/// If it names none of this type.
///
/// ```
/// # use esker_ffi::handles::{self, Object};
/// # struct Session;
/// # impl Object for Session { const NAME: &'static str = "a session"; }
/// assert!(handles::get::<Session>(0).is_err());
/// ```
#[inline]
pub fn get<T: Object>(handle: usize) -> Result<Arc<T>, HandleError> {
    let (slot, parts) = find(handle, T::NAME)?;
    let object = Arc::clone(slot.read(T::NAME)?.shared::<T>(parts.generation)?);
    object.downcast().map_err(|_| HandleError::NoHandle { expected: T::NAME })
}

/// Runs `call` on the object that a handle names, which its slot owns; a call in another thread is
/// waited for. What the object lends afterwards is what [`loan`] finds; nothing, where `call`
/// panics.
///
/// # Errors
/// If it names none of this type, or the call is made from inside of another one of this object.
///
/// ```
/// # use esker_ffi::handles::{self, Lender, Object};
/// # struct Position(Vec<u8>);
/// # impl Object for Position { const NAME: &'static str = "a position"; }
/// # impl Lender for Position {
/// #     const KIND: std::num::NonZero<u32> = std::num::NonZero::<u32>::MIN;
/// #     fn loan(&mut self) -> Option<(&[u8], &[u8])> { None }
/// # }
/// assert!(handles::with::<Position, _>(0, |position| position.0.len()).is_err());
/// ```
#[inline]
pub fn with<T: Lender, R>(handle: usize, call: impl FnOnce(&mut T) -> R) -> Result<R, HandleError> {
    let (slot, parts) = find(handle, T::NAME)?;
    let mut occupant = slot.write(T::NAME)?;
    let object = occupant.owned::<T>(parts.generation)?;
    let _use = Use::begin(&slot.user);
    slot.lent.end();
    let result = call(object);
    slot.lent.begin(parts.generation, T::KIND, object.loan());
    Ok(result)
}

/// What the object of a handle lends, if it lends anything and the handle names one of this type:
/// no lock, and no code of the object. Where there is none, [`loan`] says why.
///
/// ```
/// # use esker_ffi::handles::{self, Lender, Object};
/// # struct Position;
/// # impl Object for Position { const NAME: &'static str = "a position"; }
/// # impl Lender for Position {
/// #     const KIND: std::num::NonZero<u32> = std::num::NonZero::<u32>::MIN;
/// #     fn loan(&mut self) -> Option<(&[u8], &[u8])> { None }
/// # }
/// assert!(handles::lent::<Position>(0).is_none());
/// ```
#[inline]
pub fn lent<T: Lender>(handle: usize) -> Option<Loan> {
    let (slot, parts) = find(handle, T::NAME).ok()?;
    slot.lent.loan(parts.generation, T::KIND)
}

/// The key and the value that the object of a handle lends, if it lends any. It takes no lock:
/// where another thread moves the object meanwhile, what is found is not to be followed.
///
/// # Errors
/// If it names none of this type.
///
/// ```
/// # use esker_ffi::handles::{self, Lender, Object};
/// # struct Position;
/// # impl Object for Position { const NAME: &'static str = "a position"; }
/// # impl Lender for Position {
/// #     const KIND: std::num::NonZero<u32> = std::num::NonZero::<u32>::MIN;
/// #     fn loan(&mut self) -> Option<(&[u8], &[u8])> { None }
/// # }
/// assert!(handles::loan::<Position>(0).is_err());
/// ```
#[inline]
pub fn loan<T: Lender>(handle: usize) -> Result<Option<Loan>, HandleError> {
    let (slot, parts) = find(handle, T::NAME)?;
    if let Some(loan) = slot.lent.loan(parts.generation, T::KIND) {
        return Ok(Some(loan));
    }
    // The rare case may be slow: it lends nothing, or the handle is a mistake.
    Ok(slot.write(T::NAME)?.owned::<T>(parts.generation)?.loan().map(Loan::of))
}

/// Closes a handle, and returns what it named.
///
/// # Errors
/// If it names nothing of this type; nothing is closed then.
///
/// ```
/// # use esker_ffi::handles::{self, Object};
/// # struct Session;
/// # impl Object for Session { const NAME: &'static str = "a session"; }
/// let handle = handles::insert(std::sync::Arc::new(Session))?;
/// handles::remove::<Session>(handle)?;
/// assert!(handles::remove::<Session>(handle).is_err());
/// # Ok::<(), handles::HandleError>(())
/// ```
pub fn remove<T: Object>(handle: usize) -> Result<Arc<T>, HandleError> {
    let none = HandleError::NoHandle { expected: T::NAME };
    let (slot, parts) = find(handle, T::NAME)?;
    let mut occupant = slot.write(T::NAME)?;
    occupant.shared::<T>(parts.generation)?;
    let (object, is_usable) = occupant.take();
    drop(occupant);
    TABLE.give_slot(parts.slot, is_usable);
    match object {
        Some(Held::Shared(object)) => object.downcast().map_err(|_| none),
        _ => Err(none),
    }
}

/// As [`remove`], where the slot owns the object: a call in another thread is waited for.
///
/// # Errors
/// As [`with`]; nothing is closed then.
///
/// ```
/// # use esker_ffi::handles::{self, Lender, Object};
/// # struct Position;
/// # impl Object for Position { const NAME: &'static str = "a position"; }
/// # impl Lender for Position {
/// #     const KIND: std::num::NonZero<u32> = std::num::NonZero::<u32>::MIN;
/// #     fn loan(&mut self) -> Option<(&[u8], &[u8])> { None }
/// # }
/// let handle = handles::insert_owned(Box::new(Position))?;
/// handles::remove_owned::<Position>(handle)?;
/// assert!(handles::remove_owned::<Position>(handle).is_err());
/// # Ok::<(), handles::HandleError>(())
/// ```
pub fn remove_owned<T: Lender>(handle: usize) -> Result<Box<T>, HandleError> {
    let none = HandleError::NoHandle { expected: T::NAME };
    let (slot, parts) = find(handle, T::NAME)?;
    let mut occupant = slot.write(T::NAME)?;
    occupant.owned::<T>(parts.generation)?;
    slot.lent.end();
    let (object, is_usable) = occupant.take();
    drop(occupant);
    TABLE.give_slot(parts.slot, is_usable);
    match object {
        Some(Held::Owned(object)) => object.downcast().map_err(|_| none),
        _ => Err(none),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(u32);
    struct Other;

    struct Pair(&'static [u8]);

    impl Object for Pair {
        const NAME: &'static str = "a pair";
    }

    impl Lender for Pair {
        const KIND: NonZero<u32> = NonZero::<u32>::MIN;

        fn loan(&mut self) -> Option<(&[u8], &[u8])> {
            (!self.0.is_empty()).then(|| (self.0, &self.0[1..]))
        }
    }

    struct OtherPair;

    impl Object for OtherPair {
        const NAME: &'static str = "an other pair";
    }

    impl Lender for OtherPair {
        const KIND: NonZero<u32> = NonZero::<u32>::MAX;

        fn loan(&mut self) -> Option<(&[u8], &[u8])> {
            None
        }
    }

    impl Object for One {
        const NAME: &'static str = "a one";
    }

    impl Object for Other {
        const NAME: &'static str = "an other";
    }

    #[test]
    fn a_slot_that_is_used_again_is_another_handle() {
        let first = insert(Arc::new(One(1))).unwrap();
        assert_eq!(remove::<One>(first).map(|one| one.0), Ok(1));
        let seen: Vec<usize> = (0..1000).map(|n| insert(Arc::new(One(n))).unwrap()).collect();
        assert!(!seen.contains(&first));
        assert!(matches!(get::<One>(first), Err(HandleError::Closed { .. })));
        assert!(matches!(remove::<One>(first), Err(HandleError::Closed { .. })));
        for (n, handle) in seen.into_iter().enumerate() {
            assert_eq!(remove::<One>(handle).map(|one| one.0 as usize), Ok(n));
        }
    }

    #[test]
    fn another_type_is_told_and_stays_open() {
        let handle = insert(Arc::new(Other)).unwrap();
        let expected = HandleError::OtherType { expected: "a one", found: "an other" };
        assert_eq!(get::<One>(handle).map(|_| ()), Err(expected));
        assert_eq!(remove::<One>(handle).map(|_| ()), Err(expected));
        assert!(remove::<Other>(handle).is_ok());
    }

    #[test]
    fn no_pattern_of_bits_is_taken_for_a_handle() {
        let handle = insert(Arc::new(One(0))).unwrap();
        assert!(matches!(get::<One>(0), Err(HandleError::Null { .. })));
        let aligned = &raw const handle as usize;
        for wrong in [aligned, usize::MAX, 1, MARK, 1 << 63 | handle] {
            // `MARK` alone is the first handle of all, closed or another's by now.
            assert!(wrong == MARK || matches!(get::<One>(wrong), Err(HandleError::NoHandle { .. })), "{wrong:x}");
        }
        for bit in 0..64 {
            let other = handle ^ (1 << bit);
            assert!(get::<Other>(other).is_err(), "bit {bit}");
        }
        assert!(remove::<One>(handle).is_ok());
    }

    #[test]
    fn every_slot_has_a_place_of_its_own() {
        let mut expected = (0, 0);
        for slot in 0..10_000 {
            assert_eq!(Table::place(slot), expected);
            expected.1 += 1;
            if expected.1 == FIRST_CHUNK << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        let (chunk, place) = Table::place(1 << (SLOT_BITS - 1));
        assert!(chunk < CHUNKS && place < FIRST_CHUNK << chunk);
    }

    #[test]
    fn a_used_up_slot_is_not_used_again() {
        let handle = insert(Arc::new(One(0))).unwrap();
        let (slot, parts) = find(handle, "").unwrap();
        slot.occupant.write().generation = LAST_GENERATION;
        let last = Parts { generation: LAST_GENERATION, ..parts }.handle();
        assert!(remove::<One>(last).is_ok());
        assert!(matches!(get::<One>(last), Err(HandleError::Closed { .. })));
        let next: Vec<usize> = (0..100).map(|n| insert(Arc::new(One(n))).unwrap()).collect();
        assert!(next.iter().all(|next| Parts::of(*next).unwrap().slot != parts.slot));
        next.into_iter().for_each(|next| drop(remove::<One>(next)));
    }

    #[test]
    fn a_thread_keeps_the_slot_that_it_has_left_until_it_ends() {
        let slot_of = |handle| Parts::of(handle).unwrap().slot;
        let make_and_close = move || {
            let handle = insert(Arc::new(One(0))).unwrap();
            assert!(remove::<One>(handle).is_ok());
            let next = insert(Arc::new(One(1))).unwrap();
            assert_eq!(slot_of(next), slot_of(handle));
            assert!(next != handle && remove::<One>(next).is_ok());
        };
        let before = TABLE.unused.load(Relaxed);
        for _ in 0..5000 {
            std::thread::spawn(make_and_close).join().unwrap();
        }
        // Other tests take some thousand, too.
        assert!(TABLE.unused.load(Relaxed) - before < 4000, "slots were lost with their threads");
    }

    #[test]
    fn an_object_lives_as_long_as_a_call_uses_it() {
        let handle = insert(Arc::new(One(7))).unwrap();
        let used = get::<One>(handle).unwrap();
        drop(remove::<One>(handle).unwrap());
        assert_eq!(used.0, 7);
    }

    #[test]
    fn what_is_lent_is_that_of_the_last_call() {
        let text: &'static [u8] = b"lent";
        let handle = insert_owned(Box::new(Pair(b""))).unwrap();
        assert_eq!(loan::<Pair>(handle), Ok(None));
        with(handle, |pair: &mut Pair| pair.0 = text).unwrap();
        let found = loan::<Pair>(handle).unwrap().unwrap();
        assert_eq!(found, Loan { key: (text.as_ptr(), 4), value: (text[1..].as_ptr(), 3) });
        // Without the lock of the slot, which this thread has here.
        with(handle, |_: &mut Pair| assert_eq!(loan::<Pair>(handle), Err(HandleError::Within { expected: "a pair" })))
            .unwrap();
        let (slot, _) = find(handle, "").unwrap();
        let held = slot.occupant.write();
        assert_eq!(loan::<Pair>(handle), Ok(Some(found)), "it takes no lock");
        drop(held);
        let end: fn(&mut Pair) = |pair| pair.0 = b"";
        with(handle, end).unwrap();
        assert_eq!(loan::<Pair>(handle), Ok(None));
        assert!(remove_owned::<Pair>(handle).is_ok());
        assert_eq!(loan::<Pair>(handle), Err(HandleError::Closed { expected: "a pair" }));
        let next = insert_owned(Box::new(Pair(text))).unwrap();
        assert!(loan::<Pair>(next).unwrap().is_some(), "what lends from its beginning on");
        assert_eq!(loan::<Pair>(handle), Err(HandleError::Closed { expected: "a pair" }));
        assert!(remove_owned::<Pair>(next).is_ok());
    }

    #[test]
    fn shared_and_owned_objects_are_told_apart() {
        let owned = insert_owned(Box::new(Pair(b"lent"))).unwrap();
        let shared = insert(Arc::new(One(1))).unwrap();
        let no_one = HandleError::OtherType { expected: "a one", found: "a pair" };
        assert_eq!(get::<One>(owned).map(drop), Err(no_one));
        assert_eq!(remove::<One>(owned).map(drop), Err(no_one));
        assert!(matches!(get::<Pair>(owned), Err(HandleError::OtherType { .. })), "nothing shares it");
        let no_pair = HandleError::OtherType { expected: "a pair", found: "a one" };
        assert_eq!(with(shared, |_: &mut Pair| ()), Err(no_pair));
        assert_eq!(loan::<Pair>(shared), Err(no_pair));
        assert_eq!(remove_owned::<Pair>(shared).map(drop), Err(no_pair));
        let no_other = HandleError::OtherType { expected: "an other pair", found: "a pair" };
        assert_eq!(loan::<OtherPair>(owned), Err(no_other));
        assert_eq!(with(owned, |_: &mut OtherPair| ()), Err(no_other));
        assert!(matches!(loan::<Pair>(0), Err(HandleError::Null { .. })));
        assert!(matches!(loan::<Pair>(usize::MAX), Err(HandleError::NoHandle { .. })));
        assert!(remove::<One>(shared).is_ok() && remove_owned::<Pair>(owned).is_ok());
    }

    #[test]
    fn a_call_from_inside_of_a_call_of_the_same_object_is_refused() {
        let handle = insert_owned(Box::new(Pair(b"lent"))).unwrap();
        let inside = with(handle, |_: &mut Pair| {
            let again = with(handle, |_: &mut Pair| ());
            let closed = remove_owned::<Pair>(handle).map(drop);
            (again, closed, get::<One>(handle).map(drop))
        });
        let within = HandleError::Within { expected: "a pair" };
        let of_another_type = HandleError::Within { expected: "a one" };
        assert_eq!(inside, Ok((Err(within), Err(within), Err(of_another_type))));
        assert!(remove_owned::<Pair>(handle).is_ok());
    }

    #[test]
    fn a_panic_ends_what_is_lent_and_leaves_the_object() {
        let handle = insert_owned(Box::new(Pair(b"lent"))).unwrap();
        let text = crate::contain::contained(|| {
            with(handle, |pair: &mut Pair| {
                pair.0 = b"";
                panic!("in the middle");
            })
        });
        assert_eq!(text, Err("in the middle".to_owned()));
        assert_eq!(loan::<Pair>(handle), Ok(None));
        assert_eq!(with(handle, |pair: &mut Pair| pair.0.len()), Ok(0), "and it is in use no more");
        assert!(remove_owned::<Pair>(handle).is_ok());
    }

    #[test]
    fn a_close_waits_for_a_call_of_another_thread() {
        let handle = insert_owned(Box::new(Pair(b"lent"))).unwrap();
        let (is_inside, inside) = std::sync::mpsc::channel();
        let (end, is_ended) = std::sync::mpsc::channel();
        let call = std::thread::spawn(move || {
            with(handle, |pair: &mut Pair| {
                is_inside.send(()).unwrap();
                is_ended.recv().unwrap();
                pair.0 = b"x";
            })
        });
        inside.recv().unwrap();
        let close = std::thread::spawn(move || remove_owned::<Pair>(handle).map(|pair| pair.0));
        end.send(()).unwrap();
        assert_eq!(call.join().unwrap(), Ok(()));
        assert_eq!(close.join().unwrap(), Ok(&b"x"[..]));
    }
}
