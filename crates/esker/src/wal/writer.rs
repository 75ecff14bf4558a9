//! Appending, which belongs to the holder of the database's writer lock.

use super::archive::Archive;
use super::format::{HEADER_BYTES, Link, Place, RECORD_HEADER_BYTES, RecordType, record_bytes, seal_record};
use super::log_sync::{LINK_END, LogSync};
use super::prefault::TEND_EVERY_BYTES;
use super::reserve::SCARCE_BYTES;
use super::segment::{FreeFile, Plan, Position, Retired, Segment, SegmentMaker};
use crate::base::key::Sequence;
use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Records of at least this many bytes go through a system call: it copies whole pages as fast as a
/// store does, and brings no page fault each.
const WRITE_THROUGH_BYTES: usize = 8 << 10;
/// Once so many parts of a segment are written, the next one is to be prepared: `1/PREPARE_AFTER`.
const PREPARE_AFTER: u64 = 8;
/// A full segment that the background thread has not taken out of memory when the next one is full
/// too is taken out by the writer, unless it is longer: that is well below a millisecond, and with
/// a memory budget, where segments are no longer than this, it keeps the process within it.
pub(super) const LEFT_BY_WRITER_BYTES: u64 = 16 << 20;

/// The part of the log under the writer lock.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<LogSync>,
    segment: Arc<Segment>,
    /// The segment's.
    length: u64,
    offset: u64,
    /// Bytes of records stored, not written through, in this segment.
    stored: u64,
    /// The offset from which on the next segment should be prepared, until that has been said.
    prepare_at: u64,
    /// The offset at which there will be something to do for the background thread.
    notice_at: u64,
    /// Whether there is something to do for the background thread.
    notice: bool,
}

/// The log at a start: the segments replayed, and the unused files.
#[derive(Debug, Default)]
pub struct Inherited {
    pub retired: Vec<Retired>,
    /// Not to be removed before the new segment's link is on the device: until then a recovery may
    /// still follow links through them.
    pub free: Vec<FreeFile>,
    /// The highest segment number ever seen, in a header or in a file's name; 0 for a new database.
    pub highest_number: u64,
    /// The number of the segment that the database was closed with: up to its end the log is known
    /// to be on the device.
    pub closed: Option<u64>,
    /// The unbroken chain of segments before the oldest one replayed, oldest first.
    pub archive: Archive,
    /// The number of the last segment with writes; 0 if there is none.
    pub last_with_batches: u64,
    /// The newest segment with a link below the floor; 0 if there is none. The manifest that named
    /// the floor may be visible without being durable, and the one before it may need that segment:
    /// the chain of links must not depend on either.
    pub below_floor: u64,
}

impl Inherited {
    /// The number of the last segment that holds writes, or is known to be on the device; 0 if
    /// there is none.
    fn last_needed(&self) -> u64 {
        self.last_with_batches.max(self.closed.unwrap_or(0))
    }

    /// Where that segment ends. Those behind it may be gone at any time: a start releases them,
    /// and an open that fails takes away the one that it has begun.
    pub fn needed_end(&self) -> Position {
        let last_needed = self.last_needed();
        let last = self.retired.iter().rfind(|retired| retired.segment.number <= last_needed);
        last.map_or(Position::default(), |last| Position {
            segment: last.segment.number,
            offset: last.segment.written.load(Ordering::Relaxed),
        })
    }

    /// Releases the segments at the end that hold no writes, but for those known to be on the
    /// device: whether the others are is unknown, and nothing needs them. The log goes on behind
    /// the one before.
    fn give_up_empty_tail(&mut self) {
        let needed = self.last_needed();
        while let Some(last) = self.retired.pop_if(|last| last.segment.number > needed) {
            self.free.push(last.segment.to_free());
        }
    }
}

/// Why a record was not appended.
#[derive(Debug)]
pub enum AppendError {
    /// There is no room for another segment. Nothing was written, and the log is as it was.
    NoSegment(Error),
    /// Writing failed: what is in the file is unknown.
    Failed(Error),
}

impl LogWriter {
    /// Starts a new segment behind what was inherited. Its link is on the device when this returns;
    /// what was inherited need not be. Unless the database had been closed, the caller must write
    /// it to tables before it acknowledges a sync: a sync that failed before the start may have
    /// taken pages from the old segments that a sync now would not miss.
    pub fn start(maker: SegmentMaker, mut inherited: Inherited) -> Result<LogWriter> {
        inherited.give_up_empty_tail();
        let Inherited { retired, mut archive, mut free, highest_number, closed, below_floor, .. } = inherited;
        if !archive.keeps_changes() {
            archive.free_before(u64::MAX, &maker, &mut free);
        }
        for old in retired.iter().filter(|old| closed.is_some_and(|last| old.segment.number <= last)) {
            old.segment.synced.store(old.segment.written.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        // Always in a new file: see `Inherited::free` and `Space::Found`.
        let number = highest_number + 1;
        let plan = |new_bytes| {
            let least_bytes = LINK_END;
            // Not for syncs: the open would wait for a device that gets a whole segment of zeroes.
            Plan { number, free: None, new_bytes, least_bytes, for_syncs: false, for_stores: true }
        };
        let segment = match maker.prepare(plan(maker.smallest_bytes)) {
            // The reserve has room for many opens: this one takes the smallest segment.
            Err(error) if error.is_disk_full() && maker.reserve().spend() => {
                maker.prepare(plan(maker.smallest_bytes.min(SCARCE_BYTES)))?
            }
            other => other?,
        };
        let link = match (retired.last(), archive.newest()) {
            (Some(last), _) => Link::to(&last.segment),
            // All before the floor that the log ever went on from, where that is known.
            (None, Some(kept)) => Link { previous_number: kept.number, previous_end: kept.written, ..Link::default() },
            (None, None) => Link { previous_number: below_floor, ..Link::default() },
        };
        let shared = Arc::new(LogSync::new(maker, &segment, retired, archive, free));
        let (offset, length) = (HEADER_BYTES as u64, segment.file.len());
        let prepare_at = length / PREPARE_AFTER;
        let mut writer =
            LogWriter { shared, segment, length, offset, stored: 0, prepare_at, notice_at: prepare_at, notice: false };
        writer.append_link(link)?;
        writer.segment.file.sync_range(0, writer.offset)?;
        writer.segment.linked.store(true, Ordering::Relaxed);
        writer.segment.synced.store(writer.offset, Ordering::Relaxed);
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

    /// Appends `record`, whose first [`RECORD_HEADER_BYTES`] are space for the header, and returns
    /// the position behind it. The bytes are the system's when this returns. `last_sequence` is the
    /// last write before this record; `soon_synced` says that the caller syncs next.
    #[inline]
    pub fn append(
        &mut self,
        record: &mut [u8],
        sequence: Sequence,
        last_sequence: Sequence,
        soon_synced: bool,
    ) -> std::result::Result<Position, AppendError> {
        let bytes = record_bytes(record.len() - RECORD_HEADER_BYTES);
        if self.offset + bytes > self.length {
            let next = self.shared.take_prepared(LINK_END + bytes).map_err(AppendError::NoSegment)?;
            self.roll(next, last_sequence).map_err(AppendError::Failed)?;
        }
        if soon_synced {
            self.shared.synced_writes.store(true, Ordering::Relaxed);
        }
        self.write_record(record, RecordType::Batch, sequence, soon_synced).map_err(AppendError::Failed)?;
        if self.offset >= self.notice_at {
            self.give_notice();
        }
        Ok(self.position())
    }

    /// Whether a record of so many bytes, its header included, can be appended without waiting for
    /// the next segment. If not, a segment that is long enough is requested of the background
    /// thread.
    pub fn has_room(&self, record: usize) -> bool {
        let bytes = record_bytes(record.saturating_sub(RECORD_HEADER_BYTES));
        let has_room = self.offset + bytes <= self.length || self.shared.is_prepared(LINK_END + bytes);
        if !has_room {
            self.shared.request(record);
        }
        has_room
    }

    #[cold]
    fn give_notice(&mut self) {
        if self.offset >= self.prepare_at {
            self.prepare_at = u64::MAX;
            self.shared.wants_next.store(true, Ordering::Relaxed);
        }
        self.notice_at = self.prepare_at.min(self.offset + TEND_EVERY_BYTES);
        self.notice = true;
    }

    /// Whether something has come up for the background thread since the last call.
    #[inline]
    pub fn take_notice(&mut self) -> bool {
        self.notice && std::mem::take(&mut self.notice)
    }

    #[inline]
    fn write_record(&mut self, record: &mut [u8], kind: RecordType, sequence: Sequence, through: bool) -> Result<()> {
        let synced = self.segment.synced.load(Ordering::Relaxed);
        let place = Place { segment: self.segment.number, salt: self.segment.salt, offset: self.offset };
        seal_record(record, kind, sequence, synced, place);
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

    /// Goes on in `next`.
    #[cold]
    fn roll(&mut self, next: Arc<Segment>, last_sequence: Sequence) -> Result<()> {
        let link = Link::to(&self.segment);
        let mostly_stored = std::mem::take(&mut self.stored) * 2 > self.offset;
        self.shared.mostly_stored.store(mostly_stored, Ordering::Relaxed);
        let old = std::mem::replace(&mut self.segment, Arc::clone(&next));
        self.length = next.file.len();
        self.offset = HEADER_BYTES as u64;
        self.prepare_at = self.length / PREPARE_AFTER;
        self.notice_at = self.prepare_at.min(TEND_EVERY_BYTES);
        // What was said of the old one holds no more; that it is full is news.
        self.shared.wants_next.store(false, Ordering::Relaxed);
        self.shared.least_next.store(0, Ordering::Relaxed);
        self.notice = true;
        // Before another thread can see the segment as the active one: a manifest may name it from
        // then on.
        self.append_link(link)?;
        let in_foreground = self.shared.maker.in_foreground;
        if in_foreground {
            old.file.release_memory(0, u64::MAX);
        }
        let mut state = self.shared.state.lock();
        // A background thread that is busy with something long leaves none of them for a while.
        let late = if in_foreground { None } else { state.leaving.pop_front() };
        if !in_foreground {
            state.leaving.push_back(Arc::clone(&old));
        }
        state.retired.push_back(Retired { segment: old, last_sequence });
        state.active = next;
        match late {
            Some(late) if late.file.len() <= LEFT_BY_WRITER_BYTES => {
                drop(state);
                late.file.release_memory(0, u64::MAX);
            }
            Some(late) => state.leaving.push_front(late),
            None => {}
        }
        Ok(())
    }

    /// Releases the prepared segment until the next write. With `needless`, which says that nothing
    /// in the log is needed any more, goes on in a segment of the smallest size, unless the active
    /// one is like that.
    pub fn rest(&mut self, needless: bool, last_sequence: Sequence) -> std::result::Result<(), AppendError> {
        let roll = needless && self.length > self.shared.maker.smallest_bytes;
        match self.shared.start_small(roll).map_err(AppendError::NoSegment)? {
            Some(next) => self.roll(next, last_sequence).map_err(AppendError::Failed)?,
            None => {
                // In time even if little is left of the segment.
                self.prepare_at =
                    (self.offset + self.length / PREPARE_AFTER).min(self.length * 15 / 16).max(self.offset);
                self.notice_at = self.prepare_at.min(self.offset + TEND_EVERY_BYTES);
            }
        }
        Ok(())
    }

    /// Syncs everything and writes the closing record: damage anywhere is then told from a torn
    /// tail.
    pub fn close(&mut self) -> Result<()> {
        self.shared.sync_to(self.position())?;
        if self.offset + record_bytes(0) <= self.length {
            let mut record = [0; RECORD_HEADER_BYTES];
            self.write_record(&mut record, RecordType::Close, 0, true)?;
            self.shared.sync_to(self.position())?;
        }
        Ok(())
    }
}

impl Link {
    fn to(previous: &Segment) -> Link {
        Link {
            previous_number: previous.number,
            previous_end: previous.written.load(Ordering::Relaxed),
            previous_synced: previous.synced.load(Ordering::Relaxed),
        }
    }
}
