//! What one client thread counts and times while it works.
//!
//! A latency is the time since the previous operation of the same thread finished, so making the
//! key and the value is part of it and one reading of the clock per operation is enough. Where
//! latencies are sampled, the clock is read after the operation before the measured one and after
//! the measured one. The operations between two measured ones are timed together, so that a pause
//! in one of them is not missed altogether: the longest of them took at least their mean, which
//! counts for the longest latency.
//!
//! At a fixed rate it is the time since the operation should have started, of every operation
//! ([`crate::schedule`]).

use crate::flags::config::Latency;
use crate::interrupt::Interrupt;
use crate::schedule::{Pause, Schedule, Timetable};
use crate::times::{SERIES_INTERVAL, Times, new_histogram};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Sampling of scans where latencies are chosen automatically.
pub const SCAN_SAMPLING: u32 = 64;

/// How long a thread works before it looks whether it should end and says how far it is.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(20);

/// Longer between two looks at the clock, one after the other, a thread that waits was not running.
const RUNNING: Duration = Duration::from_micros(5);

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

/// Where a meter has the time from.
pub trait Clock {
    /// What time it is.
    fn now(&self) -> Instant;
    /// Lets the thread wait so long.
    fn sleep(&self, time: Duration);
    /// Lets the thread wait for a moment, at work.
    fn spin(&self);
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct Machine;

impl Clock for Machine {
    #[inline]
    fn now(&self) -> Instant {
        Instant::now()
    }
    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
    #[inline]
    fn spin(&self) {
        std::hint::spin_loop();
    }
}

/// The counts and times of one thread.
#[derive(Debug)]
pub struct Meter<'a, C: Clock = Machine> {
    clock: C,
    control: &'a Control,
    latency: Latency,
    /// What has been measured so far, but for the time in which it was.
    times: Times,
    timetable: Option<Box<Timetable>>,
    started: Instant,
    last: Instant,
    /// The operation count at which the clock is read next.
    next_clock: u64,
    /// Whether `last` is the end of the operation before the current one, so that the current one
    /// can be measured.
    marked: bool,
    /// Operations between clock readings where no latencies are taken; adapts to their speed.
    stride: u64,
    next_publish: Instant,
    published: u64,
    series_counted: u64,
    report_every: u64,
    next_report: u64,
    /// What lies before the end, and was no part of the benchmark.
    left_out: Duration,
}

impl<'a> Meter<'a> {
    /// A meter that starts now. [`Latency::Automatic`] counts as [`Latency::Every`]; the caller
    /// knows which benchmarks are scans.
    pub fn new(control: &'a Control, latency: Latency, report_every: u64) -> Meter<'a> {
        Meter::by(Machine, control, latency, report_every)
    }
}

impl<'a, C: Clock> Meter<'a, C> {
    /// The same by another clock.
    pub fn by(clock: C, control: &'a Control, latency: Latency, report_every: u64) -> Meter<'a, C> {
        let latency = match latency {
            Latency::Automatic | Latency::Sampled(0 | 1) => Latency::Every,
            other => other,
        };
        let times = Times { histogram: (latency != Latency::Off).then(new_histogram), ..Times::default() };
        let now = clock.now();
        let mut meter = Meter {
            clock,
            control,
            latency,
            times,
            timetable: None,
            started: now,
            last: now,
            next_clock: 1,
            marked: true,
            stride: 1,
            next_publish: now,
            published: 0,
            series_counted: 0,
            report_every,
            next_report: if report_every == 0 { u64::MAX } else { report_every },
            left_out: Duration::ZERO,
        };
        meter.restart();
        meter
    }

    /// The same with operations that start at their times, and the latency of each.
    pub fn with_schedule(mut self, schedule: Schedule) -> Meter<'a, C> {
        (self.latency, self.next_clock, self.marked) = (Latency::Every, 1, true);
        self.times.histogram = Some(new_histogram());
        self.timetable = Some(Box::new(Timetable::new(schedule, self.started)));
        self.restart();
        self
    }

    /// Sets the start to now: nothing before it counts.
    pub fn restart(&mut self) {
        let now = self.clock.now();
        self.times.stopped = false;
        self.started = now;
        self.last = now;
        self.next_publish = now + PUBLISH_INTERVAL;
        self.times.longest_not_measured = Duration::ZERO;
        if let Latency::Sampled(every) = self.latency {
            self.next_clock = u64::from(every) - 1;
            self.marked = false;
        }
    }

    /// Waits until the next operation should start, where there is a schedule. Whether the thread
    /// should go on.
    #[inline]
    pub fn starts(&mut self) -> bool {
        if self.timetable.is_some() {
            self.wait_for_start();
        }
        !self.times.stopped
    }

    fn wait_for_start(&mut self) {
        let Some(mut timetable) = self.timetable.take() else { return };
        timetable.turn_to(self.times.ops, self.started);
        // Where operations are late, the end of one is the start of the next: no clock is read in
        // between.
        let mut now = self.last;
        while !self.times.stopped {
            let pause = timetable.pause(now);
            match pause {
                Pause::Over => break,
                Pause::Spin => self.clock.spin(),
                Pause::Sleep(time) => self.clock.sleep(time.min(PUBLISH_INTERVAL)),
            }
            let before = std::mem::replace(&mut now, self.clock.now());
            if pause == Pause::Spin {
                self.times.spun += Some(now - before).filter(|step| *step <= RUNNING).unwrap_or_default();
            }
            if now >= self.next_publish {
                self.publish(now);
            }
        }
        self.timetable = Some(timetable);
    }

    /// Whether the thread should end, for long work that counts no operation.
    pub fn look(&mut self) -> bool {
        let now = self.clock.now();
        if now >= self.next_publish {
            self.publish(now);
        }
        self.times.stopped
    }

    /// Counts one operation of `bytes` as finished.
    #[inline]
    pub fn finished(&mut self, bytes: usize) {
        self.times.ops += 1;
        self.times.bytes += bytes as u64;
        if self.times.ops >= self.next_clock {
            self.read_clock();
        }
    }

    fn read_clock(&mut self) {
        let now = self.clock.now();
        let since = now - self.last;
        let latency = self.timetable.as_mut().map_or(since, |timetable| timetable.finished(now));
        // Without latencies there is no histogram.
        if let (true, Some(histogram)) = (self.marked, &mut self.times.histogram) {
            histogram.saturating_record(nanoseconds(latency).max(1));
        }
        self.next_clock = self.times.ops
            + match self.latency {
                Latency::Every | Latency::Automatic => 1,
                Latency::Sampled(every) if self.marked => u64::from(every) - 1,
                Latency::Sampled(_) => 1,
                Latency::Off => {
                    self.stride = adapt(self.stride, since);
                    self.stride
                }
            };
        if let Latency::Sampled(every) = self.latency {
            // More than their mean is not known of those between two that were measured, and might
            // wrong an engine whose operations are slow by turns.
            if !self.marked {
                self.times.longest_not_measured = self.times.longest_not_measured.max(since / (every - 1));
            }
            self.marked = !self.marked;
        }
        self.last = now;
        if now >= self.next_publish || self.times.ops >= self.next_report {
            self.publish(now);
        }
    }

    fn publish(&mut self, now: Instant) {
        let elapsed = now - self.started;
        self.control.done.fetch_add(self.times.ops - self.published, Ordering::Relaxed);
        self.published = self.times.ops;
        self.next_publish = now + PUBLISH_INTERVAL;
        self.times.stopped = self.times.stopped || self.control.should_stop(elapsed);
        self.count_series(elapsed);
        if self.times.ops >= self.next_report {
            let seconds = elapsed.as_secs_f64();
            eprintln!("... thread: finished {} operations after {seconds:.1} s", self.times.ops);
            self.next_report = self.times.ops + self.report_every;
        }
    }

    fn count_series(&mut self, elapsed: Duration) {
        const LONGEST: usize = 1_000_000;
        let slot = ((elapsed.as_nanos() / SERIES_INTERVAL.as_nanos()) as usize).min(LONGEST);
        if self.times.series.len() <= slot {
            self.times.series.resize(slot + 1, 0);
        }
        self.times.series[slot] += self.times.ops - self.series_counted;
        self.series_counted = self.times.ops;
    }

    /// Whether the thread should end before its operations are done.
    #[inline]
    pub fn should_stop(&self) -> bool {
        self.times.stopped
    }

    /// Operations so far.
    pub fn done(&self) -> u64 {
        self.times.ops
    }

    /// Subtracts the time since `since`, at which the thread's operations were done, from its time:
    /// after that it only checked them.
    pub fn leave_out_since(&mut self, since: Instant) {
        self.left_out += self.clock.now() - since;
    }

    /// Ends the timing.
    pub fn finish(mut self) -> Times {
        let now = self.clock.now();
        let finished = now.checked_sub(self.left_out).unwrap_or(now).max(self.started);
        self.count_series(finished - self.started);
        self.control.done.fetch_add(self.times.ops - self.published, Ordering::Relaxed);
        Times {
            span: Some((self.started, finished)),
            of_threads: finished - self.started,
            service: self.timetable.map(|timetable| timetable.into_service()),
            ..self.times
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn run(latency: Latency, ops: u64) -> Times {
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

    /// A clock that goes on only when it is told to, or waited by: a moment at a time.
    struct Stepped {
        now: Cell<Instant>,
        /// How long the thread is not running in every tenth moment.
        gap: Duration,
        moments: Cell<u32>,
    }

    impl Stepped {
        const MOMENT: Duration = Duration::from_nanos(100);

        fn new(gap: Duration) -> Stepped {
            Stepped { now: Cell::new(Instant::now()), gap, moments: Cell::new(0) }
        }

        fn pass(&self, time: Duration) {
            self.now.set(self.now.get() + time);
        }
    }

    impl Clock for &Stepped {
        fn now(&self) -> Instant {
            self.now.get()
        }
        fn sleep(&self, time: Duration) {
            self.pass(time);
        }
        fn spin(&self) {
            self.moments.set(self.moments.get() + 1);
            self.pass(if self.moments.get().is_multiple_of(10) {
                self.gap.max(Stepped::MOMENT)
            } else {
                Stepped::MOMENT
            });
        }
    }

    const MICROSECOND: Duration = Duration::from_micros(1);

    #[test]
    fn a_pause_between_two_measured_operations_is_not_missed() {
        let longest = |latency, pause_at: u64| {
            let (control, clock) = (Control::new(&Interrupt::new(), None), Stepped::new(Duration::ZERO));
            let mut meter = Meter::by(&clock, &control, latency, 0);
            for operation in 1..=64_000 {
                clock.pass(if operation == pause_at { Duration::from_millis(300) } else { MICROSECOND });
                meter.finished(0);
            }
            meter.finish().latency().max_us / 1e3
        };
        // The 16th, 32nd and so on are measured.
        for (latency, pause_at, expected) in
            [(Latency::Sampled(16), 1607, 20.0), (Latency::Sampled(16), 1600, 300.0), (Latency::Every, 1607, 300.0)]
        {
            let longest = longest(latency, pause_at);
            assert!((longest / expected - 1.0).abs() < 0.01, "{latency:?} {pause_at} {longest}");
        }
    }

    #[test]
    fn waiting_for_an_operation_is_told_apart() {
        // An operation each 20 us that takes 5, waited for at work; of ten moments of that, nine
        // take 100 ns, and one so long.
        for (gap, counts) in [(Duration::ZERO, true), (RUNNING, true), (RUNNING + Stepped::MOMENT, false)] {
            let (control, clock) = (Control::new(&Interrupt::new(), None), Stepped::new(gap));
            let meter = Meter::by(&clock, &control, Latency::Every, 0);
            let mut meter = meter.with_schedule(Schedule::new(50_000.0, 1, 0));
            for _ in 0..1000 {
                assert!(meter.starts());
                clock.pass(5 * MICROSECOND);
                meter.finished(0);
            }
            let times = meter.finish();
            let (took, moments) = (times.of_threads, clock.moments.get());
            assert_eq!(
                took,
                times.spun + 5000 * MICROSECOND + if counts { Duration::ZERO } else { gap * (moments / 10) }
            );
            assert!(times.spun >= moments * Stepped::MOMENT * 9 / 10 && moments > 1000, "{:?} of {took:?}", times.spun);
        }
        assert_eq!(run(Latency::Every, 10).spun, Duration::ZERO);
    }

    #[test]
    fn sleeping_for_an_operation_takes_no_cpu_time() {
        let (control, clock) = (Control::new(&Interrupt::new(), None), Stepped::new(Duration::ZERO));
        let meter = Meter::by(&clock, &control, Latency::Every, 0);
        let mut meter = meter.with_schedule(Schedule::new(10.0, 1, 0));
        for _ in 0..10 {
            assert!(meter.starts());
            meter.finished(0);
        }
        let times = meter.finish();
        let late = times.of_threads - Duration::from_millis(900);
        assert!(late < MICROSECOND, "{late:?}");
        assert!(times.spun < Duration::from_millis(1) && times.spun > Duration::ZERO, "{:?}", times.spun);
    }

    #[test]
    fn what_is_left_out_is_no_time_of_the_thread() {
        let (control, clock) = (Control::new(&Interrupt::new(), None), Stepped::new(Duration::ZERO));
        let mut meter = Meter::by(&clock, &control, Latency::Every, 0);
        clock.pass(7 * MICROSECOND);
        meter.finished(0);
        let since = clock.now.get();
        clock.pass(Duration::from_millis(300));
        meter.leave_out_since(since);
        let times = meter.finish();
        assert_eq!(times.of_threads, 7 * MICROSECOND);
    }

    /// The operation after which a thread stops whose operations take 100 us each. One that does
    /// not stop fails the test.
    fn stops_after(control: &Control, latency: Latency, mut before: impl FnMut(u64)) -> u64 {
        let clock = Stepped::new(Duration::ZERO);
        let mut meter = Meter::by(&clock, control, latency, 0);
        let stopped = (1..=10_000).find(|operation| {
            before(*operation);
            clock.pass(100 * MICROSECOND);
            meter.finished(0);
            meter.should_stop()
        });
        assert_eq!(meter.finish().stopped, stopped.is_some());
        stopped.expect("it stops")
    }

    #[test]
    fn an_interrupt_and_a_limit_stop_the_thread() {
        // It looks every 20 ms, or a little later where the clock is not read after each operation.
        let interrupt = Interrupt::new();
        let control = Control::new(&interrupt, None);
        let request = |operation| {
            if operation == 500 {
                interrupt.request();
            }
        };
        let stopped = stops_after(&control, Latency::Off, request);
        assert!((500..=750).contains(&stopped), "{stopped}");
        let control = Control::new(&Interrupt::new(), Some(Duration::from_millis(30)));
        let stopped = stops_after(&control, Latency::Every, |_| {});
        assert!((300..=500).contains(&stopped), "{stopped}");
    }
}
