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
