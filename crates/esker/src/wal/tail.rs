//! Reading a log behind its writer, which another process may be.
//!
//! A reader stands behind the last record that it has read, and reads on as records come. Where
//! none is intact, the writer has written no more, or it has gone on in another segment, whose link
//! leads back to this one, or the segment was released: everything in it is in tables then, and the
//! reader has to begin anew from the manifest.
//!
//! The writer knows nothing of it. What it has written in part does not verify, and is read the
//! next time.

use super::format::{HEADER_BYTES, RECORD_HEADER_BYTES, RecordType, decode_header, record_bytes};
use super::reader::{Record, SegmentFile, SegmentReader, first_sequence, read_link};
use super::segment::Position;
use super::segment::SegmentMaker;
use crate::base::key::Sequence;
use crate::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What the visitor of a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was taken.
    Yes,
    /// Something has to be known before it can be: it is read again.
    NotYet,
    /// Something that it refers to is gone: it is in tables.
    Lost,
}

/// Where reading has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Behind the last record that was written.
    Reached,
    /// Before a record that was not taken.
    NotYet,
    /// The segment, or what a record refers to, is not there any more.
    Lost,
}

/// See the module's comment. A copy reads on from the same place.
#[derive(Clone)]
pub struct LogTail {
    maker: SegmentMaker,
    number: u64,
    found: SegmentFile,
    offset: u64,
    /// What the log goes on with, once that was found.
    next: Option<Next>,
    links: Links,
    /// The first write of the last record that was taken.
    last_sequence: Sequence,
}

/// What comes behind a segment.
enum Successor {
    None,
    Segment(Next),
    Lost,
}

/// A segment that leads back to another one.
#[derive(Clone)]
struct Next {
    number: u64,
    found: SegmentFile,
    /// Where the records of the one before end. Recovery leaves out an intact record that lies
    /// behind this: it is no part of the log.
    previous_end: u64,
}

impl LogTail {
    /// A reader at `position`; none if that segment is not there.
    pub fn at(maker: SegmentMaker, position: Position) -> Result<Option<LogTail>> {
        let place = segments(&maker, position.segment)?.remove(&position.segment);
        let found = place.map(|path| open_segment(&maker, position.segment, &path)).transpose()?.flatten();
        Ok(found.map(|found| LogTail {
            maker,
            number: position.segment,
            found,
            offset: position.offset.max(HEADER_BYTES as u64),
            next: None,
            links: Links::default(),
            last_sequence: 0,
        }))
    }

    /// A reader that begins at the segment with the write `from`, or at one before it. None if the
    /// links do not lead back to that, nor to segment `oldest`. `floor`: the first segment that a
    /// recovery reads.
    pub fn from(maker: SegmentMaker, from: Sequence, oldest: u64, floor: u64) -> Result<Option<LogTail>> {
        let all = segments(&maker, 0)?;
        let mut next = None;
        for (&number, path) in all.iter().rev() {
            let Some(found) = open_segment(&maker, number, path)? else { continue };
            if let Some(link) = read_link(&found, number)? {
                next = Some((number, found, link));
                break;
            }
        }
        while let Some((number, found, link)) = next.take() {
            // From the floor on, an open has found no record. It leads back to none of the segments
            // there, and may have ended before a manifest says so.
            let is_first = link.previous_end == 0 && oldest >= floor;
            if number <= oldest || is_first || first_sequence(number, &found)?.is_some_and(|first| first <= from) {
                let (offset, links) = (HEADER_BYTES as u64, Links::default());
                return Ok(Some(LogTail { maker, number, found, offset, next: None, links, last_sequence: 0 }));
            }
            let previous = link.previous_number;
            let path = all.get(&previous).filter(|_| previous < number);
            if let Some(before) = path.map(|path| open_segment(&maker, previous, path)).transpose()?.flatten() {
                next = read_link(&before, previous)?.map(|link| (previous, before, link));
            }
        }
        Ok(None)
    }

    /// Where it is.
    pub fn position(&self) -> Position {
        Position { segment: self.number, offset: self.offset }
    }

    /// The error that the record here is damaged, which was written and does not verify.
    pub fn damage(&self) -> Error {
        Error::corruption(&self.found.path, self.offset, "a log record that was written is not intact")
    }

    /// Hands every batch that has come since to `visit`, with the position of its record. `newest`:
    /// the number of the segment that is written to, where that is known; no other is looked for
    /// behind it.
    pub fn read(
        &mut self,
        newest: Option<u64>,
        visit: &mut dyn FnMut(Record<'_>, Position) -> Result<Taken>,
    ) -> Result<End> {
        // A recovery of another process may have given up what was found, and begun another one.
        if newest.is_none() {
            self.next = None;
        }
        while newest != Some(self.number) {
            // Before the records are read: behind the end that it tells, nothing is part of it.
            if self.next.is_none() {
                match self.successor(newest.is_some())? {
                    Successor::Segment(next) => self.next = Some(next),
                    Successor::Lost => return Ok(End::Lost),
                    // A segment has its link before it is the newest one.
                    Successor::None if newest.is_some() => return Ok(End::Lost),
                    Successor::None => break,
                }
            }
            let read = self.read_segment(visit)?;
            if read != End::Reached {
                return Ok(read);
            }
            if let Some(Next { number, found, previous_end }) = self.next.take() {
                // Fewer: the rest was lost. More: a recovery has cut off what was read.
                if self.offset != previous_end {
                    return Ok(End::Lost);
                }
                (self.number, self.found, self.offset) = (number, found, HEADER_BYTES as u64);
            }
        }
        self.read_segment(visit)
    }

    fn read_segment(&mut self, visit: &mut dyn FnMut(Record<'_>, Position) -> Result<Taken>) -> Result<End> {
        // A new one each time: it keeps what it has read.
        let mut reader = SegmentReader::new(self.number, &self.found);
        let path = self.found.path.clone();
        let end = self.next.as_ref().map_or(u64::MAX, |next| next.previous_end);
        while self.offset < end {
            let Some((header, payload)) = reader.record(self.offset)? else { break };
            if header.kind == RecordType::Batch {
                // Numbers ascend, unless it is another log.
                if header.sequence <= self.last_sequence {
                    return Ok(End::Lost);
                }
                let offset = self.offset + RECORD_HEADER_BYTES as u64;
                let (sequence, segment) = (header.sequence, self.number);
                let record = Record { sequence, payload, segment, path: &path, offset };
                match visit(record, Position { segment: self.number, offset: self.offset })? {
                    Taken::Yes => self.last_sequence = header.sequence,
                    Taken::NotYet => return Ok(End::NotYet),
                    Taken::Lost => return Ok(End::Lost),
                }
            }
            self.offset += record_bytes(header.payload_bytes);
        }
        Ok(End::Reached)
    }

    /// What the log goes on with. The newest segment that leads back here counts: an older one may
    /// have been given up by a recovery. `is_own`: this process writes; no other recovers then.
    ///
    /// A segment whose link is known is not searched for; its link is read again. If another one
    /// leads back here too, a recovery has begun it, in a new file (`wal/writer.rs`): its name
    /// tells. That there is none is only said after a look at all files.
    fn successor(&mut self, is_own: bool) -> Result<Successor> {
        if is_own && let Some(successor) = self.known_successor()? {
            return Ok(successor);
        }
        for looks_again in [false, true] {
            let looks_at_all = self.links.names.is_empty();
            let has_seen_all = self.links.read_unknown(&self.maker, self.number)?;
            if let Some(successor) = self.known_successor()? {
                return Ok(successor);
            }
            // A file may have been used again since, or gone while this looked.
            let may_be_there = !looks_at_all || !has_seen_all || self.links.newest_behind(self.number).is_some();
            if looks_again || !may_be_there {
                break;
            }
            self.links = Links::default();
        }
        let is_passed = self.links.files.keys().any(|(previous, _)| *previous != self.number);
        // An open that failed may have taken the segment away, and the next one have given its
        // number to another.
        let same = open_segment(&self.maker, self.number, &self.found.path)?;
        let is_there = same.is_some_and(|same| same.salt == self.found.salt);
        Ok(if is_passed || !is_there { Successor::Lost } else { Successor::None })
    }

    /// The newest segment that is known to lead back here, if it still does.
    fn known_successor(&self) -> Result<Option<Successor>> {
        let Some((number, path)) = self.links.newest_behind(self.number) else { return Ok(None) };
        let Some(found) = open_segment(&self.maker, number, path)? else { return Ok(None) };
        let link = read_link(&found, number)?.filter(|link| link.previous_number == self.number);
        Ok(link.map(|link| match link.previous_end {
            // Everything before it is in tables.
            0 => Successor::Lost,
            previous_end => Successor::Segment(Next { number, found, previous_end }),
        }))
    }
}

/// The links of the segments behind the one that is read, as they were found: of a log of many
/// segments, each is read once, and not at each step. A file may be gone since, or have another
/// segment: who goes by a link reads it again.
#[derive(Clone, Default)]
struct Links {
    /// The names of the files that need not be looked at again.
    names: BTreeSet<String>,
    /// By the number of the segment that the link leads back to, and the file's own.
    files: BTreeMap<(u64, u64), PathBuf>,
}

impl Links {
    /// The newest segment that leads back to `number`, as far as is known.
    fn newest_behind(&self, number: u64) -> Option<(u64, &PathBuf)> {
        let later = (number, number + 1)..=(number, u64::MAX);
        self.files.range(later).next_back().map(|(&(_, own), path)| (own, path))
    }

    /// Looks at the files in the directory that are not known, and takes the links of segments
    /// behind `number`. Whether all were still there.
    fn read_unknown(&mut self, maker: &SegmentMaker, number: u64) -> Result<bool> {
        let mut all = true;
        for (_, name) in maker.files()? {
            if self.names.contains(&name) {
                continue;
            }
            let (own, found) = match open(maker, maker.directory.join(&name))? {
                Opened::Segment(own, found) => (own, found),
                Opened::Other => continue,
                Opened::Gone => {
                    all = false;
                    continue;
                }
            };
            if own > number {
                // One that is being prepared will have a link.
                let Some(link) = read_link(&found, own)? else { continue };
                self.files.insert((link.previous_number, own), found.path);
            }
            self.names.insert(name);
        }
        Ok(all)
    }
}

/// The files in the directory that have a segment, by the numbers in their headers: those with at
/// least this number. Files that vanish meanwhile, or are being prepared, are none.
fn segments(maker: &SegmentMaker, at_least: u64) -> Result<BTreeMap<u64, PathBuf>> {
    let mut segments = BTreeMap::new();
    for (_, name) in maker.files()? {
        let path = maker.directory.join(&name);
        if let Opened::Segment(number, found) = open(maker, path)?
            && number >= at_least
        {
            segments.insert(number, found.path);
        }
    }
    Ok(segments)
}

/// What there is under the name of a file of the log.
enum Opened {
    Segment(u64, SegmentFile),
    /// A file that is being prepared.
    Other,
    Gone,
}

/// Opens a file, and says which segment it has.
fn open(maker: &SegmentMaker, path: PathBuf) -> Result<Opened> {
    let file = match maker.open(&path) {
        Ok(file) => file,
        Err(error) if error.is_missing_file() => return Ok(Opened::Gone),
        Err(error) => return Err(error),
    };
    let mut header = [0; HEADER_BYTES];
    if file.len() < HEADER_BYTES as u64 + record_bytes(24) {
        return Ok(Opened::Other);
    }
    file.read_at(0, &mut header)?;
    let Some(header) = decode_header(&path, &header)? else { return Ok(Opened::Other) };
    let mut found = SegmentFile::new(path, file);
    found.salt = header.salt;
    Ok(Opened::Segment(header.number, found))
}

/// Opens the file of a segment, unless it has another one by now.
fn open_segment(maker: &SegmentMaker, number: u64, path: &Path) -> Result<Option<SegmentFile>> {
    match open(maker, path.to_path_buf())? {
        Opened::Segment(other, found) if other == number => Ok(Some(found)),
        _ => Ok(None),
    }
}
