//! Byte coding: little-endian integers, varints, length-prefixed strings, and a [`Cursor`] that can
//! neither read past its slice nor trust a length found in it.

use crate::error::Error;
use std::path::Path;

/// Appends `value` as a LEB128 varint: seven bits a byte, lowest first.
pub fn put_varint(buffer: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        buffer.push(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.push(value as u8);
}

/// Appends `bytes` behind their length as a varint.
pub fn put_bytes(buffer: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(buffer, bytes.len() as u64);
    buffer.extend_from_slice(bytes);
}

/// The cause of a failed decode: what was wanted and at which offset of the slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    /// Offset in the decoded slice.
    pub offset: usize,
    /// What was expected there.
    pub expected: &'static str,
}

impl DecodeError {
    /// The error as corruption of `path`, where the decoded slice begins at `base`.
    pub fn at(self, path: &Path, base: u64) -> Error {
        Error::corruption(path, base + self.offset as u64, format!("expected {}", self.expected))
    }
}

/// Reads typed values from the front of a slice. Every length is checked against what is left.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, offset: 0 }
    }

    /// How far the cursor has come.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.offset == self.bytes.len()
    }

    /// The error that something else was expected here.
    pub fn expected(&self, expected: &'static str) -> DecodeError {
        DecodeError { offset: self.offset, expected }
    }

    /// The next `length` bytes.
    pub fn take(&mut self, length: usize, expected: &'static str) -> std::result::Result<&'a [u8], DecodeError> {
        let rest = &self.bytes[self.offset..];
        let taken = rest.get(..length).ok_or(self.expected(expected))?;
        self.offset += length;
        Ok(taken)
    }

    /// One byte.
    pub fn byte(&mut self, expected: &'static str) -> std::result::Result<u8, DecodeError> {
        Ok(self.take(1, expected)?[0])
    }

    /// A little-endian `u32`.
    pub fn u32(&mut self, expected: &'static str) -> std::result::Result<u32, DecodeError> {
        let bytes = self.take(4, expected)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A little-endian `u64`.
    pub fn u64(&mut self, expected: &'static str) -> std::result::Result<u64, DecodeError> {
        let mut array = [0u8; 8];
        array.copy_from_slice(self.take(8, expected)?);
        Ok(u64::from_le_bytes(array))
    }

    /// A varint of at most ten bytes.
    pub fn varint(&mut self, expected: &'static str) -> std::result::Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(expected)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(self.expected(expected));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.expected(expected))
    }

    /// Bytes behind their length as a varint.
    pub fn bytes(&mut self, expected: &'static str) -> std::result::Result<&'a [u8], DecodeError> {
        let length = self.varint(expected)?;
        let length = usize::try_from(length).map_err(|_| self.expected(expected))?;
        self.take(length, expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_every_width() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut buffer = Vec::new();
                put_varint(&mut buffer, value);
                let mut cursor = Cursor::new(&buffer);
                assert_eq!(cursor.varint("n"), Ok(value));
                assert!(cursor.is_empty());
            }
        }
    }

    #[test]
    fn hostile_lengths_are_refused() {
        let mut buffer = Vec::new();
        put_varint(&mut buffer, u64::MAX);
        assert!(Cursor::new(&buffer).bytes("x").is_err());
        assert!(Cursor::new(&[0x80; 11]).varint("x").is_err());
        assert!(Cursor::new(&[0xff; 10]).varint("x").is_err());
        assert!(Cursor::new(&[]).u32("x").is_err());
    }
}
