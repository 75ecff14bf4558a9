//! The live snapshots: sequence numbers, and readings of the clock.
//!
//! A reader registers under the writer lock, so that no batch is half visible to it; from then on
//! writes keep what it sees. It leaves without that lock: writers then keep a little too much for a
//! moment, which is harmless.
//!
//! Its reading of the clock is taken under a lock of its own, as is the bound up to which a job
//! treats entries as expired. So what a job reclaims is expired for every reader there is, and for
//! every reader that comes while the job is at work: none gets a reading below the job's bound,
//! even if the clock steps back. So an entry that a reader sees never disappears under it. A reader
//! that comes before there is a keyspace in which entries expire sees none that does: it does
//! without the time ([`TIMELESS`]).

use crate::base::clock::Clock;
use crate::base::key::{MAX_SEQUENCE, Sequence};
use crate::base::sync::{AtomicU64, Mutex};
use crate::db::state::read_state::ReadState;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// What the list has for the time of readers that see nothing that expires: it holds no job back.
/// For themselves such readers have the time 0, in which everything is alive.
const TIMELESS: u64 = u64::MAX;

/// Readers at one sequence number, and at one reading of the clock.
#[derive(Debug)]
struct Live {
    sequence: Sequence,
    now_ms: u64,
    readers: u64,
}

#[derive(Debug, Default)]
struct List {
    /// Ascending by sequence number.
    live: VecDeque<Live>,
    /// Jobs at work in keyspaces in which entries expire.
    jobs: u64,
    /// What expired by then, those jobs may be reclaiming.
    reclaimed_until_ms: u64,
}

impl List {
    fn sequences(&self) -> Vec<Sequence> {
        let mut sequences: Vec<Sequence> = self.live.iter().map(|live| live.sequence).collect();
        sequences.dedup();
        sequences
    }
}

/// The sequence numbers in use.
#[derive(Debug, Default)]
pub struct SnapshotList {
    /// Held while the clock is read for the list, and until that is in it. The list is not locked
    /// meanwhile: the clock may be the user's.
    reading_clock: Mutex<()>,
    /// Nothing of the program's is called while it is locked: the Python package waits for it with
    /// the interpreter.
    list: Mutex<List>,
    newest: AtomicU64,
    /// The latest bound of any job so far, also of those that have ended; the greatest number while
    /// one reads the clock.
    given_back_until_ms: AtomicU64,
    /// What snapshots of a follower hold.
    pinned: Mutex<Vec<Weak<Pins>>>,
}

/// The snapshots that a flush or compaction has to respect.
#[derive(Debug)]
pub struct Readers {
    /// The registered sequence numbers, ascending.
    pub sequences: Vec<Sequence>,
    /// An entry that expires at or before this time is expired for all of them, and for all that
    /// come before this value is dropped.
    pub expired_until_ms: u64,
    /// Set where `expired_until_ms` binds readers to come.
    list: Option<Arc<SnapshotList>>,
}

impl Drop for Readers {
    fn drop(&mut self) {
        if let Some(list) = &self.list {
            let mut list = list.list.lock();
            list.jobs -= 1;
            if list.jobs == 0 {
                list.reclaimed_until_ms = 0;
            }
        }
    }
}

/// While a job reads the clock: a write that reads an earlier time meanwhile is behind a bound that
/// is not known yet, and has to wait for it. Ends also if the clock, which may be the user's,
/// panics.
struct UnknownBound<'a> {
    latest_ms: &'a AtomicU64,
    known_ms: u64,
}

impl UnknownBound<'_> {
    fn begin(latest_ms: &AtomicU64) -> UnknownBound<'_> {
        UnknownBound { latest_ms, known_ms: latest_ms.swap(u64::MAX, Ordering::SeqCst) }
    }
}

impl Drop for UnknownBound<'_> {
    fn drop(&mut self) {
        self.latest_ms.store(self.known_ms, Ordering::Release);
    }
}

impl SnapshotList {
    /// Registers a reader at `sequence`, which is not below any registered before. Call under the
    /// writer lock. Without `clock` if nothing that the reader sees can expire.
    pub fn register(self: &Arc<SnapshotList>, sequence: Sequence, clock: Option<&dyn Clock>) -> SnapshotGuard {
        let reading = clock.map(|clock| (self.reading_clock.lock(), clock.now_ms()));
        let mut list = self.list.lock();
        let now_ms = reading.as_ref().map(|&(_, now_ms)| now_ms.max(list.reclaimed_until_ms));
        let listed_ms = now_ms.unwrap_or(TIMELESS);
        match list.live.back_mut() {
            Some(newest) if (newest.sequence, newest.now_ms) == (sequence, listed_ms) => newest.readers += 1,
            _ => list.live.push_back(Live { sequence, now_ms: listed_ms, readers: 1 }),
        }
        self.newest.store(sequence, Ordering::Relaxed);
        drop(list);
        SnapshotGuard { list: Arc::clone(self), sequence, now_ms, pins: None }
    }

    fn leave(&self, sequence: Sequence, now_ms: u64) {
        let mut list = self.list.lock();
        let live = &mut list.live;
        let first = live.partition_point(|other| other.sequence < sequence);
        let found = live.range_mut(first..).enumerate().find(|(_, other)| other.now_ms == now_ms);
        if let Some((after, entry)) = found {
            entry.readers -= 1;
            if entry.readers == 0 {
                live.remove(first + after);
            }
        }
        self.newest.store(live.back().map_or(0, |newest| newest.sequence), Ordering::Relaxed);
    }

    /// Visits what snapshots of a follower hold.
    pub fn for_each_pinned(&self, visit: &mut dyn FnMut(&ReadState)) {
        let pinned: Vec<Arc<Pins>> = self.pinned.lock().iter().filter_map(Weak::upgrade).collect();
        pinned.iter().flat_map(|pins| pins.values()).for_each(|read_state| visit(read_state));
    }

    /// The greatest registered sequence number; 0 if there is none. Exact under the writer lock,
    /// but for readers that are leaving.
    #[inline]
    pub fn newest(&self) -> Sequence {
        self.newest.load(Ordering::Relaxed)
    }

    /// What expires later, no job has given back as expired. Raised before a job begins: a reader
    /// that finds a read state without an entry finds the bound of the job that took it.
    #[inline]
    pub fn given_back_until_ms(&self) -> u64 {
        self.given_back_until_ms.load(Ordering::Relaxed)
    }

    /// What has expired by then, jobs at work may be giving back; 0 if there are none. Once a job
    /// has ended, its result is in the read states that are loaded from then on.
    pub fn reclaimed_until_ms(&self) -> u64 {
        // A job that has read the clock is in the list.
        let _reading = self.reading_clock.lock();
        self.list.lock().reclaimed_until_ms
    }

    /// All registered sequence numbers, ascending.
    pub fn all(&self) -> Vec<Sequence> {
        self.list.lock().sequences()
    }

    /// What a job on a keyspace has to respect; to be kept until its result is what readers find.
    /// Without `clock`, in a keyspace in which nothing expires, the time is 0.
    pub fn readers(self: &Arc<SnapshotList>, clock: Option<&dyn Clock>) -> Readers {
        let Some(clock) = clock else { return Readers { sequences: self.all(), expired_until_ms: 0, list: None } };
        let _reading = self.reading_clock.lock();
        let mut latest = UnknownBound::begin(&self.given_back_until_ms);
        let now_ms = clock.now_ms();
        let mut list = self.list.lock();
        let sequences = list.sequences();
        let oldest = list.live.iter().map(|live| live.now_ms).min().unwrap_or(u64::MAX);
        let expired_until_ms = now_ms.min(oldest);
        list.reclaimed_until_ms = list.reclaimed_until_ms.max(expired_until_ms);
        latest.known_ms = latest.known_ms.max(expired_until_ms);
        list.jobs += 1;
        Readers { sequences, expired_until_ms, list: Some(Arc::clone(self)) }
    }
}

/// What each keyspace held when a snapshot of a follower was made, by number. Elsewhere flushes and
/// compactions keep what snapshots see; those of another process do not.
pub type Pins = BTreeMap<u64, Arc<ReadState>>;

/// As of when a read is.
#[derive(Clone, Copy, Debug)]
pub struct ReadPoint<'a> {
    pub sequence: Sequence,
    pub now_ms: u64,
    /// What is read, if not what is there now.
    pub pins: Option<&'a Pins>,
}

impl ReadPoint<'_> {
    /// That of a read without snapshot.
    #[inline]
    pub fn newest(now_ms: u64) -> ReadPoint<'static> {
        ReadPoint { sequence: MAX_SEQUENCE, now_ms, pins: None }
    }
}

/// One reader's registration; ends when dropped.
#[derive(Debug)]
pub struct SnapshotGuard {
    list: Arc<SnapshotList>,
    sequence: Sequence,
    /// `None` if it sees nothing that expires.
    now_ms: Option<u64>,
    pins: Option<Arc<Pins>>,
}

impl SnapshotGuard {
    /// The registration of a reader that reads in these.
    pub fn pinning(mut self, pins: Pins) -> SnapshotGuard {
        let pins = Arc::new(pins);
        let mut pinned = self.list.pinned.lock();
        pinned.retain(|pins| pins.strong_count() > 0);
        pinned.push(Arc::downgrade(&pins));
        drop(pinned);
        self.pins = Some(pins);
        self
    }

    /// The read states that the snapshot holds; without them it reads the current ones.
    #[inline]
    pub fn pins(&self) -> Option<&Arc<Pins>> {
        self.pins.as_ref()
    }

    /// As of when it reads.
    #[inline]
    pub fn point(&self) -> ReadPoint<'_> {
        ReadPoint { sequence: self.sequence, now_ms: self.now_ms(), pins: self.pins.as_deref() }
    }

    /// What the reader reads at.
    pub fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The reader's time: what expires at or before it, the reader does not see.
    pub fn now_ms(&self) -> u64 {
        self.now_ms.unwrap_or(0)
    }
}

impl Drop for SnapshotGuard {
    fn drop(&mut self) {
        self.list.leave(self.sequence, self.now_ms.unwrap_or(TIMELESS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::ManualClock;

    #[test]
    fn the_newest_and_all_follow_registrations() {
        let list = Arc::new(SnapshotList::default());
        let clock = ManualClock::new(10);
        let a = list.register(5, Some(&clock));
        let b = list.register(5, Some(&clock));
        let c = list.register(9, Some(&clock));
        assert_eq!((list.newest(), list.all()), (9, vec![5, 9]));
        drop(c);
        assert_eq!((list.newest(), list.all()), (5, vec![5]));
        drop(a);
        assert_eq!(list.all(), [5]);
        drop(b);
        assert_eq!((list.newest(), list.all()), (0, vec![]));
    }

    #[test]
    fn nothing_is_reclaimed_that_a_reader_sees_or_will_see() {
        let list = Arc::new(SnapshotList::default());
        let clock = ManualClock::new(10);
        let reader = list.register(1, Some(&clock));
        clock.set(50);
        assert_eq!(list.readers(Some(&clock)).expired_until_ms, 10, "the reader's own time counts");
        let elsewhere = list.readers(None);
        assert_eq!((elsewhere.sequences.as_slice(), elsewhere.expired_until_ms), (&[1][..], 0));
        clock.set(60);
        let late = list.register(1, Some(&clock));
        clock.set(50);
        drop(reader);
        let job = list.readers(Some(&clock));
        assert_eq!(job.expired_until_ms, 50);
        clock.set(20);
        assert_eq!(
            list.register(2, Some(&clock)).now_ms(),
            50,
            "the clock stepped back behind what is being reclaimed"
        );
        let timeless = list.register(2, None);
        drop(job);
        assert_eq!(list.register(2, Some(&clock)).now_ms(), 20);
        assert_eq!(list.all(), [1, 2]);
        drop(late);
        assert_eq!(list.readers(Some(&clock)).expired_until_ms, 20, "one without a time holds nothing back");
        assert_eq!(list.given_back_until_ms(), 50, "what is gone stays gone, though the job has ended");
        assert_eq!(list.all(), [2]);
        drop(timeless);
    }

    /// A clock that looks at what jobs give back, and may panic.
    #[derive(Debug)]
    struct Looking(Arc<SnapshotList>, AtomicU64);

    impl Clock for Looking {
        fn now_ms(&self) -> u64 {
            assert_eq!(self.0.given_back_until_ms(), u64::MAX, "no bound is known yet");
            assert_ne!(self.1.load(Ordering::Relaxed), 0, "as planned");
            self.1.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn while_a_job_reads_the_clock_all_times_are_behind_its_bound() {
        let list = Arc::new(SnapshotList::default());
        let clock = Looking(Arc::clone(&list), AtomicU64::new(20));
        let first = list.readers(Some(&clock));
        assert_eq!((list.given_back_until_ms(), list.reclaimed_until_ms()), (20, 20));
        clock.1.store(10, Ordering::Relaxed);
        let second = list.readers(Some(&clock));
        drop(first);
        assert_eq!((list.given_back_until_ms(), list.reclaimed_until_ms()), (20, 20));
        drop(second);
        assert_eq!((list.given_back_until_ms(), list.reclaimed_until_ms()), (20, 0));
        clock.1.store(0, Ordering::Relaxed);
        let panicking = Arc::clone(&list);
        std::thread::spawn(move || panicking.readers(Some(&clock)).expired_until_ms).join().unwrap_err();
        assert_eq!((list.given_back_until_ms(), list.reclaimed_until_ms()), (20, 0));
    }
}
