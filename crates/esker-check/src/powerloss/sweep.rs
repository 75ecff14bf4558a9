//! The order of a sweep over all calls.

use crate::random::Random;

/// At most so many calls of one kind, of one script under one set of options, are among the first.
const FIRST_CALLS: u64 = 24;
/// Of kinds with more calls than this one in several is taken, evenly spread: a long scan checks
/// its mapping millions of times.
const MOST_CALLS: u64 = 10_000;

/// A piece of work for every call. First come some calls of each kind, evenly spread over its run
/// from a start by chance, and then the rest: a sweep that ends early has not spent its time on the
/// kinds that have the most calls.
#[derive(Debug)]
pub struct Sweep<T> {
    first: Vec<T>,
    rest: Vec<T>,
}

impl<T> Sweep<T> {
    /// Over nothing yet.
    pub fn new() -> Sweep<T> {
        Sweep { first: Vec::new(), rest: Vec::new() }
    }

    /// Adds so many calls of one kind.
    pub fn add(&mut self, calls: u64, random: &mut Random, work: impl Fn(u64) -> T) {
        let step = calls.div_ceil(MOST_CALLS).max(1);
        let offset = random.below(step as usize) as u64;
        let taken: Vec<u64> = (0..calls).skip(offset as usize).step_by(step as usize).collect();
        let every = taken.len().div_ceil(FIRST_CALLS as usize).max(1);
        let start = random.below(every);
        for (place, nth) in taken.into_iter().enumerate() {
            let part = if place % every == start { &mut self.first } else { &mut self.rest };
            part.push(work(nth));
        }
    }

    /// All of it, either part shuffled, so that a run that ends early has still seen a bit of
    /// everything.
    pub fn shuffled(mut self, random: &mut Random) -> Vec<T> {
        random.shuffle(&mut self.first);
        random.shuffle(&mut self.rest);
        self.first.append(&mut self.rest);
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_its_turn_and_a_few_of_each_kind_have_it_first() {
        for seed in 0..50 {
            let random = &mut Random::new(seed);
            let kinds = [0, 1, FIRST_CALLS, FIRST_CALLS + 1, 1000];
            let mut sweep = Sweep::new();
            for (kind, &calls) in kinds.iter().enumerate() {
                sweep.add(calls, random, |nth| (kind, nth));
            }
            for (kind, &calls) in kinds.iter().enumerate() {
                let first = sweep.first.iter().filter(|work| work.0 == kind).count() as u64;
                assert!(first <= FIRST_CALLS && (first > 0 || calls == 0), "seed {seed}: {first} of {calls}");
            }
            let mut all = sweep.shuffled(random);
            all.sort_unstable();
            let expected = kinds.iter().enumerate().flat_map(|(kind, &calls)| (0..calls).map(move |nth| (kind, nth)));
            assert!(all.into_iter().eq(expected), "seed {seed}");
        }
    }

    #[test]
    fn of_very_many_calls_some_are_taken_everywhere() {
        let calls = 7 * MOST_CALLS + 3;
        let mut sweep = Sweep::new();
        sweep.add(calls, &mut Random::new(5), |nth| nth);
        let mut all = sweep.shuffled(&mut Random::new(5));
        all.sort_unstable();
        assert!(all.len() as u64 <= MOST_CALLS && all[0] < 8 && all[all.len() - 1] >= calls - 8);
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] == 8));
    }

    /// Runs of many seeds come to all of the calls.
    #[test]
    fn another_seed_begins_with_other_calls() {
        let first = |seed| {
            let mut sweep = Sweep::new();
            sweep.add(1000, &mut Random::new(seed), |nth| nth);
            sweep.first
        };
        assert!((0..20).any(|seed| first(seed) != first(0)));
    }
}
