//! Ranges of keys by their bounds. A bound is a lower or an upper one by its place in a pair.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys: `..`, `"a".."b"`, `"a"..`, `.."b"`, `"a"..="b"`, `..="b"`, or a pair of bounds,
/// of anything that is bytes. An inverted one has no keys. The calls that take a range ask it once
/// for its bounds.
///
/// Not `RangeBounds`: of which type the bounds of `..` are would have to be said in each call.
///
/// ```
/// use esker::KeyRange;
/// use std::ops::Bound;
/// assert_eq!(("a".."b").bounds(), (Bound::Included(&b"a"[..]), Bound::Excluded(&b"b"[..])));
/// assert_eq!((..).bounds(), (Bound::Unbounded, Bound::Unbounded));
/// ```
pub trait KeyRange {
    /// The lower and the upper bound. Without allocation or copy in the ranges of this crate.
    ///
    /// ```
    /// use esker::KeyRange;
    /// assert_eq!(("a"..).bounds().1, std::ops::Bound::Unbounded);
    /// ```
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>);
}

impl KeyRange for RangeFull {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

/// The other forms of a range, each by its two ends.
macro_rules! key_range {
    ($($range:ty: |$it:ident| $lower:expr, $upper:expr;)*) => {$(
        impl<K: AsRef<[u8]>> KeyRange for $range {
            fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
                let $it = self;
                ($lower, $upper)
            }
        }
    )*};
}

key_range! {
    Range<K>: |it| Bound::Included(it.start.as_ref()), Bound::Excluded(it.end.as_ref());
    RangeFrom<K>: |it| Bound::Included(it.start.as_ref()), Bound::Unbounded;
    RangeTo<K>: |it| Bound::Unbounded, Bound::Excluded(it.end.as_ref());
    RangeInclusive<K>: |it| Bound::Included(it.start().as_ref()), Bound::Included(it.end().as_ref());
    RangeToInclusive<K>: |it| Bound::Unbounded, Bound::Included(it.end.as_ref());
    (Bound<K>, Bound<K>): |it| it.0.as_ref().map(AsRef::as_ref), it.1.as_ref().map(AsRef::as_ref);
}

impl<R: KeyRange + ?Sized> KeyRange for &R {
    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (**self).bounds()
    }
}

/// The least key above `key`.
pub fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// The first key of a range and the key before which it ends, if it ends; `None` if no key can be
/// in it.
pub fn half_open(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let start = match lower {
        Bound::Unbounded => Vec::new(),
        Bound::Included(key) => key.to_vec(),
        Bound::Excluded(key) => successor(key),
    };
    let end = match upper {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(successor(key)),
        Bound::Excluded(key) => Some(key.to_vec()),
    };
    end.as_ref().is_none_or(|end| start < *end).then_some((start, end))
}

/// Whether the bounds alone say that no key is between them.
pub fn is_empty(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    match (lower, upper) {
        (_, Bound::Excluded([])) => true,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(first), Bound::Included(last)) => first > last,
        (Bound::Included(first) | Bound::Excluded(first), Bound::Included(end) | Bound::Excluded(end)) => first >= end,
    }
}

/// Whether `key` is not before a lower bound.
#[inline]
pub fn is_above(lower: Bound<&[u8]>, key: &[u8]) -> bool {
    match lower {
        Bound::Unbounded => true,
        Bound::Included(first) => key >= first,
        Bound::Excluded(before) => key > before,
    }
}

/// Whether `key` is not behind an upper bound.
#[inline]
pub fn is_below(upper: Bound<&[u8]>, key: &[u8]) -> bool {
    match upper {
        Bound::Unbounded => true,
        Bound::Included(last) => key <= last,
        Bound::Excluded(end) => key < end,
    }
}

/// The later of two upper bounds.
pub fn later<'a>(a: Bound<&'a [u8]>, b: Bound<&'a [u8]>) -> Bound<&'a [u8]> {
    let b_is_later = match (a, b) {
        (Bound::Unbounded, _) => false,
        (_, Bound::Unbounded) => true,
        (Bound::Excluded(a), Bound::Included(b)) => b >= a,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => b > a,
    };
    if b_is_later { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&[u8]; 7] = [b"", b"\0", b"a", b"a\0", b"a\0\0", b"b", b"\xff"];

    fn bounds() -> impl Iterator<Item = Bound<&'static [u8]>> {
        let of_key = |key: &'static [u8]| [Bound::Included(key), Bound::Excluded(key)];
        KEYS.into_iter().flat_map(of_key).chain([Bound::Unbounded])
    }

    #[test]
    fn all_forms_of_a_range_hold_the_same_keys() {
        for (lower, upper) in bounds().flat_map(|lower| bounds().map(move |upper| (lower, upper))) {
            let half_open = half_open(lower, upper);
            for key in KEYS {
                let inside = is_above(lower, key) && is_below(upper, key);
                let also = half_open.as_ref().is_some_and(|(start, end)| {
                    key >= start.as_slice() && end.as_ref().is_none_or(|end| key < end.as_slice())
                });
                assert_eq!(inside, also, "{key:?} in {lower:?} to {upper:?}");
                assert!(!inside || !is_empty(lower, upper), "{key:?} in {lower:?} to {upper:?}");
            }
            let end = later(lower, upper);
            assert!(KEYS.iter().all(|key| is_below(end, key) == (is_below(lower, key) || is_below(upper, key))));
        }
    }
}
