//! The order of the keys of one keyspace: every comparison of keys goes through it.
//!
//! The engine needs places that are no keys: where the keyspace begins, and right behind a key. In
//! the bytewise order byte strings are both: the empty one comes first, and behind a key comes the
//! key with a zero byte. In any other order they are not, so keys of such a keyspace are stored
//! with a byte more, in the log, in memory and in tables:
//!
//! ```text
//! stored key := key mark      mark 1: the key; 2: the place right behind it, only as a bound
//! ```
//!
//! The empty byte string is before every stored key. The handles mark keys on the way in and take
//! the mark off on the way out; between them a key and a bound are a stored key.
//!
//! A comparator is the program's: it is called with a mark on the thread (`callback.rs`), and may
//! panic or break its laws. What the engine relies on for more than the answers of that one
//! keyspace does not depend on it: equal bytes are equal and others are not, whatever it says; a
//! sort ends and does not panic; and where another file relies on the order, it asks
//! [`KeyOrder::is_trusted`].

use super::callback::{Database, contained};
use super::comparator::{BYTEWISE, Comparator, REVERSE_BYTEWISE};
use super::key::{self, MAX_KEY_BYTES, Sequence};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The mark of a key.
const AT: u8 = 1;
/// The mark of the place right behind a key.
const BEHIND: u8 = 2;

/// An order of keys. Cheap to clone; two are equal if their names are.
#[derive(Clone, Default)]
pub enum KeyOrder {
    /// Unsigned bytes, shorter before longer. Stored keys are the keys.
    #[default]
    Bytewise,
    /// Any other.
    Marked(Arc<MarkedOrder>),
}

/// An order of marked keys.
pub struct MarkedOrder {
    name: String,
    /// `None`: the reverse of the bytewise order.
    comparator: Option<Arc<dyn Comparator>>,
    /// Whose callback it is.
    database: Database,
    /// How often the comparator was seen to break its laws.
    faults: AtomicU64,
}

impl fmt::Debug for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyOrder({})", self.name())
    }
}

impl PartialEq for KeyOrder {
    fn eq(&self, other: &KeyOrder) -> bool {
        self.name() == other.name()
    }
}

impl Eq for KeyOrder {}

impl KeyOrder {
    /// The built-in order of that name.
    pub fn built_in(name: &str) -> Option<KeyOrder> {
        match name {
            BYTEWISE => Some(KeyOrder::Bytewise),
            REVERSE_BYTEWISE => Some(KeyOrder::marked(REVERSE_BYTEWISE.to_owned(), None, Database::NONE)),
            _ => None,
        }
    }

    /// The order of a comparator with that name, which is no built-in one's, called by `database`.
    pub fn custom(name: String, comparator: Arc<dyn Comparator>, database: Database) -> KeyOrder {
        KeyOrder::marked(name, Some(comparator), database)
    }

    fn marked(name: String, comparator: Option<Arc<dyn Comparator>>, database: Database) -> KeyOrder {
        KeyOrder::Marked(Arc::new(MarkedOrder { name, comparator, database, faults: AtomicU64::new(0) }))
    }

    /// Its name, as the manifest has it.
    pub fn name(&self) -> &str {
        match self {
            KeyOrder::Bytewise => BYTEWISE,
            KeyOrder::Marked(order) => &order.name,
        }
    }

    /// Whether it is that of unsigned bytes.
    #[inline]
    pub fn is_bytewise(&self) -> bool {
        matches!(self, KeyOrder::Bytewise)
    }

    /// Whether it is built in: then it keeps the laws of an order.
    #[inline]
    pub fn is_trusted(&self) -> bool {
        match self {
            KeyOrder::Bytewise => true,
            KeyOrder::Marked(order) => order.comparator.is_none(),
        }
    }

    /// How often the comparator was seen to break its laws.
    pub fn faults(&self) -> u64 {
        match self {
            KeyOrder::Bytewise => 0,
            KeyOrder::Marked(order) => order.faults.load(Relaxed),
        }
    }

    /// Notes that entries came in an order that cannot be.
    #[cold]
    pub fn note_fault(&self) {
        if let KeyOrder::Marked(order) = self {
            order.faults.fetch_add(1, Relaxed);
        }
    }

    /// The longest key that a program may write.
    #[inline]
    pub fn most_key_bytes(&self) -> usize {
        if self.is_bytewise() { MAX_KEY_BYTES } else { MAX_KEY_BYTES - 1 }
    }

    /// The stored form of a key.
    #[inline]
    pub fn stored<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        if self.is_bytewise() { Cow::Borrowed(key) } else { Cow::Owned([key, &[AT]].concat()) }
    }

    /// The key of which this is the stored form.
    #[inline]
    pub fn key_of<'k>(&self, stored: &'k [u8]) -> &'k [u8] {
        if self.is_bytewise() { stored } else { stored.split_last().map_or(stored, |(_, key)| key) }
    }

    /// The stored forms of the keys in two bounds.
    pub fn stored_bounds(&self, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let stored = |bound: Bound<&[u8]>| bound.map(|key| self.stored(key).into_owned());
        (stored(bounds.0), stored(bounds.1))
    }

    /// The order of two stored keys.
    #[inline]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            KeyOrder::Bytewise => a.cmp(b),
            KeyOrder::Marked(order) => order.compare(a, b),
        }
    }

    /// The order of two keys that are not in their stored form.
    pub fn compare_keys(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            KeyOrder::Marked(order) if a != b => order.compare_keys(a, b),
            _ => a.cmp(b),
        }
    }

    /// Whether `a` comes before `b`.
    #[inline]
    pub fn less(&self, a: &[u8], b: &[u8]) -> bool {
        match self {
            KeyOrder::Bytewise => key::less(a, b),
            KeyOrder::Marked(order) => order.compare(a, b).is_lt(),
        }
    }

    /// Internal key order: key ascending, sequence number descending.
    #[inline]
    pub fn compare_versions(&self, a: (&[u8], Sequence), b: (&[u8], Sequence)) -> Ordering {
        self.compare(a.0, b.0).then_with(|| b.1.cmp(&a.1))
    }

    /// As [`key::head`]; where bytes say nothing about the order, the head of every key is 0.
    #[inline]
    pub fn head(&self, key: &[u8], skip: usize) -> u64 {
        if self.is_bytewise() { key::head(key, skip) } else { 0 }
    }

    /// The place right behind a stored key.
    pub fn successor(&self, key: &[u8]) -> Vec<u8> {
        match (self, key) {
            (KeyOrder::Marked(_), [key @ .., AT]) => [key, &[BEHIND]].concat(),
            _ => [key, &[0]].concat(),
        }
    }

    /// The earlier of two stored keys.
    pub fn min<'k>(&self, a: &'k [u8], b: &'k [u8]) -> &'k [u8] {
        if self.less(b, a) { b } else { a }
    }

    /// Sorts by a comparison that goes through this order. Stable.
    pub fn sort_by<T: Clone>(&self, items: &mut [T], compare: impl FnMut(&T, &T) -> Ordering) {
        // The library's sorts may panic where there is no order.
        if self.is_trusted() { items.sort_by(compare) } else { merge_sort(items, compare) }
    }

    /// Sorts by stored keys. Stable.
    pub fn sort<T: Clone>(&self, items: &mut [T], key: impl Fn(&T) -> &[u8]) {
        self.sort_by(items, |a, b| self.compare(key(a), key(b)));
    }
}

/// The key with this stored form, in a keyspace that is not bytewise.
pub fn unmarked(stored: &[u8]) -> &[u8] {
    stored.split_last().map_or(stored, |(_, key)| key)
}

/// The bounds with these stored forms; the stored end is excluded, and without end if it is empty.
pub fn bounds_of<'k>(start: &'k [u8], end: &'k [u8], is_bytewise: bool) -> (Bound<&'k [u8]>, Bound<&'k [u8]>) {
    let start = match start {
        [] => Bound::Unbounded,
        _ if is_bytewise => Bound::Included(start),
        [key @ .., BEHIND] => Bound::Excluded(key),
        _ => Bound::Included(unmarked(start)),
    };
    let end = match end {
        [] => Bound::Unbounded,
        _ if is_bytewise => Bound::Excluded(end),
        [key @ .., BEHIND] => Bound::Included(key),
        _ => Bound::Excluded(unmarked(end)),
    };
    (start, end)
}

impl MarkedOrder {
    /// The comparator decides about different keys, the mark about places at the same one.
    #[inline(never)]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match (a.split_last(), b.split_last()) {
            (Some((a_mark, a_key)), Some((b_mark, b_key))) => {
                if a_key == b_key {
                    a_mark.cmp(b_mark)
                } else {
                    self.compare_keys(a_key, b_key)
                }
            }
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }

    /// The order of two keys that differ.
    fn compare_keys(&self, a: &[u8], b: &[u8]) -> Ordering {
        let Some(comparator) = &self.comparator else { return b.cmp(a) };
        let order = self.call(&**comparator, a, b);
        let is_lawful = match order {
            Some(Ordering::Equal) | None => false,
            Some(order) => !cfg!(debug_assertions) || self.call(&**comparator, b, a) == Some(order.reverse()),
        };
        if !is_lawful {
            self.faults.fetch_add(1, Relaxed);
        }
        order.unwrap_or(Ordering::Equal).then_with(|| a.cmp(b))
    }

    /// `None` if the comparator panics, or calls itself without end.
    fn call(&self, comparator: &dyn Comparator, a: &[u8], b: &[u8]) -> Option<Ordering> {
        let _inside = self.database.enter_comparator()?;
        contained(|| comparator.compare(a, b))
    }
}

/// A stable sort that ends, without panic, whatever `compare` says.
fn merge_sort<T: Clone>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut sorted = items.to_vec();
    let mut merged = Vec::with_capacity(items.len());
    let mut width = 1;
    while width < items.len() {
        merged.clear();
        for pair in sorted.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
                if compare(b, a).is_lt() {
                    merged.push(b.clone());
                    right = right_rest;
                } else {
                    merged.push(a.clone());
                    left = left_rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(&mut sorted, &mut merged);
        width *= 2;
    }
    items.clone_from_slice(&sorted);
}

#[cfg(test)]
#[path = "key_order_tests.rs"]
mod tests;
