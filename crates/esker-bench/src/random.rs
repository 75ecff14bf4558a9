//! The random numbers that decide which keys a benchmark touches. Both generators are those of
//! published benchmark programs, bit for bit, so that a run here touches the same keys in the same
//! order and finds the same number of them.

use rand_mt::Mt64;

/// The generator of LevelDB: a Lehmer sequence with multiplier 16807 modulo 2^31 - 1.
#[derive(Debug, Clone)]
pub struct LehmerRandom {
    seed: u32,
}

impl LehmerRandom {
    const MODULUS: u64 = 2_147_483_647;

    /// A generator whose sequence is fixed by `seed`; the two seeds that would stand still (0 and
    /// 2^31 - 1) become 1.
    pub fn new(seed: u32) -> LehmerRandom {
        let seed = seed & 0x7fff_ffff;
        LehmerRandom { seed: if seed == 0 || u64::from(seed) == Self::MODULUS { 1 } else { seed } }
    }

    /// The next number, in 1..2^31-1.
    #[inline]
    pub fn draw(&mut self) -> u32 {
        // The product is below 2^46; folding it at bit 31 is the remainder but for one possible
        // subtraction.
        let product = u64::from(self.seed) * 16807;
        let mut folded = (product >> 31) + (product & Self::MODULUS);
        if folded > Self::MODULUS {
            folded -= Self::MODULUS;
        }
        self.seed = folded as u32;
        self.seed
    }

    /// A number below `bound`; 0 if `bound` is 0.
    #[inline]
    pub fn uniform(&mut self, bound: u64) -> u64 {
        u64::from(self.draw()).checked_rem(bound).unwrap_or(0)
    }
}

/// Which published program's key sequence a run follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyGeneration {
    /// LevelDB's.
    LevelDb,
    /// RocksDB's: the 64-bit Mersenne Twister.
    RocksDb,
}

/// A thread's source of random keys.
#[derive(Debug, Clone)]
pub enum KeyRandom {
    /// See [`KeyGeneration::LevelDb`].
    Lehmer(LehmerRandom),
    /// See [`KeyGeneration::RocksDb`].
    Mersenne(Box<Mt64>),
}

impl KeyRandom {
    /// The generator for a thread with this seed.
    pub fn new(generation: KeyGeneration, seed: u64) -> KeyRandom {
        match generation {
            KeyGeneration::LevelDb => KeyRandom::Lehmer(LehmerRandom::new(seed as u32)),
            KeyGeneration::RocksDb => KeyRandom::Mersenne(Box::new(Mt64::new(seed))),
        }
    }

    /// The next number of the sequence.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        match self {
            KeyRandom::Lehmer(random) => u64::from(random.draw()),
            KeyRandom::Mersenne(random) => random.next_u64(),
        }
    }

    /// A number below `bound`; 0 if `bound` is 0.
    #[inline]
    pub fn uniform(&mut self, bound: u64) -> u64 {
        self.draw().checked_rem(bound).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lehmer_draws_are_the_published_ones() {
        let mut random = LehmerRandom::new(1001);
        let draws: Vec<u32> = (0..5).map(|_| random.draw()).collect();
        assert_eq!(draws, [16823807, 1437366492, 775085941, 233607685, 644255079]);
        let mut random = LehmerRandom::new(301);
        let draws: Vec<u32> = (0..5).map(|_| random.draw()).collect();
        assert_eq!(draws, [5058907, 1273187716, 938884104, 115297772, 779404410]);
    }

    #[test]
    fn seeds_that_would_stand_still_become_one() {
        for seed in [0, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1] {
            assert_eq!(LehmerRandom::new(seed).draw(), 16807);
        }
        assert_eq!(LehmerRandom::new(1).uniform(0), 0);
    }

    #[test]
    fn mersenne_is_the_standard_one() {
        // The 10000th draw of the default seed is fixed by the C++ standard.
        let mut random = KeyRandom::new(KeyGeneration::RocksDb, 5489);
        let mut last = 0;
        for _ in 0..10_000 {
            last = random.draw();
        }
        assert_eq!(last, 9_981_545_732_273_789_042);
    }
}
