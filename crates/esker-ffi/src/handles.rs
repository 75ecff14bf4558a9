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
//! Threads: a call holds a reference to its object, so that a close in another thread waits for no
//! call and frees nothing under one. Lock order: the lock of a slot, then nothing; that of the free
//! slots, then nothing.

use parking_lot::{Mutex, RwLock};
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
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

type Held = (&'static str, Arc<dyn Any + Send + Sync>);

#[derive(Default)]
struct Slot(RwLock<Occupant>);

#[derive(Default)]
struct Occupant {
    generation: u32,
    object: Option<Held>,
}

/// The slots of the process.
struct Table {
    chunks: [OnceLock<Box<[Slot]>>; CHUNKS],
    /// The first slot that was never used.
    unused: AtomicU32,
    free: Mutex<Vec<u32>>,
}

static TABLE: OnceLock<Table> = OnceLock::new();

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
    fn new() -> Table {
        Table { chunks: [const { OnceLock::new() }; CHUNKS], unused: AtomicU32::new(0), free: Mutex::default() }
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
        if let Some(slot) = self.free.lock().pop() {
            return Ok(slot);
        }
        let next = |slot: u32| (slot < 1 << (SLOT_BITS - 1)).then_some(slot + 1);
        let slot = self.unused.fetch_update(Relaxed, Relaxed, next).map_err(|_| HandleError::Full)?;
        let (chunk, _) = Table::place(slot);
        let chunk_of = self.chunks.get(chunk).ok_or(HandleError::Full)?;
        chunk_of.get_or_init(|| (0..FIRST_CHUNK << chunk).map(|_| Slot::default()).collect());
        Ok(slot)
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
    let table = TABLE.get_or_init(Table::new);
    let slot = table.take_slot()?;
    let mut occupant = table.slot(slot).ok_or(HandleError::Full)?.0.write();
    occupant.object = Some((T::NAME, object));
    Ok(Parts { generation: occupant.generation, slot }.handle())
}

/// The slot that a handle names, with its table.
fn find(handle: usize, expected: &'static str) -> Result<(&'static Table, &'static Slot, Parts), HandleError> {
    if handle == 0 {
        return Err(HandleError::Null { expected });
    }
    let none = HandleError::NoHandle { expected };
    let parts = Parts::of(handle).ok_or(none)?;
    let table = TABLE.get().ok_or(none)?;
    Ok((table, table.slot(parts.slot).ok_or(none)?, parts))
}

impl Occupant {
    /// The object of that generation, if it is a `T`.
    fn object<T: Object>(&self, generation: u32) -> Result<&Arc<dyn Any + Send + Sync>, HandleError> {
        let expected = T::NAME;
        if generation > self.generation {
            return Err(HandleError::NoHandle { expected });
        }
        let (found, object) = match &self.object {
            Some(held) if generation == self.generation => held,
            None if generation == self.generation => return Err(HandleError::NoHandle { expected }),
            _ => return Err(HandleError::Closed { expected }),
        };
        if object.is::<T>() { Ok(object) } else { Err(HandleError::OtherType { expected, found }) }
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
    let (_, slot, parts) = find(handle, T::NAME)?;
    let object = Arc::clone(slot.0.read().object::<T>(parts.generation)?);
    object.downcast().map_err(|_| HandleError::NoHandle { expected: T::NAME })
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
    let (table, slot, parts) = find(handle, T::NAME)?;
    let mut occupant = slot.0.write();
    let object = Arc::clone(occupant.object::<T>(parts.generation)?);
    occupant.object = None;
    occupant.generation += 1;
    let used_up = occupant.generation > LAST_GENERATION;
    drop(occupant);
    if !used_up {
        table.free.lock().push(parts.slot);
    }
    object.downcast().map_err(|_| HandleError::NoHandle { expected: T::NAME })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(u32);
    struct Other;

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
        let (_, slot, parts) = find(handle, "").unwrap();
        slot.0.write().generation = LAST_GENERATION;
        let last = Parts { generation: LAST_GENERATION, ..parts }.handle();
        assert!(remove::<One>(last).is_ok());
        assert!(matches!(get::<One>(last), Err(HandleError::Closed { .. })));
        let next: Vec<usize> = (0..100).map(|n| insert(Arc::new(One(n))).unwrap()).collect();
        assert!(next.iter().all(|next| Parts::of(*next).unwrap().slot != parts.slot));
        next.into_iter().for_each(|next| drop(remove::<One>(next)));
    }

    #[test]
    fn an_object_lives_as_long_as_a_call_uses_it() {
        let handle = insert(Arc::new(One(7))).unwrap();
        let used = get::<One>(handle).unwrap();
        drop(remove::<One>(handle).unwrap());
        assert_eq!(used.0, 7);
    }
}
