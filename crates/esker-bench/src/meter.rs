//! What one client thread counts and times while it works.
//!
//! A latency is the time since the previous operation of the same thread finished, so making the key and the value is part of it and one
//! reading of the clock per operation is enough. Where latencies are sampled, the clock is read after the operation before the measured
//! one and after the measured one.

use crate::flags::config::Latency;
use crate::interrupt::Interrupt;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Sampling of scans where latencies are chosen automatically.
pub const SCAN_SAMPLING: u32 = 64;

/// Length of one interval of the throughput series as threads collect it.
pub const SERIES_INTERVAL: Duration = Duration::from_millis(100);

/// How long a thread works before it looks whether it should end and says how far it is.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(20);

/// What the threads of a benchmark share.
#[derive(Debug)]
pub struct Control {
    /// Operations done, as far as threads have said.
    pub done: AtomicU64,
    interrupt: Interrupt,
    failed: AtomicBool,
    limit: Option<Duration>,
}

impl Control {
    /// For one benchmark, which ends early on `interrupt` or after `limit`.
    pub fn new(interrupt: &Interrupt, limit: Option<Duration>) -> Control {
        Control { done: AtomicU64::new(0), interrupt: interrupt.clone(), failed: AtomicBool::new(false), limit }
    }

    /// Ends the benchmark for all threads, because one of them failed.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    fn should_stop(&self, elapsed: Duration) -> bool {
        self.interrupt.is_requested()
            || self.failed.load(Ordering::Relaxed)
            || self.limit.is_some_and(|limit| elapsed >= limit)
    }
}

/// The counts and times of one thread.
#[derive(Debug)]
pub struct Meter<'a> {
    control: &'a Control,
    latency: Latency,
    histogram: Option<Histogram<u64>>,
    started: Instant,
    last: Instant,
    /// The operation count at which the clock is read next.
    next_clock: u64,
    /// Whether `last` is the end of the operation before the current one, so that the current one can be measured.
    marked: bool,
    /// Operations between clock readings where no latencies are taken; adapts to their speed.
    stride: u64,
    next_publish: Instant,
    published: u64,
    stop: bool,
    done: u64,
    bytes: u64,
    series: Vec<u64>,
    series_counted: u64,
    report_every: u64,
    next_report: u64,
}

impl<'a> Meter<'a> {
    /// A meter that starts now. [`Latency::Automatic`] counts as [`Latency::Every`]; the caller knows which benchmarks are scans.
    pub fn new(control: &'a Control, latency: Latency, report_every: u64) -> Meter<'a> {
        let latency = match latency {
            Latency::Automatic | Latency::Sampled(0 | 1) => Latency::Every,
            other => other,
        };
        let histogram = (latency != Latency::Off).then(new_histogram);
        let now = Instant::now();
        let mut meter = Meter {
            control,
            latency,
            histogram,
            started: now,
            last: now,
            next_clock: 1,
            marked: true,
            stride: 1,
            next_publish: now,
            published: 0,
            stop: false,
            done: 0,
            bytes: 0,
            series: Vec::new(),
            series_counted: 0,
            report_every,
            next_report: if report_every == 0 { u64::MAX } else { report_every },
        };
        meter.restart();
        meter
    }

    /// Sets the start to now: nothing before it counts.
    pub fn restart(&mut self) {
        let now = Instant::now();
        self.started = now;
        self.last = now;
        self.next_publish = now + PUBLISH_INTERVAL;
        if let Latency::Sampled(every) = self.latency {
            self.next_clock = u64::from(every) - 1;
            self.marked = false;
        }
    }

    /// Counts one operation of `bytes` as finished.
    #[inline]
    pub fn finished(&mut self, bytes: usize) {
        self.done += 1;
        self.bytes += bytes as u64;
        if self.done >= self.next_clock {
            self.read_clock();
        }
    }

    fn read_clock(&mut self) {
        let now = Instant::now();
        let since = now - self.last;
        // Without latencies there is no histogram.
        if let (true, Some(histogram)) = (self.marked, &mut self.histogram) {
            histogram.saturating_record(nanoseconds(since).max(1));
        }
        self.next_clock = self.done
            + match self.latency {
                Latency::Every | Latency::Automatic => 1,
                Latency::Sampled(every) if self.marked => u64::from(every) - 1,
                Latency::Sampled(_) => 1,
                Latency::Off => {
                    self.stride = adapt(self.stride, since);
                    self.stride
                }
            };
        if matches!(self.latency, Latency::Sampled(_)) {
            self.marked = !self.marked;
        }
        self.last = now;
        if now >= self.next_publish || self.done >= self.next_report {
            self.publish(now);
        }
    }

    fn publish(&mut self, now: Instant) {
        let elapsed = now - self.started;
        self.control.done.fetch_add(self.done - self.published, Ordering::Relaxed);
        self.published = self.done;
        self.next_publish = now + PUBLISH_INTERVAL;
        self.stop = self.stop || self.control.should_stop(elapsed);
        self.count_series(elapsed);
        if self.done >= self.next_report {
            let seconds = elapsed.as_secs_f64();
            eprintln!("... thread: finished {} operations after {seconds:.1} s", self.done);
            self.next_report = self.done + self.report_every;
        }
    }

    fn count_series(&mut self, elapsed: Duration) {
        const LONGEST: usize = 1_000_000;
        let slot = ((elapsed.as_nanos() / SERIES_INTERVAL.as_nanos()) as usize).min(LONGEST);
        if self.series.len() <= slot {
            self.series.resize(slot + 1, 0);
        }
        self.series[slot] += self.done - self.series_counted;
        self.series_counted = self.done;
    }

    /// Whether the thread should end before its operations are done.
    #[inline]
    pub fn should_stop(&self) -> bool {
        self.stop
    }

    /// Operations so far.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Ends the timing.
    pub fn finish(mut self) -> ThreadTimes {
        let finished = Instant::now();
        self.count_series(finished - self.started);
        self.control.done.fetch_add(self.done - self.published, Ordering::Relaxed);
        ThreadTimes {
            started: self.started,
            finished,
            ops: self.done,
            bytes: self.bytes,
            histogram: self.histogram,
            series: self.series,
            stopped: self.stop,
        }
    }
}

/// Keeps the readings of a slow benchmark frequent and those of a fast one rare.
fn adapt(stride: u64, since: Duration) -> u64 {
    if since < Duration::from_millis(2) {
        (stride * 2).min(4096)
    } else if since > Duration::from_millis(10) {
        (stride / 2).max(1)
    } else {
        stride
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A latency histogram in nanoseconds, from one nanosecond to one hour with three digits.
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
    /// Operations per [`SERIES_INTERVAL`].
    pub series: Vec<u64>,
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
    /// Operations per interval.
    pub series: Vec<u64>,
    /// Seconds of an interval.
    pub series_interval_s: f64,
    /// Operations in the worst second and in the median one; `None` below two seconds.
    pub seconds: Option<(f64, f64)>,
    /// Whether any thread ended early.
    pub stopped: bool,
}

/// The worst window of one second, beginning at any interval, and the median of the windows that follow each other.
/// The last interval is not whole, and left out.
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
            total.sum_thread_s += (thread.finished - thread.started).as_secs_f64();
            if total.series.len() < thread.series.len() {
                total.series.resize(thread.series.len(), 0);
            }
            for (sum, count) in total.series.iter_mut().zip(&thread.series) {
                *sum += count;
            }
            match (&mut total.histogram, thread.histogram) {
                (Some(sum), Some(histogram)) => {
                    // Both have the bounds of `new_histogram`, so nothing can fail to fit.
                    let _ = sum.add(&histogram);
                }
                (empty, histogram) => *empty = histogram,
            }
        }
        total.seconds = worst_and_median_second(&total.series);
        while total.series.len() > 600 {
            total.series = total.series.chunks(2).map(|pair| pair.iter().sum()).collect();
            total.series_interval_s *= 2.0;
        }
        total
    }

    /// A latency quantile in microseconds; 0 without latencies.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        self.histogram.as_ref().map_or(0.0, |h| h.value_at_quantile(quantile) as f64 / 1000.0)
    }

    /// The occupied buckets, each about a fifth wider than the one before: upper bound in microseconds, and operations.
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

    fn run(latency: Latency, ops: u64) -> ThreadTimes {
        let control = Control::new(&Interrupt::new(), None);
        let mut meter = Meter::new(&control, latency, 0);
        for _ in 0..ops {
            meter.finished(10);
        }
        let times = meter.finish();
        assert_eq!(control.done.load(Ordering::Relaxed), ops);
        assert_eq!(times.series.iter().sum::<u64>(), ops);
        assert_eq!((times.ops, times.bytes), (ops, 10 * ops));
        times
    }

    #[test]
    fn latencies_are_taken_as_asked() {
        assert_eq!(run(Latency::Every, 1000).histogram.unwrap().len(), 1000);
        assert_eq!(run(Latency::Automatic, 1000).histogram.unwrap().len(), 1000);
        assert_eq!(run(Latency::Sampled(64), 6400).histogram.unwrap().len(), 100);
        assert_eq!(run(Latency::Sampled(2), 1000).histogram.unwrap().len(), 500);
        assert!(run(Latency::Off, 100_000).histogram.is_none());
    }

    #[test]
    fn totals_add_threads_up() {
        let start = Instant::now();
        let thread = |from: u64, to: u64, ops: u64| ThreadTimes {
            started: start + Duration::from_secs(from),
            finished: start + Duration::from_secs(to),
            ops,
            bytes: ops * 2,
            histogram: None,
            series: vec![1; 1000],
            stopped: false,
        };
        let total = Total::of(vec![thread(0, 4, 10), thread(1, 6, 20)]);
        assert_eq!((total.ops, total.bytes), (30, 60));
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
    fn an_interrupt_and_a_limit_stop_the_thread() {
        let interrupt = Interrupt::new();
        let control = Control::new(&interrupt, None);
        let mut meter = Meter::new(&control, Latency::Off, 0);
        interrupt.request();
        let begin = Instant::now();
        while !meter.should_stop() && begin.elapsed() < Duration::from_secs(20) {
            meter.finished(0);
        }
        assert!(meter.finish().stopped);
        let control = Control::new(&Interrupt::new(), Some(Duration::from_millis(30)));
        let mut meter = Meter::new(&control, Latency::Every, 0);
        while !meter.should_stop() && begin.elapsed() < Duration::from_secs(20) {
            meter.finished(0);
        }
        assert!(meter.should_stop());
    }

    #[test]
    fn buckets_hold_every_latency() {
        let mut histogram = new_histogram();
        for nanoseconds in [1, 100, 100, 5_000, 90_000_000] {
            histogram.saturating_record(nanoseconds);
        }
        let total = Total { histogram: Some(histogram), ..Total::default() };
        assert_eq!(total.buckets().iter().map(|(_, count)| count).sum::<u64>(), 5);
        assert!((total.quantile_us(0.5) - 0.1).abs() < 0.001);
    }
}
