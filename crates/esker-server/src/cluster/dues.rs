//! When keys may expire, as far as a replica knows: then the leader has time go on.

use std::collections::BTreeSet;

/// Times that are so near to each other are one.
const WIDTH_MS: u64 = 100;
/// How many times are kept one by one: some MiB of memory.
const MOST: usize = 100_000;

/// When keys may expire. Each expiry that the state has is covered, by its time or by a range; what
/// is covered and does not expire any more, as its key was deleted, costs an entry of the log at
/// most.
#[derive(Debug, Default)]
pub struct Dues {
    /// Times, in units of [`WIDTH_MS`], rounded down.
    times: BTreeSet<u64>,
    /// The first and the last millisecond of a range in which any may be one.
    range: Option<(u64, u64)>,
}

impl Dues {
    /// Notes that a key expires.
    pub fn add(&mut self, at_ms: u64) {
        if self.range.is_some_and(|(first, last)| (first..=last).contains(&at_ms)) {
            return;
        }
        self.times.insert(at_ms / WIDTH_MS);
        // The latest ones are kept as a range, for as long as there are too many.
        if self.times.len() > MOST
            && let Some(time) = self.times.pop_last()
        {
            self.widen(time * WIDTH_MS, end_ms(time));
        }
    }

    /// Notes that any number of keys expire at any time up to this one.
    pub fn add_all_until(&mut self, last_ms: u64) {
        if last_ms > 0 {
            self.widen(0, last_ms);
        }
    }

    fn widen(&mut self, first_ms: u64, last_ms: u64) {
        let (first, last) = self.range.unwrap_or((first_ms, last_ms));
        self.range = Some((first.min(first_ms), last.max(last_ms)));
    }

    /// Forgets what has expired at a time, and what was left of it is removed.
    pub fn remove_until(&mut self, time_ms: u64) {
        // A time stays until its last millisecond is there.
        while self.times.first().is_some_and(|&time| end_ms(time) <= time_ms) {
            self.times.pop_first();
        }
        if self.range.is_some_and(|(_, last)| last <= time_ms) {
            self.range = None;
        }
    }

    /// The first time at which something may expire, or have expired.
    pub fn first_ms(&self) -> Option<u64> {
        let time = self.times.first().map(|time| time * WIDTH_MS);
        let range = self.range.map(|(first, _)| first);
        time.into_iter().chain(range).min()
    }
}

/// The last millisecond of a time.
fn end_ms(time: u64) -> u64 {
    (time * WIDTH_MS).saturating_add(WIDTH_MS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Random;

    /// Whatever is noted is due at its time, for as long as it has not passed.
    #[test]
    fn what_is_noted_becomes_due() {
        let seed = std::env::var("ESKER_SEED").map_or(1, |seed| seed.parse().unwrap());
        println!("ESKER_SEED={seed}");
        let mut random = Random::new(seed);
        let (mut dues, mut noted, mut now_ms) = (Dues::default(), BTreeSet::new(), 0);
        for _ in 0..100_000 {
            match random.below(10) {
                0 => {
                    now_ms += random.below(1000);
                    dues.remove_until(now_ms);
                    noted = noted.split_off(&(now_ms + 1));
                }
                1 if random.below(100) == 0 => {
                    let last_ms = now_ms + random.below(1000);
                    dues.add_all_until(last_ms);
                    noted.insert(last_ms);
                }
                _ => {
                    let at_ms = now_ms + random.below(5000);
                    dues.add(at_ms);
                    noted.insert(at_ms);
                }
            }
            let first_ms = dues.first_ms();
            if let Some(&at_ms) = noted.first() {
                assert!(first_ms.is_some_and(|first_ms| first_ms <= at_ms), "{at_ms}: {first_ms:?} at {now_ms}");
            }
        }
        dues.remove_until(u64::MAX);
        assert_eq!(dues.first_ms(), None);
    }

    /// A time that is not near is waited for, and then once.
    #[test]
    fn only_what_is_noted_is_due() {
        let mut dues = Dues::default();
        assert_eq!(dues.first_ms(), None);
        dues.add(12_345);
        dues.add(7_000_000);
        assert_eq!(dues.first_ms(), Some(12_300));
        dues.remove_until(12_398);
        assert_eq!(dues.first_ms(), Some(12_300));
        dues.remove_until(12_399);
        assert_eq!(dues.first_ms(), Some(7_000_000));
        dues.add(u64::MAX);
        dues.remove_until(8_000_000);
        assert!(dues.first_ms().is_some_and(|first_ms| first_ms > 8_000_000));
    }

    /// There are never more than so many, and the range takes the latest.
    #[test]
    fn the_latest_of_too_many_are_a_range() {
        let mut dues = Dues::default();
        let most = MOST as u64;
        (1..=most + 10).for_each(|time| dues.add(time * WIDTH_MS));
        assert_eq!((dues.times.len(), dues.first_ms()), (MOST, Some(WIDTH_MS)));
        // Those that the range has are not kept beside it.
        assert_eq!(dues.range, Some(((most + 1) * WIDTH_MS, end_ms(most + 10))));
        dues.remove_until(most * WIDTH_MS + WIDTH_MS);
        assert_eq!(dues.first_ms(), Some((most + 1) * WIDTH_MS));
        dues.remove_until(end_ms(most + 10));
        assert_eq!(dues.first_ms(), None);
    }
}
