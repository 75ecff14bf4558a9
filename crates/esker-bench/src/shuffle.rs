//! A random order of the numbers below a bound that is computed instead of kept: for loads whose
//! list of keys would not fit into memory.

use crate::zipfian::scatter;

/// The order. A Feistel network over the next even power of two; numbers that fall outside are sent
/// round again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shuffle {
    count: u64,
    half_bits: u32,
}

impl Shuffle {
    const ROUNDS: u64 = 4;

    /// The order of the numbers 0..`count`.
    pub fn new(count: u64) -> Shuffle {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Shuffle { count, half_bits: bits.div_ceil(2).clamp(1, 32) }
    }

    /// The number at `place`, which is below the count; every number comes up at one place.
    #[inline]
    pub fn at(&self, place: u64) -> u64 {
        let mut number = self.network(place);
        // The cycle through `place` comes back to a number below the count: `place` is one.
        while number >= self.count && place < self.count {
            number = self.network(number);
        }
        number
    }

    #[inline]
    fn network(&self, number: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits & mask, number & mask);
        for round in 0..Self::ROUNDS {
            (left, right) = (right, left ^ (scatter(right << 8 | round) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_up_once() {
        for count in [1u64, 2, 3, 10, 1000, 4096, 4097, 70_000] {
            let shuffle = Shuffle::new(count);
            let mut seen = vec![false; count as usize];
            for place in 0..count {
                let number = shuffle.at(place) as usize;
                assert!(!std::mem::replace(&mut seen[number], true), "{count}: {number} twice");
            }
        }
    }

    #[test]
    fn the_order_is_no_pattern() {
        let shuffle = Shuffle::new(100_000);
        let ascending = (1..100_000).filter(|place| shuffle.at(*place) > shuffle.at(place - 1)).count();
        assert!((48_000..52_000).contains(&ascending), "{ascending}");
    }
}
