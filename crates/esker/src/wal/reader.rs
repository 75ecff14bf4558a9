//! Replaying the log after a start.
//!
//! 1. Read the header of every segment file. An intact one names the segment; anything else is a
//!    file whose preparation was cut short, and free, unless records of a missing segment are found
//!    in it: then its header was damaged.
//! 2. Follow the links back from the newest segment that has one, down to the first segment the
//!    manifest still needs. Segments passed over were given up by an earlier recovery.
//! 3. Read forward. A segment must reach where its successor's link says it ended. If it does not,
//!    and nothing says that the missing bytes were ever on the device, the log ends there: recovery
//!    yields a prefix, never a hole. If something says so, that is corruption.

use super::archive::{Archive, Archived};
use super::format::{
    HEADER_BYTES, Link, MAX_SEGMENT_BYTES, RECORD_HEADER_BYTES, RecordHeader, RecordType, SegmentHeader, decode_header,
    decode_record_header, record_bytes, verify_header, verify_record,
};
use super::segment::Position;
use super::segment::{FreeFile, Retired, Segment, SegmentMaker, Space};
use super::writer::Inherited;
use crate::base::key::Sequence;
use crate::env::LogFile;
use crate::error::{Error, Result};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes read at a time.
const WINDOW_BYTES: usize = 256 << 10;
/// A search for records may compute checksums over so many times the length of its segment. Only a
/// segment of version 1, or one forged with its salt, has so much that looks like records and
/// overlaps.
const SEARCH_FACTOR: u64 = 16;
/// A link and its header.
const LINK_BYTES: usize = RECORD_HEADER_BYTES + 24;
/// How many numbers a segment without an intact header is tried with. A log has few segments; the
/// bound is for hostile numbers.
pub(super) const TRIED_NUMBERS: usize = 1 << 16;
/// Over so many bytes checksums may be computed to identify all such segments of a log together:
/// those of sixteen files that are tried with as many numbers as one may be. After an accident
/// there are one or two of them, and few numbers that they can have.
pub(super) const IDENTIFY_BYTES: u64 = (16 * TRIED_NUMBERS * LINK_BYTES) as u64;

#[derive(Clone)]
pub(super) struct SegmentFile {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn LogFile>,
    /// From its header.
    pub(super) salt: Option<u64>,
    /// How long the segment is: less than its file if that was made longer.
    pub(super) bytes: u64,
}

impl SegmentFile {
    /// A file about which its header says nothing yet.
    pub(super) fn new(path: PathBuf, file: Arc<dyn LogFile>) -> SegmentFile {
        let bytes = file.len();
        SegmentFile { path, file, salt: None, bytes }
    }

    fn into_free(self) -> FreeFile {
        FreeFile { path: self.path, file: self.file, space: Space::Found }
    }
}

/// A record as the replay hands it out.
pub struct Record<'a> {
    /// The first write in it.
    pub sequence: Sequence,
    /// The operations: `base/batch.rs`.
    pub payload: &'a [u8],
    /// The segment it is in.
    pub segment: u64,
    /// Where the payload is, for errors.
    pub path: &'a Path,
    /// See `path`.
    pub offset: u64,
}

/// What the visitor of a record says.
#[derive(Debug)]
pub enum Visited {
    /// It was taken; this is the last sequence number of its batch.
    Last(Sequence),
    /// The record refers to something that is missing, and counts as never written, like a record
    /// that does not verify. The log ends before it; if the record is known to have been synced,
    /// this is the error instead.
    Missing(Error),
}

/// Replays every batch record of the segments from number `floor` on, oldest first, and returns
/// what the log goes on from. `synced`: the log was on the device up to there, so that one that
/// ends before it is damaged.
pub fn replay(
    maker: &SegmentMaker,
    floor: u64,
    synced: Position,
    visit: &mut dyn FnMut(Record<'_>) -> Result<Visited>,
) -> Result<Inherited> {
    let mut inherited = Inherited::default();
    let mut segments = open_segments(maker, floor, &mut inherited)?;
    let chain = follow_links(&segments, floor, &maker.directory)?;
    if chain.last().is_some_and(|&newest| newest < synced.segment) {
        let what = format!("log segment {}, which was synced, is missing or damaged", synced.segment);
        return Err(Error::corruption(&maker.directory, 0, what));
    }
    inherited.below_floor = newest_linked_below(&segments, 0, floor)?;
    // A reader gives none of them up.
    if !maker.read_only {
        inherited.archive = archive_before(&mut segments, &chain)?;
    }
    let mut last_sequence = 0;
    let mut last_with_batches = 0;
    let mut visit = |record: Record<'_>| {
        let segment = record.segment;
        let visited = visit(record)?;
        if matches!(visited, Visited::Last(_)) {
            last_with_batches = segment;
        }
        Ok(visited)
    };
    let mut ended = false;
    for (at, &number) in chain.iter().enumerate() {
        let Some(found) = segments.remove(&number) else { continue };
        if ended {
            inherited.free.push(found.into_free());
            continue;
        }
        let next = chain.get(at + 1).and_then(|&next| segments.get(&next).map(|found| (next, found)));
        let next_link = next.map(|(next, found)| read_link(found, next)).transpose()?.flatten();
        let next_link = next_link.filter(|link| link.previous_end > 0);
        let mut reader = SegmentReader::new(number, &found);
        let vouched = match number.cmp(&synced.segment) {
            Ordering::Less => next_link.map_or(0, |link| link.previous_end),
            Ordering::Equal => synced.offset,
            Ordering::Greater => 0,
        };
        let (end, missing) = reader.read_all(next_link, vouched, &mut last_sequence, &mut visit)?;
        if missing.is_some() || next_link.is_some_and(|link| end < link.previous_end) {
            refuse_synced_hole(&segments, &chain[at + 1..], || {
                missing.unwrap_or_else(|| unverified(&found.path, end))
            })?;
            ended = true;
        }
        let segment = Segment::found(number, found.into_free(), end);
        inherited.retired.push(Retired { segment, last_sequence });
    }
    inherited.last_with_batches = last_with_batches;
    // What is left is in no chain: given up by an earlier recovery, older than the floor, or
    // prepared and never used.
    inherited.free.extend(segments.into_values().map(SegmentFile::into_free));
    Ok(inherited)
}

/// Whether the segments in the directory are those of a database that was written to or opened more
/// than once, and not what an interrupted creation leaves.
pub fn holds_history(maker: &SegmentMaker) -> Result<bool> {
    let segments = open_segments(maker, 0, &mut Inherited::default())?;
    for (&number, found) in &segments {
        if let Some(link) = read_link(found, number)? {
            let behind_link = HEADER_BYTES as u64 + record_bytes(24);
            if link.previous_number > 0 || SegmentReader::new(number, found).record(behind_link)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The highest number that a segment file in the directory has, in its name or in its header: a
/// file that was used again may have an older name.
pub fn highest_number(maker: &SegmentMaker) -> Result<u64> {
    let mut inherited = Inherited::default();
    open_segments(maker, 0, &mut inherited)?;
    Ok(inherited.highest_number)
}

fn open_segments(maker: &SegmentMaker, floor: u64, inherited: &mut Inherited) -> Result<BTreeMap<u64, SegmentFile>> {
    let mut segments = BTreeMap::new();
    let mut nameless = Vec::new();
    for (file_number, name) in maker.files()? {
        inherited.highest_number = inherited.highest_number.max(file_number);
        let path = maker.directory.join(&name);
        let file = match maker.open(&path) {
            // A writer removes what nothing refers to at any time. Of what is referred to, a link
            // or the manifest tells that it is missing.
            Err(error) if maker.read_only && error.is_missing_file() && !maker.lists(&name)? => continue,
            opened => opened?,
        };
        if file.len() > MAX_SEGMENT_BYTES {
            return Err(Error::corruption(path, 0, "the file is longer than a log segment can be"));
        }
        let mut header = [0u8; HEADER_BYTES];
        let number = if file.len() >= HEADER_BYTES as u64 + record_bytes(24) {
            file.read_at(0, &mut header)?;
            decode_header(&path, &header)?
        } else {
            None
        };
        match number {
            Some(SegmentHeader { number, length, salt }) => {
                // One that is only kept for changes stops no open.
                if length != file.len() && number < floor {
                    inherited.highest_number = inherited.highest_number.max(number);
                    inherited.free.push(SegmentFile::new(path, file).into_free());
                    continue;
                }
                if length != file.len() {
                    let what = format!("the segment should have {length} bytes, the file has {}", file.len());
                    return Err(Error::corruption(path, file.len(), what));
                }
                inherited.highest_number = inherited.highest_number.max(number);
                if let Some(twin) =
                    segments.insert(number, SegmentFile { path: path.clone(), bytes: file.len(), file, salt })
                {
                    let what = format!("{} says to be log segment {number} too", twin.path.display());
                    return Err(Error::corruption(path, 0, what));
                }
            }
            None => nameless.push(SegmentFile::new(path, file)),
        }
    }
    // A segment that a later one's link leads to is missed when the links are followed. One that no
    // link leads to may have been given up, and its file was being prepared again.
    let unlinked = floor.max(newest_linked_below(&segments, 0, u64::MAX)? + 1);
    refuse_damaged_headers(&nameless, &segments, unlinked..=inherited.highest_number + 1)?;
    inherited.free.extend(nameless.into_iter().map(SegmentFile::into_free));
    Ok(segments)
}

/// A file without an intact header is free, unless its first record is the link of a segment with
/// one of these numbers that is missing.
fn refuse_damaged_headers(
    nameless: &[SegmentFile],
    segments: &BTreeMap<u64, SegmentFile>,
    numbers: RangeInclusive<u64>,
) -> Result<()> {
    if nameless.is_empty() {
        return Ok(());
    }
    let mut search = LinkSearch::new(numbers, |number| segments.contains_key(&number));
    for found in nameless {
        if let Some((number, _)) = search.identify(&FirstRecord::read(found)?, &found.path)? {
            return Err(Error::corruption(&found.path, 0, format!("the header of log segment {number} is broken")));
        }
    }
    Ok(())
}

/// The bytes where a segment's link is.
pub(super) struct FirstRecord {
    bytes: Option<[u8; LINK_BYTES]>,
    segment_bytes: u64,
}

impl FirstRecord {
    pub(super) fn read(found: &SegmentFile) -> Result<FirstRecord> {
        let mut bytes = [0u8; LINK_BYTES];
        let segment_bytes = found.bytes;
        if segment_bytes < HEADER_BYTES as u64 + bytes.len() as u64 {
            return Ok(FirstRecord { bytes: None, segment_bytes });
        }
        found.file.read_at(HEADER_BYTES as u64, &mut bytes)?;
        Ok(FirstRecord { bytes: Some(bytes), segment_bytes })
    }

    /// The checksum, if the bytes look like those of a link of any segment.
    fn link_sum(&self) -> Option<u32> {
        let (sum, header) = decode_record_header(self.bytes.as_ref()?, HEADER_BYTES as u64, self.segment_bytes)?;
        (header.kind == RecordType::Link && header.payload_bytes == 24).then_some(sum)
    }

    /// Whether it may be the link of a segment.
    pub(super) fn looks_like_link(&self) -> bool {
        self.link_sum().is_some()
    }

    /// The link, if it is that of segment `number` and intact.
    fn link(&self, number: u64) -> Option<Link> {
        let (sum, bytes) = (self.link_sum()?, self.bytes.as_ref()?);
        if !verify_record(bytes, sum, number, HEADER_BYTES as u64) {
            return None;
        }
        Link::decode(&bytes[RECORD_HEADER_BYTES..])
    }
}

/// A search for the segments that the files without an intact header of one log are. Only their
/// links tell, whose checksums are seeded with the number: numbers are tried, over all files
/// together no more than [`IDENTIFY_BYTES`] allow.
#[derive(Debug, Default)]
pub(super) struct LinkSearch {
    /// The numbers that they can have.
    missing: BTreeSet<u64>,
    /// Over so many bytes checksums of links were computed.
    pub(super) checked_bytes: u64,
}

impl LinkSearch {
    /// For segments with one of `numbers` that is not `known`. Of too many, the least and the
    /// greatest: those of a young log and of an old one, whatever the name of a file of others is.
    pub(super) fn new(numbers: RangeInclusive<u64>, known: impl Fn(u64) -> bool) -> LinkSearch {
        let is_missing = |number: &u64| !known(*number);
        let mut missing: BTreeSet<u64> = numbers.clone().filter(is_missing).take(TRIED_NUMBERS / 2).collect();
        missing.extend(numbers.rev().filter(is_missing).take(TRIED_NUMBERS / 2));
        LinkSearch { missing, checked_bytes: 0 }
    }

    /// The number of the segment that the file begins, and its link. No other file is this segment
    /// then.
    ///
    /// # Errors
    /// `Corruption` if so much was tried that the files must have been forged.
    pub(super) fn identify(&mut self, first: &FirstRecord, path: &Path) -> Result<Option<(u64, Link)>> {
        if !first.looks_like_link() {
            return Ok(None);
        }
        let mut identified = None;
        for &number in &self.missing {
            count_link(&mut self.checked_bytes, path)?;
            identified = first.link(number).map(|link| (number, link));
            if identified.is_some() {
                break;
            }
        }
        if let Some((number, _)) = identified {
            self.missing.remove(&number);
        }
        Ok(identified)
    }

    /// The link, if the file is segment `number`.
    ///
    /// # Errors
    /// As [`LinkSearch::identify`].
    pub(super) fn link_of(&mut self, number: u64, first: &FirstRecord, path: &Path) -> Result<Option<Link>> {
        count_link(&mut self.checked_bytes, path)?;
        Ok(first.link(number))
    }
}

/// Counts the checksum of one link more.
fn count_link(checked_bytes: &mut u64, path: &Path) -> Result<()> {
    *checked_bytes += LINK_BYTES as u64;
    if *checked_bytes <= IDENTIFY_BYTES {
        return Ok(());
    }
    Err(Error::corruption(path, 0, "too many files look like log segments whose headers are broken"))
}

/// The link at the front of a segment, if it is intact.
pub(super) fn read_link(found: &SegmentFile, number: u64) -> Result<Option<Link>> {
    Ok(FirstRecord::read(found)?.link(number))
}

/// The segments to read, oldest first. The manifest names `floor` only when that segment's link is
/// on the device, so one at or above it must have an intact link.
fn follow_links(segments: &BTreeMap<u64, SegmentFile>, floor: u64, directory: &Path) -> Result<Vec<u64>> {
    let mut newest = None;
    for (&number, found) in segments.range(floor..).rev() {
        if let Some(link) = read_link(found, number)? {
            newest = Some((number, link));
            break;
        }
        // Prepared and never used, or its first record is damaged.
        if SegmentReader::new(number, found).synced_beyond(HEADER_BYTES as u64, 0)? {
            return Err(Error::corruption(&found.path, HEADER_BYTES as u64, "the segment's link does not verify"));
        }
    }
    let Some((mut number, mut link)) = newest else {
        let what = format!("log segment {floor}, which the manifest needs, is missing or damaged");
        return Err(Error::corruption(directory, 0, what));
    };
    let mut chain = vec![number];
    while number > floor && link.previous_number >= floor.max(1) {
        let previous = link.previous_number;
        let Some(found) = segments.get(&previous).filter(|_| previous < number) else {
            return Err(Error::corruption(directory, 0, format!("log segment {previous} is missing")));
        };
        link = match read_link(found, previous)? {
            Some(before) => before,
            None if link.previous_synced > HEADER_BYTES as u64 => {
                return Err(Error::corruption(&found.path, HEADER_BYTES as u64, "the segment's link does not verify"));
            }
            // Never synced: the log has a hole here, and what it held from there on is lost. What
            // came before is the newest segment with a link: the one of the last start is on the
            // device.
            None => Link { previous_number: newest_linked_below(segments, floor, previous)?, ..Link::default() },
        };
        number = previous;
        chain.push(number);
    }
    chain.reverse();
    Ok(chain)
}

/// The segments that the links before the chain lead to, oldest first, as far as they are there and
/// intact. Their files are closed. A read that fails is an error: what may be intact is not given
/// up.
fn archive_before(segments: &mut BTreeMap<u64, SegmentFile>, chain: &[u64]) -> Result<Archive> {
    let mut next_sequence = None;
    for number in chain {
        let Some(found) = segments.get(number) else { continue };
        next_sequence = first_sequence(*number, found)?;
        if next_sequence.is_some() {
            break;
        }
    }
    let mut above = chain.first().copied().unwrap_or(0);
    let oldest = segments.get(&above).map(|found| read_link(found, above)).transpose()?;
    let mut link = oldest.flatten().unwrap_or_default();
    let mut newest_first = Vec::new();
    // A segment that the log went on from without knowing where it ends is none of these.
    while link.previous_number < above && link.previous_end > 0 {
        let number = link.previous_number;
        let Some(found) = segments.get(&number) else { break };
        let Some(before) = read_link(found, number)? else { break };
        let first = first_sequence(number, found)?;
        let (path, file_bytes, written) = (found.path.clone(), found.bytes, link.previous_end);
        newest_first.push(Archived { number, path, file_bytes, written, next_sequence, since_ms: 0 });
        segments.remove(&number);
        next_sequence = first.or(next_sequence);
        (above, link) = (number, before);
    }
    Ok(Archive::found(newest_first.into_iter().rev()))
}

/// The first write in a segment with a link, by its first record; none if it holds none.
pub(super) fn first_sequence(number: u64, found: &SegmentFile) -> Result<Option<Sequence>> {
    let offset = HEADER_BYTES as u64 + record_bytes(24);
    let Some(salt) = found.salt else {
        // Of version 1: a header cannot be checked alone.
        let record = SegmentReader::new(number, found).record(offset)?.map(|(header, _)| header);
        return Ok(record.filter(|header| header.kind == RecordType::Batch).map(|header| header.sequence));
    };
    let mut bytes = [0u8; RECORD_HEADER_BYTES];
    if found.bytes < offset + bytes.len() as u64 {
        return Ok(None);
    }
    found.file.read_at(offset, &mut bytes)?;
    let header = verify_header(&bytes, salt, offset).then(|| decode_record_header(&bytes, offset, found.bytes));
    let batch = header.flatten().map(|(_, header)| header).filter(|header| header.kind == RecordType::Batch);
    Ok(batch.map(|header| header.sequence))
}

/// The newest segment below `number`, but not below `floor`, that has an intact link; 0 if there is
/// none.
fn newest_linked_below(segments: &BTreeMap<u64, SegmentFile>, floor: u64, number: u64) -> Result<u64> {
    for (&candidate, found) in segments.range(floor..number).rev() {
        if read_link(found, candidate)?.is_some() {
            return Ok(candidate);
        }
    }
    Ok(0)
}

/// A segment ends before its successor says: fine unless something behind the hole was synced, and
/// with it the missing bytes: a record says so, or the link behind a later segment. What the first
/// link says is of the segment that ends.
///
/// The link of the segment that an open has begun is on the device before what was replayed is. No
/// record says so that early: the open takes writes when all of that is durable, in the segments
/// or in tables (`db/lifecycle/open.rs`, `begin`).
fn refuse_synced_hole(
    segments: &BTreeMap<u64, SegmentFile>,
    later: &[u64],
    error: impl FnOnce() -> Error,
) -> Result<()> {
    for (at, number) in later.iter().enumerate() {
        let Some(found) = segments.get(number) else { continue };
        let link = if at > 0 { read_link(found, *number)? } else { None };
        let is_synced = link.is_some_and(|link| link.previous_synced > HEADER_BYTES as u64);
        if is_synced || SegmentReader::new(*number, found).was_synced()? {
            return Err(error());
        }
    }
    Ok(())
}

pub(super) fn unverified(path: &Path, offset: u64) -> Error {
    Error::corruption(path, offset, "a log record that was synced does not verify")
}

pub(super) struct SegmentReader<'a> {
    number: u64,
    found: &'a SegmentFile,
    window: Vec<u8>,
    window_at: u64,
    /// Whether the last record read was a closing one.
    closed: bool,
    /// Over so many bytes checksums of whole records were computed.
    pub(super) checked_bytes: u64,
}

impl<'a> SegmentReader<'a> {
    pub(super) fn new(number: u64, found: &'a SegmentFile) -> SegmentReader<'a> {
        SegmentReader { number, found, window: Vec::new(), window_at: 0, closed: false, checked_bytes: 0 }
    }

    /// The bytes from `offset` on: at least `wanted` of them, or all there are.
    fn bytes(&mut self, offset: u64, wanted: usize) -> Result<&[u8]> {
        let length = self.found.bytes;
        let wanted = wanted.min(usize::try_from(length - offset.min(length)).unwrap_or(usize::MAX));
        let inside = offset >= self.window_at && offset + wanted as u64 <= self.window_at + self.window.len() as u64;
        if !inside {
            let size = wanted.max(WINDOW_BYTES).min(usize::try_from(length - offset.min(length)).unwrap_or(usize::MAX));
            self.window.resize(size, 0);
            self.window_at = offset;
            self.found.file.read_at(offset, &mut self.window)?;
        }
        Ok(&self.window[(offset - self.window_at) as usize..])
    }

    /// Has the next record read from the file again.
    pub(super) fn read_anew(&mut self) {
        self.window.clear();
    }

    /// The intact record at `offset`, if there is one.
    pub(super) fn record(&mut self, offset: u64) -> Result<Option<(RecordHeader, &[u8])>> {
        let length = self.found.bytes;
        if offset + RECORD_HEADER_BYTES as u64 > length {
            return Ok(None);
        }
        let number = self.number;
        let bytes = self.bytes(offset, RECORD_HEADER_BYTES)?;
        let Some((sum, header)) = decode_record_header(bytes, offset, length) else { return Ok(None) };
        let total = RECORD_HEADER_BYTES + header.payload_bytes;
        self.checked_bytes += total as u64;
        self.bytes(offset, total)?;
        let record = &self.window[(offset - self.window_at) as usize..][..total];
        Ok(verify_record(record, sum, number, offset).then_some((header, &record[RECORD_HEADER_BYTES..])))
    }

    /// Hands every batch to `visit`; returns where the segment's intact records end, or where its
    /// successor says they were cut, and what `visit` missed there. Before `vouched` they do not
    /// end.
    fn read_all(
        &mut self,
        next: Option<Link>,
        vouched: u64,
        last_sequence: &mut Sequence,
        visit: &mut dyn FnMut(Record<'_>) -> Result<Visited>,
    ) -> Result<(u64, Option<Error>)> {
        let path = self.found.path.clone();
        let cut = next.map_or(u64::MAX, |link| link.previous_end);
        let number = self.number;
        let mut offset = HEADER_BYTES as u64;
        let mut missing = None;
        while offset < cut {
            let Some((header, payload)) = self.record(offset)? else { break };
            let step = record_bytes(header.payload_bytes);
            let closed = header.kind == RecordType::Close;
            if header.kind == RecordType::Batch {
                if header.sequence <= *last_sequence {
                    let what = format!("sequence number {} follows {last_sequence}", header.sequence);
                    return Err(Error::corruption(path, offset, what));
                }
                let payload_at = offset + RECORD_HEADER_BYTES as u64;
                let (sequence, segment) = (header.sequence, number);
                match visit(Record { sequence, payload, segment, path: &path, offset: payload_at })? {
                    Visited::Last(last) => *last_sequence = last,
                    Visited::Missing(error) => {
                        missing = Some(error);
                        break;
                    }
                }
            }
            self.closed = closed;
            offset += step;
        }
        let vouched = next.map_or(0, |link| link.previous_synced).max(vouched);
        let is_hole = offset < cut && !self.closed;
        if offset < vouched || (is_hole && self.synced_beyond(offset, *last_sequence)?) {
            return Err(missing.unwrap_or_else(|| unverified(&path, offset)));
        }
        Ok((offset, missing))
    }

    /// Whether an intact record behind `offset` says that `offset` was on the device. Takes time in
    /// proportion to the length of the segment, whatever is in it: what is no header of a record of
    /// this segment is refused by its header check, and those that are do not overlap.
    ///
    /// # Errors
    /// `Io`; `Corruption` if so much looks like records that it must have been forged.
    pub(super) fn synced_beyond(&mut self, offset: u64, last_sequence: Sequence) -> Result<bool> {
        let most = self.search_budget();
        Ok(self.find_behind(offset, last_sequence, most, |header| header.synced > offset)?.is_some())
    }

    /// Over so many bytes in all a search that begins now may compute checksums.
    pub(super) fn search_budget(&self) -> u64 {
        self.checked_bytes.saturating_add(self.found.bytes.saturating_mul(SEARCH_FACTOR))
    }

    /// The first intact record behind `offset` that is `wanted`, and where it is; see
    /// [`SegmentReader::synced_beyond`]. `most`: what [`SegmentReader::search_budget`] has said.
    pub(super) fn find_behind(
        &mut self,
        offset: u64,
        last_sequence: Sequence,
        most: u64,
        wanted: impl Fn(&RecordHeader) -> bool,
    ) -> Result<Option<(u64, RecordHeader)>> {
        let length = self.found.bytes;
        let mut at = offset + 8;
        let salt = self.found.salt;
        while at + RECORD_HEADER_BYTES as u64 <= length {
            let bytes = self.bytes(at, RECORD_HEADER_BYTES)?;
            let zeroes = bytes.iter().take_while(|&&b| b == 0).count();
            if zeroes > RECORD_HEADER_BYTES {
                at += (zeroes - RECORD_HEADER_BYTES) as u64 & !7;
                at += 8;
                continue;
            }
            // Records left from the segment's earlier life are refused by their sequence number
            // before their checksum is computed.
            let is_plausible = decode_record_header(bytes, at, length).is_some_and(|(_, header)| {
                wanted(&header)
                    && (header.kind == RecordType::Close || header.sequence > last_sequence)
                    && salt.is_none_or(|salt| verify_header(bytes, salt, at))
            });
            if is_plausible {
                if let Some((header, _)) = self.record(at)? {
                    return Ok(Some((at, header)));
                }
                if self.checked_bytes > most {
                    let what = "too much behind it looks like log records; a repair reads what comes before";
                    return Err(Error::corruption(&self.found.path, offset, what));
                }
            }
            at += 8;
        }
        Ok(None)
    }

    /// Whether an intact record says that more of the segment than its header was on the device, be
    /// it behind damage. Takes time as [`SegmentReader::synced_beyond`] does.
    ///
    /// # Errors
    /// The same.
    pub(super) fn was_synced(&mut self) -> Result<bool> {
        let header_end = HEADER_BYTES as u64;
        let (mut offset, mut last_sequence) = (header_end, 0);
        while let Some((header, _)) = self.record(offset)? {
            if header.synced > header_end {
                return Ok(true);
            }
            last_sequence = last_sequence.max(header.sequence);
            offset += record_bytes(header.payload_bytes);
        }
        let most = self.search_budget();
        Ok(self.find_behind(offset, last_sequence, most, |header| header.synced > header_end)?.is_some())
    }
}
