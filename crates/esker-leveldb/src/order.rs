//! Orders of C functions, and the state of such functions.

use crate::failure::{Done, Failure};
use esker::Comparator;
use esker_ffi::memory::start_of;
use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_int, c_void};

/// The name of LevelDB's own order, which is the engine's own.
const BYTEWISE: &str = "leveldb.BytewiseComparator";

/// The name that the engine has for it.
pub(crate) const BUILT_IN: &str = "bytewise";

/// Before names that the engine does not take as they are.
const PREFIX: &str = "leveldb:";

pub(crate) type Destructor = Option<unsafe extern "C-unwind" fn(*mut c_void)>;
pub(crate) type Compare =
    Option<unsafe extern "C-unwind" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int>;
pub(crate) type Name = Option<unsafe extern "C-unwind" fn(*mut c_void) -> *const c_char>;

/// The state of functions of C, and how it ends.
pub(crate) struct State {
    pub(crate) pointer: *mut c_void,
    pub(crate) destructor: Destructor,
}

// SAFETY: LevelDB's header says of comparators and filter policies that they are called from any
// thread, so that their state is one that any thread may use.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl State {
    /// What a function says is the name.
    pub(crate) fn name(&self, name: Name) -> Done<String> {
        let name = name.ok_or_else(|| Failure::invalid("NULL for the function that tells a name"))?;
        // SAFETY: the function was passed for this state; what it returns ends with a zero byte.
        let name = unsafe {
            let name = name(self.pointer);
            if name.is_null() {
                return Err(Failure::invalid("a comparator or filter policy without a name"));
            }
            CStr::from_ptr(name)
        };
        Ok(known_name(name.to_bytes()))
    }
}

/// A name as the engine takes it: LevelDB takes any bytes, and has no built-in names but its own. A
/// comparator of the program that has that one is called, so that it is stored under another.
fn known_name(name: &[u8]) -> String {
    /// The engine's own names, and the longest.
    const RESERVED: [&[u8]; 3] = [BUILT_IN.as_bytes(), b"reverse-bytewise", BYTEWISE.as_bytes()];
    const MOST_BYTES: usize = 255;
    match std::str::from_utf8(name) {
        Ok(text)
            if !text.is_empty()
                && text.len() <= MOST_BYTES
                && !text.chars().any(char::is_control)
                && !text.starts_with(PREFIX)
                && !RESERVED.contains(&name) =>
        {
            text.to_owned()
        }
        _ => {
            let mut text = format!("{PREFIX}{}", name.escape_ascii());
            text.truncate(MOST_BYTES);
            text
        }
    }
}

/// A stored name as LevelDB has it.
pub(crate) fn name_in_leveldb(stored: &str) -> &str {
    match stored {
        BUILT_IN => BYTEWISE,
        stored => stored.strip_prefix(PREFIX).unwrap_or(stored),
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the function was passed for this state, which nothing uses any more.
            unsafe { destructor(self.pointer) };
        }
    }
}

/// An order of keys. It ends when neither its handle nor an open database has it.
pub(crate) struct Order {
    name: String,
    state: State,
    compare: Compare,
}

impl Order {
    /// The order of a function.
    pub(crate) fn new(state: State, compare: Compare, name: Name) -> Done<Order> {
        Ok(Order { name: state.name(name)?, state, compare })
    }
}

impl Comparator for Order {
    fn name(&self) -> &str {
        &self.name
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let Some(compare) = self.compare else { return a.cmp(b) };
        // SAFETY: the program has passed this function for this state; both keys live until it
        // returns.
        let order = unsafe { compare(self.state.pointer, start_of(a), a.len(), start_of(b), b.len()) };
        order.cmp(&0)
    }
}

/// The engine's own order, for databases that were created with a comparator of the program that
/// has the name of LevelDB's.
pub(crate) struct Bytewise;

impl Comparator for Bytewise {
    fn name(&self) -> &str {
        "leveldb:leveldb.BytewiseComparator"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.cmp(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_that_the_engine_takes() {
        let known = |name: &[u8]| known_name(name);
        assert_eq!(known(b"foo"), "foo");
        assert_eq!(known(BYTEWISE.as_bytes()), Bytewise.name());
        assert_eq!(known(b"leveldb:foo"), "leveldb:leveldb:foo");
        assert_eq!(known(b""), "leveldb:");
        assert_eq!(known(b"bytewise"), "leveldb:bytewise");
        assert_eq!(known(b"a\nb\xff"), "leveldb:a\\nb\\xff");
        assert_eq!(known(&[b'x'; 1000]).len(), 255);
        for name in ["foo", BYTEWISE, "bytewise", "leveldb:foo"] {
            assert_eq!(name_in_leveldb(&known(name.as_bytes())), name);
        }
        assert_eq!(name_in_leveldb(BUILT_IN), BYTEWISE);
    }
}
