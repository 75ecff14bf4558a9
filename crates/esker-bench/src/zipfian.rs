//! Ranks drawn with a Zipfian distribution, as published workloads draw popular keys: rank `r`
//! (from 0) with a probability proportional to `1 / (r + 1)^0.99`. One power per draw, by the
//! approximation of Gray et al., "Quickly generating billion-record synthetic databases".

const THETA: f64 = 0.99;

/// The distribution over a number of ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zipfian {
    ranks: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// The distribution over `ranks` ranks, at least one. Cheap for any number.
    pub fn new(ranks: u64) -> Zipfian {
        let ranks = ranks.max(1);
        let zeta = zeta(ranks);
        let eta = (1.0 - (2.0 / ranks as f64).powf(1.0 - THETA)) / (1.0 - zeta_exact(2) / zeta);
        Zipfian { ranks, zeta, eta }
    }

    /// The rank for a number that is uniform in 0..1.
    #[inline]
    pub fn rank(&self, uniform: f64) -> u64 {
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(THETA) {
            return 1.min(self.ranks - 1);
        }
        let rank = self.ranks as f64 * (self.eta * uniform - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        (rank as u64).min(self.ranks - 1)
    }

    /// The number of the key with that rank: popular keys are spread over all of them. Some numbers
    /// share a key, as with any hash.
    #[inline]
    pub fn key(&self, uniform: f64) -> u64 {
        scatter(self.rank(uniform)) % self.ranks
    }
}

/// A bijection of 64-bit numbers that looks random (the finaliser of MurmurHash3).
#[inline]
pub fn scatter(number: u64) -> u64 {
    let mut hash = number ^ (number >> 33);
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

fn zeta_exact(ranks: u64) -> f64 {
    (1..=ranks).map(|rank| (rank as f64).powf(-THETA)).sum()
}

/// The sum of `1 / r^0.99` over all ranks: the first ones exactly, the rest by the Euler-Maclaurin
/// formula.
fn zeta(ranks: u64) -> f64 {
    const EXACT: u64 = 10_000;
    if ranks <= EXACT {
        return zeta_exact(ranks);
    }
    let (from, to) = (EXACT as f64, ranks as f64);
    let integral = (to.powf(1.0 - THETA) - from.powf(1.0 - THETA)) / (1.0 - THETA);
    zeta_exact(EXACT) + integral + (to.powf(-THETA) - from.powf(-THETA)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::LehmerRandom;

    #[test]
    fn the_sum_is_approximated_well() {
        assert!((zeta(300_000) / zeta_exact(300_000) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn few_keys_get_most_draws() {
        let zipfian = Zipfian::new(100_000);
        let mut random = LehmerRandom::new(7);
        let mut ranks = vec![0u32; 100_000];
        for _ in 0..200_000 {
            ranks[zipfian.rank(random.uniform(1 << 30) as f64 / (1u64 << 30) as f64) as usize] += 1;
        }
        let first = f64::from(ranks[0]) / 200_000.0;
        assert!((first * zipfian.zeta - 1.0).abs() < 0.1, "{first}");
        let hundredth: u32 = ranks[..1000].iter().sum();
        assert!((110_000..140_000).contains(&hundredth), "{hundredth}");
        assert!(ranks[50_000..].iter().sum::<u32>() > 5_000);
    }

    #[test]
    fn extremes_stay_inside() {
        for ranks in [0, 1, 2, 3, 1_000_000] {
            let zipfian = Zipfian::new(ranks);
            for uniform in [0.0, 0.3, 0.999_999_999, 1.0] {
                assert!(zipfian.rank(uniform) < ranks.max(1));
                assert!(zipfian.key(uniform) < ranks.max(1));
            }
        }
    }
}
