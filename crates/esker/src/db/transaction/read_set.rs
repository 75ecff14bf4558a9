//! What a transaction has read of one keyspace: keys, and ranges as far as they were passed.

use crate::base::key_order::KeyOrder;
use crate::db::transaction::read_keys::ReadKeys;
use std::ops::Bound;

/// Keys from `start` on and before `end`, or to the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    pub start: Vec<u8>,
    pub end: Option<Vec<u8>>,
}

impl Interval {
    /// The keys between the bounds; `None` if there cannot be any.
    fn between(order: &KeyOrder, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<Interval> {
        order.half_open(lower, upper).map(|(start, end)| Interval { start, end })
    }

    /// Whether `key` is not behind the interval.
    pub fn ends_behind(&self, order: &KeyOrder, key: &[u8]) -> bool {
        self.end.as_ref().is_none_or(|end| order.less(key, end))
    }
}

/// Two ends, lower and upper.
pub type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// One scan: its bounds, and how far it came from either end. The scan moves it on with every step,
/// so that what was read is known whatever becomes of the iterator.
#[derive(Debug)]
pub struct ScannedRange {
    order: KeyOrder,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    /// The last key handed out going forward.
    front: Option<Vec<u8>>,
    /// The last key handed out going backward.
    back: Option<Vec<u8>>,
    /// The ends met, or there was no more key: everything between the bounds was read.
    complete: bool,
}

impl ScannedRange {
    fn new(order: &KeyOrder, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> ScannedRange {
        let order = order.clone();
        ScannedRange { order, lower, upper, front: None, back: None, complete: false }
    }

    /// The order of the keys.
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// Whether nothing was read.
    fn is_empty(&self) -> bool {
        self.front.is_none() && self.back.is_none() && !self.complete
    }

    /// The bounds of the scan.
    pub fn bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        (self.lower.clone(), self.upper.clone())
    }

    /// What is not read yet; `None` if that cannot hold any key.
    pub fn rest(&self) -> Option<Bounds<'_>> {
        let lower = self.front.as_ref().map_or(borrowed(&self.lower), |key| Bound::Excluded(key.as_slice()));
        let upper = self.back.as_ref().map_or(borrowed(&self.upper), |key| Bound::Excluded(key.as_slice()));
        let empty = self.order.is_empty_range(lower, upper);
        (!empty && !self.complete).then_some((lower, upper))
    }

    /// Everything up to `key`, coming from the front or from the back, was read.
    pub fn pass(&mut self, key: &[u8], forward: bool) {
        let end = if forward { &mut self.front } else { &mut self.back };
        let end = end.get_or_insert_default();
        end.clear();
        end.extend_from_slice(key);
    }

    /// Everything between the bounds was read.
    pub fn complete(&mut self) {
        self.complete = true;
    }

    /// What was read.
    fn intervals(&self) -> impl Iterator<Item = Interval> {
        let (lower, upper) = (borrowed(&self.lower), borrowed(&self.upper));
        let whole = self.complete.then_some((lower, upper));
        let front = self.front.as_ref().map(|key| (lower, Bound::Included(key.as_slice())));
        let back = self.back.as_ref().map(|key| (Bound::Included(key.as_slice()), upper));
        [whole, front, back]
            .into_iter()
            .flatten()
            .filter_map(|(lower, upper)| Interval::between(&self.order, lower, upper))
    }
}

fn borrowed(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// All that was read of one keyspace.
#[derive(Debug, Default)]
pub struct ReadSet {
    order: KeyOrder,
    /// The keys looked up, whether they were there or not.
    pub keys: ReadKeys,
    scans: Vec<ScannedRange>,
}

impl ReadSet {
    /// Nothing, of keys in this order.
    pub fn new(order: &KeyOrder) -> ReadSet {
        ReadSet { order: order.clone(), ..ReadSet::default() }
    }

    /// Notes a scan that begins.
    pub fn begin_scan(&mut self, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> &mut ScannedRange {
        // An iterator that was never advanced leaves nothing.
        self.scans.pop_if(|last| last.is_empty());
        self.scans.push(ScannedRange::new(&self.order, lower, upper));
        let at = self.scans.len() - 1;
        &mut self.scans[at]
    }

    /// The ranges read, ascending and apart from each other.
    pub fn intervals(&self) -> Vec<Interval> {
        let mut all: Vec<Interval> = self.scans.iter().flat_map(ScannedRange::intervals).collect();
        let order = &self.order;
        order.sort(&mut all, |interval| &interval.start);
        let mut apart: Vec<Interval> = Vec::new();
        for next in all {
            match apart.last_mut() {
                Some(last) if last.ends_behind(order, &next.start) => {
                    // A missing end is behind every other one.
                    last.end = last.end.take().zip(next.end).map(|(a, b)| if order.less(&a, &b) { b } else { a });
                }
                _ => apart.push(next),
            }
        }
        apart
    }
}

/// Whether one of `intervals`, ascending and apart from each other, has `key`.
pub fn any_contains(order: &KeyOrder, intervals: &[Interval], key: &[u8]) -> bool {
    let behind = intervals.partition_point(|interval| !order.less(key, &interval.start));
    behind.checked_sub(1).is_some_and(|at| intervals[at].ends_behind(order, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        text.as_bytes().to_vec()
    }

    #[test]
    fn a_scan_reads_as_far_as_it_came() {
        let mut reads = ReadSet::default();
        let scan = reads.begin_scan(Bound::Excluded(bytes("b")), Bound::Included(bytes("x")));
        scan.pass(b"f", true);
        scan.pass(b"t", false);
        assert_eq!(scan.rest(), Some((Bound::Excluded(&b"f"[..]), Bound::Excluded(&b"t"[..]))));
        let read = reads.intervals();
        let inside = ["b\0", "c", "f", "t", "u", "x"];
        let outside = ["", "a", "b", "f\0", "g", "s", "x\0", "y"];
        assert!(inside.iter().all(|key| any_contains(&KeyOrder::Bytewise, &read, key.as_bytes())), "{read:?}");
        assert!(!outside.iter().any(|key| any_contains(&KeyOrder::Bytewise, &read, key.as_bytes())), "{read:?}");
    }

    #[test]
    fn intervals_are_joined_and_empty_ones_go() {
        let mut reads = ReadSet::default();
        reads.begin_scan(Bound::Unbounded, Bound::Unbounded);
        assert!(reads.intervals().is_empty());
        for (lower, upper) in [("m", "p"), ("a", "c"), ("b", "d"), ("z", "y"), ("d", "e")] {
            reads.begin_scan(Bound::Included(bytes(lower)), Bound::Excluded(bytes(upper))).complete();
        }
        let ends: Vec<(Vec<u8>, Option<Vec<u8>>)> =
            reads.intervals().into_iter().map(|interval| (interval.start, interval.end)).collect();
        assert_eq!(ends.len(), 3, "{ends:?}");
        assert_eq!(ends[0], (bytes("a"), Some(bytes("d"))));
        reads.begin_scan(Bound::Included(bytes("b")), Bound::Unbounded).complete();
        assert_eq!(reads.intervals(), [Interval { start: bytes("a"), end: None }]);
    }
}
