//! What the threads of a benchmark measured, and the sums.

use crate::record::{Percentiles, Record};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// Length of one interval of the throughput series as threads collect it.
pub const SERIES_INTERVAL: Duration = Duration::from_millis(100);

/// A histogram of latencies in nanoseconds, from one nanosecond to one hour with three digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("constant bounds that the library documents as valid")
}

/// What a thread measured, or several together.
#[derive(Debug, Default)]
pub struct Times {
    /// From the first start to the last finish.
    pub span: Option<(Instant, Instant)>,
    /// Sum of the threads' times.
    pub of_threads: Duration,
    /// Operations.
    pub ops: u64,
    /// Bytes.
    pub bytes: u64,
    /// Latencies in nanoseconds, if taken.
    pub histogram: Option<Histogram<u64>>,
    /// What the longest operation of those that were not measured one by one took at least.
    pub longest_not_measured: Duration,
    /// At a fixed rate: times in nanoseconds from when operations really started.
    pub service: Option<Histogram<u64>>,
    /// Operations per [`SERIES_INTERVAL`].
    pub series: Vec<u64>,
    /// CPU time of looking at the clock, again and again, until an operation was due.
    pub spun: Duration,
    /// Whether a thread ended before its operations were done.
    pub stopped: bool,
}

fn sum(one: Option<Histogram<u64>>, other: Option<Histogram<u64>>) -> Option<Histogram<u64>> {
    match (one, other) {
        (Some(mut sum), Some(other)) => {
            // Both have the bounds of `new_histogram`, so nothing can fail to fit.
            let _ = sum.add(&other);
            Some(sum)
        }
        (one, other) => one.or(other),
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

impl Times {
    /// Of `ops` operations one after another, from `start` on.
    pub fn of_one(ops: u64, start: Instant, took: Duration) -> Times {
        Times { ops, span: Some((start, start + took)), of_threads: took, ..Times::default() }
    }

    /// Of these and other threads.
    pub fn and(self, other: Times) -> Times {
        let (mut series, shorter) = if self.series.len() < other.series.len() {
            (other.series, self.series)
        } else {
            (self.series, other.series)
        };
        series.iter_mut().zip(shorter).for_each(|(sum, count)| *sum += count);
        let span = match (self.span, other.span) {
            (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
            (one, other) => one.or(other),
        };
        Times {
            span,
            of_threads: self.of_threads + other.of_threads,
            ops: self.ops + other.ops,
            bytes: self.bytes + other.bytes,
            histogram: sum(self.histogram, other.histogram),
            longest_not_measured: self.longest_not_measured.max(other.longest_not_measured),
            service: sum(self.service, other.service),
            series,
            spun: self.spun + other.spun,
            stopped: self.stopped || other.stopped,
        }
    }

    /// Seconds of the whole span.
    pub fn wall_s(&self) -> f64 {
        self.span.map_or(0.0, |(start, finish)| (finish - start).as_secs_f64())
    }

    /// Latencies; 0 without any. The longest is the longest that is known.
    pub fn latency(&self) -> Percentiles {
        let measured = self.histogram.as_ref().map(percentiles).unwrap_or_default();
        let not_measured_us = self.longest_not_measured.as_secs_f64() * 1e6;
        Percentiles { max_us: measured.max_us.max(not_measured_us), ..measured }
    }

    /// The occupied buckets, each about a fifth wider than the one before: upper bound in
    /// microseconds, and operations.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let Some(histogram) = self.histogram.as_ref().filter(|h| !h.is_empty()) else { return Vec::new() };
        histogram
            .iter_log(10, 1.2)
            .filter(|bucket| bucket.count_since_last_iteration() > 0)
            .map(|bucket| (bucket.value_iterated_to() as f64 / 1000.0, bucket.count_since_last_iteration()))
            .collect()
    }

    /// Derives a record's figures. Series are made coarser until they have at most 600 intervals.
    pub fn fill_in(self, record: &mut Record) {
        // A benchmark without operations (a scan of an empty database) shows its duration as that
        // of one, as db_bench does.
        let ops = self.ops.max(1) as f64;
        record.ops = self.ops;
        record.bytes = self.bytes;
        record.wall_s = self.wall_s();
        record.sum_thread_s = self.of_threads.as_secs_f64();
        record.micros_per_op = record.sum_thread_s * 1e6 / ops;
        record.micros_per_op_wall = record.wall_s * 1e6 / ops;
        record.ops_per_sec = self.ops as f64 / record.wall_s.max(1e-9);
        record.mb_per_sec = self.bytes as f64 / 1_048_576.0 / record.wall_s.max(1e-9);
        record.latency = self.latency();
        record.service = self.service.as_ref().map(percentiles);
        record.histogram = self.buckets();
        (record.worst_second_ops, record.median_second_ops) = worst_and_median_second(&self.series).unzip();
        record.series = self.series;
        record.series_interval_s = if record.series.is_empty() { 0.0 } else { SERIES_INTERVAL.as_secs_f64() };
        while record.series.len() > 600 {
            record.series = record.series.chunks(2).map(|pair| pair.iter().sum()).collect();
            record.series_interval_s *= 2.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_added_up() {
        let start = Instant::now();
        let thread = |from_s: u64, to_s: u64, ops: u64| Times {
            bytes: ops * 2,
            longest_not_measured: Duration::from_micros(ops),
            series: vec![1; 1000],
            ..Times::of_one(ops, start + Duration::from_secs(from_s), Duration::from_secs(to_s - from_s))
        };
        let mut record = Record::default();
        thread(0, 4, 10).and(thread(1, 6, 20)).fill_in(&mut record);
        assert_eq!((record.ops, record.bytes, record.latency.max_us), (30, 60, 20.0));
        assert_eq!((record.wall_s, record.sum_thread_s), (6.0, 9.0));
        assert_eq!((record.series.len(), record.series.iter().sum::<u64>()), (500, 2000));
        assert_eq!(record.series_interval_s, 0.2);
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
        let times = Times { histogram: Some(histogram), ..Times::default() };
        assert_eq!(times.buckets().iter().map(|(_, count)| count).sum::<u64>(), 5);
        assert!((times.latency().p50_us - 0.1).abs() < 0.001);
    }
}
