//! The write-ahead log: doc/format/wal.md.

use crate::bytes::{Input, Read, checksum, ensure};
use crate::operation::{Operation, operations};

const HEADER_BYTES: usize = 64;
const RECORD_HEADER_BYTES: usize = 24;

/// A file with an intact header.
#[derive(Debug)]
pub struct Segment {
    pub name: String,
    pub number: u64,
    salt: u64,
    bytes: Vec<u8>,
}

/// Where a segment says that the one before it ended.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub number: u64,
    pub end: u64,
    pub synced: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Batch,
    Link,
    Close,
}

struct Record<'a> {
    kind: Kind,
    sequence: u64,
    synced: u64,
    payload: &'a [u8],
    end: usize,
}

/// A batch, with the number of its first operation.
#[derive(Debug)]
pub struct Batch {
    pub sequence: u64,
    pub operations: Vec<Operation>,
}

/// What one segment says.
pub struct Contents {
    pub batches: Vec<Batch>,
    /// Where its records end.
    pub end: u64,
    pub is_closed: bool,
}

impl Segment {
    /// Reads the header; none for a file whose preparation was cut short.
    pub fn read(name: &str, bytes: Vec<u8>) -> Read<Option<Segment>> {
        if bytes.len() < HEADER_BYTES {
            return Ok(None);
        }
        let mut input = Input::new(&bytes[..HEADER_BYTES]);
        let magic = input.take(8)?;
        let (version, zero) = (input.u32()?, input.u32()?);
        let (number, length, salt) = (input.u64()?, input.u64()?, input.u64()?);
        let zeroes = input.zeroes(20);
        if input.u32()? != checksum(&bytes[..60], 0, 0) {
            return Ok(None);
        }
        ensure!(magic == b"ESKERWAL" && version == 2 && zero == 0 && zeroes.is_ok(), "header of {name}");
        ensure!(length == bytes.len() as u64, "{name} has {} bytes, not {length}", bytes.len());
        Ok(Some(Segment { name: name.into(), number, salt, bytes }))
    }

    /// The record at an offset, if it verifies.
    fn record(&self, offset: usize) -> Read<Option<Record<'_>>> {
        let mut input = Input::new(&self.bytes);
        if input.take(offset).is_err() || input.take(RECORD_HEADER_BYTES).is_err() {
            return Ok(None);
        }
        let header = &self.bytes[offset..offset + RECORD_HEADER_BYTES];
        let mut fields = Input::new(header);
        let (sum, length, sequence, synced) = (fields.u32()?, fields.u32()?, fields.u64()?, fields.u64()?);
        let Ok(payload) = input.take(length as usize) else { return Ok(None) };
        if sum != checksum(&self.bytes[offset + 4..input.at()], self.number, offset as u64) {
            return Ok(None);
        }
        let mut checked: [u8; 20] = header[4..].try_into().expect("the header has 24 bytes");
        checked[17..].fill(0);
        let check = u64::from(checksum(&checked, self.salt, offset as u64) >> 8);
        ensure!(synced >> 40 == check, "header check of the record at {offset} of {}", self.name);
        let synced = synced & ((1 << 40) - 1);
        ensure!(synced % 8 == 0 && synced <= offset as u64, "record at {offset}: synced up to {synced}");
        let kind = match sequence & 0xff {
            1 => Kind::Batch,
            2 => Kind::Link,
            3 => Kind::Close,
            other => return Err(format!("record at {offset} of type {other}")),
        };
        let padding = input.at().next_multiple_of(8) - input.at();
        // It is not written, and so has bytes of an earlier life in a file that had one.
        let padding = input.take(padding)?;
        let is_zero = padding.iter().all(|&byte| byte == 0);
        ensure!(is_zero || self.is_used_again()?, "{}: padding of the record at {offset}", self.name);
        Ok(Some(Record { kind, sequence: sequence >> 8, synced, payload, end: input.at() }))
    }

    /// The first record, which says what was before this segment.
    pub fn link(&self) -> Read<Option<Link>> {
        let Some(record) = self.record(HEADER_BYTES)? else { return Ok(None) };
        ensure!(record.kind == Kind::Link && record.sequence == 0, "{} does not begin with a link", self.name);
        let mut input = Input::new(record.payload);
        let link = Link { number: input.u64()?, end: input.u64()?, synced: input.u64()? };
        input.end("the link")?;
        Ok(Some(link))
    }

    /// Reads forward, up to the first record that does not verify. Large values are part of their
    /// record: `is_whole` says of each operation whether its value verifies or is not needed.
    pub fn contents(&self, is_whole: &dyn Fn(u64, &Operation) -> bool) -> Read<Contents> {
        let link = self.record(HEADER_BYTES)?.ok_or_else(|| format!("{} has no link", self.name))?;
        let mut contents = Contents { batches: Vec::new(), end: link.end as u64, is_closed: false };
        let mut synced = link.synced;
        while let Some(record) = self.record(contents.end as usize)? {
            ensure!(record.synced >= synced, "{}: synced goes back at {}", self.name, contents.end);
            synced = record.synced;
            match record.kind {
                Kind::Batch => {
                    let operations = operations(record.payload).map_err(|what| {
                        format!("batch at {} of {}: {what}: {:02x?}", contents.end, self.name, record.payload)
                    })?;
                    ensure!(!operations.is_empty(), "an empty batch");
                    if !(record.sequence..).zip(&operations).all(|(sequence, one)| is_whole(sequence, one)) {
                        break;
                    }
                    contents.batches.push(Batch { sequence: record.sequence, operations });
                }
                Kind::Close => {
                    ensure!(record.payload.is_empty() && synced == contents.end, "closing record");
                    contents.is_closed = true;
                }
                Kind::Link => return Err(format!("a link in the middle of {}", self.name)),
            }
            contents.end = record.end as u64;
            if contents.is_closed {
                break;
            }
        }
        ensure!(!self.is_vouched_for(contents.end)?, "{} goes on behind {}", self.name, contents.end);
        Ok(contents)
    }

    /// Whether a record behind a place says that everything up to more than that is on the device.
    fn is_vouched_for(&self, end: u64) -> Read<bool> {
        for offset in (end as usize + 8..self.bytes.len()).step_by(8) {
            if self.record(offset)?.is_some_and(|record| record.synced > end) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The number that the file was made with, and still has in its name.
    fn first_number(&self) -> Read<u64> {
        let first = self.name.trim_end_matches(".wal").parse().map_err(|_| format!("a segment named {}", self.name))?;
        ensure!(first <= self.number, "{} has the number {}", self.name, self.number);
        Ok(first)
    }

    /// Whether the file had another number before.
    pub fn is_used_again(&self) -> Read<bool> {
        Ok(self.first_number()? < self.number)
    }

    /// Whether all bytes from there on are what the page allows: zeroes in a file that never had
    /// another number, else records of earlier lives, each cut short at most at its beginning.
    pub fn check_rest(&self, end: u64) -> Read<()> {
        let mut numbers = self.first_number()?..self.number;
        let mut at = end as usize;
        while let Some(used) = self.bytes[at..].iter().position(|&byte| byte != 0) {
            at += used / 8 * 8;
            let earlier = (at..self.bytes.len()).step_by(8).find_map(|offset| {
                let number = numbers.clone().rev().find(|&number| self.verifies_as(number, offset))?;
                Some((number, offset))
            });
            let Some((number, offset)) = earlier else {
                ensure!(numbers.start < numbers.end, "{} has bytes behind its end, at {at}", self.name);
                return Ok(()); // a record of the last life that was cut at its beginning
            };
            numbers.end = number;
            at = offset;
            while self.verifies_as(number, at) {
                let length = u32::from_le_bytes(self.bytes[at + 4..at + 8].try_into().expect("four bytes"));
                at = (at + RECORD_HEADER_BYTES + length as usize).next_multiple_of(8);
            }
        }
        Ok(())
    }

    fn verifies_as(&self, number: u64, offset: usize) -> bool {
        let Some(header) = self.bytes.get(offset..offset + RECORD_HEADER_BYTES) else { return false };
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let covered = self.bytes.get(offset + 4..offset + RECORD_HEADER_BYTES + word(4) as usize);
        covered.is_some_and(|covered| checksum(covered, number, offset as u64) == word(0))
    }
}

/// The end of the link of a segment in which nothing is written yet, or of its header.
pub fn begin(segment: &Segment) -> Read<u64> {
    Ok(segment.record(HEADER_BYTES)?.map_or(HEADER_BYTES, |record| record.end) as u64)
}
