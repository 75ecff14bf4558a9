//! Ranges of typed keys.

use super::key::EncodeKey;
use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// A range of keys of type `K`: `..`, `a..b`, `a..`, `..b`, `a..=b`, `..=b`, or a pair of bounds,
/// of anything that can be given for a `K`. An inverted one has no keys.
///
/// ```
/// use esker::typed::TypedRange;
/// use std::ops::Bound;
/// let bounds = TypedRange::<u16>::encode_bounds(&(1..258));
/// assert_eq!(bounds, (Bound::Included(vec![0, 1]), Bound::Excluded(vec![1, 2])));
/// ```
pub trait TypedRange<K> {
    /// The lower and the upper bound, encoded.
    ///
    /// ```
    /// use esker::typed::TypedRange;
    /// let bounds = TypedRange::<String>::encode_bounds(&("ada"..));
    /// assert_eq!(bounds, (std::ops::Bound::Included(b"ada".to_vec()), std::ops::Bound::Unbounded));
    /// ```
    fn encode_bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>);
}

fn encoded<K>(key: &impl EncodeKey<K>) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode_key(&mut bytes);
    bytes
}

impl<K> TypedRange<K> for RangeFull {
    fn encode_bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

/// The other forms of a range, each by its two ends.
macro_rules! typed_range {
    ($($range:ty: |$it:ident| $lower:expr, $upper:expr;)*) => {$(
        impl<K, Q: EncodeKey<K>> TypedRange<K> for $range {
            fn encode_bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
                let $it = self;
                ($lower, $upper)
            }
        }
    )*};
}

typed_range! {
    Range<Q>: |it| Bound::Included(encoded(&it.start)), Bound::Excluded(encoded(&it.end));
    RangeFrom<Q>: |it| Bound::Included(encoded(&it.start)), Bound::Unbounded;
    RangeTo<Q>: |it| Bound::Unbounded, Bound::Excluded(encoded(&it.end));
    // Its end is excluded once it was iterated to the end: then it has no keys.
    RangeInclusive<Q>: |it| Bound::Included(encoded(it.start())), it.end_bound().map(encoded);
    RangeToInclusive<Q>: |it| Bound::Unbounded, Bound::Included(encoded(&it.end));
    (Bound<Q>, Bound<Q>): |it| it.0.as_ref().map(encoded), it.1.as_ref().map(encoded);
}

impl<K, R: TypedRange<K> + ?Sized> TypedRange<K> for &R {
    fn encode_bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (**self).encode_bounds()
    }
}
