//! Blob files, which hold large values: doc/format/blob.md.

use crate::bytes::{Input, Read, checksum, decompressed, ensure};

/// A blob file: its version, and its bytes.
#[derive(Debug)]
pub struct Blob {
    number: u64,
    pub version: u32,
    bytes: Vec<u8>,
}

/// What stands in place of a large value.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    pub file: u64,
    pub offset: u64,
    stored: u32,
    checksum: u32,
}

impl Reference {
    pub fn read(bytes: &[u8]) -> Read<Reference> {
        let mut input = Input::new(bytes);
        let reference =
            Reference { file: input.u64()?, offset: input.u64()?, stored: input.u32()?, checksum: input.u32()? };
        input.end("the reference")?;
        Ok(reference)
    }

    fn bytes(self) -> usize {
        (self.stored & 0x7fff_ffff) as usize
    }

    fn is_compressed(self) -> bool {
        self.stored >> 31 == 1
    }

    /// What the value takes in its file: header, value and padding.
    pub fn file_bytes(self) -> u64 {
        (8 + self.bytes()).next_multiple_of(8) as u64
    }
}

impl Blob {
    pub fn read(number: u64, bytes: Vec<u8>) -> Read<Blob> {
        let mut input = Input::new(&bytes);
        ensure!(input.take(8)? == b"eskerBLB", "magic number of blob file {number}");
        let version = input.u32()?;
        ensure!((1..=3).contains(&version), "version {version} of a blob file");
        input.zeroes(4)?;
        ensure!(input.u64()? == number, "number of blob file {number}");
        input.zeroes(4)?;
        ensure!(input.u32()? == checksum(&bytes[..28], number, 0), "header of blob file {number}");
        Ok(Blob { number, version, bytes })
    }

    /// The value of a reference.
    pub fn value(&self, reference: Reference) -> Read<Vec<u8>> {
        let end = (reference.offset as usize).checked_add(reference.bytes());
        let stored = end.and_then(|end| self.bytes.get(reference.offset as usize..end));
        let stored = stored.ok_or_else(|| format!("blob file {} ends before {reference:?}", self.number))?;
        let place = reference.offset + u64::from(reference.is_compressed());
        ensure!(checksum(stored, self.number, place) == reference.checksum, "the value of {reference:?}");
        match (reference.is_compressed(), self.version) {
            (false, _) => Ok(stored.to_vec()),
            (true, 2) => decompressed(stored, 1),
            (true, 3) => decompressed(stored, 2),
            (true, version) => Err(format!("a compressed value in a blob file of version {version}")),
        }
    }

    /// Reads all records front to back, and says where they end.
    pub fn records(&self) -> Read<(Vec<Reference>, u64)> {
        let mut input = Input::new(&self.bytes);
        input.take(32)?;
        let (mut found, mut end) = (Vec::new(), 32);
        while !input.is_empty() {
            let Ok((reference, behind)) = self.record(input.clone()) else { break };
            found.push(reference);
            end = behind as u64;
            input = Input::new(&self.bytes);
            input.take(behind)?;
        }
        Ok((found, end))
    }

    fn record(&self, mut input: Input<'_>) -> Read<(Reference, usize)> {
        let (sum, stored) = (input.u32()?, input.u32()?);
        let reference = Reference { file: self.number, offset: input.at() as u64, stored, checksum: sum };
        self.value(reference)?;
        input.take(reference.bytes())?;
        if !input.is_empty() {
            let padding = input.at().next_multiple_of(8) - input.at();
            input.zeroes(padding)?;
        }
        Ok((reference, input.at()))
    }

    /// How many values it has, and how many of them are compressed.
    pub fn counts(&self) -> (usize, usize) {
        let (values, _) = self.records().unwrap_or_default();
        (values.len(), values.iter().filter(|value| value.is_compressed()).count())
    }

    /// Whether the records are the whole file.
    pub fn check_whole(&self) -> Read<()> {
        let (_, end) = self.records()?;
        ensure!(end == self.bytes.len() as u64, "blob file {}: {end} of {} bytes", self.number, self.bytes.len());
        Ok(())
    }
}
