//! Appending and syncing.
//!
//! Threads: [`LogWriter`] belongs to whoever holds the database's writer lock. [`LogSync`] is shared: any thread may sync up to a position,
//! one does it for all that wait. Lock order: the writer lock, then the state lock in here; nothing is called out of it but file
//! operations.

use super::format::{HEADER_BYTES, Link, RECORD_HEADER_BYTES, RecordType, record_bytes, seal_record};
use super::segment::{FreeFile, Retired, Segment, SegmentMaker};
use crate::base::key::Sequence;
use crate::error::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Records of at least this many bytes go through a system call: it copies whole pages as fast as a store does, and brings no page fault each.
const WRITE_THROUGH_BYTES: usize = 8 << 10;
/// How much larger each new segment file is than the one before, until full-grown.
const GROWTH: u64 = 4;

/// A place in the log. Later places are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    pub segment: u64,
    pub offset: u64,
}

#[derive(Debug)]
struct State {
    active: Arc<Segment>,
    prepared: Option<Arc<Segment>>,
    /// Oldest first. Those not synced yet hold `synced < written`.
    retired: VecDeque<Retired>,
    free: Vec<FreeFile>,
    next_file_bytes: u64,
    durable: Position,
    syncing: bool,
    failed: bool,
}

/// The part of the log that all threads share.
#[derive(Debug)]
pub struct LogSync {
    maker: SegmentMaker,
    state: Mutex<State>,
    synced: Condvar,
    /// Bytes of records appended since open.
    appended: AtomicU64,
    /// Whether most of the last full segment was stored, not written through: the next one is then worth pre-faulting.
    mostly_stored: AtomicBool,
}

/// The part of the log under the writer lock.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<LogSync>,
    segment: Arc<Segment>,
    offset: u64,
    /// Bytes of records stored, not written through, in this segment.
    stored: u64,
}

/// What the log is at a start: the segments replayed, and the files nobody needs.
#[derive(Debug, Default)]
pub struct Inherited {
    pub retired: Vec<Retired>,
    pub free: Vec<FreeFile>,
    /// The highest segment number ever seen; 0 for a new database.
    pub highest_number: u64,
}

impl LogWriter {
    /// Starts a new segment behind what was inherited. Everything inherited is on the device when this returns.
    pub fn start(maker: SegmentMaker, inherited: Inherited) -> Result<LogWriter> {
        let Inherited { retired, mut free, highest_number } = inherited;
        for old in &retired {
            if old.segment.synced.load(Ordering::Relaxed) < old.segment.written.load(Ordering::Relaxed) {
                old.segment.file.sync()?;
                old.segment.synced.store(old.segment.written.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        let smallest = maker.smallest_bytes;
        let largest_seen = retired.iter().map(|r| r.segment.file.len()).max();
        let next_file_bytes = largest_seen.map_or(smallest, |bytes| (bytes * GROWTH).min(maker.largest_bytes));
        let reuse = free.iter().position(|f| f.file.len() >= smallest).map(|at| free.swap_remove(at));
        let segment = maker.prepare(highest_number + 1, reuse, smallest)?;
        let link = Link::to(retired.last().map(|r| &*r.segment));
        let shared = LogSync {
            state: Mutex::new(State {
                active: Arc::clone(&segment),
                prepared: None,
                retired: retired.into(),
                free,
                next_file_bytes,
                durable: Position::default(),
                syncing: false,
                failed: false,
            }),
            maker,
            synced: Condvar::new(),
            appended: AtomicU64::new(0),
            mostly_stored: AtomicBool::new(true),
        };
        let mut writer = LogWriter { shared: Arc::new(shared), segment, offset: HEADER_BYTES as u64, stored: 0 };
        writer.append_link(link)?;
        let end = writer.position();
        writer.shared.sync_to(end)?;
        Ok(writer)
    }

    /// The part to share.
    pub fn shared(&self) -> &Arc<LogSync> {
        &self.shared
    }

    /// The end of the log.
    pub fn position(&self) -> Position {
        Position { segment: self.segment.number, offset: self.offset }
    }

    /// Appends `record`, whose first [`RECORD_HEADER_BYTES`] are space for the header, and returns the position behind it. The bytes are the
    /// system's when this returns. `last_sequence` is the last write before this record; `soon_synced` says that the caller syncs next.
    #[inline]
    pub fn append(
        &mut self,
        record: &mut [u8],
        sequence: Sequence,
        last_sequence: Sequence,
        soon_synced: bool,
    ) -> Result<Position> {
        let bytes = record_bytes(record.len() - RECORD_HEADER_BYTES);
        if self.offset + bytes > self.segment.file.len() {
            self.roll(bytes, last_sequence)?;
        }
        self.write_record(record, RecordType::Batch, sequence, soon_synced)?;
        Ok(self.position())
    }

    #[inline]
    fn write_record(&mut self, record: &mut [u8], kind: RecordType, sequence: Sequence, through: bool) -> Result<()> {
        let synced = self.segment.synced.load(Ordering::Relaxed);
        seal_record(record, kind, sequence, synced, self.segment.number, self.offset);
        if through || record.len() >= WRITE_THROUGH_BYTES {
            self.segment.file.write(self.offset, record)?;
        } else {
            self.segment.file.store(self.offset, record)?;
            self.stored += record.len() as u64;
        }
        self.offset += record_bytes(record.len() - RECORD_HEADER_BYTES);
        self.segment.written.store(self.offset, Ordering::Release);
        // Only the writer changes it.
        let appended = self.shared.appended.load(Ordering::Relaxed) + record.len() as u64;
        self.shared.appended.store(appended, Ordering::Relaxed);
        Ok(())
    }

    fn append_link(&mut self, link: Link) -> Result<()> {
        let mut record = vec![0; RECORD_HEADER_BYTES];
        link.encode(&mut record);
        self.write_record(&mut record, RecordType::Link, 0, false)
    }

    /// Goes on in the next segment, which has room for a record of `bytes`.
    #[cold]
    fn roll(&mut self, bytes: u64, last_sequence: Sequence) -> Result<()> {
        let least = HEADER_BYTES as u64 + record_bytes(24) + bytes;
        let next = self.shared.take_prepared(self.segment.number + 1, least)?;
        let link = Link::to(Some(&self.segment));
        let old = std::mem::replace(&mut self.segment, Arc::clone(&next));
        let mostly_stored = std::mem::take(&mut self.stored) * 2 > self.offset;
        self.shared.mostly_stored.store(mostly_stored, Ordering::Relaxed);
        self.offset = HEADER_BYTES as u64;
        {
            let mut state = self.shared.state.lock();
            state.retired.push_back(Retired { segment: old, last_sequence });
            state.active = next;
        }
        self.append_link(link)
    }

    /// Syncs everything and writes the closing record: damage anywhere is then told from a torn tail.
    pub fn close(&mut self) -> Result<()> {
        self.shared.sync_to(self.position())?;
        if self.offset + record_bytes(0) <= self.segment.file.len() {
            let mut record = [0; RECORD_HEADER_BYTES];
            self.write_record(&mut record, RecordType::Close, 0, true)?;
            self.shared.sync_to(self.position())?;
        }
        Ok(())
    }
}

impl Link {
    fn to(previous: Option<&Segment>) -> Link {
        let word = |value: &AtomicU64| value.load(Ordering::Relaxed);
        match previous {
            None => Link { previous_number: 0, previous_end: 0, previous_synced: 0 },
            Some(segment) => Link {
                previous_number: segment.number,
                previous_end: word(&segment.written),
                previous_synced: word(&segment.synced),
            },
        }
    }
}

impl LogSync {
    /// Returns when everything before `position` is on the device. One caller syncs for all that wait. After a failed sync every
    /// later call fails: the state of the device is unknown then, and asking again would not tell.
    pub fn sync_to(&self, position: Position) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            if state.failed {
                return Err(Error::ReadOnly { why: "an earlier sync of the write-ahead log failed".into() });
            }
            if state.durable >= position {
                return Ok(());
            }
            if !state.syncing {
                break;
            }
            self.synced.wait(&mut state);
        }
        state.syncing = true;
        let mut goals: Vec<(Arc<Segment>, u64)> = state
            .retired
            .iter()
            .map(|r| Arc::clone(&r.segment))
            .chain([Arc::clone(&state.active)])
            .map(|segment| {
                let goal = segment.written.load(Ordering::Acquire);
                (segment, goal)
            })
            .collect();
        drop(state);
        goals.retain(|(segment, goal)| segment.synced.load(Ordering::Relaxed) < *goal);
        let mut result = Ok(());
        for (segment, goal) in &goals {
            result = segment.file.sync();
            if result.is_err() {
                break;
            }
            segment.synced.store(*goal, Ordering::Relaxed);
        }
        let mut state = self.state.lock();
        state.syncing = false;
        state.failed |= result.is_err();
        if let (Ok(()), Some((segment, goal))) = (&result, goals.last()) {
            state.durable = Position { segment: segment.number, offset: *goal }.max(state.durable);
        }
        drop(state);
        self.synced.notify_all();
        result
    }

    /// Syncs everything appended so far.
    pub fn sync_all(&self) -> Result<()> {
        let active = Arc::clone(&self.state.lock().active);
        self.sync_to(Position { segment: active.number, offset: active.written.load(Ordering::Acquire) })
    }

    fn take_prepared(&self, number: u64, least: u64) -> Result<Arc<Segment>> {
        let (free, wanted) = {
            let mut state = self.state.lock();
            match state.prepared.take() {
                Some(ready) if ready.number == number && ready.file.len() >= least => return Ok(ready),
                Some(other) => state.free.push(FreeFile { path: other.path.clone(), file: Arc::clone(&other.file) }),
                None => {}
            }
            state.choose(least, &self.maker)
        };
        self.maker.prepare(number, free, wanted)
    }

    /// Prepares the segment after the active one, unless that is done. For the background thread.
    pub fn prepare_next(&self) -> Result<()> {
        let (number, free, wanted) = {
            let mut state = self.state.lock();
            if state.prepared.is_some() {
                return Ok(());
            }
            let (free, wanted) = state.choose(0, &self.maker);
            (state.active.number + 1, free, wanted)
        };
        let segment = self.maker.prepare(number, free, wanted)?;
        if self.mostly_stored.load(Ordering::Relaxed) {
            segment.file.prefault();
        }
        let mut state = self.state.lock();
        if state.active.number + 1 == number && state.prepared.is_none() {
            state.prepared = Some(segment);
        } else {
            // The writer could not wait and prepared its own.
            state.free.push(FreeFile { path: segment.path.clone(), file: Arc::clone(&segment.file) });
        }
        Ok(())
    }

    /// Whether the background thread should call `prepare_next`.
    pub fn wants_preparation(&self) -> bool {
        self.state.lock().prepared.is_none()
    }

    /// The number of the oldest segment that holds a write at or after `needed`, or the active one.
    pub fn floor(&self, needed: Sequence) -> u64 {
        let state = self.state.lock();
        state.retired.iter().find(|r| r.last_sequence >= needed).map_or(state.active.number, |r| r.segment.number)
    }

    /// Makes the link of segment `number` durable, so that a manifest may name the segment as its floor. Says nothing about what is behind the link.
    pub fn sync_link(&self, number: u64) -> Result<()> {
        let segment = {
            let state = self.state.lock();
            let all = state.retired.iter().map(|r| &r.segment).chain([&state.active]);
            all.into_iter()
                .find(|s| s.number == number && s.synced.load(Ordering::Relaxed) <= HEADER_BYTES as u64)
                .cloned()
        };
        segment.map_or(Ok(()), |segment| segment.file.sync())
    }

    /// Lets go of the segments before `floor`, which a durable manifest must name. Up to `keep` files stay for reuse; the paths of the
    /// others, no longer known here, are returned for removal.
    pub fn release(&self, floor: u64, keep: usize) -> Vec<PathBuf> {
        let mut state = self.state.lock();
        while state.retired.front().is_some_and(|r| r.segment.number < floor) {
            if let Some(old) = state.retired.pop_front() {
                state.free.push(FreeFile { path: old.segment.path.clone(), file: Arc::clone(&old.segment.file) });
            }
        }
        // The largest are the most useful.
        state.free.sort_by_key(|free| std::cmp::Reverse(free.file.len()));
        let keep = keep.min(state.free.len());
        state.free.split_off(keep).into_iter().map(|free| free.path).collect()
    }

    /// Bytes of retired segments, which hold back nothing but disk space, and the first write they may hold.
    pub fn retired_bytes(&self) -> u64 {
        self.state.lock().retired.iter().map(|r| r.segment.file.len()).sum()
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

impl State {
    /// A free file with room for `least` bytes, and how long a new file would have to be.
    fn choose(&mut self, least: u64, maker: &SegmentMaker) -> (Option<FreeFile>, u64) {
        let wanted = self.next_file_bytes.max(least);
        // A file much smaller than the next new one would only make the log roll more often.
        let enough = least.max(wanted.min(maker.largest_bytes) / GROWTH);
        let found = self.free.iter().position(|free| free.file.len() >= enough).map(|at| self.free.swap_remove(at));
        if found.is_none() {
            self.next_file_bytes = (self.next_file_bytes * GROWTH).min(maker.largest_bytes);
        }
        (found, wanted)
    }
}
