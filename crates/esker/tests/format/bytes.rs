//! What all formats are made of: integers, varints, byte strings, and the one checksum.

use twox_hash::XxHash3_64;

/// What is wrong with the bytes, and where.
pub type Read<T> = Result<T, String>;

/// Ends the function with a complaint unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($what:tt)*) => {
        if !$condition {
            return Err(format!($($what)*));
        }
    };
}
pub(crate) use ensure;

/// Bytes that are read front to back.
#[derive(Clone)]
pub struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes, at: 0 }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub fn take(&mut self, count: usize) -> Read<&'a [u8]> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| format!("{count} bytes at {} of {}", self.at, self.bytes.len()))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("take yields as many as it is asked for"))
    }

    pub fn u8(&mut self) -> Read<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u32(&mut self) -> Read<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Read<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// An integer of so many bytes.
    pub fn wide(&mut self, bytes: usize) -> Read<u64> {
        Ok(self.take(bytes)?.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// LEB128: seven bits a byte, lowest first.
    pub fn varint(&mut self) -> Read<u64> {
        let (begin, mut number) = (self.at, 0u128);
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            number |= u128::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                ensure!(byte != 0 || shift == 0, "a varint at {begin} that is longer than it has to be");
                return u64::try_from(number).map_err(|_| format!("a varint at {begin} beyond 64 bits"));
            }
        }
        Err(format!("a varint at {begin} without end"))
    }

    /// A length as a varint, and so many bytes.
    pub fn string(&mut self) -> Read<&'a [u8]> {
        let length = self.size()?;
        self.take(length)
    }

    pub fn text(&mut self) -> Read<String> {
        String::from_utf8(self.string()?.to_vec()).map_err(|problem| problem.to_string())
    }

    /// A varint that counts bytes or things in memory.
    pub fn size(&mut self) -> Read<usize> {
        usize::try_from(self.varint()?).map_err(|problem| problem.to_string())
    }

    pub fn zeroes(&mut self, count: usize) -> Read<()> {
        let at = self.at;
        ensure!(self.take(count)?.iter().all(|&byte| byte == 0), "bytes at {at} that are to be zero");
        Ok(())
    }

    pub fn end(&self, what: &str) -> Read<()> {
        ensure!(self.is_empty(), "{what} has {} bytes that nothing explains", self.bytes.len() - self.at);
        Ok(())
    }
}

/// The checksum of the bytes at that place.
pub fn checksum(bytes: &[u8], file: u64, offset: u64) -> u32 {
    const FIRST: u64 = 0x9E37_79B1_85EB_CA87;
    const SECOND: u64 = 0xC2B2_AE3D_27D4_EB4F;
    let place = file.wrapping_mul(FIRST) ^ offset.wrapping_mul(SECOND);
    ((XxHash3_64::oneshot(bytes) ^ place).wrapping_mul(FIRST) >> 32) as u32
}

/// Decompresses `raw_bytes:u32 (lz4_block | zstd_frame)`.
pub fn decompressed(bytes: &[u8], kind: u8) -> Read<Vec<u8>> {
    let mut input = Input::new(bytes);
    let raw_bytes = input.u32()? as usize;
    let compressed = input.take(bytes.len() - 4)?;
    let raw = match kind {
        1 => lz4_flex::block::decompress(compressed, raw_bytes).map_err(|problem| problem.to_string())?,
        2 => zstd_frame(compressed, raw_bytes)?,
        other => return Err(format!("compression {other}")),
    };
    ensure!(raw.len() == raw_bytes, "{} bytes where {raw_bytes} are announced", raw.len());
    Ok(raw)
}

#[cfg(feature = "zstd")]
fn zstd_frame(compressed: &[u8], raw_bytes: usize) -> Read<Vec<u8>> {
    zstd::bulk::decompress(compressed, raw_bytes).map_err(|problem| problem.to_string())
}

#[cfg(not(feature = "zstd"))]
fn zstd_frame(_: &[u8], _: usize) -> Read<Vec<u8>> {
    Err("zstd, in a build without it".into())
}
