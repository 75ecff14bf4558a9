//! Which keys a random fill wrote: played again with the fill's random numbers, so that a reader
//! knows what to find without asking.

use crate::random::{KeyGeneration, KeyRandom};

/// The keys below a bound that a fill of one thread wrote, and how many there are of both kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    words: Vec<u64>,
    below: u64,
    present: u64,
}

impl Filled {
    /// The keys below `below` that `num` draws below `num` wrote, from the generator of the first
    /// thread of a process whose seeds count from `seed`.
    pub fn replay(generation: KeyGeneration, seed: u64, num: u64, below: u64) -> Filled {
        let thread_seed = match generation {
            KeyGeneration::LevelDb => seed + 1,
            KeyGeneration::RocksDb => seed,
        };
        let mut random = KeyRandom::new(generation, thread_seed);
        let mut filled = Filled { words: vec![0; below.div_ceil(64) as usize], below, present: 0 };
        for _ in 0..num {
            filled.add(random.uniform(num));
        }
        filled
    }

    fn add(&mut self, number: u64) {
        if number >= self.below {
            return;
        }
        let (word, bit) = (&mut self.words[(number / 64) as usize], 1 << (number % 64));
        self.present += u64::from(*word & bit == 0);
        *word |= bit;
    }

    /// Whether the key of this number was written; numbers beyond the bound were not.
    #[inline]
    pub fn has(&self, number: u64) -> bool {
        self.words.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// How many keys below the bound were written (`there`), or were not.
    pub fn count(&self, there: bool) -> u64 {
        if there { self.present } else { self.below - self.present }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_numbers_of_distinct_keys_come_out() {
        for (num, distinct) in [(10_000, 6296), (100_000, 63_190)] {
            let filled = Filled::replay(KeyGeneration::LevelDb, 1000, num, num);
            assert_eq!((filled.count(true), filled.count(false)), (distinct, num - distinct));
            let there = (0..num + 100).filter(|number| filled.has(*number)).count();
            assert_eq!(there as u64, distinct);
        }
    }

    #[test]
    fn a_bound_cuts_the_set() {
        let (whole, low) = [1000, 200].map(|below| Filled::replay(KeyGeneration::RocksDb, 7, 1000, below)).into();
        assert!((0..200).all(|number| whole.has(number) == low.has(number)));
        assert_eq!(low.count(true) + low.count(false), 200);
        assert!(!low.has(200) && !low.has(u64::MAX));
    }
}
