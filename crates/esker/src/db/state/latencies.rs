//! Latencies of calls, where `Options::latency_histograms` asks for them.
//!
//! To look at the clock twice takes about as long as half a get from memory. So of the calls that
//! are short one in about [`EVERY`] is measured, in each thread. The distances are random: a call
//! that is slow at every 64th time, as a merge that collapses its operands, is met as often as it
//! happens. The other calls pay for a count of their thread, and are made where they always are:
//! only a call that is measured goes through [`Latencies::measure`].

use crate::base::latency::{AtomicHistogram, LatencyHistogram};
use crate::db::state::thread_gate::slot_of_this_thread;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Of so many short calls one is measured, on average.
pub const EVERY: u32 = 64;
/// Threads add to different parts, so that they do not contend.
const PARTS: usize = 8;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timed {
    Get,
    Put,
    Delete,
    Merge,
    Conditional,
    Commit,
    Sync,
    Flush,
    Compaction,
}

impl Timed {
    /// All of them, each at the place of its number.
    pub const ALL: [Timed; 9] = [
        Timed::Get,
        Timed::Put,
        Timed::Delete,
        Timed::Merge,
        Timed::Conditional,
        Timed::Commit,
        Timed::Sync,
        Timed::Flush,
        Timed::Compaction,
    ];

    /// Whether only some calls are measured.
    fn is_short(self) -> bool {
        !matches!(self, Timed::Sync | Timed::Flush | Timed::Compaction)
    }
}

/// One histogram for each.
type Part = [AtomicHistogram; Timed::ALL.len()];

/// See the module's comment.
#[derive(Default)]
pub struct Latencies {
    parts: [Part; PARTS],
}

/// Latencies if they are measured. Every call looks here, so it is on a cache line that nobody
/// writes to.
#[derive(Debug)]
#[repr(align(64))]
pub struct Measured(Option<Box<Latencies>>);

impl Measured {
    /// Those of a database with this option.
    pub fn new(yes: bool) -> Measured {
        Measured(yes.then(Box::default))
    }

    /// Where calls are noted; none if they are not.
    #[inline(always)]
    pub fn get(&self) -> Option<&Latencies> {
        self.0.as_deref()
    }

    /// Where the call that comes now is to be noted; none if it is not to be.
    #[inline(always)]
    pub fn of_call(&self, timed: Timed) -> Option<&Latencies> {
        match self.get() {
            Some(latencies) if !timed.is_short() || is_next() => Some(latencies),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(Timed::ALL.iter().map(|timed| (timed, self.of(*timed)))).finish()
    }
}

/// When a thread measures.
struct Next {
    /// Calls to come before the next one that is measured.
    left: Cell<u32>,
    /// The state of the random distances.
    state: Cell<u32>,
}

thread_local! {
    static NEXT: Next = const { Next { left: Cell::new(0), state: Cell::new(0x9E37_79B9) } };
}

/// Whether this call of the thread is one of those that are measured.
#[inline(always)]
fn is_next() -> bool {
    NEXT.with(|next| match next.left.get().checked_sub(1) {
        Some(left) => {
            next.left.set(left);
            false
        }
        None => {
            next.begin_again();
            true
        }
    })
}

impl Next {
    /// Draws the distance to the next call that is measured.
    #[cold]
    fn begin_again(&self) {
        let (left, state) = next_distance(self.state.get());
        self.left.set(left);
        self.state.set(state);
    }
}

/// Marsaglia's xorshift of 32 bits; the distance is uniform from 0 to `2 * EVERY - 2`.
fn next_distance(mut state: u32) -> (u32, u32) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    (state % (2 * EVERY - 1), state)
}

impl Latencies {
    /// Makes a call, and notes how long it takes.
    #[cold]
    #[inline(never)]
    pub fn measure<T>(&self, timed: Timed, call: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = call();
        self.note(timed, begun.elapsed());
        result
    }

    /// Notes that a call has taken so long.
    #[cold]
    pub fn note(&self, timed: Timed, took: Duration) {
        let part = &self.parts[slot_of_this_thread() % PARTS];
        part[timed as usize].add(took);
    }

    /// What was measured.
    pub fn of(&self, timed: Timed) -> LatencyHistogram {
        let mut sum = LatencyHistogram::default();
        for part in &self.parts {
            part[timed as usize].add_to(&mut sum);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_place() {
        for (place, timed) in Timed::ALL.into_iter().enumerate() {
            assert_eq!(timed as usize, place);
        }
    }

    #[test]
    fn of_short_calls_one_in_so_many_is_measured_and_of_others_each() {
        const CALLS: u64 = 1 << 20;
        let measured = Measured::new(true);
        let call = |timed, made: &mut u64| match measured.of_call(timed) {
            None => *made += 1,
            Some(latencies) => latencies.measure(timed, || *made += 1),
        };
        let mut made = 0;
        // A thread of its own: its distances begin where all begin.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..CALLS {
                    call(Timed::Get, &mut made);
                }
                for _ in 0..10 {
                    call(Timed::Sync, &mut made);
                }
            });
        });
        let latencies = measured.get().expect("they are measured");
        let gets = latencies.of(Timed::Get).count();
        let expected = CALLS / u64::from(EVERY);
        assert!((expected * 9 / 10..=expected * 11 / 10).contains(&gets), "{gets}");
        assert_eq!((made, latencies.of(Timed::Sync).count(), latencies.of(Timed::Put).count()), (CALLS + 10, 10, 0));
    }

    #[test]
    fn without_the_option_no_call_is_measured() {
        let measured = Measured::new(false);
        assert!(Timed::ALL.into_iter().all(|timed| measured.of_call(timed).is_none()));
    }

    #[test]
    fn what_happens_at_every_64th_call_is_measured_as_often_as_it_happens() {
        const ROUNDS: u64 = 1 << 14;
        let mut slow = 0u64;
        for call in 0..ROUNDS * u64::from(EVERY) {
            slow += u64::from(is_next() && call.is_multiple_of(EVERY.into()));
        }
        let expected = ROUNDS / u64::from(EVERY);
        assert!((expected / 2..=expected * 2).contains(&slow), "{slow}");
    }
}
