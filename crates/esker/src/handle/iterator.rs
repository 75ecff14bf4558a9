//! Scans: an iterator that hands out pairs, and a cursor that lends them.

use super::keyspace::Keyspace;
use crate::base::key_range::KeyRange;
use crate::base::slice::Slice;
use crate::db::read::scan::{ScanCursor, Source};
use crate::error::{Error, Result};
use std::borrow::Cow;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;

/// A lower and an upper bound.
pub(super) type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The least key, by its bytes, that is above all that begin with `prefix`; none if there is none.
fn behind_prefix(prefix: &[u8]) -> Bound<Vec<u8>> {
    let mut successor = prefix.to_vec();
    while let Some(last) = successor.pop() {
        if last < u8::MAX {
            successor.push(last + 1);
            return Bound::Excluded(successor);
        }
    }
    Bound::Unbounded
}

impl Keyspace {
    /// The bounds of the keys that begin with `prefix`.
    ///
    /// # Errors
    /// `InvalidArgument` where they need not be neighbours: in the order of a comparator that is
    /// not built in.
    pub(super) fn prefix_bounds(&self, prefix: &[u8]) -> Result<KeyBounds> {
        let (first, behind) = (Bound::Included(prefix.to_vec()), behind_prefix(prefix));
        let order = &self.inner.order;
        match order.is_bytewise() {
            true => Ok((first, behind)),
            false if order.is_trusted() => Ok((behind, first)),
            false => Err(Error::invalid(format!(
                "keys of keyspace {:?} that share a prefix need not be neighbours in the order of its comparator {:?}; \
                 use a range, or filter its keys",
                self.inner.name(),
                order.name()
            ))),
        }
    }
}

/// Pairs of key and value of one moment, in the order of their keys, from either end.
///
/// An item is an error where a value cannot be read. After a merge that failed the scan goes on
/// behind that key; after any other error it ends.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let names = db.keyspace("names", Default::default())?;
/// # for name in ["ada", "bob", "eve"] { names.put(name, "")?; }
/// let mut iter = names.iter();
/// let (first, _) = iter.next().expect("the first pair")?;
/// let (last, _) = iter.next_back().expect("the last pair")?;
/// assert_eq!((&*first, &*last), (&b"ada"[..], &b"eve"[..]));
/// assert_eq!(iter.count(), 1);
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "an iterator reads nothing until it is advanced"]
pub struct Iter {
    /// None if there is only an error to hand out.
    source: Option<Source>,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    front: Option<ScanCursor>,
    back: Option<ScanCursor>,
    error: Option<Error>,
    done: bool,
    keys_only: bool,
}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("lower", &self.lower).field("upper", &self.upper).finish_non_exhaustive()
    }
}

impl Iter {
    /// An iterator over the source, or over one error.
    pub(super) fn new(source: Result<Source>, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Iter {
        let (source, error) = match source {
            Ok(source) => (Some(source), None),
            Err(error) => (None, Some(error)),
        };
        Iter { source, lower, upper, front: None, back: None, error, done: false, keys_only: false }
    }

    fn cursor(&self) -> Option<Result<ScanCursor>> {
        let cursor = ScanCursor::new(self.source.clone()?, self.lower.clone(), self.upper.clone());
        Some(cursor.map(|mut cursor| {
            if self.keys_only {
                cursor.skip_values();
            }
            cursor
        }))
    }

    /// The same keys, those that are left, without their values: these are not copied, and large
    /// ones are not loaded, unless operands are merged into them.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// for name in ["ada", "bob", "eve"] { names.put(name, "a long life")?; }
    /// let from_b: esker::Result<Vec<_>> = names.range("b"..).keys().rev().collect();
    /// assert!(from_b? == ["eve", "bob"]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn keys(mut self) -> Keys {
        self.keys_only = true;
        self.front.iter_mut().chain(&mut self.back).for_each(ScanCursor::skip_values);
        Keys(self)
    }

    fn step<T>(&mut self, forward: bool, item: impl FnOnce(&mut ScanCursor) -> Result<T>) -> Option<Result<T>> {
        if let Some(error) = self.error.take() {
            self.done = true;
            return Some(Err(error));
        }
        if self.done {
            return None;
        }
        let (mut moving, other) =
            if forward { (self.front.take(), &self.back) } else { (self.back.take(), &self.front) };
        let moved = match (&mut moving, forward) {
            (Some(cursor), true) => cursor.next(),
            (Some(cursor), false) => cursor.prev(),
            (None, _) => {
                let cursor = match self.cursor()? {
                    Ok(cursor) => moving.insert(cursor),
                    Err(error) => {
                        self.done = true;
                        return Some(Err(error));
                    }
                };
                if forward { cursor.seek_to_first() } else { cursor.seek_to_last() }
            }
        };
        let mut cursor = moving?;
        // The ends meet where one would hand out what the other has handed out already.
        let ends = cursor.reached().zip(other.as_ref().and_then(|other| other.reached()));
        let met = ends.is_some_and(|(this, other)| {
            let order = cursor.order().compare(this, other);
            if forward { order.is_ge() } else { order.is_le() }
        });
        let item = match moved {
            Err(_) if met => {
                self.done = true;
                None
            }
            Err(error) => {
                // Where the cursor knows the key whose merge failed, it goes on behind it.
                self.done = cursor.reached().is_none();
                Some(Err(error))
            }
            Ok(()) if !cursor.valid() || met => {
                self.done = true;
                None
            }
            Ok(()) => {
                let item = item(&mut cursor);
                self.done = item.is_err();
                Some(item)
            }
        };
        if forward {
            self.front = Some(cursor)
        } else {
            self.back = Some(cursor)
        }
        item
    }
}

impl Iterator for Iter {
    type Item = Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(true, ScanCursor::item)
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(false, ScanCursor::item)
    }
}

impl FusedIterator for Iter {}

/// Keys of one moment, in their order, from either end: an [`Iter`] without the values, made by
/// [`Iter::keys`]. Errors are as there.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let names = db.keyspace("names", Default::default())?;
/// # for name in ["ada", "bob", "eve"] { names.put(name, "")?; }
/// let mut keys = names.iter().keys();
/// assert!(keys.next().expect("the first key")? == "ada" && keys.next_back().expect("the last key")? == "eve");
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "an iterator reads nothing until it is advanced"]
pub struct Keys(Iter);

impl Iterator for Keys {
    type Item = Result<Slice>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.step(true, ScanCursor::key_item)
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.step(false, ScanCursor::key_item)
    }
}

impl FusedIterator for Keys {}

/// A cursor over the keys of one moment. It lends the key and the value at its position, so that a
/// scan copies nothing.
///
/// A new cursor has no position. A seek or a step that finds no key leaves it without one, and a
/// step without a position does nothing.
///
/// ```
/// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
/// # let names = db.keyspace("names", Default::default())?;
/// # for name in ["ada", "bob", "eve"] { names.put(name, "")?; }
/// let mut cursor = names.cursor()?;
/// cursor.seek("b")?;
/// assert!(cursor.valid());
/// assert_eq!((cursor.key(), cursor.value()), (&b"bob"[..], &b""[..]));
/// # Ok::<(), esker::Error>(())
/// ```
#[must_use = "a cursor reads nothing until it is moved"]
pub struct Cursor(ScanCursor);

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("valid", &self.valid()).finish_non_exhaustive()
    }
}

impl Cursor {
    pub(super) fn new(source: Source) -> Result<Cursor> {
        Ok(Cursor(ScanCursor::new(source, Bound::Unbounded, Bound::Unbounded)?))
    }

    /// The cursor for keys alone, at no key: large values are not loaded, unless operands are
    /// merged into them, and [`Cursor::value`] has no meaning.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # for name in ["ada", "bob", "eve"] { names.put(name, "")?; }
    /// let mut cursor = names.cursor()?.keys_only();
    /// cursor.seek("b")?;
    /// assert_eq!(cursor.key(), b"bob");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn keys_only(mut self) -> Cursor {
        self.0.skip_values();
        self
    }

    /// The cursor for the keys of `range` alone, at no key: no move finds one outside, where
    /// nothing is merged or loaded. A step that leaves the range ends at no key.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # for name in ["ada", "bob", "eve"] { names.put(name, "")?; }
    /// let mut cursor = names.cursor()?.within("b".."c");
    /// cursor.seek("a")?;
    /// assert_eq!(cursor.key(), b"bob");
    /// cursor.next()?;
    /// assert!(!cursor.valid());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn within(mut self, range: impl KeyRange) -> Cursor {
        let (lower, upper) = self.0.order().stored_bounds(range.bounds());
        self.0.restrict(lower, upper);
        self
    }

    /// Moves to the first key.
    ///
    /// # Errors
    /// Of this and every other move: `Corruption` and `Io` if something cannot be read,
    /// `MergeFailed` and `MissingMergeOperator` at a key whose operands cannot be combined. The
    /// cursor is at no key then; after a failed merge the next step in the same direction goes on
    /// behind that key.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # for name in ["ada", "bob", "eve"] { names.put(name, "")?; }
    /// let mut cursor = names.cursor()?;
    /// cursor.seek_to_first()?;
    /// assert_eq!(cursor.key(), b"ada");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.0.seek_to_first()
    }

    /// Moves to the last key.
    ///
    /// # Errors
    /// As [`Cursor::seek_to_first`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # for name in ["ada", "bob", "eve"] { names.put(name, "")?; }
    /// let mut cursor = names.cursor()?;
    /// cursor.seek_to_last()?;
    /// assert_eq!(cursor.key(), b"eve");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.0.seek_to_last()
    }

    /// Moves to the first key at or after `key`.
    ///
    /// # Errors
    /// As [`Cursor::seek_to_first`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # for name in ["ada", "bob", "eve"] { names.put(name, "")?; }
    /// let mut cursor = names.cursor()?;
    /// cursor.seek("b")?;
    /// assert_eq!(cursor.key(), b"bob");
    /// cursor.seek("z")?;
    /// assert!(!cursor.valid());
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        match self.0.order().stored(key.as_ref()) {
            Cow::Borrowed(key) => self.0.seek(key),
            Cow::Owned(key) => self.0.seek(&key),
        }
    }

    /// Moves to the last key at or before `key`.
    ///
    /// # Errors
    /// As [`Cursor::seek_to_first`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # for name in ["ada", "bob", "eve"] { names.put(name, "")?; }
    /// let mut cursor = names.cursor()?;
    /// cursor.seek_for_prev("c")?;
    /// assert_eq!(cursor.key(), b"bob");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        match self.0.order().stored(key.as_ref()) {
            Cow::Borrowed(key) => self.0.seek_for_prev(key),
            Cow::Owned(key) => self.0.seek_for_prev(&key),
        }
    }

    /// Moves to the next key.
    ///
    /// # Errors
    /// As [`Cursor::seek_to_first`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # for name in ["ada", "bob", "eve"] { names.put(name, "")?; }
    /// let mut cursor = names.cursor()?;
    /// cursor.seek("bob")?;
    /// cursor.next()?;
    /// assert_eq!(cursor.key(), b"eve");
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<()> {
        self.0.next()
    }

    /// Moves to the key before.
    ///
    /// # Errors
    /// As [`Cursor::seek_to_first`].
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # for name in ["ada", "bob", "eve"] { names.put(name, "")?; }
    /// let mut cursor = names.cursor()?;
    /// cursor.seek("bob")?;
    /// cursor.prev()?;
    /// assert_eq!(cursor.key(), b"ada");
    /// # Ok::<(), esker::Error>(())
    /// ```
    pub fn prev(&mut self) -> Result<()> {
        self.0.prev()
    }

    /// Whether the cursor is at a key.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # names.put("ada", "1815")?;
    /// let mut cursor = names.cursor()?;
    /// assert!(!cursor.valid()); // at none yet
    /// cursor.seek_to_first()?;
    /// assert!(cursor.valid());
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    pub fn valid(&self) -> bool {
        self.0.valid()
    }

    /// The key at the cursor; empty if it is at none.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # names.put("ada", "1815")?;
    /// let mut cursor = names.cursor()?;
    /// cursor.seek_to_first()?;
    /// assert_eq!(cursor.key(), b"ada");
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.0.order().key_of(self.0.key())
    }

    /// The value at the cursor; empty if it is at none. It may lie in a mapped file: should its
    /// medium fail while it is read, the value may read as zeroes or be empty, and the next move of
    /// the cursor fails with `Io`. [`Iter`] hands out nothing that could be so.
    ///
    /// ```
    /// # let db = esker::Db::open("data", esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new())))?;
    /// # let names = db.keyspace("names", Default::default())?;
    /// # names.put("ada", "1815")?;
    /// let mut cursor = names.cursor()?;
    /// cursor.seek_to_first()?;
    /// assert_eq!(cursor.value(), b"1815");
    /// # Ok::<(), esker::Error>(())
    /// ```
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.0.value()
    }
}
