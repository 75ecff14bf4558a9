//! The one checksum of every file: XXH3-64, cut to 32 bits, seeded with where the bytes belong, so
//! that a block in the wrong place, or left over from a file's earlier life, never verifies.

use twox_hash::XxHash3_64;

/// The checksum of `bytes` that belong at `offset` of the file (or log segment) with number `file`.
#[inline]
pub fn checksum(file: u64, offset: u64, bytes: &[u8]) -> u32 {
    // The place is mixed in after hashing: hashing with a seed is slower for long inputs. Both
    // multipliers are odd (the first two primes of XXH64), so every place changes the result.
    let place = file.wrapping_mul(0x9E37_79B1_85EB_CA87) ^ offset.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    let mixed = (XxHash3_64::oneshot(bytes) ^ place).wrapping_mul(0x9E37_79B1_85EB_CA87);
    (mixed >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_file_and_offset_all_matter() {
        let sum = checksum(1, 2, b"abc");
        assert_ne!(sum, checksum(1, 2, b"abd"));
        assert_ne!(sum, checksum(2, 2, b"abc"));
        assert_ne!(sum, checksum(1, 3, b"abc"));
    }
}
