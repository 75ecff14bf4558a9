//! The keys that a transaction has looked up.

use std::sync::OnceLock;

/// Keys are put in order for the first time when there are so many.
const LEAST_SORTED: usize = 1024;

/// A set of keys. A lookup adds its key in a few nanoseconds, behind the others: they are put in
/// order when a conflict is looked for, which most transactions need not.
#[derive(Debug, Default)]
pub struct ReadKeys {
    /// The keys, one behind the other.
    bytes: Vec<u8>,
    /// Where each ends; the next one begins there. A key may be here more than once.
    ends: Vec<usize>,
    /// How many keys there may be before those that are there twice are looked for.
    limit: usize,
    /// The numbers of the keys in their order, each key once. Made when it is needed.
    order: OnceLock<Vec<usize>>,
}

impl ReadKeys {
    /// Adds a key. Amortized over many, that is O(log n).
    pub fn insert(&mut self, key: &[u8]) {
        let last = self.ends.len().checked_sub(1);
        // As a value is read and then its expiry.
        if last.is_some_and(|last| self.at(last) == key) {
            return;
        }
        if self.ends.len() >= self.limit.max(LEAST_SORTED) {
            self.forget_repeated();
        }
        self.order.take();
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Keys that are read again and again take no more memory than twice what they take once.
    fn forget_repeated(&mut self) {
        let mut kept = ReadKeys::default();
        for key in self.iter() {
            kept.bytes.extend_from_slice(key);
            kept.ends.push(kept.bytes.len());
        }
        kept.limit = 2 * kept.ends.len();
        *self = kept;
    }

    fn at(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    fn order(&self) -> &[usize] {
        self.order.get_or_init(|| {
            let mut order: Vec<usize> = (0..self.ends.len()).collect();
            order.sort_unstable_by_key(|&number| self.at(number));
            order.dedup_by_key(|number| self.at(*number));
            order
        })
    }

    /// Whether `key` was looked up.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.order().binary_search_by_key(&key, |&number| self.at(number)).is_ok()
    }

    /// The keys, ascending by their bytes, each once.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.order().iter().map(|&number| self.at(number))
    }

    /// The first key from `start` on.
    pub fn first_from(&self, start: &[u8]) -> Option<&[u8]> {
        let order = self.order();
        let at = order.partition_point(|&number| self.at(number) < start);
        order.get(at).map(|&number| self.at(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;
    use std::collections::BTreeSet;

    /// It answers as a sorted set does, also about keys that were looked up many times.
    #[test]
    fn it_is_a_set() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let (mut keys, mut expected) = (ReadKeys::default(), BTreeSet::new());
            let distinct = 1 << random.below(14);
            for _ in 0..5 * LEAST_SORTED {
                let number = random.below(distinct);
                let key = number.to_be_bytes()[random.below(8) as usize..].to_vec();
                keys.insert(&key);
                expected.insert(key);
                if random.below(500) == 0 {
                    let probe = random.below(distinct).to_be_bytes();
                    assert_eq!(keys.contains(&probe), expected.contains(&probe[..]), "seed {seed}");
                    let first = expected.range(probe.to_vec()..).next().map(Vec::as_slice);
                    assert_eq!(keys.first_from(&probe), first, "seed {seed}");
                }
            }
            assert!(keys.iter().eq(expected.iter().map(Vec::as_slice)), "seed {seed}");
            assert!(keys.ends.len() <= LEAST_SORTED.max(2 * expected.len()) + 1, "seed {seed}");
        }
    }
}
