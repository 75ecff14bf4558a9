//! Bounds of ranges of stored keys, in the order of a keyspace. A bound is a lower or an upper one
//! by its place in a pair.

use super::key_order::KeyOrder;
use std::cmp::Ordering;
use std::ops::Bound;

impl KeyOrder {
    /// The first place of a range and the place before which it ends, if it ends; `None` if no key
    /// can be in it.
    pub fn half_open(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let start = match lower {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.to_vec(),
            Bound::Excluded(key) => self.successor(key),
        };
        let end = match upper {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(self.successor(key)),
            Bound::Excluded(key) => Some(key.to_vec()),
        };
        end.as_ref().is_none_or(|end| self.less(&start, end)).then_some((start, end))
    }

    /// As [`KeyOrder::half_open`], with an empty end for one that is behind every key.
    pub fn tombstone_bounds(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<(Vec<u8>, Vec<u8>)> {
        let (start, end) = self.half_open(lower, upper)?;
        Some((start, end.unwrap_or_default()))
    }

    /// Whether the bounds alone say that no key is between them.
    pub fn is_empty_range(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
        match (lower, upper) {
            (_, Bound::Excluded([])) => true,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(first), Bound::Included(last)) => self.less(last, first),
            (Bound::Included(first) | Bound::Excluded(first), Bound::Included(end) | Bound::Excluded(end)) => {
                !self.less(first, end)
            }
        }
    }

    /// Whether `key` is not before a lower bound.
    #[inline]
    pub fn is_above(&self, lower: Bound<&[u8]>, key: &[u8]) -> bool {
        match lower {
            Bound::Unbounded => true,
            Bound::Included(first) => self.compare(key, first).is_ge(),
            Bound::Excluded(before) => self.compare(key, before).is_gt(),
        }
    }

    /// Whether `key` is not behind an upper bound.
    #[inline]
    pub fn is_below(&self, upper: Bound<&[u8]>, key: &[u8]) -> bool {
        match upper {
            Bound::Unbounded => true,
            Bound::Included(last) => self.compare(key, last).is_le(),
            Bound::Excluded(end) => self.compare(key, end).is_lt(),
        }
    }

    /// The later of two upper bounds.
    pub fn later<'a>(&self, a: Bound<&'a [u8]>, b: Bound<&'a [u8]>) -> Bound<&'a [u8]> {
        let b_is_later = match (a, b) {
            (Bound::Unbounded, _) => false,
            (_, Bound::Unbounded) => true,
            (Bound::Excluded(a), Bound::Included(b)) => self.compare(b, a).is_ge(),
            (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => {
                self.compare(b, a).is_gt()
            }
        };
        if b_is_later { b } else { a }
    }

    /// Whether `key` is before `end`, of which the empty one is behind every key.
    #[inline]
    pub fn is_before_end(&self, key: &[u8], end: &[u8]) -> bool {
        end.is_empty() || self.compare(key, end).is_lt()
    }

    /// The order of such ends.
    pub fn compare_ends(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.is_empty().cmp(&b.is_empty()).then_with(|| self.compare(a, b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::comparator::REVERSE_BYTEWISE;
    use crate::base::key_range::KeyRange;

    const KEYS: [&[u8]; 7] = [b"", b"\0", b"a", b"a\0", b"a\0\0", b"b", b"\xff"];

    fn bounds() -> impl Iterator<Item = Bound<&'static [u8]>> {
        let of_key = |key: &'static [u8]| [Bound::Included(key), Bound::Excluded(key)];
        KEYS.into_iter().flat_map(of_key).chain([Bound::Unbounded])
    }

    #[test]
    fn all_forms_of_a_range_hold_the_same_keys_in_every_order() {
        for order in [KeyOrder::Bytewise, KeyOrder::built_in(REVERSE_BYTEWISE).unwrap()] {
            for (lower, upper) in bounds().flat_map(|lower| bounds().map(move |upper| (lower, upper))) {
                let stored = order.stored_bounds((lower, upper));
                let (lower, upper) = (stored.0.as_ref().map(Vec::as_slice), stored.1.as_ref().map(Vec::as_slice));
                let half_open = order.half_open(lower, upper);
                for key in KEYS.map(|key| order.stored(key).into_owned()) {
                    let inside = order.is_above(lower, &key) && order.is_below(upper, &key);
                    let also = half_open.as_ref().is_some_and(|(start, end)| {
                        order.compare(&key, start).is_ge() && order.is_before_end(&key, end.as_deref().unwrap_or(b""))
                    });
                    assert_eq!(inside, also, "{order:?}: {key:?} in {lower:?} to {upper:?}");
                    assert!(!inside || !order.is_empty_range(lower, upper), "{key:?} in {lower:?} to {upper:?}");
                }
                let end = order.later(lower, upper);
                assert!(KEYS.map(|key| order.stored(key).into_owned()).iter().all(|key| {
                    order.is_below(end, key) == (order.is_below(lower, key) || order.is_below(upper, key))
                }));
            }
        }
    }

    #[test]
    fn bounds_of_every_kind_become_half_open() {
        use Bound::{Excluded, Included, Unbounded};
        let open = |start: Bound<&'static str>, end: Bound<&'static str>| {
            let bounds = (start, end);
            let (lower, upper) = bounds.bounds();
            KeyOrder::Bytewise.tombstone_bounds(lower, upper)
        };
        let range = |start: &[u8], end: &[u8]| Some((start.to_vec(), end.to_vec()));
        assert_eq!(open(Unbounded, Unbounded), range(b"", b""));
        assert_eq!(open(Included("b"), Excluded("d")), range(b"b", b"d"));
        assert_eq!(open(Included("b"), Included("b")), range(b"b", b"b\0"));
        assert_eq!(open(Excluded("b"), Unbounded), range(b"b\0", b""));
        assert_eq!(open(Unbounded, Included("")), range(b"", b"\0"));
        assert_eq!(open(Unbounded, Excluded("")), None);
        assert_eq!(open(Included("d"), Excluded("b")), None);
        assert_eq!(open(Included("b"), Excluded("b")), None);
        assert_eq!(open(Excluded("b"), Included("b")), None);
    }
}
