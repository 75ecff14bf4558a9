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

mod error;
mod object;
mod table;
#[cfg(test)]
mod tests;

pub use error::HandleError;
pub use object::{Lender, Object};

use crate::lent::Loan;
use std::sync::Arc;
use table::{Held, Parts, TABLE, Use, find};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("handles have 64 bits");

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
