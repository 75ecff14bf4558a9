//! The orders of keyspaces.

use super::write::Span;
use std::cmp::Ordering;
use std::ops::Bound;

/// The order of a keyspace's keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Unsigned bytes, shorter before longer.
    #[default]
    Bytewise,
    /// The reverse of that.
    Reverse,
    /// Shorter before longer, and then unsigned bytes.
    ByLength,
}

/// The longest key that is one.
pub const LONGEST_KEY: usize = 1 << 20;

/// All of them.
pub const ORDERS: [Order; 3] = [Order::Bytewise, Order::Reverse, Order::ByLength];

/// A place among keys: right before one, or right behind it.
type Place<'a> = (&'a [u8], bool);

impl Order {
    /// How two keys are ordered.
    pub fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Order::Bytewise => a.cmp(b),
            Order::Reverse => b.cmp(a),
            Order::ByLength => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        }
    }

    /// Whether keys that share a prefix are known to be neighbours.
    pub fn has_prefixes(self) -> bool {
        self != Order::ByLength
    }

    /// The longest key.
    pub fn longest_key(self) -> usize {
        if self == Order::Bytewise { LONGEST_KEY } else { LONGEST_KEY - 1 }
    }

    /// Whether the key is covered.
    pub fn contains(self, span: &Span, key: &[u8]) -> bool {
        let Span::Range(low, high) = span else { return span.contains(key) };
        let above = match low {
            Bound::Included(bound) => self.compare(key, bound).is_ge(),
            Bound::Excluded(bound) => self.compare(key, bound).is_gt(),
            Bound::Unbounded => true,
        };
        let below = match high {
            Bound::Included(bound) => self.compare(key, bound).is_le(),
            Bound::Excluded(bound) => self.compare(key, bound).is_lt(),
            Bound::Unbounded => true,
        };
        above && below
    }

    fn is_before(self, a: Place<'_>, b: Place<'_>) -> bool {
        self.compare(a.0, b.0).then(a.1.cmp(&b.1)).is_lt()
    }

    /// Whether some key may be covered by both. In the bytewise order it is exact; in another one
    /// there may be a key between any two.
    pub fn meets(self, a: &Span, b: &Span) -> bool {
        if self == Order::Bytewise {
            return a.meets(b);
        }
        let (a, b) = (self.bounds(a), self.bounds(b));
        fn start(bound: &Bound<Vec<u8>>) -> Option<Place<'_>> {
            match bound {
                Bound::Unbounded => None,
                Bound::Included(key) => Some((key, false)),
                Bound::Excluded(key) => Some((key, true)),
            }
        }
        fn end(bound: &Bound<Vec<u8>>) -> Option<Place<'_>> {
            match bound {
                Bound::Unbounded => None,
                Bound::Included(key) => Some((key, true)),
                Bound::Excluded(key) => Some((key, false)),
            }
        }
        let (starts, ends) = ([start(&a.0), start(&b.0)], [end(&a.1), end(&b.1)]);
        starts.into_iter().flatten().all(|start| ends.into_iter().flatten().all(|end| self.is_before(start, end)))
    }

    /// The same as bounds in this order.
    pub fn bounds(self, span: &Span) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        match (span, span.bounds()) {
            (Span::Prefix(_), (low, high)) if self == Order::Reverse => (high, low),
            (_, bounds) => bounds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_meet_where_a_key_may_be_in_both() {
        let range = |low: Bound<&str>, high: Bound<&str>| Span::Range(low.map(Into::into), high.map(Into::into));
        let (included, excluded) = (|key| Bound::Included(key), |key| Bound::Excluded(key));
        let reverse = Order::Reverse;
        let d_to_b = range(included("d"), included("b"));
        assert!(reverse.contains(&d_to_b, b"c") && !Order::Bytewise.contains(&d_to_b, b"c"));
        assert!(reverse.meets(&d_to_b, &range(included("b"), Bound::Unbounded)));
        assert!(!reverse.meets(&d_to_b, &range(excluded("b"), Bound::Unbounded)));
        assert!(!reverse.meets(&range(included("b"), included("d")), &Span::All), "inverted");
        assert!(reverse.meets(&Span::Prefix(b"c".into()), &d_to_b));
        assert!(!reverse.meets(&Span::Prefix(b"bb".into()), &range(included("z"), included("c"))));
        let by_length = Order::ByLength;
        let short = range(Bound::Unbounded, excluded("aa"));
        assert!(by_length.contains(&short, b"z") && !by_length.contains(&short, b"aaa"));
        assert!(!by_length.meets(&short, &range(included("aa"), Bound::Unbounded)));
    }
}
