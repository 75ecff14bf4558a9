//! Histograms of how long calls take.
//!
//! Buckets are log-linear: eight for each doubling, so that a bucket is at most an eighth wider
//! than where it begins. Those below eight nanoseconds have one nanosecond each.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets for each doubling, as a power of two.
const SUB_BITS: u32 = 3;
const SUBS: u64 = 1 << SUB_BITS;
/// What takes longer counts as so long, about 18 minutes.
const LONGEST_NANOS: u64 = (1 << 40) - 1;
const BUCKETS: usize = bucket(LONGEST_NANOS) + 1;

/// The number of the bucket that so many nanoseconds are in.
const fn bucket(nanos: u64) -> usize {
    if nanos < SUBS {
        return nanos as usize;
    }
    let exponent = 63 - nanos.leading_zeros();
    let sub = (nanos >> (exponent - SUB_BITS)) % SUBS;
    ((exponent - SUB_BITS + 1) as u64 * SUBS + sub) as usize
}

/// The nanoseconds from which on a duration is beyond the bucket.
const fn end(bucket: usize) -> u64 {
    let (doubling, sub) = (bucket as u64 / SUBS, bucket as u64 % SUBS);
    match doubling {
        0 => sub + 1,
        _ => (SUBS + sub + 1) << (doubling - 1),
    }
}

/// A histogram that any thread adds to.
pub struct AtomicHistogram {
    buckets: [AtomicU64; BUCKETS],
    sum_nanos: AtomicU64,
}

impl Default for AtomicHistogram {
    fn default() -> AtomicHistogram {
        AtomicHistogram { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum_nanos: AtomicU64::new(0) }
    }
}

impl AtomicHistogram {
    /// Adds one.
    pub fn add(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(LONGEST_NANOS).min(LONGEST_NANOS);
        self.sum_nanos.fetch_add(nanos, Relaxed);
        if let Some(count) = self.buckets.get(bucket(nanos)) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Adds what is in it to `sum`.
    pub fn add_to(&self, sum: &mut LatencyHistogram) {
        sum.buckets.resize(BUCKETS, 0);
        sum.sum_nanos += self.sum_nanos.load(Relaxed);
        for (sum, count) in sum.buckets.iter_mut().zip(&self.buckets) {
            *sum += count.load(Relaxed);
        }
    }
}

/// How long calls have taken: a count for each of some hundred ranges, each of which ends at most
/// an eighth above where it begins.
///
/// ```
/// # let options = esker::Options::default().env(std::sync::Arc::new(esker::env::mem::MemEnv::new()));
/// # let db = esker::Db::open("data", options.latency_histograms(true))?;
/// struct Print;
/// impl esker::Recorder for Print {
///     fn histogram(&mut self, metric: &'static esker::Metric, latencies: &esker::LatencyHistogram) {
///         println!("{}: {} calls, 99 of 100 within {:?}", metric.name, latencies.count(), latencies.quantile(0.99));
///     }
/// }
/// db.record(&mut Print);
/// # Ok::<(), esker::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LatencyHistogram {
    buckets: Vec<u64>,
    sum_nanos: u64,
}

impl LatencyHistogram {
    /// How many calls were measured.
    ///
    /// ```
    /// assert_eq!(esker::LatencyHistogram::default().count(), 0);
    /// ```
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// How long they took together.
    ///
    /// ```
    /// assert!(esker::LatencyHistogram::default().sum().is_zero());
    /// ```
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos)
    }

    /// Within what time this part of the calls was done, between 0 and 1, too long by at most an
    /// eighth; zero if none was measured.
    ///
    /// ```
    /// assert!(esker::LatencyHistogram::default().quantile(0.99).is_zero());
    /// ```
    pub fn quantile(&self, part: f64) -> Duration {
        let wanted = (part.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        Duration::from_nanos(found.map_or(0, end))
    }

    /// The ranges with calls in them, ascending: where each ends, and how many calls it has.
    ///
    /// ```
    /// assert_eq!(esker::LatencyHistogram::default().buckets().count(), 0);
    /// ```
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let all = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        all.map(|(bucket, count)| (Duration::from_nanos(end(bucket)), *count))
    }

    /// How many calls took less than `time`, which is exact for a power of two of nanoseconds.
    ///
    /// ```
    /// # use std::time::Duration;
    /// assert_eq!(esker::LatencyHistogram::default().count_below(Duration::from_nanos(1 << 20)), 0);
    /// ```
    pub fn count_below(&self, time: Duration) -> u64 {
        self.buckets().take_while(|(end, _)| *end <= time).map(|(_, count)| count).sum()
    }
}

impl fmt::Debug for LatencyHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls, median {:?}, 99% {:?}", self.count(), self.quantile(0.5), self.quantile(0.99))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_in_the_bucket_that_ends_behind_it() {
        for nanos in (0..5000).chain((3..40).flat_map(|shift| [(1 << shift) - 1, 1 << shift, (1 << shift) + 1])) {
            let found = bucket(nanos);
            assert!(nanos < end(found), "{nanos}");
            assert!(found == 0 || nanos >= end(found - 1), "{nanos}");
            assert!(end(found) - nanos <= 1 + nanos / SUBS, "{nanos}");
        }
        assert_eq!(end(BUCKETS - 1), LONGEST_NANOS + 1);
    }

    #[test]
    fn what_was_added_is_counted_and_found_again() {
        let histogram = AtomicHistogram::default();
        for micros in 1..=1000 {
            histogram.add(Duration::from_micros(micros));
        }
        histogram.add(Duration::MAX);
        let mut sum = LatencyHistogram::default();
        histogram.add_to(&mut sum);
        histogram.add_to(&mut sum);
        assert_eq!(sum.count(), 2002);
        assert_eq!(sum.sum(), 2 * (Duration::from_micros(500_500) + Duration::from_nanos(LONGEST_NANOS)));
        let median = sum.quantile(0.5).as_secs_f64() * 1e6;
        assert!((500.0..=563.0).contains(&median), "{median}");
        assert!(sum.quantile(0.0) > Duration::from_nanos(999));
        assert_eq!(sum.quantile(1.0), Duration::from_nanos(LONGEST_NANOS + 1));
        assert_eq!(sum.count_below(Duration::from_nanos(1 << 17)), 2 * 131);
        assert_eq!(sum.buckets().map(|(_, count)| count).sum::<u64>(), 2002);
    }
}
