//! What all threads share of the log: its segments, and their syncs.
//!
//! Any thread may sync up to a position; one does it for all that wait. Lock order: the writer
//! lock, then the state lock in here; nothing is called out of it but file operations.

use super::archive::Archive;
use super::format::{HEADER_BYTES, RECORD_HEADER_BYTES, record_bytes};
use super::prefault;
use super::reserve::Reserve;
use super::segment::{FreeFile, Plan, Position, Retired, Segment, SegmentMaker, Space};
use crate::base::key::Sequence;
use crate::base::stall_stats::StallStats;
use crate::base::sync::{AtomicBool, AtomicU64, Condvar, Mutex};
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Bytes of a link record's payload.
const LINK_BYTES: usize = 24;
/// Where the first record behind the link begins.
pub(super) const LINK_END: u64 = (HEADER_BYTES + RECORD_HEADER_BYTES + LINK_BYTES) as u64;
/// How much larger each new segment file is than the one before, until full-grown.
const GROWTH: u64 = 4;
/// The longest file that is written through while writers wait for it.
pub(super) const MAX_WAITED_FOR_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct State {
    pub(super) active: Arc<Segment>,
    prepared: Option<Arc<Segment>>,
    /// Full segments that still take memory.
    pub(super) leaving: VecDeque<Arc<Segment>>,
    /// A thread is preparing a segment: one does at a time.
    preparing: bool,
    /// The next number for a segment, and for a file of one. No number is given twice, not even
    /// after a failure.
    next_number: u64,
    /// Oldest first. Those not synced yet hold `synced < written`.
    pub(super) retired: VecDeque<Retired>,
    pub(super) archive: Archive,
    pub(super) free: Vec<FreeFile>,
    next_file_bytes: u64,
    durable: Position,
    syncing: bool,
    /// Why no sync succeeds any more: what became of the first one that failed, with its cause.
    pub(super) failure: Option<String>,
}

/// The part of the log that all threads share.
#[derive(Debug)]
pub struct LogSync {
    pub(super) maker: SegmentMaker,
    pub(super) state: Mutex<State>,
    /// Signalled when a sync or a preparation ends.
    turn: Condvar,
    /// Bytes of records appended since open.
    pub(super) appended: AtomicU64,
    /// The sum of `inherited_bytes` and `appended` when the log was last emptied because the
    /// database was idle.
    idle_from: AtomicU64,
    inherited_bytes: u64,
    /// Whether the active segment is so full that the next one should be prepared.
    pub(super) wants_next: AtomicBool,
    /// The least bytes that the next one is to have: for a record that waits for it.
    pub(super) least_next: AtomicU64,
    /// Whether most of the last full segment was stored, not written through: the next one is then
    /// worth pre-faulting.
    pub(super) mostly_stored: AtomicBool,
    /// Whether a write that was to be synced came since the start.
    pub(super) synced_writes: AtomicBool,
    pub(super) keeps_changes: bool,
    /// Makes durable what records refer to: done before every sync of records.
    before_sync: OnceLock<Callback<BeforeSync>>,
    /// Told of the failure after which no sync succeeds any more.
    on_failure: OnceLock<Callback<OnFailure>>,
    /// Of writers, for the next segment.
    pub stalls: StallStats,
}

type BeforeSync = dyn Fn() -> Result<()> + Send + Sync;
type OnFailure = dyn Fn(&str) + Send + Sync;

/// A part of a sync that is not the log's own. Called without a lock of the log.
struct Callback<F: ?Sized>(Box<F>);

impl<F: ?Sized> std::fmt::Debug for Callback<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Callback")
    }
}

/// A segment is being prepared. However that ends, in a panic of the environment as well, the
/// threads that wait for it go on then.
struct Preparing<'a>(&'a LogSync);

impl Drop for Preparing<'_> {
    fn drop(&mut self) {
        self.0.state.lock().preparing = false;
        self.0.turn.notify_all();
    }
}

/// A sync is going on. Only a panic of the environment drops this: what is on the device is unknown
/// then, as after a sync that failed. The panic goes on in the thread that synced.
struct Syncing<'a>(&'a LogSync);

impl Drop for Syncing<'_> {
    fn drop(&mut self) {
        self.0.end_sync(Some("a panic interrupted a sync of the write-ahead log".into()));
    }
}

impl LogSync {
    /// With this active segment behind what was inherited.
    pub(super) fn new(
        maker: SegmentMaker,
        active: &Arc<Segment>,
        retired: Vec<Retired>,
        archive: Archive,
        free: Vec<FreeFile>,
    ) -> LogSync {
        let largest_seen = retired.iter().map(|old| old.segment.file.len()).max();
        let next_file_bytes = largest_seen.unwrap_or(maker.smallest_bytes).saturating_mul(GROWTH);
        let inherited_bytes = retired.iter().map(|old| old.segment.written.load(Ordering::Relaxed)).sum();
        let keeps_changes = archive.keeps_changes();
        let state = State {
            active: Arc::clone(active),
            prepared: None,
            leaving: VecDeque::new(),
            preparing: false,
            next_number: active.number + 1,
            retired: retired.into(),
            archive,
            free,
            next_file_bytes: next_file_bytes.min(maker.largest_bytes),
            durable: Position::default(),
            syncing: false,
            failure: None,
        };
        LogSync {
            state: Mutex::new(state),
            maker,
            turn: Condvar::new(),
            appended: AtomicU64::new(0),
            idle_from: AtomicU64::new(0),
            inherited_bytes,
            wants_next: AtomicBool::new(false),
            least_next: AtomicU64::new(0),
            mostly_stored: AtomicBool::new(true),
            synced_writes: AtomicBool::new(false),
            keeps_changes,
            before_sync: OnceLock::new(),
            on_failure: OnceLock::new(),
            stalls: StallStats::default(),
        }
    }

    /// Returns when everything before `position` is on the device. One caller syncs for all that
    /// wait. After a failed sync every later call fails, with the cause of that: the state of the
    /// device is unknown then, and asking again would not tell.
    pub fn sync_to(&self, position: Position) -> Result<()> {
        let unsynced = |segment: &Arc<Segment>| {
            let (from, to) = (segment.synced.load(Ordering::Relaxed), segment.written.load(Ordering::Acquire));
            Stretch { segment: Arc::clone(segment), from, to }
        };
        self.sync_in_turn(
            |state| state.durable >= position,
            // All segments that there are, oldest first. Each was synced up to its `from`, so that
            // after this everything up to the last `to` is on the device.
            |state| state.segments().map(unsynced).collect(),
            |state, stretches| {
                let end = stretches.last().map(|last| Position { segment: last.segment.number, offset: last.to });
                state.durable = state.durable.max(end.unwrap_or_default());
            },
            true,
        )
    }

    /// Has `make_durable` called before every sync of records, in the thread that syncs. If it
    /// fails, so does the sync. To be said once, before the first record.
    pub fn sync_before(&self, make_durable: Box<dyn Fn() -> Result<()> + Send + Sync>) {
        // A second one would be a defect of the caller; the first one stays.
        let _ = self.before_sync.set(Callback(make_durable));
    }

    /// Has `tell` called once if a sync fails, or a panic interrupts it, with the reason that all
    /// later calls give for failing too. It is called by the thread that syncs, before any other
    /// one can meet the failure. To be said once.
    pub fn on_failure(&self, tell: Box<dyn Fn(&str) + Send + Sync>) {
        // As in `sync_before`.
        let _ = self.on_failure.set(Callback(tell));
    }

    /// Up to where everything is known to be on the device since a sync of this run; the beginning
    /// of all logs if there was none yet.
    pub fn durable(&self) -> Position {
        self.state.lock().durable
    }

    /// Syncs everything appended so far.
    pub fn sync_all(&self) -> Result<()> {
        let active = Arc::clone(&self.state.lock().active);
        self.sync_to(Position { segment: active.number, offset: active.written.load(Ordering::Acquire) })
    }

    /// Makes the link of segment `number` durable, so that a manifest may name the segment as its
    /// floor. Says nothing about what is behind the link, nor about the segments before it.
    pub fn sync_link(&self, number: u64) -> Result<()> {
        let find = |state: &State| {
            let found = state.segments().find(|segment| segment.number == number);
            let known = |segment: &Segment| {
                segment.linked.load(Ordering::Relaxed) || segment.synced.load(Ordering::Relaxed) >= LINK_END
            };
            found.filter(|segment| !known(segment)).cloned()
        };
        let link = |segment| Stretch { segment, from: 0, to: LINK_END };
        self.sync_in_turn(
            |state| find(state).is_none(),
            |state| find(state).map(link).into_iter().collect(),
            |_, stretches| stretches.iter().for_each(|link| link.segment.linked.store(true, Ordering::Relaxed)),
            false,
        )
    }

    /// Waits for its turn, then syncs the ranges that `choose` names, in order, and has them noted,
    /// unless `done` says that others did. Two syncs never run beside each other: of two, only one
    /// might be told of a failure. `of_records`: the ranges hold records, and the segments of them
    /// are synced up to their ends afterwards.
    fn sync_in_turn(
        &self,
        done: impl Fn(&State) -> bool,
        choose: impl FnOnce(&State) -> Vec<Stretch>,
        note: impl FnOnce(&mut State, &[Stretch]),
        of_records: bool,
    ) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            if let Some(why) = &state.failure {
                return Err(Error::ReadOnly { why: why.clone() });
            }
            if done(&state) {
                return Ok(());
            }
            if !state.syncing {
                break;
            }
            self.turn.wait(&mut state);
        }
        state.syncing = true;
        // The goals are taken before what records refer to is made durable: a record that comes in
        // between is left to the next sync.
        let chosen = choose(&state);
        drop(state);
        let syncing = Syncing(self);
        let before = self.before_sync.get().filter(|_| of_records);
        let result = before.map_or(Ok(()), |before| before.0()).and_then(|()| sync_stretches(&chosen, of_records));
        std::mem::forget(syncing);
        if result.is_ok() {
            note(&mut self.state.lock(), &chosen);
        }
        let failure = |error: &Error| format!("an earlier sync of the write-ahead log failed ({error})");
        self.end_sync(result.as_ref().err().map(failure));
        result
    }

    /// Ends the sync that is going on. With a `failure`, it was the last one.
    fn end_sync(&self, failure: Option<String>) {
        // Before others are told: of several that waited, a later one could otherwise be the first
        // to say why the database takes no more writes, or write once more before it is said.
        if let (Some(why), Some(told)) = (&failure, self.on_failure.get()) {
            told.0(why);
        }
        let mut state = self.state.lock();
        state.syncing = false;
        state.failure = failure;
        drop(state);
        self.turn.notify_all();
    }

    /// What the database holds back for opens on a full disk.
    pub fn reserve(&self) -> Reserve<'_> {
        self.maker.reserve()
    }

    /// A segment with room for `least` bytes behind the active one: the prepared one, if that is
    /// long enough.
    pub(super) fn take_prepared(&self, least: u64) -> Result<Arc<Segment>> {
        let mut state = self.state.lock();
        // A thread that makes all segments itself waits for no other.
        let ready = state.is_prepared(least);
        let waits = !ready && !self.maker.in_foreground;
        let _wait = waits.then(|| self.stalls.begin());
        while state.preparing {
            self.turn.wait(&mut state);
        }
        match state.prepared.take() {
            Some(ready) if ready.file.len() >= least => return Ok(ready),
            // Too short for this record. It has a header without a link: a recovery passes it over.
            Some(short) => state.free.push(short.to_free()),
            None => {}
        }
        let mut plan = state.choose(least, self);
        drop(state);
        // Under the writer lock: a thread that prepares at the same time does it for a later
        // segment.
        plan.for_syncs &= plan.bytes() <= MAX_WAITED_FOR_BYTES;
        plan.for_stores &= plan.bytes() <= MAX_WAITED_FOR_BYTES;
        self.maker.prepare(plan)
    }

    /// Releases the prepared segment. With `roll`, begins with small files again, and makes the
    /// first of them.
    pub(super) fn start_small(&self, roll: bool) -> Result<Option<Arc<Segment>>> {
        let mut state = self.state.lock();
        while state.preparing {
            self.turn.wait(&mut state);
        }
        if let Some(unused) = state.prepared.take() {
            state.free.push(unused.to_free());
        }
        self.wants_next.store(false, Ordering::Relaxed);
        self.least_next.store(0, Ordering::Relaxed);
        if !roll {
            return Ok(None);
        }
        let smallest = self.maker.smallest_bytes;
        state.next_file_bytes = smallest.saturating_mul(GROWTH).min(self.maker.largest_bytes);
        let number = state.next_number;
        state.next_number += 1;
        drop(state);
        // Not a free file: those are longer, or still named by the manifest.
        let for_syncs = self.synced_writes.load(Ordering::Relaxed);
        let plan = Plan { number, free: None, new_bytes: smallest, least_bytes: LINK_END, for_syncs, for_stores: true };
        self.maker.prepare(plan).map(Some)
    }

    /// Whether the log takes no more space than it has to: with `needless`, which says that nothing
    /// in it is needed any more, that of an empty database.
    pub fn is_idle(&self, needless: bool) -> bool {
        let state = self.state.lock();
        let small = state.retired.is_empty() && state.active.file.len() <= self.maker.smallest_bytes;
        state.free.is_empty() && state.prepared.is_none() && (small || !needless)
    }

    /// Prepares the segment after the active one, unless that is done. For the background thread.
    pub fn prepare_next(&self) -> Result<()> {
        let mut state = self.state.lock();
        let least = self.least_next.load(Ordering::Relaxed);
        if state.is_prepared(least) || state.preparing {
            return Ok(());
        }
        state.preparing = true;
        let short = state.prepared.take();
        let plan = state.choose(least, self);
        drop(state);
        let _preparing = Preparing(self);
        let prepared = self.maker.prepare(plan);
        let mut state = self.state.lock();
        match prepared {
            Ok(prepared) => {
                // Too short: as in `take_prepared`.
                state.free.extend(short.map(|short| short.to_free()));
                state.prepared = Some(prepared);
                Ok(())
            }
            Err(error) => {
                // It is long enough for others, and so is whatever is prepared next. The record
                // asks for its length again, unless another one has requested more.
                state.prepared = short;
                let _ = self.least_next.compare_exchange(least, 0, Ordering::Relaxed, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Whether the background thread should call `prepare_next`.
    pub fn wants_preparation(&self) -> bool {
        let least = self.least_next.load(Ordering::Relaxed);
        self.wants_next.load(Ordering::Relaxed) && !self.state.lock().is_prepared(least)
    }

    /// Whether the next segment is prepared, with at least so many bytes.
    pub(super) fn is_prepared(&self, least: u64) -> bool {
        self.state.lock().is_prepared(least)
    }

    /// Requests a segment that has room for a record of so many bytes, its header included, of the
    /// background thread, which is to be woken. A request ends where there is no room for it, and
    /// where the log goes on in another segment.
    pub fn request(&self, record: usize) {
        self.least_next.fetch_max(least_segment(record), Ordering::Relaxed);
        self.wants_next.store(true, Ordering::Relaxed);
    }

    /// Waits until a segment is prepared that has room for a record of so many bytes, its header
    /// included, no longer than `until`. Whether it is. Call without the writer lock.
    pub fn wait_until_prepared(&self, record: usize, until: Instant) -> bool {
        let least = least_segment(record);
        let mut state = self.state.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if state.is_prepared(least) || left.is_zero() {
                return state.is_prepared(least);
            }
            self.turn.wait_for(&mut state, left);
        }
    }

    /// Makes some pages ahead of the writer ready for stores, or takes some behind it out of
    /// memory. Whether there was anything to do: then there may be more. For the background thread.
    pub fn prefault_step(&self) -> bool {
        let mut state = self.state.lock();
        let State { active, prepared, leaving, .. } = &mut *state;
        let stores = self.mostly_stored.load(Ordering::Relaxed);
        let ahead = if stores { self.appended.load(Ordering::Relaxed) } else { 0 };
        let step = prefault::next_step(active, prepared.as_ref(), leaving, ahead);
        drop(state);
        let is_some = step.is_some();
        if let Some(step) = step {
            step.take();
        }
        is_some
    }

    /// The number of the oldest segment that holds a write at or after `needed`, or the active one.
    pub fn floor(&self, needed: Sequence) -> u64 {
        let state = self.state.lock();
        state.retired.iter().find(|r| r.last_sequence >= needed).map_or(state.active.number, |r| r.segment.number)
    }

    /// Releases the segments before `floor`, which a durable manifest must name. Up to `keep` files
    /// stay for reuse; the paths of the others, no longer known here, are returned for removal.
    /// Those that were found at the start, or were kept for changes, do not stay
    /// ([`Space::Found`]).
    pub fn release(&self, floor: u64, keep: usize) -> Vec<PathBuf> {
        let mut state = self.state.lock();
        while state.retired.front().is_some_and(|r| r.segment.number < floor) {
            if let Some(old) = state.retired.pop_front() {
                state.free.push(old.segment.to_free());
            }
        }
        let mut leaving = std::mem::take(&mut state.leaving);
        state.leaving = leaving.split_off(leaving.partition_point(|segment| segment.number < floor));
        let mut gone: Vec<FreeFile> = state.free.extract_if(.., |free| free.space == Space::Found).collect();
        // The largest are the most useful.
        state.free.sort_by_key(|free| std::cmp::Reverse(free.file.len()));
        let keep = keep.min(state.free.len());
        gone.extend(state.free.split_off(keep));
        // Before the files are: taking a mapping down takes a while.
        drop(state);
        leaving.iter().for_each(|segment| segment.file.release_memory(0, u64::MAX));
        gone.into_iter().map(|free| free.path).collect()
    }

    /// Bytes of the files of retired segments.
    pub fn retired_bytes(&self) -> u64 {
        self.state.lock().retired.iter().map(|r| r.segment.file.len()).sum()
    }

    /// Bytes of records that the next open would read, at most.
    pub fn bytes_to_replay(&self) -> u64 {
        let state = self.state.lock();
        let written = |segment: &Segment| segment.written.load(Ordering::Relaxed);
        state.segments().map(|segment| written(segment)).sum()
    }

    /// Bytes of the files that hold records, or could.
    pub fn held_bytes(&self) -> u64 {
        self.state.lock().segments().map(|segment| segment.file.len()).sum()
    }

    /// Bytes of records since the log was last emptied because the database was idle.
    pub fn bytes_since_idle(&self) -> u64 {
        let all = self.inherited_bytes + self.appended.load(Ordering::Relaxed);
        all.saturating_sub(self.idle_from.load(Ordering::Relaxed))
    }

    /// Notes that the log is being emptied because the database is idle.
    pub fn note_idle(&self) {
        self.idle_from.store(self.inherited_bytes + self.appended.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Segments that are retired, active or prepared.
    pub fn segments(&self) -> u64 {
        let state = self.state.lock();
        state.retired.len() as u64 + 1 + u64::from(state.prepared.is_some())
    }

    /// Bytes of records appended since open.
    pub fn appended_bytes(&self) -> u64 {
        self.appended.load(Ordering::Relaxed)
    }
}

/// A part of a segment to be synced.
struct Stretch {
    segment: Arc<Segment>,
    from: u64,
    to: u64,
}

/// Syncs ranges that are not empty, in order. `note`: remember each segment as synced up to there,
/// which promises the same of all segments before.
fn sync_stretches(stretches: &[Stretch], note: bool) -> Result<()> {
    for Stretch { segment, from, to } in stretches {
        if from < to {
            segment.file.sync_range(*from, *to)?;
            if note {
                segment.synced.store(*to, Ordering::Relaxed);
            }
        }
    }
    Ok(())
}

/// The least length of a segment with room for a record of so many bytes, its header included.
fn least_segment(record: usize) -> u64 {
    LINK_END + record_bytes(record.saturating_sub(RECORD_HEADER_BYTES))
}

impl State {
    /// All segments with records, oldest first.
    pub(super) fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.retired.iter().map(|retired| &retired.segment).chain([&self.active])
    }

    fn is_prepared(&self, least: u64) -> bool {
        self.prepared.as_ref().is_some_and(|prepared| prepared.file.len() >= least)
    }

    /// How to get a segment with room for `least` bytes.
    fn choose(&mut self, least: u64, log: &LogSync) -> Plan {
        let largest = log.maker.largest_bytes;
        let number = self.next_number;
        self.next_number += 1;
        let new_bytes = self.next_file_bytes.max(least);
        // A file much smaller than the next new one would only make the log roll more often.
        let enough = least.max(new_bytes.min(largest) / GROWTH);
        let fits = |free: &FreeFile| free.space > Space::Found && free.file.len() >= enough;
        let free = self.free.iter().position(fits).map(|at| self.free.swap_remove(at));
        if free.is_none() {
            self.next_file_bytes = self.next_file_bytes.saturating_mul(GROWTH).min(largest);
        }
        let for_syncs = log.synced_writes.load(Ordering::Relaxed);
        let for_stores = log.mostly_stored.load(Ordering::Relaxed);
        Plan { number, free, new_bytes, least_bytes: least, for_syncs, for_stores }
    }
}
