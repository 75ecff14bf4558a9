//! A position between two keys of a range, which moves in both directions, and reads ahead.
//!
//! Each step of a cursor releases the interpreter, which costs more than the step. A walk in one
//! direction therefore copies several entries at a time: one at first, twice as many each time, so
//! that a short scan reads little in vain.

use crate::owned::Owned;
use esker::{Cursor, Error, Keyspace};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::{Bound as Limit, Range};

/// The name of the order of bytes.
const BYTEWISE: &str = "bytewise";

/// How many entries are read ahead at most, and after how many bytes that ends.
const MAX_AHEAD: usize = 256;
const MAX_BYTES: usize = 64 << 10;

/// The way of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Forward,
    Backward,
}

/// Where the position is, when nothing is read ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// Before the first key of the range.
    Start,
    /// Behind the last one.
    Stop,
    /// Directly before the entry of the cursor, which is valid.
    Before,
    /// Directly behind the entry of the cursor, which is valid.
    Behind,
    /// At an entry that could not be read: the next step is one of the cursor.
    Failed,
}

/// An entry among the bytes that were read.
#[derive(Clone)]
pub struct Entry {
    key: Range<usize>,
    value: Range<usize>,
}

/// A position in a range of keys.
pub struct Walk {
    /// In the range alone.
    cursor: Cursor,
    /// What knows the order of the keys, where that is not the one of bytes.
    order: Option<Owned<Keyspace>>,
    lower: Limit<Vec<u8>>,
    upper: Limit<Vec<u8>>,
    /// Where the position is if `ahead` is empty; otherwise where the one behind `ahead` is.
    at: At,
    way: Way,
    /// The keys and values of `ahead`, and of the entry that was stepped over last.
    bytes: Vec<u8>,
    ahead: VecDeque<Entry>,
    /// The entry that was stepped over last, if it was read in this direction.
    last: Option<Entry>,
    error: Option<Error>,
    /// How many entries are read the next time.
    stretch: usize,
    /// Whether values are read; where not, they are empty.
    values: bool,
    /// Whether the range ends before it begins. A position in it has nothing on either side.
    inverted: bool,
}

impl Walk {
    /// Before the first key of the range of `limits`.
    pub fn new(keyspace: &Keyspace, cursor: Cursor, limits: (Limit<Vec<u8>>, Limit<Vec<u8>>), values: bool) -> Walk {
        let cursor = if values { cursor } else { cursor.keys_only() };
        // What lies outside is not read: it may be damaged, or its merge may fail.
        let cursor = cursor.within(&limits);
        let (lower, upper) = limits;
        let (bytes, ahead, way) = (Vec::new(), VecDeque::new(), Way::Forward);
        let order = (keyspace.comparator() != BYTEWISE).then(|| Owned::new(keyspace.clone()));
        let compare =
            |a: &[u8], b: &[u8]| order.as_ref().map_or_else(|| a.cmp(b), |keyspace| keyspace.compare_keys(a, b));
        let inverted = match (&lower, &upper) {
            (Limit::Included(lower), Limit::Included(upper)) => compare(lower, upper).is_gt(),
            (Limit::Unbounded, _) | (_, Limit::Unbounded) => false,
            (Limit::Included(lower) | Limit::Excluded(lower), Limit::Included(upper) | Limit::Excluded(upper)) => {
                compare(lower, upper).is_ge()
            }
        };
        Walk {
            cursor,
            order,
            lower,
            upper,
            at: At::Start,
            way,
            bytes,
            ahead,
            last: None,
            error: None,
            stretch: 1,
            values,
            inverted,
        }
    }

    /// The next entry that way, if it is read already.
    pub fn read(&mut self, way: Way) -> Option<(&[u8], &[u8])> {
        if self.way != way {
            return None;
        }
        let entry = self.ahead.pop_front()?;
        self.last = Some(entry.clone());
        Some((&self.bytes[entry.key], &self.bytes[entry.value]))
    }

    /// Reads ahead that way. Afterwards [`Walk::read`] has an entry, or there is none.
    ///
    /// # Errors
    /// Those of reading the next entry. One that is met further ahead is for the call that gets
    /// there.
    pub fn fill(&mut self, way: Way) -> Result<(), Error> {
        if self.inverted || (self.way == way && !self.ahead.is_empty()) {
            return Ok(());
        }
        self.turn(way)?;
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.bytes.clear();
        self.last = None;
        let filled = self.fill_from_here(way);
        self.stretch = (self.stretch * 2).min(MAX_AHEAD);
        match filled {
            Err(error) if self.ahead.is_empty() => Err(error),
            Err(error) => {
                self.error = Some(error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Makes the cursor stand at the position, where it has read ahead in the other direction.
    fn turn(&mut self, way: Way) -> Result<(), Error> {
        if self.way == way {
            return Ok(());
        }
        self.stretch = 1;
        let was = std::mem::replace(&mut self.way, way);
        let read_ahead = !self.ahead.is_empty();
        self.ahead.clear();
        if !read_ahead && self.error.is_none() {
            return Ok(());
        }
        self.error = None;
        // The position is beside the entry that was stepped over last. There is one: whoever fills
        // takes an entry, before anything else happens.
        let Some(last) = self.last.take() else {
            self.at = if was == Way::Forward { At::Start } else { At::Stop };
            return Ok(());
        };
        self.cursor.seek(&self.bytes[last.key])?;
        // The entry is the one that the next step goes back over.
        self.at = if was == Way::Forward { At::Behind } else { At::Before };
        Ok(())
    }

    fn fill_from_here(&mut self, way: Way) -> Result<(), Error> {
        match self.first_step(way) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => {
                self.at = At::Failed;
                return Err(error);
            }
        }
        loop {
            if !self.cursor.valid() {
                self.at = if way == Way::Forward { At::Stop } else { At::Start };
                return Ok(());
            }
            self.keep();
            self.at = if way == Way::Forward { At::Behind } else { At::Before };
            if self.ahead.len() >= self.stretch || self.bytes.len() >= MAX_BYTES {
                return Ok(());
            }
            if let Err(error) = self.step(way) {
                self.at = At::Failed;
                return Err(error);
            }
        }
    }

    /// Moves the cursor to the first entry that way, and says whether there may be one.
    fn first_step(&mut self, way: Way) -> Result<bool, Error> {
        match (self.at, way) {
            (At::Start, Way::Forward) => self.cursor.seek_to_first()?,
            (At::Stop, Way::Backward) => self.cursor.seek_to_last()?,
            (At::Start, Way::Backward) | (At::Stop, Way::Forward) => return Ok(false),
            (At::Before, Way::Forward) | (At::Behind, Way::Backward) => {}
            (At::Before | At::Behind | At::Failed, way) => self.step(way)?,
        }
        Ok(true)
    }

    fn step(&mut self, way: Way) -> Result<(), Error> {
        match way {
            Way::Forward => self.cursor.next(),
            Way::Backward => self.cursor.prev(),
        }
    }

    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match &self.order {
            None => a.cmp(b),
            Some(keyspace) => keyspace.compare_keys(a, b),
        }
    }

    /// Copies the entry of the cursor.
    fn keep(&mut self) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(self.cursor.key());
        let middle = self.bytes.len();
        if self.values {
            self.bytes.extend_from_slice(self.cursor.value());
        }
        self.ahead.push_back(Entry { key: start..middle, value: middle..self.bytes.len() });
    }

    /// Moves before the first key of the range.
    pub fn rewind(&mut self) {
        self.forget(At::Start);
    }

    /// Moves behind the last key of the range.
    pub fn skip_to_stop(&mut self) {
        self.forget(At::Stop);
    }

    /// Moves before the first key of the range from `target` on; a target outside of the range
    /// counts as the nearer end.
    ///
    /// # Errors
    /// Those of the cursor.
    pub fn seek(&mut self, target: &[u8]) -> Result<(), Error> {
        let mut target = target;
        if let Limit::Included(lower) | Limit::Excluded(lower) = &self.lower
            && self.compare(target, lower).is_lt()
        {
            target = lower;
        }
        if let Limit::Included(upper) | Limit::Excluded(upper) = &self.upper
            && self.compare(target, upper).is_gt()
        {
            target = upper;
        }
        let sought = self.cursor.seek(target);
        let at = if self.cursor.valid() { At::Before } else { At::Stop };
        self.forget(if sought.is_err() { At::Failed } else { at });
        sought
    }

    /// Sets the position, and drops what was read ahead.
    fn forget(&mut self, at: At) {
        self.ahead.clear();
        self.last = None;
        self.error = None;
        self.stretch = 1;
        self.at = at;
    }
}
