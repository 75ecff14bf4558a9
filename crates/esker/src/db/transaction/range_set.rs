//! The ranges of keys that a transaction has deleted.

use crate::base::key_order::KeyOrder;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Ranges by their first keys, each with the first key behind it, which is empty if there is none.
#[derive(Debug, Default)]
pub struct RangeSet {
    order: KeyOrder,
    /// In the bytewise order they neither overlap nor touch. Adding one takes the time of a search,
    /// and of a removal for each that it swallows; each is swallowed once. (Range tombstones, which
    /// never change, would be built anew each time.)
    joined: BTreeMap<Vec<u8>, Vec<u8>>,
    /// In any other order, as they came: each is looked at.
    apart: Vec<(Vec<u8>, Vec<u8>)>,
}

impl RangeSet {
    /// No ranges of keys in this order.
    pub fn new(order: &KeyOrder) -> RangeSet {
        RangeSet { order: order.clone(), ..RangeSet::default() }
    }

    /// Whether the transaction has deleted whatever the snapshot has at `key`.
    pub fn covers(&self, key: &[u8]) -> bool {
        let order = &self.order;
        if order.is_bytewise() {
            return self.before(key).is_some_and(|(_, end)| order.is_before_end(key, end));
        }
        self.apart.iter().any(|(start, end)| !order.less(key, start) && order.is_before_end(key, end))
    }

    /// The last range that begins at or before `key`.
    fn before(&self, key: &[u8]) -> Option<(&Vec<u8>, &Vec<u8>)> {
        self.joined.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()
    }

    /// Adds the keys from `start` on and before `end`, of which there is at least one.
    pub fn add(&mut self, start: &[u8], end: &[u8]) {
        let (mut start, mut end) = (start.to_vec(), end.to_vec());
        if !self.order.is_bytewise() {
            self.apart.push((start, end));
            return;
        }
        // One that begins before this one and reaches it.
        if let Some((first, behind)) = self.before(&start)
            && self.order.compare_ends(behind, &start).is_ge()
        {
            start = first.clone();
        }
        // Joins every range that begins within this one or at its end; each may move that end.
        loop {
            let next = self.joined.range::<[u8], _>((Bound::Included(start.as_slice()), Bound::Unbounded)).next();
            let Some((first, behind)) = next.filter(|(first, _)| end.is_empty() || **first <= end) else { break };
            if self.order.compare_ends(behind, &end).is_gt() {
                end = behind.clone();
            }
            let first = first.clone();
            self.joined.remove(&first);
        }
        self.joined.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_what_each_of_them_covers() {
        for seed in 0..300u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut random = move |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let mut deleted = RangeSet::default();
            let mut all: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
            for _ in 0..30 {
                let mut key = |least: u64| {
                    let number = least + random(40 - least);
                    let key = if number == 0 { Vec::new() } else { vec![number as u8; 1 + number as usize % 2] };
                    (number, key)
                };
                let (first, start) = key(0);
                let (_, mut end) = key(first.min(38) + 1);
                if end <= start {
                    end = Vec::new();
                }
                deleted.add(&start, &end);
                all.push((start, end));
                for key in (0..42u8).flat_map(|byte| [vec![], vec![byte], vec![byte, 0], vec![byte; 2], vec![byte; 3]])
                {
                    let expected =
                        all.iter().any(|(start, end)| *start <= key && KeyOrder::Bytewise.is_before_end(&key, end));
                    assert_eq!(deleted.covers(&key), expected, "seed {seed}, key {key:?}, {all:?}");
                }
                let ranges: Vec<_> = deleted.joined.iter().collect();
                let apart = |pair: &[(&Vec<u8>, &Vec<u8>)]| !pair[0].1.is_empty() && pair[0].1 < pair[1].0;
                assert!(ranges.windows(2).all(apart), "seed {seed}: {ranges:?}");
            }
        }
    }
}
