//! Replaying what is left of a damaged log, for a repair: as far as it can be read, and no further,
//! so that what is replayed has no hole but where the log had lost its beginning, or tables have
//! what is missing.

use super::format::{HEADER_BYTES, Link, MAX_SEGMENT_BYTES, RecordType, SegmentHeader, decode_header, record_bytes};
use super::reader::{FirstRecord, LinkSearch, Record, SegmentFile, SegmentReader, first_sequence, read_link};
use super::segment::{Position, SegmentMaker};
use crate::base::key::Sequence;
use crate::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Something that could not be read.
#[derive(Debug)]
pub struct LogProblem {
    /// The segment file, or the directory if it is missing.
    pub path: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// Tables have what cannot be read there ([`Known::in_tables`]).
    pub is_in_tables: bool,
}

/// What is known of a log from elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known {
    /// The segment that it begins with; 0 if that is not known.
    pub floor: u64,
    /// Up to this position the log is known to have been on the device.
    pub vouched: Position,
    /// The last write up to which tables have all.
    pub in_tables: Sequence,
}

/// What was read of a damaged log.
#[derive(Debug, Default)]
pub struct SalvagedLog {
    /// What could not be.
    pub problems: Vec<LogProblem>,
    /// The segments that the manifest needs are not all there.
    pub beginning_lost: bool,
    /// The highest segment number seen, in a header or a name.
    pub highest_number: u64,
    /// The newest segment with a link; 0 if there is none.
    pub newest: u64,
    /// Where reading ended: segment and offset.
    pub end: (u64, u64),
}

type Segments = BTreeMap<u64, (SegmentFile, Link)>;

/// Hands every batch that can be read, from segment `floor` on, to `visit`, which returns its last
/// sequence number.
///
/// # Errors
/// `Unsupported` for a newer version; `Io`; what `visit` returns, but for `Corruption`, which ends
/// the replay.
pub fn salvage(
    maker: &SegmentMaker,
    Known { floor, vouched, in_tables }: Known,
    visit: &mut dyn FnMut(Record<'_>) -> Result<Sequence>,
) -> Result<SalvagedLog> {
    let mut log = SalvagedLog::default();
    let segments = open_linked(maker, floor, &mut log)?;
    log.newest = segments.last_key_value().map_or(0, |(&newest, _)| newest);
    let newest = log.newest;
    if newest < floor.max(1) {
        log.beginning_lost = floor > 0;
        if log.beginning_lost {
            log.problem(
                maker.directory.clone(),
                0,
                format!("log segment {floor} is missing, and there is no later one"),
            );
        }
        return Ok(log);
    }
    let (mut chain, given_up) = chain(&segments, floor, newest, maker, &mut log);
    let end_synced = leave_out_empty_tail(&mut chain, &segments, vouched.segment)?;
    let mut last_sequence = 0;
    let mut is_cut = false;
    for (at, number) in chain.iter().enumerate() {
        let Some((found, _)) = segments.get(number) else { continue };
        if is_cut {
            log.problem(found.path.clone(), 0, "not replayed: the log before it has a hole".into());
            continue;
        }
        let next = chain.get(at + 1).and_then(|next| segments.get(next)).map(|(_, link)| *link);
        let of_manifest = if *number == vouched.segment { vouched.offset } else { 0 };
        let of_link = if at + 1 == chain.len() { end_synced } else { 0 };
        let bounds = Bounds { next, floor, synced: of_manifest.max(of_link) };
        match read_segment((*number, found), bounds, &mut last_sequence, visit, &mut log)? {
            SegmentEnd::Whole => {}
            SegmentEnd::Refused(offset, what) => {
                log.problem(found.path.clone(), offset, what);
                is_cut = true;
            }
            SegmentEnd::Hole(offset) => {
                let next_write = first_write(&segments, &chain[at + 1..])?;
                is_cut = next_write.is_none_or(|next| next > in_tables.saturating_add(1));
                let rest = if is_cut { "what follows" } else { "the rest of the segment" };
                let what = format!("a log record does not verify; it and {rest} is not replayed");
                log.problems.push(LogProblem { path: found.path.clone(), offset, what, is_in_tables: !is_cut });
            }
        }
    }
    for number in given_up {
        if let Some((found, _)) = segments.get(&number) {
            log.problem(found.path.clone(), 0, "not replayed: the log before it has a hole".into());
        }
    }
    Ok(log)
}

impl SalvagedLog {
    /// Adds one of which nothing is known in tables.
    pub fn problem(&mut self, path: PathBuf, offset: u64, what: String) {
        self.problems.push(LogProblem { path, offset, what, is_in_tables: false });
    }
}

/// Every segment whose link is intact, by number.
fn open_linked(maker: &SegmentMaker, floor: u64, log: &mut SalvagedLog) -> Result<Segments> {
    let mut segments = Segments::new();
    let (mut nameless, mut unused) = (Vec::new(), Vec::new());
    for (number_of_file, name) in maker.files()? {
        log.highest_number = log.highest_number.max(number_of_file);
        let path = maker.directory.join(&name);
        let file = maker.open(&path)?;
        let mut found = SegmentFile::new(path, file);
        if found.file.len() < HEADER_BYTES as u64 + record_bytes(24) {
            if !found.file.is_empty() {
                log.problem(found.path, 0, "the file is too short for a log segment".into());
            }
            continue;
        }
        found.bytes = found.bytes.min(MAX_SEGMENT_BYTES);
        let mut header = [0u8; HEADER_BYTES];
        found.file.read_at(0, &mut header)?;
        let (number, length, salt) = match decode_header(&found.path, &header) {
            Ok(Some(SegmentHeader { number, length, salt })) => (number, length, salt),
            Ok(None) => {
                nameless.push(found);
                continue;
            }
            Err(Error::Corruption { offset, what, .. }) => {
                log.problem(found.path, offset, what);
                continue;
            }
            Err(other) => return Err(other),
        };
        found.salt = salt;
        log.highest_number = log.highest_number.max(number);
        if length != found.file.len() {
            let what = format!("the segment should have {length} bytes, the file has {}", found.file.len());
            log.problem(found.path.clone(), found.file.len(), what);
            found.bytes = found.bytes.min(length);
        }
        match read_link(&found, number)? {
            Some(link) => keep_longer(&mut segments, number, (found, link), log)?,
            None if is_damage(SegmentReader::new(number, &found).synced_beyond(HEADER_BYTES as u64, 0))? => {
                log.problem(found.path, HEADER_BYTES as u64, "the segment's link does not verify".into());
            }
            // Prepared and never used.
            None => unused.push((number, found.path)),
        }
    }
    // An open refuses two of a number: which of them is meant it does not know.
    let mut seen: BTreeSet<u64> = segments.keys().copied().collect();
    for (number, path) in unused {
        if !seen.insert(number) {
            log.problem(path, 0, format!("another file says to be log segment {number} too"));
        }
    }
    identify_nameless(nameless, floor, &mut segments, log)?;
    Ok(segments)
}

/// Adds the segments whose headers are broken. If so many files look like such segments that they
/// must have been forged, those left are none.
fn identify_nameless(
    nameless: Vec<SegmentFile>,
    floor: u64,
    segments: &mut Segments,
    log: &mut SalvagedLog,
) -> Result<()> {
    if nameless.is_empty() {
        return Ok(());
    }
    let numbers = floor.max(1)..=log.highest_number + 1;
    let mut search = LinkSearch::new(numbers, |number| segments.contains_key(&number));
    for found in nameless {
        match search.identify(&FirstRecord::read(&found)?, &found.path) {
            Ok(Some((number, link))) => {
                log.problem(found.path.clone(), 0, format!("the header of log segment {number} is broken"));
                segments.insert(number, (found, link));
            }
            Ok(None) => {}
            Err(Error::Corruption { path, offset, what }) => {
                log.problem(path, offset, what);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Adds a segment. Of two files that say to be the same one, as copies do, that with more records
/// stays.
fn keep_longer(segments: &mut Segments, number: u64, found: (SegmentFile, Link), log: &mut SalvagedLog) -> Result<()> {
    let Some(twin) = segments.remove(&number) else {
        segments.insert(number, found);
        return Ok(());
    };
    let (longer, shorter) =
        if records_end(number, &found.0)? > records_end(number, &twin.0)? { (found, twin) } else { (twin, found) };
    let what = format!("{} says to be log segment {number} too, and has no fewer records", longer.0.path.display());
    log.problem(shorter.0.path, 0, what);
    segments.insert(number, longer);
    Ok(())
}

/// Where the intact records of a segment end.
fn records_end(number: u64, found: &SegmentFile) -> Result<u64> {
    let mut reader = SegmentReader::new(number, found);
    let mut offset = HEADER_BYTES as u64;
    while let Some((header, _)) = reader.record(offset)? {
        offset += record_bytes(header.payload_bytes);
    }
    Ok(offset)
}

/// Whether something vouches for a place, or too much looks as if it did.
fn is_damage(vouched: Result<bool>) -> Result<bool> {
    match vouched {
        Err(Error::Corruption { .. }) => Ok(true),
        other => other,
    }
}

/// The segments to read, oldest first, and those that only a missing one leads to.
fn chain(
    segments: &Segments,
    floor: u64,
    newest: u64,
    maker: &SegmentMaker,
    log: &mut SalvagedLog,
) -> (Vec<u64>, Vec<u64>) {
    let mut part = vec![newest];
    let mut given_up = Vec::new();
    let mut number = newest;
    while let Some((_, link)) = segments.get(&number).filter(|_| number > floor) {
        let previous = link.previous_number;
        if previous < floor.max(1) || previous >= number {
            break;
        }
        if !segments.contains_key(&previous) {
            if floor == 0 {
                // Whether it was still needed is not known. As a rule it was not.
                break;
            }
            log.problem(maker.directory.clone(), 0, format!("log segment {previous} is missing"));
            log.beginning_lost = true;
            let Some((&older, _)) = segments.range(floor..previous).next_back() else { break };
            // What comes before the hole is the part to replay.
            log.beginning_lost = false;
            given_up.append(&mut part);
            number = older;
        } else {
            number = previous;
        }
        part.push(number);
    }
    part.reverse();
    (part, given_up)
}

/// Leaves out segments at the end that hold nothing but their links: a start that was cut short has
/// begun them, or they were for a batch that did not get there. The log ends before them, but not
/// before the one that is vouched for, nor before one of which the link of the next one says that
/// more than its header was on the device: with it, all before it was. Returns how far the segment
/// that is now the last was synced, as that link says.
fn leave_out_empty_tail(chain: &mut Vec<u64>, segments: &Segments, vouched: u64) -> Result<u64> {
    let mut synced = 0;
    while let [.., before, last] = chain[..]
        && before >= vouched
        && synced <= HEADER_BYTES as u64
    {
        let Some((found, link)) = segments.get(&last) else { break };
        if !is_empty(last, found)? {
            break;
        }
        synced = link.previous_synced;
        chain.pop();
    }
    Ok(synced)
}

/// Whether a segment has nothing but its link, nor did have.
fn is_empty(number: u64, found: &SegmentFile) -> Result<bool> {
    let mut reader = SegmentReader::new(number, found);
    let mut offset = HEADER_BYTES as u64;
    while let Some((header, _)) = reader.record(offset)? {
        if header.kind != RecordType::Link {
            return Ok(false);
        }
        offset += record_bytes(header.payload_bytes);
    }
    Ok(!is_damage(reader.synced_beyond(offset, 0))?)
}

/// The sequence number of the first batch in these segments that can be read.
fn first_write(segments: &Segments, chain: &[u64]) -> Result<Option<Sequence>> {
    for number in chain {
        let Some((found, _)) = segments.get(number) else { continue };
        if let Some(first) = first_sequence(*number, found)? {
            return Ok(Some(first));
        }
    }
    Ok(None)
}

/// How the reading of a segment has ended.
enum SegmentEnd {
    /// Nothing is missing.
    Whole,
    /// What is at this offset does not verify.
    Hole(u64),
    /// The record at this offset was not taken, and why.
    Refused(u64, String),
}

/// What is known of a segment.
#[derive(Clone, Copy)]
struct Bounds {
    /// The link of the next one.
    next: Option<Link>,
    /// Of the log.
    floor: u64,
    /// Up to here it is known to have been on the device.
    synced: u64,
}

/// Reads one segment.
///
/// The link of the next one may not tell where this one ends: an open that had nothing to replay
/// has begun it, or a repair. From the floor on this one is needed all the same, as long as the
/// manifest says so; without a manifest it may be in tables.
fn read_segment(
    (number, found): (u64, &SegmentFile),
    Bounds { next, floor, synced }: Bounds,
    last_sequence: &mut Sequence,
    visit: &mut dyn FnMut(Record<'_>) -> Result<Sequence>,
    log: &mut SalvagedLog,
) -> Result<SegmentEnd> {
    let cut = next.map(|link| link.previous_end).filter(|&end| end > 0);
    let mut reader = SegmentReader::new(number, found);
    let mut offset = HEADER_BYTES as u64;
    let mut closed = false;
    while cut.is_none_or(|cut| offset < cut) {
        let Some((header, payload)) = reader.record(offset)? else { break };
        closed = header.kind == RecordType::Close;
        if header.kind == RecordType::Batch {
            let record = Record {
                sequence: header.sequence,
                payload,
                segment: number,
                path: &found.path,
                offset: offset + (record_bytes(0)),
            };
            let ascends = header.sequence > *last_sequence;
            let visited = if ascends {
                visit(record)
            } else {
                Err(Error::corruption(&found.path, offset, "writes out of order"))
            };
            match visited {
                Ok(last) => *last_sequence = last,
                Err(Error::Corruption { what, .. }) => return Ok(SegmentEnd::Refused(offset, what)),
                Err(error) => return Err(error),
            }
        }
        offset += record_bytes(header.payload_bytes);
    }
    log.end = (number, offset);
    let missing = match cut {
        Some(cut) => offset < cut,
        None if next.is_some() && floor == 0 => false,
        None => offset < synced || !closed && is_damage(reader.synced_beyond(offset, *last_sequence))?,
    };
    Ok(if missing { SegmentEnd::Hole(offset) } else { SegmentEnd::Whole })
}
