//! What the threads of a benchmark measured, and the sums.

use crate::record::Percentiles;
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// Length of one interval of the throughput series as threads collect it.
pub const SERIES_INTERVAL: Duration = Duration::from_millis(100);

/// A histogram of latencies in nanoseconds, from one nanosecond to one hour with three digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("constant bounds that the library documents as valid")
}

/// What a thread measured.
#[derive(Debug)]
pub struct ThreadTimes {
    /// When it started.
    pub started: Instant,
    /// When it finished.
    pub finished: Instant,
    /// Its operations.
    pub ops: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its latencies in nanoseconds, if taken.
    pub histogram: Option<Histogram<u64>>,
    /// What the longest of its operations that were not measured one by one took at least.
    pub longest_not_measured: Duration,
    /// At a fixed rate: times in nanoseconds from when its operations really started.
    pub service: Option<Histogram<u64>>,
    /// Operations per [`SERIES_INTERVAL`].
    pub series: Vec<u64>,
    /// CPU time that it looked at the clock for, again and again, until an operation was due.
    pub spun: Duration,
    /// Whether it ended before its operations were done.
    pub stopped: bool,
}

/// The times of all threads together.
#[derive(Debug, Default)]
pub struct Total {
    /// Operations.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
    /// Seconds from the first start to the last finish.
    pub wall_s: f64,
    /// Sum of the threads' seconds.
    pub sum_thread_s: f64,
    /// Latencies in nanoseconds, if taken.
    pub histogram: Option<Histogram<u64>>,
    /// What the longest operation of those that were not measured one by one took at least.
    pub longest_not_measured: Duration,
    /// At a fixed rate: times in nanoseconds from when operations really started.
    pub service: Option<Histogram<u64>>,
    /// Operations per interval.
    pub series: Vec<u64>,
    /// Seconds of an interval.
    pub series_interval_s: f64,
    /// Operations in the worst second and in the median one; `None` below two seconds.
    pub seconds: Option<(f64, f64)>,
    /// CPU seconds that threads waited away at a fixed rate.
    pub spun_s: f64,
    /// Whether any thread ended early.
    pub stopped: bool,
}

fn add(sum: &mut Option<Histogram<u64>>, histogram: Option<Histogram<u64>>) {
    match (sum, histogram) {
        (Some(sum), Some(histogram)) => {
            // Both have the bounds of `new_histogram`, so nothing can fail to fit.
            let _ = sum.add(&histogram);
        }
        (empty, histogram) => *empty = histogram,
    }
}

/// The worst window of one second, beginning at any interval, and the median of the windows that
/// follow each other. The last interval is not whole, and left out.
fn worst_and_median_second(series: &[u64]) -> Option<(f64, f64)> {
    let per_second = (1_000 / SERIES_INTERVAL.as_millis()) as usize;
    let whole = &series[..series.len().saturating_sub(1)];
    if whole.len() < 2 * per_second {
        return None;
    }
    let worst = whole.windows(per_second).map(|window| window.iter().sum::<u64>()).min()?;
    let seconds: Vec<f64> = whole.chunks_exact(per_second).map(|window| window.iter().sum::<u64>() as f64).collect();
    Some((worst as f64, crate::stats::median(&seconds)?))
}

fn percentiles(histogram: &Histogram<u64>) -> Percentiles {
    let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1000.0;
    Percentiles {
        p50_us: at(0.5),
        p90_us: at(0.9),
        p99_us: at(0.99),
        p999_us: at(0.999),
        p9999_us: at(0.9999),
        max_us: histogram.max() as f64 / 1000.0,
    }
}

impl Total {
    /// Adds the threads up. Series are made coarser until they have at most 600 intervals.
    pub fn of(threads: Vec<ThreadTimes>) -> Total {
        let mut total = Total { series_interval_s: SERIES_INTERVAL.as_secs_f64(), ..Total::default() };
        let first = threads.iter().map(|t| t.started).min();
        let last = threads.iter().map(|t| t.finished).max();
        if let (Some(first), Some(last)) = (first, last) {
            total.wall_s = (last - first).as_secs_f64();
        }
        for thread in threads {
            total.ops += thread.ops;
            total.bytes += thread.bytes;
            total.stopped |= thread.stopped;
            total.spun_s += thread.spun.as_secs_f64();
            total.sum_thread_s += (thread.finished - thread.started).as_secs_f64();
            if total.series.len() < thread.series.len() {
                total.series.resize(thread.series.len(), 0);
            }
            for (sum, count) in total.series.iter_mut().zip(&thread.series) {
                *sum += count;
            }
            total.longest_not_measured = total.longest_not_measured.max(thread.longest_not_measured);
            add(&mut total.histogram, thread.histogram);
            add(&mut total.service, thread.service);
        }
        total.seconds = worst_and_median_second(&total.series);
        while total.series.len() > 600 {
            total.series = total.series.chunks(2).map(|pair| pair.iter().sum()).collect();
            total.series_interval_s *= 2.0;
        }
        total
    }

    /// Latencies; 0 without any. The longest is the longest that is known.
    pub fn latency(&self) -> Percentiles {
        let measured = self.histogram.as_ref().map(percentiles).unwrap_or_default();
        let not_measured_us = self.longest_not_measured.as_secs_f64() * 1e6;
        Percentiles { max_us: measured.max_us.max(not_measured_us), ..measured }
    }

    /// The times from when operations really started, at a fixed rate.
    pub fn service(&self) -> Option<Percentiles> {
        self.service.as_ref().map(percentiles)
    }

    /// The occupied buckets, each about a fifth wider than the one before: upper bound in
    /// microseconds, and operations.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let Some(histogram) = self.histogram.as_ref().filter(|h| !h.is_empty()) else { return Vec::new() };
        histogram
            .iter_log(10, 1.2)
            .filter(|bucket| bucket.count_since_last_iteration() > 0)
            .map(|bucket| (bucket.value_iterated_to() as f64 / 1000.0, bucket.count_since_last_iteration()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_add_threads_up() {
        let start = Instant::now();
        let thread = |from: u64, to: u64, ops: u64| ThreadTimes {
            started: start + Duration::from_secs(from),
            finished: start + Duration::from_secs(to),
            ops,
            bytes: ops * 2,
            histogram: None,
            longest_not_measured: Duration::from_micros(ops),
            service: None,
            series: vec![1; 1000],
            spun: Duration::ZERO,
            stopped: false,
        };
        let total = Total::of(vec![thread(0, 4, 10), thread(1, 6, 20)]);
        assert_eq!((total.ops, total.bytes), (30, 60));
        assert_eq!(total.latency().max_us, 20.0);
        assert_eq!((total.wall_s, total.sum_thread_s), (6.0, 9.0));
        assert_eq!(total.series.len(), 500);
        assert_eq!(total.series.iter().sum::<u64>(), 2000);
        assert_eq!(total.series_interval_s, 0.2);
        assert_eq!(Total::of(Vec::new()).ops, 0);
    }

    #[test]
    fn the_worst_second_is_found_wherever_it_begins() {
        let mut series = vec![100; 60];
        series[17..23].fill(0);
        assert_eq!(worst_and_median_second(&series), Some((400.0, 1000.0)));
        assert_eq!(worst_and_median_second(&series[..20]), None);
        assert_eq!(worst_and_median_second(&[]), None);
    }

    #[test]
    fn buckets_hold_every_latency() {
        let mut histogram = new_histogram();
        for nanoseconds in [1, 100, 100, 5_000, 90_000_000] {
            histogram.saturating_record(nanoseconds);
        }
        let total = Total { histogram: Some(histogram), ..Total::default() };
        assert_eq!(total.buckets().iter().map(|(_, count)| count).sum::<u64>(), 5);
        assert!((total.latency().p50_us - 0.1).abs() < 0.001);
    }
}
