//! A small seeded generator (SplitMix64), so that a printed seed means the same on every machine
//! and for ever.

/// A stream of pseudo-random numbers, wholly determined by its seed, or by the bytes that it begins
/// with.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    /// The bytes of the first numbers, the first of them last.
    tape: Vec<u8>,
}

impl Random {
    /// The stream of that seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed, tape: Vec::new() }
    }

    /// The stream whose first numbers are these bytes, two of them each: a fuzzer that changes some
    /// changes a choice, and leaves those before and behind it alone.
    pub fn of_bytes(bytes: &[u8]) -> Random {
        Random { state: 0, tape: bytes.iter().rev().copied().collect() }
    }

    /// The stream of a seed and the path of numbers that leads to this use of it.
    pub fn derived(seed: u64, path: &[u64]) -> Random {
        let mut random = Random::new(seed);
        for &number in path {
            random = Random::new(random.next() ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        }
        random
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        if let Some(low) = self.tape.pop() {
            return u64::from_le_bytes([low, self.tape.pop().unwrap_or(0), 0, 0, 0, 0, 0, 0]);
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 if the limit is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.next() % limit as u64) as usize }
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// True `percent` times in a hundred.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// That many random bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    /// Puts the items in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
