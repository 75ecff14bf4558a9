//! Seeded numbers.

/// A sequence of numbers that its seed decides.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// Bytes that do not compress, or only zeroes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let is_random = !self.one_in(3);
        (0..count).map(|_| if is_random { self.next() as u8 } else { 0 }).collect()
    }
}

/// The seeds of a test: some of its own, or with `ESKER_SEED` that one, and `ESKER_SEEDS` how many
/// from there on.
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = number("ESKER_SEED");
    let count = number("ESKER_SEEDS").unwrap_or(if first.is_some() { 1 } else { usual });
    let first = first.unwrap_or(1);
    first..first + count
}
