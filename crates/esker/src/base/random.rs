//! A small seeded generator (SplitMix64): what a seed gives is the same on every machine, and in
//! every version.

/// A stream of pseudo-random numbers, wholly determined by its seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of that seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A stream of its own for each item, so that one item's choices do not depend on how many
    /// others there are.
    pub fn derived(seed: u64, item: u64) -> Random {
        Random(Random::new(seed).next() ^ item.wrapping_mul(0xd605_1e4d_2f0e_9a5b))
    }

    /// The next 64 bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// An index below `bound`; 0 if the bound is 0.
    pub fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// Bytes of a small alphabet: keys made of them share prefixes, and values compress.
    #[cfg(test)]
    pub fn text(&mut self, length: u64) -> Vec<u8> {
        (0..length).map(|_| b"abcd\0\xff"[self.index(6)]).collect()
    }

    /// Bytes that nothing compresses.
    pub fn noise(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}
