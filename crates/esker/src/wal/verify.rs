//! Checking a log without replaying it, for the check of a directory that does not open: unlike the
//! replay and the salvage, it goes on behind damage, and tells of each place.
//!
//! What is damage is decided as in the replay (`reader.rs`): bytes that nothing says were on the
//! device may be missing, and the log ends there.

use super::format::{HEADER_BYTES, Link, MAX_SEGMENT_BYTES, RecordType, SegmentHeader, decode_header, record_bytes};
use super::reader::{FirstRecord, LinkSearch, Record, SegmentFile, SegmentReader, read_link, unverified};
use super::segment::{Position, SegmentMaker};
use crate::base::key::Sequence;
use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What the manifest says about the log; nothing where the manifest is damaged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expected {
    /// The first segment that is needed.
    pub floor: Option<u64>,
    /// The log was on the device up to there.
    pub synced: Position,
    /// Where the log ended when the database was closed, if it was.
    pub closed: Option<Position>,
}

/// What is to be done with what the check comes across.
pub trait Visitor {
    /// Checks an intact record. An error of it that says that it cannot have been written so is
    /// told, and the check goes on.
    ///
    /// # Errors
    /// Those that are no damage end the check.
    fn check(&mut self, record: &Record<'_>) -> Result<Checked>;

    /// Takes damage.
    fn damage(&mut self, error: Error);

    /// Takes so many more bytes that were read.
    fn bytes(&mut self, bytes: u64);
}

/// What there is to say about an intact record.
#[derive(Debug, Default)]
pub struct Checked {
    /// The last sequence number of its batch.
    pub last: Sequence,
    /// Why what it refers to is not there. A record that nothing says was on the device counts as
    /// never written then.
    pub missing: Vec<Error>,
}

/// A segment, and its link if that is intact.
type Segments = BTreeMap<u64, (SegmentFile, Option<Link>)>;

/// What is in the directory.
#[derive(Default)]
struct Found {
    segments: Segments,
    /// Every file with an intact header, by what it says to be.
    paths: BTreeMap<u64, PathBuf>,
    /// Files without an intact header that begin with what looks like a link.
    nameless: Vec<(SegmentFile, FirstRecord)>,
    /// The search for what they are.
    search: LinkSearch,
    /// Files that are too short, with their lengths.
    short: Vec<(PathBuf, u64)>,
    /// The highest segment number seen, in a header or a name.
    highest: u64,
}

/// Reads every segment from the first that is needed on, oldest first. Takes memory for a record at
/// a time.
///
/// # Errors
/// What the visitor returns, if it is no damage; that the directory cannot be listed; `Unsupported`
/// if a newer version has written a segment.
pub fn verify(maker: &SegmentMaker, expected: &Expected, visitor: &mut dyn Visitor) -> Result<()> {
    let mut verifying = Verifying { maker, expected, visitor, has_damage: false };
    let mut found = verifying.open_all()?;
    let chain = verifying.chain(&mut found);
    verifying.read_chain(&chain, found.segments)
}

struct Verifying<'a> {
    maker: &'a SegmentMaker,
    expected: &'a Expected,
    visitor: &'a mut dyn Visitor,
    has_damage: bool,
}

/// Where the records of a segment end.
struct End {
    offset: u64,
    /// They end before the segment's successor says so, and nothing in the segment says that what
    /// is missing was on the device. With what the last of them refers to and is not there.
    torn: Option<Vec<Error>>,
}

/// What other places say about a segment.
#[derive(Clone, Copy)]
struct Bounds {
    /// Where its records were cut.
    cut: u64,
    /// They are on the device up to there.
    vouched: u64,
}

/// The last segments of the chain, by their places in it, that say that all before them was synced:
/// in a record, and in the link, which says so of all before the segment that it leads to. Segments
/// already read do not count.
struct Vouching {
    by_record: Option<usize>,
    by_link: Option<usize>,
}

impl Vouching {
    fn of(chain: &[u64], segments: &Segments) -> Vouching {
        let by_record = chain.iter().rposition(|number| {
            let found = segments.get(number).map(|(found, _)| found);
            // An error shows again when the segment is read.
            found.is_some_and(|found| SegmentReader::new(*number, found).was_synced().unwrap_or(true))
        });
        let by_link = chain.iter().rposition(|number| {
            let link = segments.get(number).and_then(|(_, link)| *link);
            link.is_some_and(|link| link.previous_synced > HEADER_BYTES as u64)
        });
        Vouching { by_record, by_link }
    }

    /// Whether what the segment at this place is missing was on the device.
    fn is_synced(&self, at: usize) -> bool {
        // What the next link says is known already.
        self.by_record.is_some_and(|last| last > at) || self.by_link.is_some_and(|last| last > at + 1)
    }
}

impl Verifying<'_> {
    fn damage(&mut self, error: Error) {
        self.has_damage = true;
        self.visitor.damage(error);
    }

    fn floor(&self) -> u64 {
        self.expected.floor.unwrap_or(0).max(1)
    }

    fn open_all(&mut self) -> Result<Found> {
        let mut found = Found::default();
        for (number, name) in self.maker.files()? {
            found.highest = found.highest.max(number);
            let path = self.maker.directory.join(&name);
            match self.open_one(path, &mut found) {
                // Removed since it was listed: nothing referred to it, or that tells it is missing.
                Err(error) if error.is_missing_file() && !self.maker.lists(&name)? => {}
                // Of what a newer version has written nothing is known.
                Err(error @ (Error::Corruption { .. } | Error::Io { .. })) => self.damage(error),
                opened => opened?,
            }
        }
        Ok(found)
    }

    fn open_one(&mut self, path: PathBuf, all: &mut Found) -> Result<()> {
        let file = self.maker.open(&path)?;
        let mut found = SegmentFile::new(path, file);
        let bytes = found.bytes;
        if bytes < HEADER_BYTES as u64 + record_bytes(24) {
            all.short.push((found.path, bytes));
            return Ok(());
        }
        if bytes > MAX_SEGMENT_BYTES {
            return Err(Error::corruption(found.path, 0, "the file is longer than a log segment can be"));
        }
        let mut header = [0u8; HEADER_BYTES];
        found.file.read_at(0, &mut header)?;
        let Some(SegmentHeader { number, length, salt }) = decode_header(&found.path, &header)? else {
            let first = FirstRecord::read(&found)?;
            if first.looks_like_link() {
                all.nameless.push((found, first));
            }
            return Ok(());
        };
        all.highest = all.highest.max(number);
        if let Some(twin) = all.paths.insert(number, found.path.clone()) {
            let what = format!("{} says to be log segment {number} too", twin.display());
            return Err(Error::corruption(found.path, 0, what));
        }
        if number < self.floor() {
            return Ok(());
        }
        found.salt = salt;
        if length != bytes {
            let what = format!("the segment should have {length} bytes, the file has {bytes}");
            self.damage(Error::corruption(&found.path, bytes, what));
            found.bytes = bytes.min(length);
        }
        let link = read_link(&found, number)?;
        all.segments.insert(number, (found, link));
        Ok(())
    }

    /// The segments to read, oldest first. See `follow_links` of the replay.
    fn chain(&mut self, found: &mut Found) -> Vec<u64> {
        let mut chain = self.newest(found);
        let Some(mut number) = chain.last().copied() else {
            if let Some(floor) = self.expected.floor {
                self.missing(format!("log segment {floor}, which the manifest needs, is missing or damaged"), found);
            }
            return chain;
        };
        while number > self.floor() {
            let link = found.segments.get(&number).and_then(|(_, link)| *link).unwrap_or_else(|| Link {
                // It was told that this one is damaged, or the log has a hole here.
                previous_number: newest_linked_below(&found.segments, number),
                ..Link::default()
            });
            let previous = link.previous_number;
            if previous < self.floor() {
                break;
            }
            if previous >= number || !self.is_there(previous, found) {
                if self.expected.floor.is_none() {
                    // Whether it was still needed is not known. As a rule it was not.
                    break;
                }
                self.missing(format!("log segment {previous} is missing"), found);
                let below = found.segments.range(..previous.min(number)).next_back();
                let Some((&older, _)) = below else { break };
                number = older;
            } else {
                number = previous;
            }
            chain.push(number);
        }
        chain.reverse();
        chain
    }

    /// The newest segment with a link, behind those above it whose links are damaged, newest first.
    fn newest(&mut self, found: &mut Found) -> Vec<u64> {
        let linked = newest_linked_below(&found.segments, u64::MAX);
        // The header of a later one may be damaged.
        self.identify_above(linked.max(self.floor() - 1), found);
        let mut chain = Vec::new();
        for (&number, (segment, link)) in found.segments.iter().rev() {
            if link.is_some() {
                chain.push(number);
                break;
            }
            // Prepared and never used, or its first record is damaged. An error shows again when
            // the segment is read.
            if SegmentReader::new(number, segment).synced_beyond(HEADER_BYTES as u64, 0).unwrap_or(true) {
                chain.push(number);
            }
        }
        chain
    }

    /// Whether the segment is there, be it in a file whose header is damaged.
    fn is_there(&mut self, number: u64, found: &mut Found) -> bool {
        found.segments.contains_key(&number) || self.identify_one(number, found)
    }

    /// Finds the segments behind segment `number` whose headers are broken.
    fn identify_above(&mut self, number: u64, found: &mut Found) {
        if found.nameless.is_empty() {
            return;
        }
        found.search = LinkSearch::new(number + 1..=found.highest + 1, |number| found.segments.contains_key(&number));
        for (segment, first) in std::mem::take(&mut found.nameless) {
            match found.search.identify(&first, &segment.path) {
                Ok(Some((number, link))) => self.add_nameless(number, link, segment, found),
                Ok(None) => found.nameless.push((segment, first)),
                Err(error) => return self.give_up_search(error, found),
            }
        }
    }

    /// Finds the file whose header is broken that is this segment; whether there is one.
    fn identify_one(&mut self, number: u64, found: &mut Found) -> bool {
        for at in 0..found.nameless.len() {
            let (segment, first) = &found.nameless[at];
            match found.search.link_of(number, first, &segment.path) {
                Ok(Some(link)) => {
                    let (segment, _) = found.nameless.swap_remove(at);
                    self.add_nameless(number, link, segment, found);
                    return true;
                }
                Ok(None) => {}
                Err(error) => {
                    self.give_up_search(error, found);
                    return false;
                }
            }
        }
        false
    }

    fn add_nameless(&mut self, number: u64, link: Link, segment: SegmentFile, found: &mut Found) {
        let what = format!("the header of log segment {number} is broken");
        self.damage(Error::corruption(&segment.path, 0, what));
        found.segments.insert(number, (segment, Some(link)));
    }

    /// So many files look like segments that they must have been forged: those left are none.
    fn give_up_search(&mut self, error: Error, found: &mut Found) {
        found.nameless.clear();
        self.damage(error);
    }

    /// Tells that a segment is missing, and of the files that may be what is left of it.
    fn missing(&mut self, what: String, found: &mut Found) {
        for (path, bytes) in std::mem::take(&mut found.short) {
            self.damage(Error::corruption(path, bytes, "the file is too short for a log segment"));
        }
        self.damage(Error::corruption(&self.maker.directory, 0, what));
    }

    fn read_chain(&mut self, chain: &[u64], mut segments: Segments) -> Result<()> {
        let (mut last_sequence, mut last_with_batches, mut closed_at) = (0, 0, None);
        let mut vouching = None;
        for (at, &number) in chain.iter().enumerate() {
            let Some((found, _)) = segments.remove(&number) else { continue };
            let next = chain.get(at + 1).and_then(|next| segments.get(next)).and_then(|(_, link)| *link);
            let next = next.filter(|link| link.previous_end > 0 && link.previous_number == number);
            let bounds = self.bounds(number, next);
            let before = last_sequence;
            let read = self.read_segment(number, &found, bounds, &mut last_sequence);
            self.visitor.bytes(found.bytes);
            let end = match read {
                Ok(end) => end,
                Err(error @ (Error::Corruption { .. } | Error::Io { .. })) => {
                    self.damage(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            if last_sequence > before {
                last_with_batches = number;
            }
            if self.expected.closed.is_some_and(|closed| closed.segment == number) {
                closed_at = Some((end.offset, found.path.clone()));
            }
            if let Some(missing) = end.torn {
                // Fine unless something behind the hole was synced, and with it what is missing.
                let vouching = vouching.get_or_insert_with(|| Vouching::of(chain, &segments));
                if !vouching.is_synced(at) {
                    break;
                }
                let is_hole = missing.is_empty();
                missing.into_iter().chain(is_hole.then(|| unverified(&found.path, end.offset))).for_each(|error| {
                    self.damage(error);
                });
            }
        }
        self.compare_end(chain, closed_at, last_with_batches);
        Ok(())
    }

    fn bounds(&self, number: u64, next: Option<Link>) -> Bounds {
        let synced = self.expected.synced;
        let vouched = match number.cmp(&synced.segment) {
            std::cmp::Ordering::Less => next.map_or(0, |link| link.previous_end),
            std::cmp::Ordering::Equal => synced.offset,
            std::cmp::Ordering::Greater => 0,
        };
        Bounds {
            cut: next.map_or(u64::MAX, |link| link.previous_end),
            vouched: vouched.max(next.map_or(0, |link| link.previous_synced)),
        }
    }

    /// Compares where the log ends with what the manifest says, unless other damage explains it.
    fn compare_end(&mut self, chain: &[u64], closed_at: Option<(u64, PathBuf)>, last_with_batches: u64) {
        if self.has_damage {
            return;
        }
        let synced = self.expected.synced.segment;
        if chain.last().is_some_and(|&newest| newest < synced) {
            let what = format!("log segment {synced}, which was synced, is missing or damaged");
            self.damage(Error::corruption(&self.maker.directory, 0, what));
        } else if let Some(Position { segment, offset }) = self.expected.closed {
            let end = closed_at.as_ref().map(|(end, _)| *end);
            if end != Some(offset) || last_with_batches > segment {
                let path = closed_at.map_or_else(|| self.maker.directory.clone(), |(_, path)| path);
                let what =
                    format!("the database was closed with its log ending at offset {offset} of segment {segment}");
                self.damage(Error::corruption(path, end.unwrap_or(0), what));
            }
        }
    }

    /// Reads a segment, and goes on behind what does not verify with the next record that does.
    fn read_segment(
        &mut self,
        number: u64,
        found: &SegmentFile,
        Bounds { cut, mut vouched }: Bounds,
        last_sequence: &mut Sequence,
    ) -> Result<End> {
        let mut reader = SegmentReader::new(number, found);
        let most = reader.search_budget();
        let mut offset = HEADER_BYTES as u64;
        let (mut closed, mut searched) = (false, false);
        while offset < cut {
            let Some((header, payload)) = reader.record(offset)? else {
                if offset >= vouched && !closed && !searched {
                    vouched = vouched.max(synced_behind(&mut reader, offset, *last_sequence, most)?);
                    searched = true;
                    // A writer beside this may have filled the place since it was read.
                    if offset < vouched {
                        reader.read_anew();
                        continue;
                    }
                }
                if offset >= vouched {
                    break;
                }
                self.damage(if offset == HEADER_BYTES as u64 {
                    Error::corruption(&found.path, offset, "the segment's link does not verify")
                } else {
                    unverified(&found.path, offset)
                });
                let next = reader.find_behind(offset, *last_sequence, most, |_| true)?;
                let Some((next, _)) = next.filter(|(next, _)| *next < cut) else {
                    return Ok(End { offset, torn: None });
                };
                (offset, closed) = (next, false);
                continue;
            };
            closed = header.kind == RecordType::Close;
            let next = offset + record_bytes(header.payload_bytes);
            if header.kind == RecordType::Batch {
                let payload_at = offset + record_bytes(0);
                let (path, sequence) = (found.path.as_path(), header.sequence);
                let record = Record { sequence, payload, segment: number, path, offset: payload_at };
                let missing = self.check(&record, last_sequence)?;
                if !missing.is_empty() {
                    if offset >= vouched && !searched {
                        vouched = vouched.max(synced_behind(&mut reader, offset, *last_sequence, most)?);
                        searched = true;
                    }
                    if offset >= vouched {
                        return Ok(End { offset, torn: Some(missing) });
                    }
                    missing.into_iter().for_each(|error| self.damage(error));
                }
            }
            offset = next;
        }
        let is_short = cut != u64::MAX && offset < cut;
        Ok(End { offset, torn: is_short.then(Vec::new) })
    }

    /// Checks an intact record; why what it refers to is not there.
    fn check(&mut self, record: &Record<'_>, last_sequence: &mut Sequence) -> Result<Vec<Error>> {
        if record.sequence <= *last_sequence {
            let what = format!("sequence number {} follows {last_sequence}", record.sequence);
            self.damage(Error::corruption(record.path, record.offset - record_bytes(0), what));
        }
        let checked = match self.visitor.check(record) {
            Ok(checked) => checked,
            Err(error @ (Error::Corruption { .. } | Error::Io { .. })) => {
                self.damage(error);
                Checked { last: record.sequence, missing: Vec::new() }
            }
            Err(error) => return Err(error),
        };
        *last_sequence = checked.last.max(*last_sequence);
        Ok(checked.missing)
    }
}

/// The newest segment below `number` that has an intact link; 0 if there is none.
fn newest_linked_below(segments: &Segments, number: u64) -> u64 {
    let linked = segments.range(..number).rev().find(|(_, (_, link))| link.is_some());
    linked.map_or(0, |(&number, _)| number)
}

/// The largest offset that an intact record behind `offset` says was on the device; 0 if none does.
/// Reads the segment once, however many records say so.
fn synced_behind(reader: &mut SegmentReader<'_>, offset: u64, last_sequence: Sequence, most: u64) -> Result<u64> {
    let (mut at, mut largest) = (offset, 0);
    while let Some((next, header)) =
        reader.find_behind(at, last_sequence, most, |header| header.synced > largest.max(offset))?
    {
        (at, largest) = (next, header.synced);
    }
    Ok(largest)
}
